//! Data that does not begin where its buffer does (S-OFF).
//!
//! A program says in a slot's `ptr`, under a mask, where the data of the slot begins. Mask and
//! greatest offset were agreed upon when the ring was bound; what stands in the ring itself is the
//! program's to overwrite, and not looked at.

use std::sync::atomic::Ordering::Relaxed;

use serde::{Deserialize, Serialize};

use crate::Kring;

/// What was agreed upon for a ring. The default is none: data begins with the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offsets {
    /// The bits of a slot's `ptr` that hold the offset, from the lowest on.
    pub mask: u64,
    /// The greatest offset in bytes; a greater one is taken for this (S-OFF-4). It fits the mask.
    pub max: u32,
    /// The least distance of two offsets in one buffer: so many bytes from its offset on are a
    /// slot's to be filled (S-OFF-5). 0: all that are there.
    pub gap: u32,
}

impl Offsets {
    /// What was agreed upon for a ring, as noted where all who drive it look.
    #[inline]
    pub fn of(kring: &Kring) -> Offsets {
        let owner = kring.owner();
        Offsets {
            mask: owner.offset_mask.load(Relaxed),
            max: owner.offset_max.load(Relaxed),
            gap: owner.offset_gap.load(Relaxed),
        }
    }

    /// Notes it there.
    pub fn note(&self, kring: &Kring) {
        let owner = kring.owner();
        owner.offset_gap.store(self.gap, Relaxed);
        owner.offset_max.store(self.max, Relaxed);
        owner.offset_mask.store(self.mask, Relaxed);
    }

    /// Where the data of a slot begins.
    #[inline]
    pub fn read(&self, ptr: u64) -> u32 {
        (ptr & self.mask).min(self.max.into()) as u32
    }

    /// Where the bytes end that a slot's data may fill, if it is to begin at `base` in a buffer of
    /// `size` bytes.
    #[inline]
    pub fn end(&self, base: u32, size: u32) -> u32 {
        match self.gap {
            0 => size,
            gap => base.saturating_add(gap).min(size),
        }
    }

    /// `ptr` with another offset.
    #[inline]
    pub fn write(&self, ptr: u64, offset: u32) -> u64 {
        ptr & !self.mask | u64::from(offset) & self.mask
    }
}
