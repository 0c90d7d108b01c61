//! A wait that the kernel does not end: an AF_XDP socket says nothing when frames have been
//! sent, nor when its link comes back.
//!
//! So who waits for room in such a ring looks again after a while: soon at first, later when
//! nothing moves.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use ringway_kring::Kring;
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};

const SOONEST_US: u32 = 100;
const LATEST_US: u32 = 20_000;

/// A timer that becomes readable when it is time to look again.
#[derive(Debug)]
pub(crate) struct Retry {
    timer: OwnedFd,
    delay_us: AtomicU32,
    seen: AtomicU32,
}

impl Retry {
    pub fn new() -> std::io::Result<Retry> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Retry {
            timer: timerfd_create(TimerfdClockId::Monotonic, flags)?,
            delay_us: AtomicU32::new(SOONEST_US),
            seen: AtomicU32::new(u32::MAX),
        })
    }

    /// Sets the timer, for longer each time that the ring has not moved since the last.
    pub fn arm(&self, kring: &Kring) {
        let at = kring.hwtail();
        let moved = self.seen.swap(at, Relaxed) != at;
        let delay = if moved { SOONEST_US } else { self.delay_us.load(Relaxed) };
        self.delay_us.store((delay * 2).min(LATEST_US), Relaxed);
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: 0, tv_nsec: i64::from(delay) * 1000 },
        };
        // It fails for an invalid time only.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
    }
}

impl AsFd for Retry {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
