//! Memory that frames live in, seen as chunks.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

use ringway_region::{Buf, Mapping};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Page-aligned memory for a socket's frames: chunks of one size, numbered from 0.
///
/// The kernel writes to it at any time, so that its bytes are copied in and out, and never borrowed.
pub struct Umem {
    base: NonNull<[u8]>,
    chunk_size: u32,
    /// Where it is no private memory.
    shared: Option<Mapping>,
    memfd: Option<OwnedFd>,
}

// SAFETY: the mapping is the value's, and is not tied to a thread.
unsafe impl Send for Umem {}

impl Umem {
    /// Maps private memory for `chunks` chunks of `chunk_size` bytes (2048 or 4096).
    pub fn anonymous(chunks: u32, chunk_size: u32) -> io::Result<Umem> {
        let length = chunks as usize * chunk_size as usize;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without an address the kernel chooses one where nothing is.
        let base = unsafe { mmap_anonymous(null_mut(), length, access, MapFlags::PRIVATE)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Umem {
            base: NonNull::slice_from_raw_parts(base, length),
            chunk_size,
            shared: None,
            memfd: None,
        })
    }

    /// The same of a memfd, which can be handed to a process that has the privileges to register it.
    pub fn shared(chunks: u32, chunk_size: u32) -> io::Result<Umem> {
        let length = chunks as usize * chunk_size as usize;
        let (memfd, mapping) = Mapping::create("ringway-umem", length)?;
        let base = NonNull::from(mapping.bytes()).cast();
        let base = NonNull::slice_from_raw_parts(base, length);
        Ok(Umem { base, chunk_size, shared: Some(mapping), memfd: Some(memfd) })
    }

    /// From now on [shared](Self::shared) memory is handed to no other process.
    pub fn close_memfd(&mut self) {
        self.memfd = None;
    }

    /// The file of [shared](Self::shared) memory.
    pub(crate) fn memfd(&self) -> Option<BorrowedFd<'_>> {
        self.memfd.as_ref().map(|memfd| memfd.as_fd())
    }

    /// All of it.
    pub(crate) fn memory(&self) -> NonNull<[u8]> {
        self.base
    }

    /// Bytes in a chunk.
    pub fn chunk_size(&self) -> u32 {
        self.chunk_size
    }

    /// Whole chunks in the memory.
    pub fn chunks(&self) -> u32 {
        (self.base.len() / self.chunk_size as usize) as u32
    }

    /// The `length` bytes at `address` (bytes from the start), and the chunk that holds them all; `None`
    /// when they leave a chunk or the memory.
    #[inline]
    pub fn locate(&self, address: u64, length: u32) -> Option<(u32, Buf<'_>)> {
        let size = u64::from(self.chunk_size);
        let chunk = u32::try_from(address / size).ok().filter(|&chunk| chunk < self.chunks())?;
        if address % size + u64::from(length) > size {
            return None;
        }
        // SAFETY: `address` is within chunk `chunk`, which lies within the memory: a mapping that is there
        // as long as `self`, private or shared.
        let start = unsafe { self.base.cast::<u8>().add(address as usize) };
        // SAFETY: `length` bytes from there are within the chunk, too, and stay mapped for reading and
        // writing as long as `self`.
        Some((chunk, unsafe { Buf::new(start, length) }))
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        if self.shared.is_some() {
            // The mapping's own.
            return;
        }
        // SAFETY: `anonymous` mapped exactly this, and what was located in it has gone. A socket that
        // still uses it keeps the pages, to which this process has no pointer any more.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.base.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::Umem;

    #[test]
    fn only_what_lies_in_one_chunk_is_located() {
        let umem = Umem::anonymous(4, 2048).unwrap();
        assert_eq!(umem.locate(0, 2048).unwrap().0, 0);
        assert_eq!(umem.locate(2048 + 256, 1792).unwrap().0, 1);
        assert_eq!(umem.locate(3 * 2048, 1).unwrap().0, 3);
        assert!(umem.locate(1, 2048).is_none());
        assert!(umem.locate(4 * 2048, 0).is_none());
        assert!(umem.locate(u64::MAX, u32::MAX).is_none());
        assert!(umem.locate((1 << 48) | 256, 60).is_none());
    }
}
