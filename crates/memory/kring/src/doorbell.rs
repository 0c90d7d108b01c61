//! What a sleeping party listens to: an eventfd, or a timer in its place.
//!
//! It is shared with clients, and must not be of use against any other holder. An eventfd holds a
//! number and nothing else: no descriptor can be sent into it, and it cannot be shut down. What its
//! other holders can do is to fill it, and to make it blocking. So nothing here waits for them:
//!
//! - The process that makes a doorbell, the daemon, notifies by [`Completions`], never by `write`.
//! - A client does write. It waits if another holder wants that, which is a program of its own user, or
//!   the other end of its pipe.
//! - It is signalled, and closed, by a [thread of its own](crate::keep_doorbells) if that takes long.
//! - A reader says for each call that it does not wait (RWF_NOWAIT). The worker of a switch does not
//!   read at all: it listens by the edge, to the write and not to the number. A client whose kernel, or
//!   sandbox, has no such call reads as it writes.
//! - Where the maker cannot have completions, or the kernel cannot read without waiting (before
//!   Linux 5.8), it makes a timerfd instead. To signal it is to set it to a time that has passed, to
//!   silence it is to stop it, and neither ever waits, whatever its other holders do. It takes
//!   longer, 25 microseconds, most of it for an interrupt.
//!
//! A client that fills the doorbell of a worker, or empties it before the worker has looked, loses its own
//! wake-ups: each port has a doorbell of its own.

use std::{
    io::{self, IoSliceMut},
    sync::Arc,
};

use rustix::{
    event::{EventfdFlags, eventfd},
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::{Errno, ReadWriteFlags, ioctl_fionbio, preadv2, read, write},
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};

use crate::{
    allowance::SignalAllowance,
    keeper::{Bell, Ringer},
    mailbox::Notify,
    sys::Completions,
};

/// `preadv2`: at the file's own position.
const HERE: u64 = u64::MAX;

/// A descriptor that is readable while notified.
#[derive(Debug)]
pub struct Doorbell(Inner);

#[derive(Debug)]
enum Inner {
    Made(Arc<Bell>),
    Given(OwnedFd),
}

impl Doorbell {
    /// A new doorbell, not notified, which others may be given: whatever they do with it,
    /// [`notify`](Self::notify) does not wait.
    ///
    /// # Errors
    /// When the process is out of descriptors.
    pub fn new() -> io::Result<Doorbell> {
        Doorbell::make(None)
    }

    /// The same for a user's doorbell: what its signals take of this process's threads beyond the usual
    /// is charged to the allowance of all of the user's doorbells.
    ///
    /// # Errors
    /// When the process is out of descriptors.
    pub fn charged_to(allowance: &Arc<SignalAllowance>) -> io::Result<Doorbell> {
        Doorbell::make(Some(allowance.clone()))
    }

    fn make(allowance: Option<Arc<SignalAllowance>>) -> io::Result<Doorbell> {
        let Ok(completions) = Completions::of_this_process() else {
            return Doorbell::timer(allowance);
        };
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        match read_at_once(eventfd.as_fd()) {
            Err(Errno::AGAIN) => {
                let ringer = Ringer::Completions(completions);
                Ok(Doorbell(Inner::Made(Bell::new(eventfd, ringer, allowance))))
            }
            _ => Doorbell::timer(allowance),
        }
    }

    fn timer(allowance: Option<Arc<SignalAllowance>>) -> io::Result<Doorbell> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Doorbell(Inner::Made(Bell::new(timer, Ringer::Timer, allowance))))
    }

    /// Wakes the listeners. A doorbell that is notified already stays so.
    pub fn notify(&self) {
        match &self.0 {
            Inner::Made(bell) => bell.notify(),
            Inner::Given(fd) => {
                if write(fd, &1u64.to_ne_bytes()) == Err(Errno::INVAL) {
                    let _ = start_timer(fd.as_fd());
                }
            }
        }
    }

    /// What it holds, if it is of this process's making.
    #[cfg(all(test, not(miri)))]
    pub(crate) fn bell(&self) -> Option<&Arc<Bell>> {
        match &self.0 {
            Inner::Made(bell) => Some(bell),
            Inner::Given(_) => None,
        }
    }

    /// Silences the doorbell. Only a party that is about to arm, to look for work and then to
    /// sleep may do so, and where others listen too it notifies again if it finds work: see
    /// `csb.rs` for what else would be lost. Says whether it had been notified, or may have been.
    pub fn drain(&self) -> bool {
        match read_at_once(self.as_fd()) {
            Ok(_) => true,
            Err(Errno::AGAIN) => false,
            Err(_) => self.drain_otherwise(),
        }
    }

    /// The same where the kernel does not read without waiting. A notification just before a timer
    /// is stopped is not seen.
    #[cold]
    fn drain_otherwise(&self) -> bool {
        let fd = self.as_fd();
        let is_timer = set_timer(fd, 0).is_ok();
        is_timer || ioctl_fionbio(fd, true).is_ok() && read(fd, &mut [0; 8]).is_ok()
    }
}

/// Why this process makes doorbells of the slower kind, if it does: for the log.
pub fn slow_doorbells() -> Option<io::Error> {
    let doorbell = Completions::of_this_process().and_then(|_| Doorbell::new());
    let is_timer = |doorbell: Doorbell| match &doorbell.0 {
        Inner::Made(bell) => matches!(bell.ringer, Ringer::Timer),
        Inner::Given(_) => false,
    };
    match doorbell.map(is_timer) {
        Ok(false) => None,
        Ok(true) => Some(io::Error::other("Linux reads no eventfd without waiting before 5.8")),
        Err(error) => Some(error),
    }
}

