//! AF_PACKET sockets for a queue, and which frames they listen to.

mod filter;
mod socket;

pub(crate) use socket::listen;
pub use socket::{RxSocket, Source, TxSocket};
