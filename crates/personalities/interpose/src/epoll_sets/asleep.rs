//! Threads that sleep in the kernel's `epoll_wait`, because their set had no members of ours.
//!
//! When such a set gets one, these threads are to wait as this library does. What wakes all of them is a
//! descriptor in the kernel's set that is ready until the last of them has seen it ([`Call`]).
//!
//! ```text
//!   a thread that waits:  count itself; look for members; sleep
//!   one that changes:     add a member; look whether any is counted; call
//! ```
//!
//! One of them sees the other, whichever comes first, and the call stays: a thread that is about to sleep
//! does not. Each thread is counted by the number that it waits for, without a lock.

use std::{
    ffi::c_int,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd},
    sync::atomic::{
        AtomicU32, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
        fence,
    },
};

use rustix::event::{
    EventfdFlags,
    epoll::{self, EventData, EventFlags},
    eventfd,
};

use super::Sets;
use crate::{
    descriptors::{self, out_of_the_way},
    fork,
    real_libc::keep_errno,
};

/// How many threads sleep for each number, in the lower half. Above it the process's
/// [generation](fork::generation): a child of `fork` has none of its parent's threads.
static COUNTS: [AtomicU32; descriptors::SIZE] = [const { AtomicU32::new(0) }; descriptors::SIZE];
/// Calls that have not ended.
static CALLS: AtomicUsize = AtomicUsize::new(0);

const HALF: u32 = u16::BITS;

fn count_of(word: u32) -> u32 {
    if word >> HALF == fork::generation() & u32::from(u16::MAX) {
        word & u32::from(u16::MAX)
    } else {
        0
    }
}

fn change(fd: RawFd, by: impl Fn(u32) -> u32) {
    let Some(word) = COUNTS.get(fd as u32 as usize) else { return };
    let changed = |word| Some(fork::generation() << HALF | by(count_of(word)));
    let _ = word.fetch_update(SeqCst, Relaxed, changed);
}

/// How many threads sleep for that number.
pub(super) fn count(fd: RawFd) -> u32 {
    COUNTS.get(fd as u32 as usize).map_or(0, |word| count_of(word.load(SeqCst)))
}

/// They are not counted any more: they have left without saying so.
pub(super) fn forget(fd: RawFd) {
    change(fd, |_| 0);
}

/// A thread that sleeps, or is about to.
pub struct Asleep(c_int);

impl Asleep {
    /// The calling thread is about to sleep for `epfd`, if it then finds no members of ours.
    #[inline]
    pub fn begin(epfd: c_int) -> Asleep {
        change(epfd, |count| count + 1);
        // With that of `are_there`: either this thread sees the member, or the other sees the count.
        fence(SeqCst);
        Asleep(epfd)
    }
}

impl Drop for Asleep {
    #[inline]
    fn drop(&mut self) {
        change(self.0, |count| count.saturating_sub(1));
        if CALLS.load(SeqCst) > 0 {
            woken(self.0);
        }
    }
}

#[cold]
fn woken(epfd: c_int) {
    keep_errno(|| Sets::lock().end_call(epfd));
}

/// Whether threads sleep for any of these numbers; members that were added before are seen by those that
/// come later.
pub(super) fn are_there(numbers: &[RawFd]) -> bool {
    fence(SeqCst);
    numbers.iter().any(|number| count(*number) > 0)
}

/// What the event of a call has for the program's data: an address within this library.
pub fn data() -> u64 {
    (&raw const CALLS) as u64
}

/// Wakes all threads that sleep in the kernel's wait for a set, until it is dropped.
#[derive(Debug)]
pub(super) struct Call(OwnedFd);

impl Call {
    /// `None`: the kernel has no room for it.
    pub fn new(set: RawFd) -> Option<Call> {
        // SAFETY: a number of the program's; if it is closed by now, the call fails, and that is the answer.
        let set = unsafe { BorrowedFd::borrow_raw(set) };
        let fd = out_of_the_way(eventfd(1, EventfdFlags::CLOEXEC).ok()?);
        CALLS.fetch_add(1, SeqCst);
        let call = Call(fd);
        epoll::add(set, &call.0, EventData::new_u64(data()), EventFlags::IN).ok()?;
        Some(call)
    }

    /// It leaves the set by itself, unless a child of `fork` has a copy of it.
    pub fn end(self, set: RawFd) {
        // SAFETY: as in `new`.
        let _ = epoll::delete(unsafe { BorrowedFd::borrow_raw(set) }, &self.0);
    }

    pub fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// The program has closed the number: it may be something else by now.
    pub fn closed(self) {
        let call = std::mem::ManuallyDrop::new(self);
        CALLS.fetch_sub(1, SeqCst);
        let _ = call;
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, SeqCst);
    }
}
