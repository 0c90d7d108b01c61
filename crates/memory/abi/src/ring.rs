//! The structures that programs see in shared memory.

use serde::{Deserialize, Serialize};

/// One packet's place in a ring: which buffer, how many bytes, which flags.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct netmap_slot {
    /// Buffer index within the region; 0 and 1 are reserved.
    pub buf_idx: u32,
    /// Bytes in the buffer.
    pub len: u16,
    /// `NS_*`.
    pub flags: u16,
    /// Offset of the data (offsets mode) or a user address (`NS_INDIRECT`).
    pub ptr: u64,
}

/// `struct timeval` on 64-bit Linux.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct timeval {
    /// Seconds.
    pub tv_sec: i64,
    /// Microseconds, below a million.
    pub tv_usec: i64,
}

/// Alignment of the `sem` area of a ring.
#[repr(C, align(128))]
#[derive(Clone, Copy)]
pub struct RingSem(pub [u8; 128]);

/// The head of a ring; `num_slots` [`netmap_slot`]s follow it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct netmap_ring {
    /// Bytes from the ring to buffer 0.
    pub buf_ofs: i64,
    /// Slots that follow. Constant.
    pub num_slots: u32,
    /// Bytes of a buffer. Constant.
    pub nr_buf_size: u32,
    /// Index within the port and direction.
    pub ringid: u16,
    /// [`Dir::abi`].
    pub dir: u16,
    /// The first slot that the program keeps: it gives back those before. Written by the program.
    pub head: u32,
    /// The program wakes up when `tail` is beyond this slot. Written by the program.
    pub cur: u32,
    /// The first slot that the service side keeps. Written by a sync.
    pub tail: u32,
    /// `NR_TIMESTAMP`, `NR_FORWARD`. Written by the program.
    pub flags: u32,
    /// Time of the last sync, with `NR_TIMESTAMP`.
    pub ts: timeval,
    /// Bits of `netmap_slot::ptr` that are the offset of the data; 0 without offsets.
    pub offset_mask: u64,
    /// Alignment in bytes that sent data must have; 0 for none.
    pub buf_align: u64,
    /// Ringway's own, where netmap has nothing: the most bytes that a slot can have. Constant; 0
    /// where it is netmap that has made the ring.
    pub nr_data_size: u32,
    /// The program's own: the service side neither reads nor writes it.
    pub sem: RingSem,
}

/// What one registration sees of a port; the offsets of its rings follow it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct netmap_if {
    /// The port's name, ended by a nul.
    pub ni_name: [u8; 16],
    /// `NETMAP_API`.
    pub ni_version: u32,
    /// `NI_PRIV_MEM`.
    pub ni_flags: u32,
    /// Tx rings, without host rings.
    pub ni_tx_rings: u32,
    /// Rx rings, without host rings.
    pub ni_rx_rings: u32,
    /// Index of the first extra buffer, or 0; the first word of each is the index of the next.
    pub ni_bufs_head: u32,
    /// Host tx rings.
    pub ni_host_tx_rings: u32,
    /// Host rx rings.
    pub ni_host_rx_rings: u32,
    /// Unused; 0.
    pub ni_spare1: [u32; 3],
}

/// Direction of a ring, seen from the program: it fills `Tx` slots and empties `Rx` slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Dir {
    /// From the program to the port.
    Tx,
    /// From the port to the program.
    Rx,
}

impl Dir {
    /// The value stored in `netmap_ring::dir` (S-NIFP-5: 1 for TX, 0 for RX).
    pub const fn abi(self) -> u16 {
        match self {
            Dir::Tx => 1,
            Dir::Rx => 0,
        }
    }
}