fn read_at_once(fd: BorrowedFd<'_>) -> rustix::io::Result<usize> {
    let mut count = [0u8; 8];
    preadv2(fd, &mut [IoSliceMut::new(&mut count)], HERE, ReadWriteFlags::NOWAIT)
}

/// It expires at once.
pub(crate) fn start_timer(timer: BorrowedFd<'_>) -> rustix::io::Result<()> {
    set_timer(timer, 1)
}

/// To a nanosecond after the machine has started; 0 stops it.
fn set_timer(timer: BorrowedFd<'_>, nanosecond: i64) -> rustix::io::Result<()> {
    let once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let value = Timespec { tv_sec: 0, tv_nsec: nanosecond };
    let time = Itimerspec { it_interval: once, it_value: value };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &time).map(drop)
}

impl Notify for Doorbell {
    fn notify(&self) {
        Doorbell::notify(self);
    }
}

/// A doorbell of another process's making.
impl From<OwnedFd> for Doorbell {
    fn from(fd: OwnedFd) -> Doorbell {
        Doorbell(Inner::Given(fd))
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Inner::Made(bell) => bell.fd.as_fd(),
            Inner::Given(fd) => fd.as_fd(),
        }
    }
}

/// The keeper of this process closes it, if there is one.
impl Drop for Doorbell {
    fn drop(&mut self) {
        if let Inner::Made(bell) = &self.0 {
            bell.close();
        }
    }
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use std::thread;

    use rustix::event::{PollFd, PollFlags, epoll, poll};

    use super::*;

    fn is_notified(doorbell: &Doorbell) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(doorbell, PollFlags::IN)], Some(&now)).unwrap() == 1
    }

    /// Both kinds. A timer's notification comes by an interrupt, and may take a moment.
    fn kinds() -> [Doorbell; 2] {
        [Doorbell::new().unwrap(), Doorbell::timer(None).unwrap()]
    }

    fn wait_for(doorbell: &Doorbell) {
        poll(&mut [PollFd::new(doorbell, PollFlags::IN)], None).unwrap();
    }

    fn theirs(doorbell: &Doorbell) -> Doorbell {
        doorbell.as_fd().try_clone_to_owned().unwrap().into()
    }

    #[test]
    fn is_notified_until_drained() {
        for made in kinds() {
            let given = theirs(&made);
            for (by, to) in [(&made, &given), (&given, &made), (&made, &made)] {
                assert!(!is_notified(to) && !to.drain());
                by.notify();
                by.notify();
                wait_for(to);
                assert!(to.drain());
                assert!(!is_notified(to) && !to.drain());
            }
        }
    }

    /// The same where no call reads without waiting.
    #[test]
    fn is_drained_without_such_a_call() {
        for made in kinds() {
            let given = theirs(&made);
            for (by, to) in [(&made, &given), (&given, &made)] {
                by.notify();
                wait_for(to);
                ioctl_fionbio(to, false).unwrap();
                assert!(to.drain_otherwise());
                assert!(!is_notified(to));
                to.drain_otherwise();
            }
        }
    }

    /// Another holder fills the doorbell, and makes it blocking: its maker does not wait, to notify or
    /// to drain.
    #[test]
    fn never_blocks() {
        let made = Doorbell::new().unwrap();
        ioctl_fionbio(&made, false).unwrap();
        write(&made, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        (0..1000).for_each(|_| made.notify());
        assert!(made.drain() && !made.drain());
        made.notify();
        assert!(is_notified(&made));
    }

    /// What other holders do with a timer: it is set to expire in a year, and again and again, and
    /// is made blocking.
    #[test]
    fn a_timer_never_blocks() {
        let made = Doorbell::timer(None).unwrap();
        let year = Timespec { tv_sec: 31_557_600, tv_nsec: 0 };
        for interval in [year, Timespec { tv_sec: 0, tv_nsec: 1 }] {
            ioctl_fionbio(&made, false).unwrap();
            let time = Itimerspec { it_interval: interval, it_value: year };
            timerfd_settime(&made, TimerfdTimerFlags::empty(), &time).unwrap();
            (0..1000).for_each(|_| made.notify());
            wait_for(&made);
            assert!(made.drain() && !made.drain());
        }
    }

    /// A listener by the edge hears each notification, also of a doorbell that is never drained, and
    /// after other holders have filled it.
    #[test]
    fn each_notification_is_an_edge() {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let hears = |until: Option<&Timespec>| {
            let nothing = epoll::Event {
                flags: epoll::EventFlags::empty(),
                data: epoll::EventData::new_u64(0),
            };
            epoll::wait(&set, &mut [nothing], until).unwrap() == 1
        };
        let heard = || hears(Some(&now));
        let [made, timer] = kinds();
        epoll::add(&set, &timer, epoll::EventData::new_u64(0), edge).unwrap();
        let given = theirs(&timer);
        for by in [&given, &timer, &given, &timer] {
            by.notify();
            assert!(hears(None) && !heard());
        }
        epoll::add(&set, &made, epoll::EventData::new_u64(0), edge).unwrap();
        let given = theirs(&made);
        for by in [&given, &made, &given, &made] {
            by.notify();
            assert!(heard() && !heard());
        }
        let count = u64::MAX - 1 - 4;
        write(&given, &count.to_ne_bytes()).unwrap();
        assert!(heard() && !heard());
        given.notify();
        assert!(!heard(), "who fills it is not heard");
        made.notify();
        assert!(heard());
    }

    /// More notifications than there is room for notes, by several threads.
    #[test]
    fn notes_never_run_out() {
        const EACH: u64 = 10_000;
        let made = Doorbell::new().unwrap();
        let bell = made.bell().unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..EACH).for_each(|_| bell.signal()));
            }
        });
        let mut count = [0; 8];
        rustix::io::read(&made, &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 4 * EACH);
    }
}
