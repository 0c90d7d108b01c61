//! Options of a registration: a region in the program's own memory, and offsets in slots.

use ringway_abi::{NETMAP_REQ_OPT_EXTMEM, NETMAP_REQ_OPT_OFFSETS, nmreq_pools_info};
use ringway_region::{Sizes, Timestamps};
use ringway_vale::Offsets as RingOffsets;
use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    nic_mode::NicMode,
    rx_redirect::Filter,
};

/// Options, with their outputs once they come back in a grant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    pub extmem: Option<Extmem>,
    pub offsets: Option<Offsets>,
    /// Ringway's own: from the first frame on, only what matches.
    pub filter: Option<Filter>,
    /// Ringway's own: the mode that an interface is to be in, and no other.
    pub mode: Option<NicMode>,
    /// Ringway's own: bytes of the buffers that an interface is to have, headroom included.
    pub buf_size: Option<u32>,
    /// Ringway's own: whether frames that an interface receives have timestamps.
    pub timestamps: Option<Timestamps>,
    /// Ringway's own: the other user who may have a pipe.
    pub user: Option<u32>,
}

/// `NETMAP_REQ_OPT_EXTMEM`: the port is to live in memory that the program brings (S-EXT).
///
/// The memory itself comes with the request as a memfd of `info.nr_memsize` bytes, unless
/// a region that is there already has the same origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extmem {
    /// Pools; zeros stand for defaults and are replaced by them.
    pub info: nmreq_pools_info,
    /// What the same memory has in common wherever it is mapped: device, inode and offset of
    /// the file behind it. `None` for memory that only one process has.
    pub same: Option<(u64, u64, u64)>,
}

/// `NETMAP_REQ_OPT_OFFSETS`: packets begin somewhere in their buffers (S-OFF).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offsets {
    /// Largest offset; afterwards the one in effect.
    pub max: u64,
    /// Stored in all slots of rings that nobody else uses.
    pub initial: u64,
    /// Bits of `ptr` that hold the offset; 0 is 64.
    pub bits: u32,
    /// The least distance of two offsets in one buffer, where slots share buffers: of the bytes
    /// received, a slot holds no more. 0: no buffer is shared.
    pub min_gap: u64,
}

/// What became of the options of a refused registration: `None` if it was refused before they
/// were looked at (S-CTRL-9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statuses {
    pub extmem: Option<i32>,
    pub offsets: Option<i32>,
}

impl Statuses {
    /// The status of an option by its type, as `nro_status` reports it; `None` for types that
    /// are not handled here.
    pub fn of(&self, reqtype: u32) -> Option<i32> {
        match reqtype {
            NETMAP_REQ_OPT_EXTMEM => self.extmem,
            NETMAP_REQ_OPT_OFFSETS => self.offsets,
            _ => None,
        }
    }
}

impl Extmem {
    /// The sizes asked for; the defaults are written back (S-EXT-1).
    pub(crate) fn sizes(&mut self) -> Sizes {
        let least = Sizes::PRIVATE;
        let info = &mut self.info;
        for (asked, default) in [
            (&mut info.nr_if_pool_objsize, least.if_size),
            (&mut info.nr_if_pool_objtotal, least.if_num),
            (&mut info.nr_ring_pool_objsize, least.ring_size),
            (&mut info.nr_ring_pool_objtotal, least.ring_num),
            (&mut info.nr_buf_pool_objsize, least.buf_size),
            (&mut info.nr_buf_pool_objtotal, least.buf_num),
        ] {
            if *asked == 0 {
                *asked = default;
            }
        }
        Sizes {
            if_size: info.nr_if_pool_objsize,
            if_num: info.nr_if_pool_objtotal,
            ring_size: info.nr_ring_pool_objsize,
            ring_num: info.nr_ring_pool_objtotal,
            buf_size: info.nr_buf_pool_objsize,
            buf_num: info.nr_buf_pool_objtotal,
        }
    }
}

impl Offsets {
    /// The mask, if the numbers go together and with buffers of `buf_size` bytes (S-OFF-2).
    pub(crate) fn mask(&self, name: &str, buf_size: u32) -> Result<u64> {
        let wrong = |problem: String| Err(Error::invalid(format!("{name}: {problem}")));
        let mask = match self.bits {
            0 | 64 => u64::MAX,
            bits @ 1..64 => (1 << bits) - 1,
            bits => return wrong(format!("offsets of {bits} bits do not fit a slot's 64")),
        };
        if self.max > buf_size.into() {
            return wrong(format!("offset {} is outside buffers of {buf_size} bytes", self.max));
        }
        if self.max > mask {
            return wrong(format!("offset {} does not fit {} bits", self.max, self.bits));
        }
        if self.initial > self.max {
            return wrong(format!("offset {} is above the maximum, {}", self.initial, self.max));
        }
        Ok(mask)
    }

    /// What these offsets make of a ring that has `now` (S-OFF-3).
    pub(crate) fn join(
        &self,
        name: &str,
        mask: u64,
        now: Option<RingOffsets>,
    ) -> Result<RingOffsets> {
        match now {
            None => {
                let gap = self.min_gap.try_into().unwrap_or(u32::MAX);
                Ok(RingOffsets { mask, max: self.max as u32, gap })
            }
            Some(now) if mask & !now.mask == 0 && self.max <= now.max.into() => Ok(now),
            Some(now) => Err(Error::busy(format!(
                "{name}: another program uses offsets up to {} there; ask for no more",
                now.max
            ))),
        }
    }
}
