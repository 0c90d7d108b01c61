//! A file of the monitor's, mapped.

use std::{fs::File, io, ptr::NonNull};

use ringway_region::{Buf, GuardedRange};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The first `len` bytes of a file, shared with the guest: it is the guest's memory.
///
/// Its owner may shorten the file at any time. A page that is not there any more is replaced (see
/// [`LostPages`](ringway_region::LostPages)), and [`is_lost`](Self::is_lost) tells.
#[derive(Debug)]
pub(crate) struct Map {
    base: NonNull<u8>,
    len: usize,
    guard: Option<GuardedRange>,
}

// SAFETY: the mapping stays valid wherever the value goes, and is used as what it is: memory that the guest
// changes meanwhile.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// # Errors
    /// Those of `mmap(2)`, and a file that is shorter than that.
    pub fn new(file: &File, len: u64) -> io::Result<Map> {
        let short = || io::Error::new(io::ErrorKind::InvalidData, "the file is shorter than that");
        if len == 0 || file.metadata()?.len() < len {
            return Err(short());
        }
        let len = usize::try_from(len).map_err(|_| short())?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the place, so no memory of ours is in the way.
        let base = unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, file, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the range is that mapping. Its users allow for any bytes: the guest writes them.
        let guard = Some(unsafe { GuardedRange::new(base.as_ptr() as usize, len) });
        Ok(Map { base, len, guard })
    }

    /// Whether the file has become shorter, and something of it was needed.
    pub fn is_lost(&self) -> bool {
        self.guard.as_ref().is_some_and(GuardedRange::has_lost_pages)
    }

    /// The `len` bytes from `offset`, if they are inside.
    #[inline]
    pub fn buf(&self, offset: u64, len: u32) -> Option<Buf<'_>> {
        let end = offset.checked_add(len.into())?;
        (end <= self.len as u64)
            // SAFETY: inside the mapping, which `self` keeps. A `Buf` allows for other writers.
            .then(|| unsafe { Buf::new(self.base.add(offset as usize), len) })
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // The addresses are about to be others'.
        drop(self.guard.take());
        // SAFETY: base and length are those of `new`; what points into the mapping borrows it, or holds it.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}
