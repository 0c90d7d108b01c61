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
pub enum Obstacle {
    /// There is no room, here or further on.
    Full,
    /// The link is down.
    Link,
}

/// Something waits for the kernel to take it.
#[derive(Clone, Copy, Debug)]
pub struct Blocked {
    by: Obstacle,
    turns: u32,
}

impl Blocked {
    pub fn new(by: Obstacle) -> Blocked {
        Blocked { by, turns: 0 }
    }

    /// Counts a turn of the worker; whether it is time for another try.
    #[inline]
    pub fn turn(&mut self) -> bool {
        self.turns += 1;
        self.turns >= TURNS
    }

    /// How long to sleep before it.
    fn patience(&self) -> Duration {
        match self.by {
            Obstacle::Full => Duration::from_millis(1),
            // A link that is down stays down for longer.
            Obstacle::Link => Duration::from_millis(100),
        }
    }
}

/// The bell of a port that has several descriptors to hear, and a timer.
#[derive(Debug)]
pub struct Ears {
    epoll: OwnedFd,
    timer: OwnedFd,
}

impl Ears {
    /// It fails when the process is out of descriptors.
    pub fn new() -> io::Result<Ears> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let ears = Ears { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?, timer };
        ears.listen(&ears.timer)?;
        Ok(ears)
    }

    /// From now on it rings while `fd` is readable.
    pub fn listen(&self, fd: impl AsFd) -> io::Result<()> {
        let data = epoll::EventData::new_u64(0);
        Ok(epoll::add(&self.epoll, fd, data, epoll::EventFlags::IN)?)
    }

    /// Has it ring when the first of those that wait is to try again: [`Port::arm`](crate::Port::arm).
    pub fn arm(&self, waiting: impl Iterator<Item = Blocked>) {
        let Some(patience) = waiting.map(|blocked| blocked.patience()).min() else { return };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() };
        let once = Itimerspec { it_interval, it_value };
        // Fails for a bad descriptor alone.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
    }

    /// It was heard: [`Port::silence`](crate::Port::silence).
    pub fn silence(&self) {
        // Others ring for as long as there is something; EAGAIN says that it was they.
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
    }
}

impl AsFd for Ears {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
