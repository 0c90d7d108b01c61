//! Whether memory that a program names is there. The kernel answers EFAULT for a bad pointer;
//! to look through one would end the program instead.
//!
//! It is the kernel that is asked, once for a page and thread: programs name the same few
//! pages again and again. A call that fails this goes on to the kernel, which says what is
//! wrong with it.

use std::{
    cell::Cell,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use crate::raw::{Number, syscall};

const PAGE: usize = 4096;
/// Bytes that the kernel is asked about at once: those of its signal sets.
const WORD: usize = 8;

/// How often memory was unmapped or protected: each time, all that is remembered is worthless.
static CHANGES: AtomicU32 = AtomicU32::new(0);

/// What one thread remembers: pages with the access that they allow.
#[derive(Clone, Copy)]
struct Known {
    since: u32,
    pages: [(usize, Access); 4],
    next: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Access {
    None,
    Read,
    Write,
}

thread_local!(static KNOWN: Cell<Known> = const {
    Cell::new(Known { since: 0, pages: [(0, Access::None); 4], next: 0 })
});

/// Whether `len` bytes at `at` can be read; at least 8 are looked at.
#[inline]
pub fn readable<T>(at: *const T, len: usize) -> bool {
    allows(at as usize, len, Access::Read)
}

/// Whether `len` bytes at `at` can be read and written; at least 8 are looked at.
#[inline]
pub fn writable<T>(at: *const T, len: usize) -> bool {
    allows(at as usize, len, Access::Write)
}

/// Memory is unmapped or protected: ask again.
pub fn changed() {
    CHANGES.fetch_add(1, Relaxed);
}

#[inline]
fn allows(at: usize, len: usize, access: Access) -> bool {
    let Some(end) = at.checked_add(len).filter(|_| at >= PAGE) else { return false };
    let mut known = KNOWN.get();
    if known.since != CHANGES.load(Relaxed) {
        known.since = CHANGES.load(Relaxed);
        known.pages.fill((0, Access::None));
    }
    let pages = at / PAGE..=end.saturating_sub(1) / PAGE;
    pages.into_iter().all(|page| {
        known.pages.iter().any(|&(p, a)| p == page && a >= access)
            || ask(&mut known, page, (page * PAGE).max(at).min(end.saturating_sub(WORD)), access)
    })
}

#[cold]
fn ask(known: &mut Known, page: usize, at: usize, access: Access) -> bool {
    let good = match access {
        Access::Write => kernel_writes(at),
        _ => kernel_reads(at),
    };
    if good {
        known.pages[known.next] = (page, access);
        known.next = (known.next + 1) % known.pages.len();
        KNOWN.set(*known);
    }
    good
}

/// Offers 8 bytes as a set of signals, to be used in a way that there is none: the kernel reads
/// it, and refuses.
fn kernel_reads(at: usize) -> bool {
    const NO_HOW: usize = usize::MAX;
    const NO_OLD: usize = 0;
    // SAFETY: the kernel checks the address, and changes nothing.
    let done = unsafe { syscall(Number::RT_SIGPROCMASK, [NO_HOW, at, NO_OLD, WORD, 0, 0]) };
    done == -libc::EINVAL as isize
}

/// Has the kernel add 0 to the aligned 32-bit word there, in one step. It wakes at most a
/// waiter of that word, and what waits for a word looks again.
fn kernel_writes(at: usize) -> bool {
    const ADD_0: usize = (libc::FUTEX_OP_ADD << 28) as usize;
    const OPERATION: usize = (libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG) as usize;
    /// Nothing waits for it.
    static OTHER: AtomicU32 = AtomicU32::new(0);
    let (other, word) = (OTHER.as_ptr() as usize, at & !3);
    // SAFETY: the kernel checks the address, and what is there stays what it is.
    let done = unsafe { syscall(Number::FUTEX, [other, OPERATION, 0, 0, word, ADD_0]) };
    done >= 0
}
