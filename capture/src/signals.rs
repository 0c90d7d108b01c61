//! What a reading thread is told while it reads: by other threads, by signal handlers, and by callbacks.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, SeqCst},
};

use rustix::{
    event::{EventfdFlags, eventfd},
    fd::{AsFd, BorrowedFd, OwnedFd},
};
use std::sync::OnceLock;

const BREAK: u32 = 1;
const FILTER: u32 = 2;

/// Looked at after each packet: one load.
#[derive(Default)]
pub struct Signals {
    bits: AtomicU32,
    /// Readable when a sleeping reader is to look.
    wake: OnceLock<OwnedFd>,
}

impl Signals {
    /// Makes what wakes a sleeping reader.
    pub fn arm(&self) -> rustix::io::Result<()> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let _ = self.wake.set(wake);
        Ok(())
    }

    /// Has the current or the next read end. A signal handler may call it: it stores and writes, and leaves
    /// `errno` alone.
    pub fn break_loop(&self) {
        self.bits.fetch_or(BREAK, SeqCst);
        if let Some(wake) = self.wake.get() {
            // It is full only if it is readable.
            let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
        }
    }

    /// There is a new filter.
    pub fn filter_changed(&self) {
        self.bits.fetch_or(FILTER, SeqCst);
    }

    #[inline]
    pub fn any(&self) -> bool {
        self.bits.load(Relaxed) != 0
    }

    /// Whether the read is to end: told once.
    #[inline]
    pub fn take_break(&self) -> bool {
        self.bits.load(Acquire) & BREAK != 0 && self.took_break()
    }

    #[cold]
    fn took_break(&self) -> bool {
        let taken = self.bits.fetch_and(!BREAK, SeqCst) & BREAK != 0;
        if let Some(wake) = self.wake.get() {
            let _ = rustix::io::read(wake, &mut [0; 8]);
        }
        taken
    }

    /// Whether there is a new filter: told once.
    #[inline]
    pub fn take_filter(&self) -> bool {
        self.bits.load(Acquire) & FILTER != 0 && self.bits.fetch_and(!FILTER, SeqCst) & FILTER != 0
    }

    /// What a sleeping reader watches beside its port.
    pub fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.wake.get().map(AsFd::as_fd)
    }
}
