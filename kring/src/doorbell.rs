//! What a sleeping party listens to: an eventfd.
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
//!   read at all: it listens by the edge, to the write and not to the number.
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
    io::{ReadWriteFlags, preadv2, write},
};

use crate::{keeper::Bell, mailbox::Notify, sys::Completions};

/// `preadv2`: at the file's own position.
const HERE: u64 = u64::MAX;

/// An eventfd that is readable while notified. Needs Linux 5.8.
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
    /// When the process is out of descriptors; and where the kernel has no asynchronous reads (`io_setup(2)`),
    /// or all processes together have as many as the sysctl fs.aio-max-nr allows.
    pub fn new() -> io::Result<Doorbell> {
        Completions::of_this_process()?;
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Doorbell(Inner::Made(Bell::new(eventfd))))
    }

    /// Wakes whoever listens. A doorbell that is notified already stays so.
    pub fn notify(&self) {
        match &self.0 {
            Inner::Made(bell) => bell.notify(),
            Inner::Given(eventfd) => drop(write(eventfd, &1u64.to_ne_bytes())),
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
    /// `csb.rs` for what else would be lost. Says whether it had been notified.
    pub fn drain(&self) -> bool {
        let mut count = [0u8; 8];
        let mut to = [IoSliceMut::new(&mut count)];
        preadv2(self, &mut to, HERE, ReadWriteFlags::NOWAIT).is_ok()
    }
}

impl Notify for Doorbell {
    fn notify(&self) {
        Doorbell::notify(self);
    }
}

/// A doorbell of another process's making.
impl From<OwnedFd> for Doorbell {
    fn from(eventfd: OwnedFd) -> Doorbell {
        Doorbell(Inner::Given(eventfd))
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Inner::Made(bell) => bell.eventfd.as_fd(),
            Inner::Given(eventfd) => eventfd.as_fd(),
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

    use rustix::{
        event::{PollFd, PollFlags, Timespec, epoll, poll},
        io::ioctl_fionbio,
    };

    use super::*;

    fn is_notified(doorbell: &Doorbell) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(doorbell, PollFlags::IN)], Some(&now)).unwrap() == 1
    }

    fn theirs(doorbell: &Doorbell) -> Doorbell {
        doorbell.as_fd().try_clone_to_owned().unwrap().into()
    }

    #[test]
    fn is_notified_until_drained() {
        let made = Doorbell::new().unwrap();
        let given = theirs(&made);
        for (by, to) in [(&made, &given), (&given, &made), (&made, &made)] {
            assert!(!is_notified(to) && !to.drain());
            by.notify();
            by.notify();
            assert!(is_notified(to) && to.drain());
            assert!(!is_notified(to) && !to.drain());
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

    /// A listener by the edge hears each notification, also of a doorbell that is never drained, and
    /// after other holders have filled it.
    #[test]
    fn each_notification_is_an_edge() {
        let made = Doorbell::new().unwrap();
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&set, &made, epoll::EventData::new_u64(0), edge).unwrap();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let heard = || {
            let nothing = epoll::Event {
                flags: epoll::EventFlags::empty(),
                data: epoll::EventData::new_u64(0),
            };
            epoll::wait(&set, &mut [nothing], Some(&now)).unwrap() == 1
        };
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
