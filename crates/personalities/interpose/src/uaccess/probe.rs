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
/// Bytes of a signal set of the kernel's.
const SIGNAL_SET: usize = 8;

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

/// Whether `len` bytes at `at` can be read.
#[inline]
pub fn readable<T>(at: *const T, len: usize) -> bool {
    allows(at as usize, len, Access::Read)
}

/// Whether `len` bytes at `at` can be read and written.
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
            || ask(&mut known, page, (page * PAGE).max(at), access)
    })
}

/// Asks about the first bytes of the object in the page, which are as good as any there. Aligned, they are all in it.
#[cold]
fn ask(known: &mut Known, page: usize, at: usize, access: Access) -> bool {
    let good = match access {
        Access::Write => kernel_writes(at & !3),
        _ => kernel_reads(at & !(SIGNAL_SET - 1)),
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
    let done = unsafe { syscall(Number::RT_SIGPROCMASK, [NO_HOW, at, NO_OLD, SIGNAL_SET, 0, 0]) };
    done == -libc::EINVAL as isize
}

/// Has the kernel add 0 to the 32-bit word there, which is aligned, in one step. It wakes at most a
/// waiter of that word, and what waits for a word looks again.
fn kernel_writes(at: usize) -> bool {
    const ADD_0: usize = (libc::FUTEX_OP_ADD << 28) as usize;
    const OPERATION: usize = (libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG) as usize;
    /// Nothing waits for it.
    static OTHER: AtomicU32 = AtomicU32::new(0);
    let other = OTHER.as_ptr() as usize;
    // SAFETY: the kernel checks the address, and what is there stays what it is.
    let done = unsafe { syscall(Number::FUTEX, [other, OPERATION, 0, 0, at, ADD_0]) };
    done >= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: i32 = libc::PROT_NONE;
    const READ: i32 = libc::PROT_READ;
    const WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

    /// Three pages in a row.
    fn pages(protections: [i32; 3]) -> usize {
        let (flags, len) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, protections.len() * PAGE);
        // SAFETY: new memory, where the kernel likes it.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, NONE, flags, -1, 0) } as usize;
        for (number, protection) in protections.into_iter().enumerate() {
            let page = (at + number * PAGE) as *mut _;
            // A page that was given back could be another thread's by the time that it is asked about.
            // SAFETY: the memory that was mapped above, which nothing uses.
            assert_eq!(unsafe { libc::mprotect(page, PAGE, protection) }, 0);
        }
        at
    }

    /// Objects at every offset around the borders of pages: an answer is about their own bytes, and what is
    /// remembered of it about their own pages.
    #[test]
    fn objects_at_borders_of_pages() {
        let of = |protection, access| match access {
            Access::Write => protection == WRITE,
            _ => protection != NONE,
        };
        for protections in [
            [NONE, WRITE, NONE],
            [NONE, READ, NONE],
            [NONE, WRITE, WRITE],
            [WRITE, WRITE, NONE],
            [NONE, WRITE, READ],
            [READ, WRITE, NONE],
            [READ, WRITE, READ],
            [WRITE, READ, WRITE],
            [WRITE, NONE, WRITE],
        ] {
            let first = pages(protections);
            let around = |border: usize| border - 24..border + 8;
            for start in around(PAGE).chain(around(2 * PAGE)) {
                for len in 1..=24 {
                    for access in [Access::Read, Access::Write] {
                        let touched = start / PAGE..=(start + len - 1) / PAGE;
                        let expected = touched.into_iter().all(|p| of(protections[p], access));
                        let case = format!("{protections:?} {start}+{len} {access:?}");
                        changed();
                        assert_eq!(allows(first + start, len, access), expected, "{case}");
                        // What is remembered now.
                        for (page, protection) in protections.into_iter().enumerate() {
                            let (at, expected) = (first + page * PAGE, of(protection, access));
                            assert_eq!(allows(at, 1, access), expected, "{case}, page {page}");
                        }
                    }
                }
            }
            // SAFETY: the memory above, which nothing uses any more.
            unsafe { libc::munmap(first as *mut _, protections.len() * PAGE) };
        }
    }

    #[test]
    fn no_memory() {
        for (at, len) in [(0, 1), (PAGE - 1, 1), (usize::MAX - 3, 8), (usize::MAX - 7, 8)] {
            assert!(!allows(at, len, Access::Read), "{at:#x}");
        }
    }
}
