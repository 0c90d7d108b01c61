//! What a socket may have its frames in.

use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use ringway_region::{Mapping, Region};

use crate::Umem;

/// Memory that a socket can be given to put frames into, while it is mapped.
///
/// The kernel writes to it when it likes, for as long as there is the socket, in whatever process. That harms
/// nothing: it is a mapping of its own, reached by atomics and copies of bytes alone, and the kernel keeps
/// the *pages*. When the memory is unmapped, what comes to lie at its addresses has others.
#[derive(Clone, Copy, Debug)]
pub struct FrameMemory<'a> {
    bytes: NonNull<[u8]>,
    /// With the place where the memory begins in it.
    memfd: Option<(BorrowedFd<'a>, u64)>,
    mapping: PhantomData<&'a ()>,
}

impl<'a> FrameMemory<'a> {
    /// The buffers of a region, with their headrooms.
    pub fn of_region(region: &'a Region) -> FrameMemory<'a> {
        let area = region.buffer_area();
        let bytes = NonNull::slice_from_raw_parts(NonNull::from(area).cast(), area.len());
        let memfd = Some((region.memfd(), region.layout().bufs.offset));
        FrameMemory { bytes, memfd, mapping: PhantomData }
    }

    /// The first `buffers` of a region's buffers, or all if it has not as many: no socket reaches the others.
    pub fn of_buffers(region: &'a Region, buffers: u32) -> FrameMemory<'a> {
        let all = FrameMemory::of_region(region);
        let bytes = u64::from(buffers) * u64::from(region.layout().bufs.size);
        let len = usize::try_from(bytes).unwrap_or(usize::MAX).min(all.bytes.len());
        FrameMemory { bytes: NonNull::slice_from_raw_parts(all.bytes.cast(), len), ..all }
    }

    /// What follows `offset`, in bytes, of a memfd that is mapped. `None` if that is nothing.
    pub fn of_mapping(mapping: &'a Mapping, offset: usize) -> Option<FrameMemory<'a>> {
        let area = mapping.bytes().get(offset..).filter(|area| !area.is_empty())?;
        let bytes = NonNull::slice_from_raw_parts(NonNull::from(area).cast(), area.len());
        Some(FrameMemory { bytes, memfd: None, mapping: PhantomData })
    }

    /// All of a [`Umem`].
    pub fn of_umem(umem: &'a Umem) -> FrameMemory<'a> {
        let memfd = umem.memfd().map(|memfd| (memfd, 0));
        FrameMemory { bytes: umem.memory(), memfd, mapping: PhantomData }
    }

    /// Where it is: mapped for reading and writing as long as 'a.
    pub fn bytes(&self) -> NonNull<[u8]> {
        self.bytes
    }

    /// The file that it is a mapping of, and where in it: for another process. `None`: it is private.
    pub fn memfd(&self) -> Option<(BorrowedFd<'a>, u64)> {
        self.memfd
    }
}
