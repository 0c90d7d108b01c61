//! AF_PACKET sockets for a queue, and which frames they listen to.

mod filter;
mod socket;

pub use socket::{RxSocket, Source, TxSocket};
pub(crate) use socket::{listen, open_messages, open_messages_here};
