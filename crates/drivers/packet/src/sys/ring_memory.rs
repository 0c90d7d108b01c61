//! The memory of a ring of blocks.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicU32;

use ringway_region::Buf;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Blocks of one size, mapped. The kernel, and other holders of the socket, may write to them at any time.
#[derive(Debug)]
pub struct RingMemory {
    memory: NonNull<u8>,
    block_size: u32,
    blocks: u32,
}

// SAFETY: a pointer into a mapping that the value owns, and that is not tied to a thread. What is behind it
// is read and written as what others write at the same time: see `Buf`, and by atomics.
unsafe impl Send for RingMemory {}
// SAFETY: as above.
unsafe impl Sync for RingMemory {}

impl RingMemory {
    /// Maps the ring of a socket, all of it: EINVAL when it has none of this size.
    pub fn map(socket: BorrowedFd<'_>, block_size: u32, blocks: u32) -> io::Result<RingMemory> {
        let length = block_size as usize * blocks as usize;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without an address the kernel chooses one where nothing is.
        let memory = unsafe { mmap(null_mut(), length, access, MapFlags::SHARED, socket, 0)? };
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(RingMemory { memory, block_size, blocks })
    }

    /// A ring that no kernel fills.
    #[cfg(test)]
    pub fn private(block_size: u32, blocks: u32) -> RingMemory {
        let length = block_size as usize * blocks as usize;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without an address the kernel chooses one where nothing is.
        let memory =
            unsafe { rustix::mm::mmap_anonymous(null_mut(), length, access, MapFlags::PRIVATE) };
        let memory = NonNull::new(memory.unwrap().cast()).unwrap();
        RingMemory { memory, block_size, blocks }
    }

    /// Where `length` bytes at `offset` of a block are. Panics if they are not inside.
    #[inline]
    fn place(&self, block: u32, offset: u32, length: u32) -> NonNull<u8> {
        assert!(block < self.blocks);
        assert!(length <= self.block_size && offset <= self.block_size - length);
        let at = block as usize * self.block_size as usize + offset as usize;
        // SAFETY: the mapping has that many blocks of that size.
        unsafe { self.memory.add(at) }
    }

    /// A block. Panics if there is none of that number.
    #[inline]
    pub fn block(&self, block: u32) -> Buf<'_> {
        // SAFETY: the block lies in the mapping, which lives as long as `self`.
        unsafe { Buf::new(self.place(block, 0, self.block_size), self.block_size) }
    }

    /// A word of a block. Panics if it is not inside, or not aligned.
    #[inline]
    pub fn word(&self, block: u32, offset: u32) -> &AtomicU32 {
        let at = self.place(block, offset, size_of::<u32>() as u32).cast();
        assert!(at.is_aligned());
        // SAFETY: an aligned word in the mapping, which lives as long as `self`; others change it by
        // words, or copies of bytes that allow for any change.
        unsafe { AtomicU32::from_ptr(at.as_ptr()) }
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        let length = self.block_size as usize * self.blocks as usize;
        // SAFETY: the mapping of this value, of that length; what was borrowed from it has gone.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), length) };
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsFd, os::unix::fs::FileExt, sync::atomic::Ordering::Relaxed};

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    /// With a file in the place of a socket: its bytes are where they are in the ring, as long as it is mapped.
    #[test]
    fn blocks_lie_side_by_side() {
        const NAME: &str = "ring-memory-of-a-test";
        let mapped = || {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let sizes = maps.lines().filter(|line| line.contains(NAME)).map(|line| {
                let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
                let [start, end] = [start, end].map(|at| usize::from_str_radix(at, 16).unwrap());
                end - start
            });
            sizes.sum::<usize>()
        };
        let file = File::from(memfd_create(NAME, MemfdFlags::CLOEXEC).unwrap());
        file.set_len(3 * 8192).unwrap();
        let ring = RingMemory::map(file.as_fd(), 8192, 3).unwrap();
        assert_eq!(mapped(), 3 * 8192);
        for (block, offset) in [(0, 0), (0, 8188), (1, 4), (2, 8188)] {
            let at = u64::from(block) * 8192 + u64::from(offset);
            let value = block * 10_000 + offset + 1;
            ring.word(block, offset).store(value, Relaxed);
            let mut bytes = [0; 4];
            file.read_exact_at(&mut bytes, at).unwrap();
            assert_eq!(u32::from_ne_bytes(bytes), value);
            assert_eq!(ring.block(block).read(offset as usize), Some(bytes));
            assert_eq!(ring.block(block).size(), 8192);
        }
        drop(ring);
        assert_eq!(mapped(), 0);
    }
}
