//! Pages that the kernel does not have when they are touched: SIGBUS.
//!
//! A client can punch holes into its region, so that this process needs new pages when it touches it, and
//! can bring the machine to where there are none (`vm.overcommit_memory` 2, a memory that fails). The
//! signal would end the process, and with it the ports of everybody else. With a [`LostPages`], other
//! memory takes the place of the mapping, and the process goes on: it finds zeros there, which its checks
//! deal with as with anything that a client writes. The region is lost to its user alone.
//!
//! The handler runs on any thread that touches a region. A thread with a filter for system calls needs
//! `mmap`, `write` and `rt_sigreturn`.
#![allow(unsafe_code)]

use std::{
    io,
    mem::zeroed,
    ptr::{null_mut, without_provenance_mut},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering::*},
    },
};

use rustix::{
    event::{EventfdFlags, eventfd},
    fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd},
    fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create},
    io::fcntl_dupfd_cloexec,
};

/// Bytes of what stands in for memory where there is none at all.
const SINK: usize = 2 << 20;

/// A range of addresses, as the signal's handler reads it.
#[derive(Debug)]
struct Entry {
    /// First address; 0 while nothing is there. It is stored last, and cleared first.
    base: AtomicUsize,
    len: AtomicUsize,
    lost: AtomicBool,
    next: AtomicPtr<Entry>,
}

/// All entries there ever were. None is freed, so the handler may walk at any time.
static ENTRIES: AtomicPtr<Entry> = AtomicPtr::new(null_mut());
/// Those that are free.
static FREE: Mutex<Vec<&'static Entry>> = Mutex::new(Vec::new());

/// Told of lost pages, and what stands in for memory; -1: nobody wants to know.
static EVENT: AtomicI32 = AtomicI32::new(-1);
static SINK_FD: AtomicI32 = AtomicI32::new(-1);

/// A mapping that the handler of [`LostPages`] knows of, while this is there: where the kernel has no page
/// for an address of it, other memory takes its place.
#[derive(Debug)]
pub struct GuardedRange(&'static Entry);

impl GuardedRange {
    /// The `len` bytes from address `base`, which are the caller's mapping for as long as this is there.
    ///
    /// # Safety
    /// Nothing but the mapping is in the range, and all code that uses it allows for other bytes there at any time.
    pub unsafe fn new(base: usize, len: usize) -> GuardedRange {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let entry = free.unwrap_or_else(|| {
            let entry: &'static Entry = Box::leak(Box::new(Entry {
                base: AtomicUsize::new(0),
                len: AtomicUsize::new(0),
                lost: AtomicBool::new(false),
                next: AtomicPtr::new(null_mut()),
            }));
            let mut head = ENTRIES.load(Acquire);
            loop {
                entry.next.store(head, Relaxed);
                let new = std::ptr::from_ref(entry).cast_mut();
                match ENTRIES.compare_exchange(head, new, AcqRel, Acquire) {
                    Ok(_) => return entry,
                    Err(other) => head = other,
                }
            }
        });
        entry.lost.store(false, Relaxed);
        entry.len.store(len, Relaxed);
        entry.base.store(base, Release);
        GuardedRange(entry)
    }

    /// Whether that has happened.
    pub fn has_lost_pages(&self) -> bool {
        self.0.lost.load(Relaxed)
    }
}

impl Drop for GuardedRange {
    fn drop(&mut self) {
        self.0.base.store(0, Release);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

/// Keeps this process alive when pages of regions that it has made cannot be had. Its [`AsFd`] is readable
/// when there are [regions](crate::Region::has_lost_pages) that have lost some.
///
/// It is for a process that is nobody's but Ringway's: it takes the signal SIGBUS.
#[derive(Debug)]
pub struct LostPages(OwnedFd);

impl LostPages {
    /// From now on, until the process ends.
    ///
    /// # Errors
    /// Those of `eventfd(2)`, `memfd_create(2)`, `fallocate(2)` and `sigaction(2)`.
    pub fn watch() -> io::Result<LostPages> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let sink = memfd_create("ringway-sink", MemfdFlags::CLOEXEC)?;
        // Its pages are there from now on.
        fallocate(&sink, FallocateFlags::empty(), 0, SINK as u64)?;
        let ours = fcntl_dupfd_cloexec(&event, 0)?;
        SINK_FD.store(sink.into_raw_fd(), Relaxed);
        EVENT.store(ours.into_raw_fd(), Release);
        // SAFETY: all zeros are a valid sigaction. The handler makes system calls and reads atomics,
        // nothing else; it runs on the thread's alternate stack, where the thread has one.
        let done = unsafe {
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = on_sigbus as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &action, null_mut())
        };
        if done == 0 { Ok(LostPages(event)) } else { Err(io::Error::last_os_error()) }
    }

