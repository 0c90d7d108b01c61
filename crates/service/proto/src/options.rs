//! Options of a registration: a region in the program's own memory, and offsets in slots.

use ringway_region::{Sizes, Timestamps};
use serde::{Deserialize, Serialize};

#[cfg(feature = "next")]
use crate::version::Needed;
use crate::{action::Action, error::Cause, filter::Filter, nic_mode::NicMode};

/// Options, with their outputs once they come back in a grant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Memory of the program's own for the region.
    pub extmem: Option<Extmem>,
    /// Where packets begin in their buffers.
    pub offsets: Option<Offsets>,
    /// From the first frame on, only what matches.
    pub filter: Option<Filter>,
    /// The mode that an interface is to be in, and no other.
    pub mode: Option<NicMode>,
    /// Bytes of the buffers that an interface is to have, headroom included.
    pub buf_size: Option<u32>,
    /// Whether frames that an interface receives have timestamps.
    pub timestamps: Option<Timestamps>,
    /// The other user who may have a pipe. For a program of root's, and another port: the user whose it is,
    /// and whose memory the program is to share.
    pub user: Option<u32>,
    /// From the first frame on, what decides about each.
    pub action: Option<Action>,
    /// It comes back in the grant.
    #[cfg(feature = "next")]
    #[serde(with = "Needed::<8>")]
    pub next: Option<u32>,
}

/// The port is to live in memory that the program brings (S-EXT).
///
/// The registry makes the memory, and the client copies its own into it: nothing that a client has made
/// is mapped by others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extmem {
    /// Bytes.
    pub memory: u64,
    /// Pools; zeros stand for defaults and are replaced by them.
    pub sizes: Sizes,
    /// In a grant: the id of the region in that memory, whether or not the port lives there.
    pub mem_id: u16,
    /// What the same memory has in common wherever it is mapped: device, inode and offset of
    /// the file behind it. `None` for memory that only one process has.
    pub same: Option<(u64, u64, u64)>,
    /// In a grant, if the region is new and the port lives there: from this byte on it is the client's to
    /// fill with what its memory held. Before that are interfaces, rings and their buffers.
    pub copy_from: Option<u64>,
}

/// Packets begin somewhere in their buffers (S-OFF).
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

/// What became of one option of a refused registration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OptionStatus {
    /// The request was refused before the option was looked at.
    #[default]
    Unseen,
    /// It can be had.
    Accepted,
    /// It cannot, for this cause.
    Refused(Cause),
}

/// What became of the options of a refused registration (S-CTRL-9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statuses {
    /// [`Options::extmem`].
    pub extmem: OptionStatus,
    /// [`Options::offsets`].
    pub offsets: OptionStatus,
}
