//! Memory that frames live in, seen as chunks.
#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Page-aligned memory for a socket's frames: chunks of one size, numbered from 0.
///
/// The kernel writes to it at any time, so it is reached by raw pointers alone.
pub struct Umem {
    base: NonNull<[u8]>,
    chunk_size: u32,
    owned: bool,
}

// SAFETY: the memory is not tied to a thread.
unsafe impl Send for Umem {}

impl Umem {
    /// Maps private memory for `chunks` chunks of `chunk_size` bytes (2048 or 4096).
    pub fn anonymous(chunks: u32, chunk_size: u32) -> io::Result<Umem> {
        let length = chunks as usize * chunk_size as usize;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping, placed by the kernel, overlaps nothing.
        let base =
            unsafe { mmap_anonymous(std::ptr::null_mut(), length, access, MapFlags::PRIVATE)? };
        let base = NonNull::new(base.cast()).expect("mmap never returns null");
        Ok(Umem { base: NonNull::slice_from_raw_parts(base, length), chunk_size, owned: true })
    }

    /// Memory that is mapped by someone else, such as a region.
    ///
    /// # Safety
    /// `base` must be page-aligned, mapped for reading and writing for as long as the `Umem` lives,
    /// and reached by raw pointers only.
    pub unsafe fn borrowed(base: NonNull<[u8]>, chunk_size: u32) -> Umem {
        Umem { base, chunk_size, owned: false }
    }

    /// All of it, to register with a socket.
    pub fn memory(&self) -> NonNull<[u8]> {
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

    /// Where `length` bytes at `address` (bytes from the start) are, and the chunk that holds them
    /// all; `None` when they leave a chunk or the memory.
    pub fn locate(&self, address: u64, length: u32) -> Option<(u32, NonNull<u8>)> {
        let size = u64::from(self.chunk_size);
        let chunk = u32::try_from(address / size).ok().filter(|&chunk| chunk < self.chunks())?;
        if address % size + u64::from(length) > size {
            return None;
        }
        // SAFETY: `address` is within chunk `chunk`, which lies within the memory.
        Some((chunk, unsafe { self.base.cast::<u8>().add(address as usize) }))
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: `anonymous` mapped exactly this. A socket that still uses it keeps the pages.
            let _ = unsafe { munmap(self.base.as_ptr().cast(), self.base.len()) };
        }
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
