//! Words of a file that processes share.

use std::{io, os::fd::AsFd, ptr::NonNull, slice, sync::atomic::AtomicU32};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Words that any process which has the file may write at any time.
pub struct Words {
    first: NonNull<AtomicU32>,
    count: usize,
}

// SAFETY: the mapping stays where it is, and is accessed by atomics alone.
unsafe impl Send for Words {}

impl Words {
    /// The `count` words of a file from `offset` on, a multiple of pages.
    pub fn map(file: impl AsFd, offset: usize, count: usize) -> io::Result<Words> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let (bytes, offset) = (count * size_of::<AtomicU32>(), offset as u64);
        // SAFETY: a new mapping, where the kernel has room.
        let first = unsafe {
            mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, offset)?
        };
        let first = NonNull::new(first.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Words { first, count })
    }

    pub fn get(&self) -> &[AtomicU32] {
        // SAFETY: the mapping has them as long as this lives, at the beginning of a page; atomics suit whatever others
        // do.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the mapping of `map`, which nothing refers to any more.
        let _ = unsafe { munmap(self.first.as_ptr().cast(), self.count * size_of::<AtomicU32>()) };
    }
}
