//! The memory of one ring.

use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicU32;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::xdp::XdpRingOffset;

use crate::Desc;

/// What rings hold.
///
/// # Safety
/// Made of numbers: any bytes are a value.
pub unsafe trait Entry: Copy {}
// SAFETY: a number.
unsafe impl Entry for u64 {}
// SAFETY: made of numbers.
unsafe impl Entry for Desc {}

/// One mapped ring, without cursors.
pub struct Ring<T> {
    map: NonNull<u8>,
    map_length: usize,
    /// All of them inside the mapping, and aligned.
    at: XdpRingOffset,
    /// A power of two.
    size: u32,
    entries: PhantomData<*mut T>,
}

// SAFETY: the mapping is the value's, and is not tied to a thread.
unsafe impl<T: Entry> Send for Ring<T> {}
// SAFETY: the indices are atomics, and entries are copied in and out, volatile, like what the kernel and
// other holders of the socket change at the same time: any bytes are an entry.
unsafe impl<T: Entry> Sync for Ring<T> {}

impl<T: Entry> Ring<T> {
    /// Maps the ring of `size` entries that lies at `page_offset` of `fd`, its parts at `at`.
    ///
    /// Errors: EINVAL when the size is no power of two or a part lies outside; EOPNOTSUPP without flags
    /// (before kernel 5.4); those of `mmap(2)`.
    pub(crate) fn map(
        fd: BorrowedFd<'_>,
        at: &XdpRingOffset,
        size: u32,
        page_offset: u64,
    ) -> rustix::io::Result<Ring<T>> {
        if !size.is_power_of_two() {
            return Err(Errno::INVAL);
        }
        let at = *at;
        let flags = at.flags.ok_or(Errno::OPNOTSUPP)?;
        let map_length = usize::try_from(at.desc)
            .ok()
            .and_then(|desc| desc.checked_add(size as usize * size_of::<T>()))
            .ok_or(Errno::INVAL)?;
        let is_word = |offset: u64| {
            offset.is_multiple_of(align_of::<AtomicU32>() as u64)
                && offset
                    .checked_add(size_of::<AtomicU32>() as u64)
                    .is_some_and(|end| end <= at.desc)
        };
        let entries_aligned = at.desc.is_multiple_of(align_of::<T>() as u64);
        if ![at.producer, at.consumer, flags].into_iter().all(is_word) || !entries_aligned {
            return Err(Errno::INVAL);
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let kind = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: without an address the kernel chooses one where nothing is.
        let map = unsafe { mmap(null_mut(), map_length, access, kind, fd, page_offset)? };
        let map = NonNull::new(map.cast()).ok_or(Errno::NOMEM)?;
        Ok(Ring { map, map_length, at, size, entries: PhantomData })
    }

    /// Entries.
    #[inline]
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    #[inline]
    pub(crate) fn producer(&self) -> &AtomicU32 {
        self.index(self.at.producer)
    }

    #[inline]
    pub(crate) fn consumer(&self) -> &AtomicU32 {
        self.index(self.at.consumer)
    }

    #[inline]
    pub(crate) fn flags(&self) -> &AtomicU32 {
        // There are some: it was mapped.
        self.index(self.at.flags.unwrap_or_default())
    }

    /// `offset` is one of `self.at`.
    #[inline]
    fn index(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: `map` has seen that the word is aligned and lies before the entries, inside the mapping,
        // which lives as long as `self`. All parties read and write it as a whole.
        unsafe { self.map.add(offset as usize).cast().as_ref() }
    }

    /// The entry at free-running position `position`.
    #[inline]
    fn entry(&self, position: u32) -> NonNull<T> {
        let i = (position & (self.size - 1)) as usize;
        // SAFETY: `i < size`, and the mapping holds `size` entries from `at.desc` on, which is aligned.
        unsafe { self.map.add(self.at.desc as usize).cast::<T>().add(i) }
    }

    /// A copy of the entry at free-running position `position`.
    #[inline]
    pub(crate) fn read(&self, position: u32) -> T {
        // SAFETY: an aligned entry inside the mapping; any bytes are a value, whichever side writes them.
        unsafe { self.entry(position).read_volatile() }
    }

    /// Sets the entry at free-running position `position`.
    #[inline]
    pub(crate) fn write(&self, position: u32, value: T) {
        // SAFETY: an aligned entry inside the mapping, to which nothing refers.
        unsafe { self.entry(position).write_volatile(value) }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: `map` made exactly this mapping, and no view outlives `self`.
        let _ = unsafe { munmap(self.map.as_ptr().cast(), self.map_length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use std::os::fd::AsFd;

    /// All parts lie in the mapping, aligned, and none of the words among the entries.
    #[test]
    fn a_ring_whose_parts_lie_elsewhere_is_refused() {
        let memory = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, 4096).unwrap();
        let good = XdpRingOffset { producer: 0, consumer: 64, desc: 192, flags: Some(128) };
        let map = |at: XdpRingOffset, size| {
            Ring::<u64>::map(memory.as_fd(), &at, size, 0).map(|ring| ring.size())
        };
        assert_eq!((map(good, 8), map(good, 1)), (Ok(8), Ok(1)));
        assert_eq!(map(XdpRingOffset { flags: Some(188), ..good }, 8), Ok(8));
        assert_eq!(map(XdpRingOffset { flags: None, ..good }, 8), Err(Errno::OPNOTSUPP));
        for size in [0, 3, 12] {
            assert_eq!(map(good, size), Err(Errno::INVAL));
        }
        for wrong in [2, 189, 190, 192, u64::MAX - 3, u64::MAX] {
            for at in [
                XdpRingOffset { producer: wrong, ..good },
                XdpRingOffset { consumer: wrong, ..good },
                XdpRingOffset { flags: Some(wrong), ..good },
            ] {
                assert_eq!(map(at, 8), Err(Errno::INVAL), "{wrong}");
            }
        }
        for desc in [196, 193, u64::MAX, u64::MAX - 7] {
            assert_eq!(map(XdpRingOffset { desc, ..good }, 8), Err(Errno::INVAL), "{desc}");
        }
    }
}
