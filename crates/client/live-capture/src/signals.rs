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
const PORT: u32 = 4;

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
        self.interrupt(BREAK);
    }

    /// There is another port to read from.
    pub(crate) fn port_changed(&self) {
        self.interrupt(PORT);
    }

    fn interrupt(&self, bit: u32) {
        // Written before the bit is set: the reader that takes the bit drains the descriptor.
        if let Some(wake) = self.wake.get() {
            // It is full only if it is readable.
            let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
        }
        self.bits.fetch_or(bit, SeqCst);
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
        self.bits.load(Acquire) & BREAK != 0 && self.took(BREAK)
    }

    /// Whether there is another port: told once.
    #[inline]
    pub(crate) fn take_port(&self) -> bool {
        self.bits.load(Acquire) & PORT != 0 && self.took(PORT)
    }

    #[cold]
    fn took(&self, bit: u32) -> bool {
        let before = self.bits.fetch_and(!bit, SeqCst);
        // What else there is has to wake the reader still.
        if before & (BREAK | PORT) & !bit == 0
            && let Some(wake) = self.wake.get()
        {
            let _ = rustix::io::read(wake, &mut [0; 8]);
        }
        before & bit != 0
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
