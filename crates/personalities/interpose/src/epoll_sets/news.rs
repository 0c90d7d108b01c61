//! What ends the waits of threads that sleep in `ppoll` on behalf of a set, when a set is changed.
//!
//! All of them are to look again, so what wakes them is used once: it stays ready until the last of them
//! has seen it, and those that wait later sleep on another.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, eventfd};
use smallvec::SmallVec;

use super::KNOWN;
use crate::own_numbers::{self, out_of_the_way};

/// An eventfd, and how many threads sleep on it.
#[derive(Debug)]
struct Bell {
    fd: OwnedFd,
    sleepers: usize,
    /// Device and number of what it is.
    file: (u64, u64),
}

impl Bell {
    /// `None`: the process has no descriptor left for it.
    fn new() -> Option<Bell> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let fd = out_of_the_way(eventfd(0, flags).ok()?);
        let file = file(&fd)?;
        // The program may close it, as one of all numbers.
        KNOWN.insert(fd.as_raw_fd());
        Some(Bell { fd, sleepers: 0, file })
    }

    fn number(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Whether its number is still what it was: a program may close it by a call that nothing tells of, and have a file
    /// there.
    fn is_there(&self) -> bool {
        file(&self.fd) == Some(self.file)
    }

    fn let_go(self) {
        KNOWN.remove(self.number());
        if !self.is_there() {
            own_numbers::forget(self.fd);
        }
    }
}

fn file(fd: &OwnedFd) -> Option<(u64, u64)> {
    rustix::fs::fstat(fd).ok().map(|file| (file.st_dev, file.st_ino))
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
            self.next.push(Bell::new()?);
        }
        let bell = self.next.first_mut()?;
        bell.sleepers += 1;
        Some(bell.number())
    }

    /// The calling thread sleeps on it no longer, and found it ready or not.
    pub fn end(&mut self, fd: RawFd, is_ready: bool) {
        if let Some(bell) = self.next.first_mut().filter(|bell| bell.number() == fd) {
            bell.sleepers = bell.sleepers.saturating_sub(1);
            if is_ready {
                // Rung by the program, whose descriptor it is as well: it is of no more use.
                self.rung.extend(self.next.pop());
            }
        } else if let Some(bell) = self.rung.iter_mut().find(|bell| bell.number() == fd) {
            bell.sleepers = bell.sleepers.saturating_sub(1);
        }
        while let Some(at) = self.rung.iter().position(|bell| bell.sleepers == 0) {
            self.rung.swap_remove(at).let_go();
        }
    }

    /// A set has changed.
    pub fn ring(&mut self) {
        if self.next.first().is_some_and(|bell| bell.sleepers > 0)
            && let Some(bell) = self.next.pop()
        {
            // It is written to once: it has room.
            if bell.is_there() {
                let _ = rustix::io::write(bell.fd.as_fd(), &1u64.to_ne_bytes());
            }
            self.rung.push(bell);
        }
    }

    /// The program has closed a number: it may be something else by now.
    pub fn closed(&mut self, fd: RawFd) {
        let is_it = |bell: &Bell| bell.number() == fd;
        let next = self.next.iter().position(is_it).map(|at| self.next.swap_remove(at));
        let rung = self.rung.iter().position(is_it).map(|at| self.rung.swap_remove(at));
        next.into_iter().chain(rung).for_each(|bell| own_numbers::forget(bell.fd));
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, fstat, memfd_create};

    use super::*;

    /// A program closes all numbers by a system call of its own, and has a file where a bell was.
    #[test]
    fn what_is_another_file_by_now_is_left_alone() {
        let mut news = News::new();
        let number = news.begin().unwrap();
        let file = memfd_create("news", MemfdFlags::CLOEXEC).unwrap();
        // SAFETY: the bell's owner does not use it as what it was, as this test is about.
        assert_eq!(unsafe { libc::dup2(file.as_raw_fd(), number) }, number);
        news.ring();
        assert_eq!(fstat(&file).unwrap().st_size, 0, "nothing was written");
        news.end(number, true);
        // SAFETY: it looks at a number.
        assert!(unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0, "it was not closed");
        let next = news.begin().unwrap();
        assert_ne!(next, number);
        news.ring();
        news.end(next, true);
        // SAFETY: this test has made the descriptor, and uses it no more.
        unsafe { libc::close(number) };
    }
}
