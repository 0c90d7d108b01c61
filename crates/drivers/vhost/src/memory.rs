//! The guest's memory: where its addresses are in this process.

use std::{
    fs::File,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use ringway_region::Buf;

use crate::{log::DirtyLog, sys::Map};

/// Regions of memory, at most: as many as QEMU has slots.
pub(crate) const MAX_REGIONS: usize = 509;

/// A region as the monitor describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionAt {
    /// The guest's address of its first byte.
    pub guest: u64,
    /// The monitor's own address of that byte, by which it names the parts of virtqueues.
    pub user: u64,
    /// Bytes.
    pub size: u64,
    /// Where it begins in its file.
    pub offset: u64,
}

/// A region, mapped.
#[derive(Debug)]
struct Region {
    at: RegionAt,
    map: Map,
}

/// All regions, by the guest's addresses. A change makes a new one of these: what uses the old one keeps it.
#[derive(Debug, Default)]
pub(crate) struct GuestMemory {
    regions: Vec<std::sync::Arc<Region>>,
    log: OnceLock<std::sync::Arc<DirtyLog>>,
    logging: AtomicBool,
}

/// Why a region cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("a region of {0:#x} bytes at {1:#x} ends behind the last address")]
    Overflow(u64, u64),
    #[error("the size of the region at {0:#x} is 0")]
    Empty(u64),
    #[error("two regions have the guest's address {0:#x}")]
    Overlap(u64),
    #[error("there are more than {MAX_REGIONS} regions")]
    TooMany,
    #[error("there is no such region at {0:#x}")]
    Unknown(u64),
    #[error("a region of {0:#x} bytes cannot be mapped: {1}")]
    Map(u64, std::io::Error),
}

impl GuestMemory {
    /// This memory, and a region more.
    pub fn with(&self, at: RegionAt, file: &File) -> Result<GuestMemory, MemoryError> {
        let overflow = MemoryError::Overflow(at.size, at.guest);
        let end = |from: u64| from.checked_add(at.size);
        let (Some(guest_end), Some(_), Some(file_end)) =
            (end(at.guest), end(at.user), end(at.offset))
        else {
            return Err(overflow);
        };
        if at.size == 0 {
            return Err(MemoryError::Empty(at.guest));
        }
        if self.regions.len() == MAX_REGIONS {
            return Err(MemoryError::TooMany);
        }
        let place = self.regions.partition_point(|region| region.at.guest < at.guest);
        let before = place.checked_sub(1).map(|before| &self.regions[before].at);
        let overlaps = before.is_some_and(|before| before.guest + before.size > at.guest)
            || self.regions.get(place).is_some_and(|next| next.at.guest < guest_end);
        if overlaps {
            return Err(MemoryError::Overlap(at.guest));
        }
        // From the file's beginning: huge pages are mapped at multiples of their size only.
        let map = Map::new(file, file_end).map_err(|error| MemoryError::Map(at.size, error))?;
        let mut regions = self.regions.clone();
        regions.insert(place, std::sync::Arc::new(Region { at, map }));
        Ok(self.of(regions))
    }

    /// This memory without the region that is there.
    pub fn without(&self, guest: u64, size: u64) -> Result<GuestMemory, MemoryError> {
        let place = self
            .regions
            .iter()
            .position(|region| region.at.guest == guest && region.at.size == size)
            .ok_or(MemoryError::Unknown(guest))?;
        let mut regions = self.regions.clone();
        regions.remove(place);
        Ok(self.of(regions))
    }

    /// Without regions, but with the log that this one has.
    pub fn cleared(&self) -> GuestMemory {
        self.of(Vec::new())
    }

    /// With that log.
    pub fn logged(&self, log: DirtyLog) -> GuestMemory {
        let memory = GuestMemory {
            regions: self.regions.clone(),
            logging: self.logging().into(),
            log: OnceLock::new(),
        };
        let _ = memory.log.set(std::sync::Arc::new(log));
        memory
    }

    fn of(&self, regions: Vec<std::sync::Arc<Region>>) -> GuestMemory {
        GuestMemory { regions, log: self.log.clone(), logging: self.logging().into() }
    }

    fn logging(&self) -> bool {
        self.logging.load(Relaxed)
    }

    /// Whether what is written from now on is noted in the log.
    pub fn set_logging(&self, logging: bool) {
        self.logging.store(logging, Relaxed);
    }

    /// Notes that bytes have been written, if somebody wants to know.
    #[inline]
    pub fn mark(&self, guest: u64, len: u64) {
        if self.logging()
            && let Some(log) = self.log.get()
        {
            log.mark(guest, len);
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Whether memory was taken away that had been handed over.
    pub fn is_lost(&self) -> bool {
        self.regions.iter().any(|region| region.map.is_lost())
            || self.log.get().is_some_and(|log| log.is_lost())
    }

    /// The bytes at the guest's address, if they are in one region.
    #[inline]
    pub fn buf(&self, guest: u64, len: u32) -> Option<Buf<'_>> {
        self.from(guest).filter(|buf| len <= buf.1).and_then(|(region, _)| {
            region.map.buf(region.at.offset + (guest - region.at.guest), len)
        })
    }

    /// The first of the `len` bytes at the guest's address: as many as one region has.
    #[inline]
    pub fn piece(&self, guest: u64, len: u32) -> Option<Buf<'_>> {
        let (region, there) = self.from(guest)?;
        region.map.buf(region.at.offset + (guest - region.at.guest), len.min(there))
    }

    /// The region of an address, and how many bytes of it are behind that.
    #[inline]
    fn from(&self, guest: u64) -> Option<(&Region, u32)> {
        let after = match &*self.regions {
            // The usual case.
            [_] => 1,
            regions => regions.partition_point(|region| region.at.guest <= guest),
        };
        let region = &**self.regions.get(after.checked_sub(1)?)?;
        let inside = guest.checked_sub(region.at.guest)?;
        let left = region.at.size.checked_sub(inside).filter(|left| *left > 0)?;
        Some((region, left.min(u32::MAX.into()) as u32))
    }

    /// The guest's address of what the monitor has at its own address `user`.
    pub fn guest_address(&self, user: u64) -> Option<u64> {
        self.regions.iter().find_map(|region| {
            let inside = user.checked_sub(region.at.user)?;
            (inside < region.at.size).then(|| region.at.guest + inside)
        })
    }
}
