//! What Ringway's whole-program tests stand on: network namespaces, processes and proof of a clean
//! machine afterwards.
//!
//! Everything made here is undone by `Drop`, so a test that panics leaves nothing behind. Nothing
//! here touches an interface that it did not make. A failure panics with the command and its output:
//! a test has no better use for the error.

mod netns;
mod proc;
mod skip;
mod snapshot;

pub use netns::{Netns, VethPair, isolate_thread, unique_name};
pub use proc::Proc;
pub use skip::{is_root, skip_without_root};
pub use snapshot::Snapshot;
