//! What a listening socket does not tell of its interface.
//!
//! The kernel raises an error when the interface goes down, and none when one goes that is down already. So a wait on
//! a socket whose interface is down does not last for ever.

use std::{
    os::fd::BorrowedFd,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use rustix::{io::Errno, net::sockopt::socket_error};

/// From one look to the next for an interface that is down.
const DOWN: Duration = Duration::from_millis(100);

/// See the file's description.
#[derive(Debug, Default)]
pub struct LinkWatch {
    /// The interface was down when it was last heard of.
    down: AtomicBool,
}

impl LinkWatch {
    /// Takes the error of the socket, which ends every wait until then.
    ///
    /// # Errors
    /// Others than that the interface is down: it may come up again.
    pub fn take_error(&self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        match socket_error(socket).unwrap_or(Ok(())) {
            Err(Errno::NETDOWN) => {
                self.down.store(true, Relaxed);
                Ok(())
            }
            other => other,
        }
    }

    /// A packet has come.
    #[inline]
    pub fn heard(&self) {
        if self.down.load(Relaxed) {
            self.down.store(false, Relaxed);
        }
    }

    /// How long a wait lasts at most, before [`has_lost_interface`](crate::has_lost_interface) is asked.
    pub fn longest_wait(&self) -> Option<Duration> {
        self.down.load(Relaxed).then_some(DOWN)
    }
}
