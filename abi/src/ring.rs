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
    pub tv_sec: i64,
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
    pub buf_ofs: i64,
    pub num_slots: u32,
    pub nr_buf_size: u32,
    pub ringid: u16,
    pub dir: u16,
    pub head: u32,
    pub cur: u32,
    pub tail: u32,
    pub flags: u32,
    pub ts: timeval,
    pub offset_mask: u64,
    pub buf_align: u64,
    pub sem: RingSem,
}

/// What one registration sees of a port; the offsets of its rings follow it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct netmap_if {
    pub ni_name: [u8; 16],
    pub ni_version: u32,
    pub ni_flags: u32,
    pub ni_tx_rings: u32,
    pub ni_rx_rings: u32,
    pub ni_bufs_head: u32,
    pub ni_host_tx_rings: u32,
    pub ni_host_rx_rings: u32,
    pub ni_spare1: [u32; 3],
}

/// Direction of a ring, seen from the program: it fills `Tx` slots and empties `Rx` slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Dir {
    Tx,
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
