//! What ends the waits of threads that sleep in `ppoll` on behalf of a set, when a set is changed.
//!
//! All of them are to look again, so what wakes them is used once: it stays ready until the last of them
//! has seen it, and those that wait later sleep on another.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, eventfd};
use smallvec::SmallVec;

use super::KNOWN;
use crate::descriptors::out_of_the_way;

/// An eventfd, and how many threads sleep on it.
#[derive(Debug)]
struct Bell {
    fd: OwnedFd,
    sleepers: usize,
}

/// The one to sleep on, and those that are rung and have sleepers still.
///
/// Empty it is all zeros, as the static memory that it lies in: the library's file has no copy of that.
#[derive(Debug)]
pub(super) struct News {
    next: SmallVec<[Bell; 1]>,
    rung: SmallVec<[Bell; 2]>,
}

impl News {
    pub const fn new() -> News {
        News { next: SmallVec::new_const(), rung: SmallVec::new_const() }
    }

    /// What the calling thread is to sleep on. `None`: the process has no descriptor left for it.
    pub fn begin(&mut self) -> Option<RawFd> {
        if self.next.is_empty() {
            let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
            let fd = out_of_the_way(eventfd(0, flags).ok()?);
            // The program may close it, as one of all numbers.
            KNOWN.insert(fd.as_raw_fd());
            self.next.push(Bell { fd, sleepers: 0 });
        }
        let bell = self.next.first_mut()?;
        bell.sleepers += 1;
        Some(bell.fd.as_raw_fd())
    }

    /// The calling thread sleeps on it no longer, and found it ready or not.
    pub fn end(&mut self, fd: RawFd, is_ready: bool) {
        if let Some(bell) = self.next.first_mut().filter(|bell| bell.fd.as_raw_fd() == fd) {
            bell.sleepers = bell.sleepers.saturating_sub(1);
            if is_ready {
                // Rung by the program, whose descriptor it is as well: it is of no more use.
                self.rung.extend(self.next.pop());
            }
        } else if let Some(bell) = self.rung.iter_mut().find(|bell| bell.fd.as_raw_fd() == fd) {
            bell.sleepers = bell.sleepers.saturating_sub(1);
        }
        self.rung.retain(|bell| {
            if bell.sleepers == 0 {
                KNOWN.remove(bell.fd.as_raw_fd());
            }
            bell.sleepers > 0
        });
    }

    /// A set has changed.
    pub fn ring(&mut self) {
        if self.next.first().is_some_and(|bell| bell.sleepers > 0)
            && let Some(bell) = self.next.pop()
        {
            // It is written to once: it has room.
            let _ = rustix::io::write(bell.fd.as_fd(), &1u64.to_ne_bytes());
            self.rung.push(bell);
        }
    }

    /// The program has closed a number: it may be something else by now.
    pub fn closed(&mut self, fd: RawFd) {
        let is_it = |bell: &Bell| bell.fd.as_raw_fd() == fd;
        let next = self.next.iter().position(is_it).map(|at| self.next.swap_remove(at));
        let rung = self.rung.iter().position(is_it).map(|at| self.rung.swap_remove(at));
        next.into_iter().chain(rung).for_each(|bell| std::mem::forget(bell.fd));
    }
}
