//! Who removes a filter whose last holder has gone.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{Hook, clsact};
use crate::helper;

/// A filter of ours beside the traffic control of an interface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TcFilter {
    pub(super) ifindex: u32,
    pub(super) hook: Hook,
    /// No other has the same.
    pub(super) name: String,
}

impl TcFilter {
    /// Removes it from its interface, in the calling thread's network namespace, and what was made for it. It need
    /// not be there.
    pub fn remove(&self) -> io::Result<()> {
        clsact::remove(self.ifindex, self.hook, &self.name)
    }
}

/// A process that outlives this one, and [removes](TcFilter::remove) filters.
pub trait Guard: Send + Sync {
    /// Before there is the filter: it is to be removed, in that network namespace (`None`: that of the process
    /// that sets up), when `holders` hangs up.
    fn keep(
        &self,
        filter: TcFilter,
        holders: OwnedFd,
        netns: Option<BorrowedFd<'_>>,
    ) -> io::Result<()>;
}

static GUARD: OnceLock<Arc<dyn Guard>> = OnceLock::new();

/// From now on, and for good, `guard` removes filters, in place of threads of this process.
pub fn use_guard(guard: Arc<dyn Guard>) {
    // It is named once.
    let _ = GUARD.set(guard);
}

pub(super) fn keep(filter: TcFilter, holders: OwnedFd) -> io::Result<()> {
    let Some(guard) = GUARD.get() else {
        // A thread begins in the namespace of the one that starts it.
        let remove = move || {
            await_end(&holders);
            filter.remove()
        };
        return thread::Builder::new().name("guard".into()).spawn(remove).map(drop);
    };
    helper::with_netns(|netns| guard.keep(filter, holders, netns))
}

fn await_end(holders: &OwnedFd) {
    let mut fds = [PollFd::new(holders, PollFlags::empty())];
    while poll(&mut fds, None) == Err(Errno::INTR) {}
}
