//! The word by which an XDP program is asked for timestamps.

use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The value of a BPF map of one word, mapped. While it is not 0 the program writes the time in front of each
/// frame.
#[derive(Debug)]
pub struct TimeFlag {
    word: NonNull<AtomicU32>,
}

// SAFETY: the mapping is the value's, not tied to a thread, and written by atomic stores alone.
unsafe impl Send for TimeFlag {}

impl TimeFlag {
    /// Maps an array of one word that can be mapped (BPF_F_MMAPABLE).
    ///
    /// Errors: those of `mmap(2)`.
    pub fn map(map: BorrowedFd<'_>) -> rustix::io::Result<TimeFlag> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without an address the kernel chooses one where nothing is.
        let word = unsafe { mmap(null_mut(), LENGTH, access, MapFlags::SHARED, map, 0)? };
        Ok(TimeFlag { word: NonNull::new(word.cast()).ok_or(Errno::NOMEM)? })
    }

    /// Whether frames are to have timestamps from now on.
    pub fn set(&self, wanted: bool) {
        // SAFETY: the word begins the mapping, a page of the kernel's that stays as long as `self`; the program
        // only reads it.
        let word = unsafe { self.word.as_ref() };
        word.store(wanted.into(), Relaxed);
    }
}

const LENGTH: usize = size_of::<AtomicU32>();

impl Drop for TimeFlag {
    fn drop(&mut self) {
        self.set(false);
        // SAFETY: `map` made exactly this mapping, and no view outlives `self`.
        let _ = unsafe { munmap(self.word.as_ptr().cast(), LENGTH) };
    }
}
