//! Options of a registration: a region in the program's own memory, and offsets in slots.

use ringway_abi::{NETMAP_REQ_OPT_EXTMEM, NETMAP_REQ_OPT_OFFSETS, nmreq_pools_info};
use ringway_region::Timestamps;
use serde::{Deserialize, Serialize};

use crate::{filter::Filter, nic_mode::NicMode};

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
