//! DMA memory: which addresses frames and buffers may have.
//!
//! An address is the memory's own in this process. What a program names that is not in one of its maps is refused.

use std::{
    ptr::NonNull,
    sync::{PoisonError, RwLock, RwLockReadGuard},
};

use ringway_region::Buf;

/// First address and bytes of each map.
static MAPS: RwLock<Vec<(u64, u64)>> = RwLock::new(Vec::new());

/// From now on these bytes are DMA memory.
#[allow(dead_code)] // For dma_mem.h.
pub fn add(address: u64, bytes: u64) {
    MAPS.write().unwrap_or_else(PoisonError::into_inner).push((address, bytes));
}

/// They are so no longer. Interfaces must have stopped to use them.
#[allow(dead_code)] // For dma_mem.h.
pub fn remove(address: u64) {
    MAPS.write().unwrap_or_else(PoisonError::into_inner).retain(|(first, _)| *first != address);
}

/// The maps, for as long as frames are looked at.
pub struct Maps(RwLockReadGuard<'static, Vec<(u64, u64)>>);

/// The maps that there are. None is taken away before this is dropped.
pub fn maps() -> Maps {
    Maps(MAPS.read().unwrap_or_else(PoisonError::into_inner))
}

impl Maps {
    /// The bytes from an address on, if all of them are in one map.
    #[inline]
    pub fn at(&self, address: u64, bytes: u32) -> Option<Buf<'_>> {
        let is_in = |(first, size): &&(u64, u64)| {
            let at = address.checked_sub(*first);
            at.and_then(|at| at.checked_add(bytes.into())).is_some_and(|end| end <= *size)
        };
        self.0.iter().find(is_in)?;
        let start = NonNull::new(address as *mut u8)?;
        // SAFETY: the bytes are in a map of the program's, which cannot be taken away meanwhile.
        Some(unsafe { Buf::new(start, bytes) })
    }
}

/// An entry of a scatter-gather table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub address: u64,
    pub pool: u8,
    pub offset: u32,
    pub length: u32,
    /// The table goes on elsewhere.
    pub extension: bool,
    pub is_final: bool,
}

/// Reads `struct qm_sg_entry`, as compilers for little-endian machines lay it out: the address in the low 40 bits of the
/// first number, length and marks in the second.
pub fn sg_entry(bytes: [u8; 16]) -> Part {
    let word = |at: usize| {
        let mut word = [0; 4];
        word.copy_from_slice(&bytes[at..at + 4]);
        u32::from_le_bytes(word)
    };
    let address = (u64::from(word(4)) << 32 | u64::from(word(0))) & ((1 << 40) - 1);
    let (marks, rest) = (word(8), word(12));
    Part {
        address,
        pool: (rest >> 16) as u8,
        offset: rest & 0x1fff,
        length: marks & 0x3fff_ffff,
        extension: marks >> 31 == 1,
        is_final: marks >> 30 & 1 == 1,
    }
}
