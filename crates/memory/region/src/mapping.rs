//! A memfd mapped into this process.
//!
//! Under Miri, which has no `mmap`, the memory comes from the allocator: the ring and pool
//! logic above does not notice.
#![allow(unsafe_code)]

use std::{io, ptr::NonNull, sync::atomic::AtomicU8};

use rustix::fd::{AsFd, OwnedFd};

use crate::lost_pages::GuardedRange;

/// `len` bytes of shared memory, readable and writable, unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
    /// For one that this process has made.
    guard: Option<GuardedRange>,
}

// SAFETY: the mapping stays valid wherever the value goes. Threads access it as other processes do
// anyway: by atomics, or by copies of bytes that may change meanwhile (see the crate's rules).
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Whether the kernel had no page for an address of it; see [`LostPages`](crate::LostPages).
    pub fn has_lost_pages(&self) -> bool {
        self.guard.as_ref().is_some_and(GuardedRange::has_lost_pages)
    }

    /// First byte.
    #[inline]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Where `len` bytes from `offset` are; `None` if they are not inside the mapping, or `offset` is
    /// no multiple of `align`, a power of two up to a page.
    pub(crate) fn place(&self, offset: u64, len: usize, align: usize) -> Option<NonNull<u8>> {
        let offset = usize::try_from(offset).ok()?;
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.len);
        // SAFETY: inside the mapping, or at its end.
        (inside && offset.is_multiple_of(align)).then(|| unsafe { self.base.add(offset) })
    }

    /// All of it: what any party may write at any time.
    pub fn bytes(&self) -> &[AtomicU8] {
        let bytes = NonNull::slice_from_raw_parts(self.base.cast(), self.len);
        // SAFETY: the mapping lives as long as `self`, and atomics suit whatever others do.
        unsafe { bytes.as_ref() }
    }
}

#[cfg(not(miri))]
mod memfd {
    use rustix::{
        fs::{
            MemfdFlags, Mode, OFlags, SealFlags, fchmod, fcntl_add_seals, ftruncate, memfd_create,
        },
        mm::{Advice, madvise},
    };

    use super::*;
    use crate::{holders::open_again, huge_pages};

    impl Mapping {
        /// A new memfd of `len` bytes, all zero, sealed against any change of size.
        ///
        /// All that takes the inode's lock happens here, before any other process has it: from then on
        /// another could hold that lock for as long as it likes.
        pub fn create(name: &str, len: usize) -> io::Result<(OwnedFd, Mapping)> {
            let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
            ftruncate(&fd, len as u64)?;
            fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
            fchmod(&fd, Mode::RUSR | Mode::WUSR)?;
            let mut mapping = Mapping::map(&fd, len)?;
            // Packets of other users are nothing for a core file of this process.
            // SAFETY: it changes what such a file holds, and nothing else.
            let _ = unsafe { madvise(mapping.base.as_ptr().cast(), len, Advice::LinuxDontDump) };
            // SAFETY: the range is the new mapping, and its users allow for any bytes (see the crate's rules).
            let guard = unsafe { GuardedRange::new(mapping.base.as_ptr() as usize, len) };
            mapping.guard = Some(guard);
            // What others hold can be told from what is ours; see `holders.rs`.
            let handed_out = open_again(&fd, OFlags::RDWR).unwrap_or(fd);
            Ok((handed_out, mapping))
        }

        /// Maps the first `len` bytes of a memfd made by [`Mapping::create`], maybe by
        /// another process. Fails when the file is shorter or could still be shortened,
        /// since either would let its other holders take our memory away.
        pub fn open(fd: impl AsFd, len: usize) -> io::Result<Mapping> {
            let fd = fd.as_fd();
            let seals = rustix::fs::fcntl_get_seals(fd)?;
            let size = rustix::fs::fstat(fd)?.st_size as u64;
            if !seals.contains(SealFlags::SHRINK) || size < len as u64 || len == 0 {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "not a sealed region"));
            }
            Mapping::map(fd, len)
        }

        /// Maps the first `len` bytes of a memfd that is sealed and as long.
        fn map(fd: impl AsFd, len: usize) -> io::Result<Mapping> {
            // The seal keeps the file as long as that. Pages can be missing all the same: what that costs
            // is up to the process, see `lost_pages.rs`.
            let base = huge_pages::map(fd, len)?;
            Ok(Mapping { base, len, guard: None })
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // The addresses are about to be others'.
            drop(self.guard.take());
            // SAFETY: `base` and `len` are those of the mapping in `map`, and no pointer into
            // the mapping outlives the `Arc<Region>` that every view holds.
            unsafe { huge_pages::unmap(self.base, self.len) };
        }
    }
}

#[cfg(miri)]
mod allocated {
    use std::alloc::{Layout, alloc_zeroed, dealloc};

    use super::*;

    fn pages(len: usize) -> Layout {
        Layout::from_size_align(len, 4096).unwrap()
    }

    impl Mapping {
        /// Stands in for a memfd; the fd is a real but unrelated file.
        pub fn create(_name: &str, len: usize) -> io::Result<(OwnedFd, Mapping)> {
            let fd = std::fs::File::open("/dev/null")?.into();
            // SAFETY: the layout has a non-zero size.
            let base = unsafe { alloc_zeroed(pages(len)) };
            let base = NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory)?;
            Ok((fd, Mapping { base, len, guard: None }))
        }

        /// There is no second process under Miri.
        pub fn open(_fd: impl AsFd, _len: usize) -> io::Result<Mapping> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: allocated in `create` with the same layout.
            unsafe { dealloc(self.base.as_ptr(), pages(self.len)) };
        }
    }
}
