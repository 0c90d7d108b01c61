//! Data that does not begin where its buffer does (S-OFF-5, 6).
//!
//! The program says in a slot's `ptr`, under a mask, where the data of the slot begins. Mask and
//! greatest offset were agreed upon when the ring was bound; what stands in the ring itself is the
//! program's to overwrite, and not looked at.

use ringway_region::Buf;
use serde::{Deserialize, Serialize};

/// What was agreed upon for a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offsets {
    /// The bits of a slot's `ptr` that hold the offset, from the lowest on.
    pub mask: u64,
    /// The greatest offset in bytes; a greater one is taken for this (S-OFF-4). It fits the mask.
    pub max: u32,
}

/// Bytes of a cache line: where in one the data begins is kept from sender to receiver.
const LINE: u32 = 64;

impl Offsets {
    /// Where the data of a slot begins.
    #[inline]
    pub(crate) fn read(&self, ptr: u64) -> u32 {
        (ptr & self.mask).min(u64::from(self.max)) as u32
    }

    /// `ptr` with another offset.
    #[inline]
    pub(crate) fn write(&self, ptr: u64, offset: u32) -> u64 {
        ptr & !self.mask | u64::from(offset) & self.mask
    }

    /// Where in the buffer `to` the `len` bytes from `from` are to begin: where the slot says, or
    /// as far behind as they lie in their cache line, if there is room.
    #[inline]
    pub(crate) fn place(&self, ptr: u64, from: &Buf<'_>, len: u32, to: &Buf<'_>) -> u32 {
        let base = self.read(ptr);
        // Buffers begin with a cache line.
        let phase = from.as_ptr().addr() as u32 % LINE;
        let raised = base + phase.wrapping_sub(base) % LINE;
        let fits =
            raised <= self.max && raised.checked_add(len).is_some_and(|end| end <= to.size());
        if fits { raised } else { base }
    }
}
