//! The request structures of API versions before 14.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Argument of `NIOCGINFO` and `NIOCREGIF`.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct nmreq {
    pub nr_name: [u8; 16],
    pub nr_version: u32,
    pub nr_offset: u32,
    pub nr_memsize: u32,
    pub nr_tx_slots: u32,
    pub nr_rx_slots: u32,
    pub nr_tx_rings: u16,
    pub nr_rx_rings: u16,
    pub nr_ringid: u16,
    pub nr_cmd: u16,
    pub nr_arg1: u16,
    pub nr_arg2: u16,
    pub nr_arg3: u32,
    pub nr_flags: u32,
    pub spare2: [u32; 1],
}

/// Argument of `NIOCCONFIG`.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct nm_ifreq {
    pub nifr_name: [u8; 16],
    pub data: [u8; 256],
}
