//! What the daemon, and each part of it, gives up before it serves anybody.

mod capabilities;
mod dumps;
mod worker;

pub use capabilities::{apply, leave_netns};
pub use dumps::forbid as forbid_dumps;
pub use worker::worker;
