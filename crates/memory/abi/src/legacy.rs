//! The request structures of API versions before 14.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Argument of `NIOCGINFO` and `NIOCREGIF`.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct nmreq {
    /// The port, with the suffixes that the legacy API knows, ended by a nul.
    pub nr_name: [u8; 16],
    /// `NETMAP_API`; older versions are refused.
    pub nr_version: u32,
    /// As `nmreq_register::nr_offset`.
    pub nr_offset: u32,
    /// Bytes of the region that programs map. An output.
    pub nr_memsize: u32,
    /// Slots of each tx ring; 0 asks for the default.
    pub nr_tx_slots: u32,
    /// Slots of each rx ring; 0 asks for the default.
    pub nr_rx_slots: u32,
    /// Tx rings, without host rings; 0 asks for the default.
    pub nr_tx_rings: u16,
    /// Rx rings, without host rings; 0 asks for the default.
    pub nr_rx_rings: u16,
    /// A ring's number and `NETMAP_HW_RING`, `NETMAP_SW_RING`, `NETMAP_NO_TX_POLL`, `NETMAP_DO_RX_POLL`.
    pub nr_ringid: u16,
    /// `NETMAP_BDG_*` and their like; 0 registers.
    pub nr_cmd: u16,
    /// An argument of `nr_cmd`.
    pub nr_arg1: u16,
    /// Id of the region, as `nmreq_register::nr_mem_id`.
    pub nr_arg2: u16,
    /// Extra buffers, as `nmreq_register::nr_extra_bufs`.
    pub nr_arg3: u32,
    /// `nr_mode` in the low bits (`NR_REG_MASK`), `NR_*` above.
    pub nr_flags: u32,
    /// Unused; 0.
    pub spare2: [u32; 1],
}

/// Argument of `NIOCCONFIG`.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct nm_ifreq {
    /// The port, ended by a nul.
    pub nifr_name: [u8; 16],
    /// For a forwarding function with a configuration: there is none (S-LEG-5).
    pub data: [u8; 256],
}
