//! The end of a binding that directs the traffic of an interface (S-LIFE-7), or is a monitor's: it is
//! not over before the stack has the interface back, or the next monitor the packets.
//!
//! The daemon learns of the end of a connection by itself, but the client does not learn when. Whether
//! this was its end, or whether another process has the connection too, the daemon alone knows. So
//! before a process closes its last descriptor of the connection it asks on it for another one, and
//! after that it asks on the other whatever it likes: the daemon sees which have gone before it
//! answers.

use ringway_proto::{Grant, Request};
use rustix::fd::OwnedFd;

use crate::binding::Binding;

/// Waits, when it is dropped, until the daemon has seen what became of a connection. Drop it after
/// the last descriptor of the connection was closed.
#[derive(Debug)]
#[must_use = "what is dropped before the connection has waited for nothing"]
pub struct CloseBarrier(OwnedFd);

impl CloseBarrier {
    /// For a binding that is about to go. `None` where its end changes nothing for others, or where
    /// there is no daemon to ask.
    pub fn to(binding: &Binding) -> Option<CloseBarrier> {
        let ask = binding.all_rings().find_map(|ring| ring.keeps_traffic()?.ask.as_ref())?;
        ask.socket(Request::Barrier).map(CloseBarrier)
    }
}

impl Drop for CloseBarrier {
    fn drop(&mut self) {
        // Any answer will do, and none is one.
        let _ = ringway_ipc::call::<Box<Grant>>(&self.0, &Request::Describe);
    }
}
