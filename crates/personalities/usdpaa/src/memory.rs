//! DMA memory: which addresses frames and buffers may have.
//!
//! An address is the memory's own in this process. What a program names that is not in one of its maps is refused.

use std::{
    ptr::NonNull,
    sync::{PoisonError, RwLock, RwLockReadGuard},
};

use ringway_region::Buf;

/// A map of DMA memory.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub address: u64,
    pub bytes: u64,
    /// Other processes may write to it at any time.
    pub is_shared: bool,
    /// This one may not.
    pub is_read_only: bool,
}

static MAPS: RwLock<Vec<Area>> = RwLock::new(Vec::new());

/// From now on this is DMA memory.
pub fn add(area: Area) {
    MAPS.write().unwrap_or_else(PoisonError::into_inner).push(area);
}

/// They are so no longer. Interfaces must have stopped to use them.
pub fn remove(address: u64) {
    MAPS.write().unwrap_or_else(PoisonError::into_inner).retain(|area| area.address != address);
}

/// The maps, for as long as frames are looked at.
pub struct Maps(RwLockReadGuard<'static, Vec<Area>>);

/// The maps that there are. None is taken away before this is dropped.
pub fn maps() -> Maps {
    Maps(MAPS.read().unwrap_or_else(PoisonError::into_inner))
}

impl Maps {
    #[inline]
    fn find(&self, address: u64, bytes: u32) -> Option<(Buf<'_>, &Area)> {
        let is_in = |area: &&Area| {
            let at = address.checked_sub(area.address);
            at.and_then(|at| at.checked_add(bytes.into())).is_some_and(|end| end <= area.bytes)
        };
        let area = self.0.iter().find(is_in)?;
        let start = NonNull::new(address as *mut u8)?;
        // SAFETY: the bytes are in a map of the program's, which cannot be taken away meanwhile.
        Some((unsafe { Buf::new(start, bytes) }, area))
    }

    /// The bytes from an address on, to be read, if all of them are in one map.
    #[inline]
    pub fn at(&self, address: u64, bytes: u32) -> Option<Buf<'_>> {
        self.find(address, bytes).map(|(buf, _)| buf)
    }

    /// The same to be written; and whether other processes may write there meanwhile.
    #[inline]
    pub fn room(&self, address: u64, bytes: u32) -> Option<(Buf<'_>, bool)> {
        let (buf, area) = self.find(address, bytes)?;
        (!area.is_read_only).then_some((buf, area.is_shared))
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

/// Reads `struct qm_sg_entry`: an address of 40 bits, big-endian, length and marks, the pool, and the offset.
pub fn sg_entry(bytes: [u8; 16]) -> Part {
    let [_, _, _, address @ .., m0, m1, m2, m3, _, pool, o0, o1] = bytes;
    let [a, b, c, d, e] = address;
    let marks = u32::from_le_bytes([m0, m1, m2, m3]);
    Part {
        address: u64::from_be_bytes([0, 0, 0, a, b, c, d, e]),
        pool,
        offset: u32::from(u16::from_le_bytes([o0, o1]) & 0x1fff),
        length: marks & 0x3fff_ffff,
        extension: marks >> 31 == 1,
        is_final: marks >> 30 & 1 == 1,
    }
}

impl Part {
    /// The same as the program sees it.
    pub fn entry(&self) -> [u8; 16] {
        let marks = self.length | u32::from(self.is_final) << 30 | u32::from(self.extension) << 31;
        let [_, _, _, address @ ..] = self.address.to_be_bytes();
        let (m, o) = (marks.to_le_bytes(), (self.offset as u16).to_le_bytes());
        let [a, b, c, d, e] = address;
        [0, 0, 0, a, b, c, d, e, m[0], m[1], m[2], m[3], 0, self.pool, o[0], o[1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let part = Part {
            address: 0x12_3456_789a,
            pool: 9,
            offset: 0x1abc,
            length: 0x2bcd_ef01,
            extension: false,
            is_final: true,
        };
        for part in [part, Part { extension: true, is_final: false, ..part }] {
            assert_eq!(sg_entry(part.entry()), part);
        }
    }
}
