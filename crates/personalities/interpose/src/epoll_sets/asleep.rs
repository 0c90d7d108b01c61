//! Threads that sleep in the kernel's `epoll_wait`, because their set had no members of ours.
//!
//! When such a set gets one, these threads are to wait as this library does. What wakes all of them is a
//! descriptor in the kernel's set that is ready until the last of them has seen it ([`Call`]).
//!
//! Each thread is counted by the number that it waits for ([`Sleepers`]). The call stays: a thread that is
//! about to sleep does not.

use std::{
    ffi::c_int,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd},
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
};

use rustix::event::{
    EventfdFlags,
    epoll::{self, EventData, EventFlags},
    eventfd,
};

use super::Sets;
use crate::{
    fork,
    numbers::SIZE,
    own_numbers::{self, out_of_the_way},
    real_libc::keep_errno,
    sleepers::Sleepers,
};

/// Those that sleep for each number.
static SLEEPERS: [Sleepers; SIZE] = [const { Sleepers::new() }; SIZE];
/// Calls that have not ended.
static CALLS: AtomicUsize = AtomicUsize::new(0);

fn sleepers(fd: RawFd) -> Option<&'static Sleepers> {
    SLEEPERS.get(fd as u32 as usize)
}

/// They are not counted any more: they have left without saying so.
pub(super) fn forget(fd: RawFd) {
    if let Some(sleepers) = sleepers(fd) {
        sleepers.forget(fork::generation());
    }
}

/// A thread that sleeps, or is about to.
pub struct Asleep(c_int);

impl Asleep {
    /// The calling thread is about to sleep for `epfd`, if it then finds no members of ours.
    #[inline]
    pub fn begin(epfd: c_int) -> Asleep {
        if let Some(sleepers) = sleepers(epfd) {
            sleepers.begin(fork::generation());
        }
        Asleep(epfd)
    }
}

impl Drop for Asleep {
    #[inline]
    fn drop(&mut self) {
        if let Some(sleepers) = sleepers(self.0) {
            sleepers.end(fork::generation());
        }
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
    let mut all = numbers.iter().filter_map(|number| sleepers(*number));
    all.any(|sleepers| sleepers.are_there(fork::generation()))
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
        own_numbers::closes(call.number());
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, SeqCst);
    }
}