    /// The word was heard.
    pub fn drain(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

impl AsFd for LostPages {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The guarded range that an address is in.
fn find(address: usize) -> Option<(&'static Entry, usize, usize)> {
    let mut at = ENTRIES.load(Acquire);
    // SAFETY: entries are never freed.
    while let Some(entry) = unsafe { at.as_ref() } {
        let base = entry.base.load(Acquire);
        let len = entry.len.load(Acquire);
        // Another thread may use the entry for another range between the two.
        if base != 0 && address.wrapping_sub(base) < len && entry.base.load(Acquire) == base {
            return Some((entry, base, len));
        }
        at = entry.next.load(Acquire);
    }
    None
}

extern "C" fn on_sigbus(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel hands over a siginfo; the errno is this thread's.
    let (address, errno) = unsafe { ((*info).si_addr() as usize, *libc::__errno_location()) };
    let replaced = find(address).is_some_and(|(entry, base, len)| {
        entry.lost.store(true, Relaxed);
        replace(base, len, address)
    });
    if replaced {
        let one = 1u64;
        // SAFETY: eight bytes of a local. Full, it is readable all the same.
        unsafe { libc::write(EVENT.load(Acquire), (&raw const one).cast(), 8) };
    } else {
        // It is not ours: the instruction that is begun anew ends the process.
        // SAFETY: it sets what the signal does to its default.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: the errno is this thread's.
    unsafe { *libc::__errno_location() = errno };
}

/// Puts other memory where a range is: all of it, or, where that much cannot be promised, what is around
/// the address.
fn replace(base: usize, len: usize, address: usize) -> bool {
    let map = |at: usize, len: usize, flags: libc::c_int, fd: libc::c_int| {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the addresses are those of a mapping of shared memory, which any thread may use
        // meanwhile: it finds the one or the other there. What holds the range unmaps all of it.
        let mapped = unsafe {
            libc::mmap(without_provenance_mut(at), len, access, flags | libc::MAP_FIXED, fd, 0)
        };
        mapped != libc::MAP_FAILED
    };
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    if map(base, len, private, -1) {
        return true;
    }
    // Of a file whose pages are there, nothing has to be promised.
    let at = base + (address - base) / SINK * SINK;
    map(at, SINK.min(base + len - at), libc::MAP_SHARED, SINK_FD.load(Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The handler knows a range as long as that is there, to its last byte; the next one has not lost pages
    /// because the last one had.
    #[test]
    fn a_range_is_known_while_it_is_there() {
        // No mapping is that low.
        const BASE: usize = 0x1000;
        const LEN: usize = 0x2000;
        for _ in 0..2 {
            // SAFETY: nothing is there, and nobody uses it.
            let range = unsafe { GuardedRange::new(BASE, LEN) };
            assert!(!range.has_lost_pages());
            range.0.lost.store(true, Relaxed);
            assert!(range.has_lost_pages());
            for (address, is_known) in
                [(BASE - 1, false), (BASE, true), (BASE + LEN - 1, true), (BASE + LEN, false)]
            {
                let found = find(address).map(|(_, base, len)| (base, len));
                assert_eq!(found, is_known.then_some((BASE, LEN)), "{address:#x}");
            }
            drop(range);
            assert!(find(BASE).is_none(), "it has gone");
        }
    }
}

/// Those that take the kernel.
#[cfg(all(test, not(miri)))]
mod kernel_tests {
    use std::os::fd::AsRawFd;

    use rustix::{
        fs::{OFlags, fcntl_getfl},
        io::{FdFlags, fcntl_getfd},
    };

    use super::*;

    /// It is for a loop that waits, and for no other program.
    #[test]
    fn the_word_does_not_block_and_is_not_inherited() {
        let lost = LostPages::watch().unwrap();
        assert!(fcntl_getfl(&lost).unwrap().contains(OFlags::NONBLOCK));
        for fd in [lost.0.as_raw_fd(), EVENT.load(Relaxed), SINK_FD.load(Relaxed)] {
            // SAFETY: open as long as the process.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            assert!(fcntl_getfd(fd).unwrap().contains(FdFlags::CLOEXEC));
        }
    }

    /// In a process that is promised no more memory, what is around the address is replaced, and the rest of the
    /// range stays.
    #[test]
    fn where_no_memory_is_promised_a_part_is_replaced() {
        const PAGE: usize = 4096;
        const LEN: usize = 2 * SINK + PAGE;
        let _lost = LostPages::watch().unwrap();
        let map = |len| {
            let (access, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
            // SAFETY: fresh memory at an address of the kernel's choice.
            let memory = unsafe { libc::mmap(null_mut(), len, access, flags, -1, 0) };
            assert_ne!(memory, libc::MAP_FAILED);
            memory as usize
        };
        // With a page behind it that is not its own.
        let base = map(LEN + PAGE);
        let places = [0, SINK - PAGE, SINK, 2 * SINK - PAGE, 2 * SINK, LEN];
        let at = |place: usize| without_provenance_mut::<u8>(base + place);
        for (address, expected) in [
            (0, [0, 0, 7, 7, 7, 7]),
            (SINK - 1, [0, 0, 7, 7, 7, 7]),
            (SINK, [7, 7, 0, 0, 7, 7]),
            (2 * SINK - 1, [7, 7, 0, 0, 7, 7]),
            (2 * SINK, [7, 7, 7, 7, 0, 7]),
            (LEN - 1, [7, 7, 7, 7, 0, 7]),
        ] {
            // SAFETY: inside the mapping, which nothing else uses.
            places.iter().for_each(|place| unsafe { at(*place).write_volatile(7) });
            // SAFETY: the child makes system calls and accesses that memory, and nothing else.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // Less than there is: no private memory is promised from here on. Shared memory needs no promise.
                let none = libc::rlimit { rlim_cur: 4096, rlim_max: 4096 };
                // SAFETY: as above. What others have is left as it is: the sink is written to by its mapping alone.
                unsafe {
                    libc::alarm(60);
                    let is_limited = libc::setrlimit(libc::RLIMIT_DATA, &none) == 0;
                    let is_replaced = replace(base, LEN, base + address);
                    let found = places.map(|place| at(place).read_volatile());
                    libc::_exit(i32::from(!(is_limited && is_replaced && found == expected)));
                }
            }
            let mut status = 0;
            // SAFETY: our child, and a local.
            unsafe { libc::waitpid(child, &mut status, 0) };
            assert_eq!(status, 0, "{address:#x}");
        }
        // SAFETY: that mapping, which is not used any more.
        unsafe { libc::munmap(without_provenance_mut(base), LEN + PAGE) };
    }
}
