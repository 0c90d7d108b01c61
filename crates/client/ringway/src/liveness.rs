//! Noticing the end of the daemon where nobody waits for anything: a program that only syncs.
//!
//! The connection hangs up then, and who waits hears it. Who does not would go on for ever with rings
//! that stand still, or whose packets go nowhere. So every so many syncs of such a ring look at the
//! connection, which costs them together one system call.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, OwnedFd},
};

/// Syncs from one look to the next: a look costs as much as ten of them.
const SYNCS: u32 = 4096;

/// Counts the syncs of one ring.
#[derive(Debug)]
pub(crate) struct DaemonLiveness {
    connection: Arc<OwnedFd>,
    syncs: AtomicU32,
}

impl DaemonLiveness {
    pub fn of(connection: &Arc<OwnedFd>) -> DaemonLiveness {
        DaemonLiveness { connection: connection.clone(), syncs: AtomicU32::new(0) }
    }

    /// Counts a sync. True if the daemon has ended, and this was one that looked.
    #[inline]
    pub fn has_stopped(&self) -> bool {
        // Threads that count at once may miss some, but none of them misses all.
        let syncs = self.syncs.load(Relaxed).wrapping_add(1);
        self.syncs.store(syncs, Relaxed);
        syncs.is_multiple_of(SYNCS) && has_hung_up(&self.connection)
    }
}

/// Whether the daemon has closed its end of a connection, for good.
#[cold]
pub(crate) fn has_hung_up(connection: impl AsFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::new(&connection, PollFlags::empty())];
    poll(&mut fds, Some(&now)) == Ok(1) && fds[0].revents().contains(PollFlags::HUP)
}
