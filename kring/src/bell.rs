//! What a sleeping party listens to: an eventfd.

use std::io;

use rustix::{
    event::{EventfdFlags, eventfd},
    fd::{AsFd, BorrowedFd, OwnedFd},
};

/// An eventfd, non-blocking, rung by anyone who holds it. Readable while rung.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// A new, silent bell.
    pub fn new() -> io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Wakes whoever listens. A bell that is rung already stays so: the error of a full
    /// counter says just that.
    pub fn ring(&self) {
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Silences the bell. Only a party that is about to arm, to look for work and then to
    /// sleep may do so, and where others listen too it rings again if it finds work: see
    /// `csb.rs` for what else would be lost. Says whether it had been rung.
    pub fn silence(&self) -> bool {
        rustix::io::read(&self.0, &mut [0u8; 8]).is_ok()
    }

    /// A second handle on the same bell.
    pub fn try_clone(&self) -> io::Result<Bell> {
        Ok(Bell(self.0.try_clone()?))
    }
}

impl From<OwnedFd> for Bell {
    fn from(fd: OwnedFd) -> Bell {
        Bell(fd)
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
