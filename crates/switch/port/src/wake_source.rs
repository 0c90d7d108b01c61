//! What the worker sleeps on for a port that the kernel serves: descriptors, and time. The kernel does
//! not tell when it would take what it has refused; so the port tries again, soon enough and not too
//! often.

use std::{io, time::Duration};

use rustix::{
    event::epoll,
    fd::{AsFd, BorrowedFd, OwnedFd},
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};

/// Turns of the worker between two tries.
const TURNS: u32 = 64;

/// Why the kernel did not take what was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallReason {
    /// There is no room, here or further on.
    Full,
    /// The link is down.
    Link,
}

/// Something waits for the kernel to take it.
#[derive(Clone, Copy, Debug)]
pub struct TxStall {
    by: StallReason,
    turns: u32,
}

impl TxStall {
    pub fn new(by: StallReason) -> TxStall {
        TxStall { by, turns: 0 }
    }

    /// Counts a turn of the worker; whether it is time for another try.
    #[inline]
    pub fn turn(&mut self) -> bool {
        self.turns += 1;
        self.turns >= TURNS
    }

    /// How long to sleep before it.
    fn retry_after(&self) -> Duration {
        match self.by {
            StallReason::Full => Duration::from_millis(1),
            // A link that is down stays down for longer.
            StallReason::Link => Duration::from_millis(100),
        }
    }
}

/// The doorbell of a port that has several descriptors to hear, and a timer.
#[derive(Debug)]
pub struct WakeSource {
    epoll: OwnedFd,
    timer: OwnedFd,
}

impl WakeSource {
    /// It fails when the process is out of descriptors.
    pub fn new() -> io::Result<WakeSource> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let wake_source = WakeSource { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?, timer };
        wake_source.listen(&wake_source.timer)?;
        Ok(wake_source)
    }

    /// From now on it rings while `fd` is readable.
    pub fn listen(&self, fd: impl AsFd) -> io::Result<()> {
        let data = epoll::EventData::new_u64(0);
        Ok(epoll::add(&self.epoll, fd, data, epoll::EventFlags::IN)?)
    }

    /// Has it ring when the first of those that wait is to try again: [`Wake::arm`](crate::Wake::arm).
    pub fn arm(&self, waiting: impl Iterator<Item = TxStall>) {
        let Some(after) = waiting.map(|stall| stall.retry_after()).min() else { return };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = Timespec { tv_sec: 0, tv_nsec: after.subsec_nanos().into() };
        let once = Itimerspec { it_interval, it_value };
        // Fails for a bad descriptor alone.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
    }

    /// It was heard: [`Wake::drain`](crate::Wake::drain).
    pub fn drain(&self) {
        // Others ring for as long as there is something; EAGAIN says that it was they.
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
    }
}

impl AsFd for WakeSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
