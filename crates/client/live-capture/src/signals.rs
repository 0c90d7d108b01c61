//! What a reading thread is told while it reads: by other threads, by signal handlers, and by callbacks.
//!
//! A caller sets its bit, and then makes the descriptor readable. The reader drains the descriptor while no bit is set,
//! looks at the bits again, and makes it readable again if one was set meanwhile. So a bit that is set and not yet taken
//! ends a sleep, however many threads call.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, SeqCst},
};

use rustix::{
    event::{EventfdFlags, PollFlags, eventfd},
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
        self.bits.fetch_or(bit, SeqCst);
        self.wake();
    }

    /// Ends a sleep that is under way, or the next one.
    pub(crate) fn wake(&self) {
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
        self.settle();
        before & bit != 0
    }

    /// After a sleep for several descriptors, [`wake_fd`](Self::wake_fd) the last of them: what has made that readable
    /// may be taken already, as a caller writes after it has set its bit.
    pub fn slept(&self, seen: &[PollFlags]) {
        if self.wake.get().is_some() && seen.last().is_some_and(|events| !events.is_empty()) {
            self.settle();
        }
    }

    /// The descriptor is not readable any more, unless a bit is set that ends a sleep.
    fn settle(&self) {
        let wakes = || self.bits.load(SeqCst) & (BREAK | PORT) != 0;
        if !wakes()
            && let Some(wake) = self.wake.get()
        {
            let _ = rustix::io::read(wake, &mut [0; 8]);
            // It was set before this read, whose bytes may have been its.
            if wakes() {
                self.wake();
            }
        }
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

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Barrier,
            atomic::{AtomicU32, Ordering::SeqCst},
        },
        thread,
    };

    use rustix::event::{PollFd, poll};

    use super::*;

    fn is_readable(signals: &Signals) -> bool {
        let wake = signals.wake_fd().unwrap();
        let mut fds = [PollFd::from_borrowed_fd(wake, PollFlags::IN)];
        poll(&mut fds, Some(&Default::default())).unwrap() > 0
    }

    /// However the steps of two callers and a reader fall, after them a break that is pending ends a sleep.
    #[test]
    fn a_break_that_is_pending_ends_a_sleep() {
        const ROUNDS: u32 = 1_000;
        let signals = Signals::default();
        signals.arm().unwrap();
        let (begin, done) = (Barrier::new(3), AtomicU32::new(0));
        let caller = || {
            for _ in 0..ROUNDS {
                begin.wait();
                signals.break_loop();
                done.fetch_add(1, SeqCst);
            }
        };
        thread::scope(|scope| {
            let callers = [scope.spawn(caller), scope.spawn(caller)];
            let mut lost = 0;
            for number in 1..=ROUNDS {
                begin.wait();
                while done.load(SeqCst) < 2 * number {
                    signals.take_break();
                }
                lost += u32::from(signals.any() && !is_readable(&signals));
            }
            callers.into_iter().for_each(|caller| caller.join().unwrap());
            assert_eq!(lost, 0, "of {ROUNDS}");
        });
        signals.take_break();
        signals.settle();
        assert!(!is_readable(&signals), "a reader would not sleep");
    }
}
