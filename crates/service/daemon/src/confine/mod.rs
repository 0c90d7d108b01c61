//! What the daemon, and each part of it, gives up before it serves anybody.

mod capabilities;
mod dumps;
mod files;
mod filter;
mod worker;

pub use capabilities::{apply, as_reader, broker, leave_netns, take_descriptors};
pub use dumps::forbid as forbid_dumps;
pub use filter::{helper, launcher};
pub use worker::worker;
