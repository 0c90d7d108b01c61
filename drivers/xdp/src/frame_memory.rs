//! What a socket may have its frames in.

use std::marker::PhantomData;
use std::ptr::NonNull;

use ringway_region::Region;

use crate::Umem;

/// Memory that a socket can be given to put frames into, while it is mapped.
///
/// The kernel writes to it when it likes, for as long as there is the socket, in whatever process. That harms
/// nothing: it is a mapping of its own, reached by atomics and copies of bytes alone, and the kernel keeps
/// the *pages*. When the memory is unmapped, what comes to lie at its addresses has others.
#[derive(Clone, Copy, Debug)]
pub struct FrameMemory<'a> {
    bytes: NonNull<[u8]>,
    mapping: PhantomData<&'a ()>,
}

impl<'a> FrameMemory<'a> {
    /// The buffers of a region, with their headrooms.
    pub fn of_region(region: &'a Region) -> FrameMemory<'a> {
        let area = region.buffer_area();
        let bytes = NonNull::slice_from_raw_parts(NonNull::from(area).cast(), area.len());
        FrameMemory { bytes, mapping: PhantomData }
    }

    /// All of a [`Umem`].
    pub fn of_umem(umem: &'a Umem) -> FrameMemory<'a> {
        FrameMemory { bytes: umem.memory(), mapping: PhantomData }
    }

    /// Where it is: mapped for reading and writing as long as 'a.
    pub fn bytes(&self) -> NonNull<[u8]> {
        self.bytes
    }
}
