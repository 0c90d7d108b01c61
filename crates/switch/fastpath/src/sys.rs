//! Memory of BPF maps.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// Memory of words that the kernel may change at any time.
#[derive(Debug)]
pub struct Shared {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is that of the mapping, whichever thread has it, and is read and written by atomics alone.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// The first `bytes` of an array that can be mapped. The kernel refuses more than it has.
    pub fn of_map(map: BorrowedFd<'_>, bytes: usize) -> io::Result<Shared> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the place.
        let start = unsafe { mmap(null_mut(), bytes, protection, MapFlags::SHARED, map, 0) }?;
        Shared::new(start.cast(), bytes)
    }

    /// Memory of this process.
    pub fn anonymous(bytes: usize) -> io::Result<Shared> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the place.
        let start = unsafe { mmap_anonymous(null_mut(), bytes, protection, MapFlags::PRIVATE) }?;
        Shared::new(start.cast(), bytes)
    }

    fn new(start: *mut u8, bytes: usize) -> io::Result<Shared> {
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Shared { start, bytes })
    }

    /// The word `at` so many bytes from the start: a multiple of its size, within the memory.
    #[inline]
    pub fn u64(&self, at: usize) -> &AtomicU64 {
        // SAFETY: it is within the mapping and aligned, the mapping is there as long as `self`, and is
        // written by atomic stores alone: of this process by these, of BPF programs by single instructions.
        unsafe { AtomicU64::from_ptr(self.word(at, 8).cast()) }
    }

    #[inline]
    pub fn u32(&self, at: usize) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(self.word(at, 4).cast()) }
    }

    #[inline]
    fn word(&self, at: usize, size: usize) -> *mut u8 {
        assert!(at.is_multiple_of(size) && at + size <= self.bytes, "a word of the memory");
        // SAFETY: it is within the mapping, which begins at a page.
        unsafe { self.start.as_ptr().add(at) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: it is the whole mapping, and nothing borrows from it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
