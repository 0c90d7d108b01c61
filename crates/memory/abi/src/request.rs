//! The `NIOCCTRL` request: an envelope, a body, a list of options.

use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

macro_rules! abi_struct {
    ($(#[$meta:meta])* pub struct $name:ident { $($body:tt)* }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq,
                 FromBytes, IntoBytes, Immutable, KnownLayout, Serialize, Deserialize)]
        pub struct $name { $($body)* }
    };
}

/// The envelope of every request.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct nmreq_header {
    /// `NETMAP_API`.
    pub nr_version: u16,
    /// `NETMAP_REQ_*`: which body follows.
    pub nr_reqtype: u16,
    /// Must be 0.
    pub nr_reserved: u32,
    /// The port, ended by a nul.
    pub nr_name: [u8; 64],
    /// User address of the first [`nmreq_option`], or 0.
    pub nr_options: u64,
    /// User address of the body, or 0.
    pub nr_body: u64,
}

abi_struct! {
    /// The head of every option.
    pub struct nmreq_option {
        /// User address of the next option, or 0.
        pub nro_next: u64,
        /// `NETMAP_REQ_OPT_*`.
        pub nro_reqtype: u32,
        /// An output: 0, or the errno of a refusal.
        pub nro_status: u32,
        /// Bytes behind the head where the option has no fixed size; else not read.
        pub nro_size: u64,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_REGISTER`.
    pub struct nmreq_register {
        /// Byte of the region at which the [`netmap_if`](crate::netmap_if) is. An output.
        pub nr_offset: u64,
        /// Bytes of the region that programs map. An output.
        pub nr_memsize: u64,
        /// Slots of each tx ring; 0 asks for the default.
        pub nr_tx_slots: u32,
        /// Slots of each rx ring; 0 asks for the default.
        pub nr_rx_slots: u32,
        /// Tx rings, without host rings; 0 asks for the default.
        pub nr_tx_rings: u16,
        /// Rx rings, without host rings; 0 asks for the default.
        pub nr_rx_rings: u16,
        /// Host tx rings.
        pub nr_host_tx_rings: u16,
        /// Host rx rings.
        pub nr_host_rx_rings: u16,
        /// Id of the region; 0 leaves the choice to the service side.
        pub nr_mem_id: u16,
        /// Which ring, for the modes that choose one.
        pub nr_ringid: u16,
        /// `NR_REG_*`.
        pub nr_mode: u32,
        /// Buffers besides those in slots: asked for, and granted. They hang from `ni_bufs_head`.
        pub nr_extra_bufs: u32,
        /// Unused; 0.
        pub pad: u32,
        /// `NR_*`.
        pub nr_flags: u64,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_PORT_INFO_GET`.
    pub struct nmreq_port_info_get {
        /// Bytes of the region that programs map. An output.
        pub nr_memsize: u64,
        /// Slots of each tx ring; 0 asks for the default.
        pub nr_tx_slots: u32,
        /// Slots of each rx ring; 0 asks for the default.
        pub nr_rx_slots: u32,
        /// Tx rings, without host rings; 0 asks for the default.
        pub nr_tx_rings: u16,
        /// Rx rings, without host rings; 0 asks for the default.
        pub nr_rx_rings: u16,
        /// Host tx rings.
        pub nr_host_tx_rings: u16,
        /// Host rx rings.
        pub nr_host_rx_rings: u16,
        /// Id of the region; 0 leaves the choice to the service side.
        pub nr_mem_id: u16,
        /// Unused; 0.
        pub pad: [u16; 3],
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_VALE_ATTACH`.
    pub struct nmreq_vale_attach {
        /// The rings to attach; `NR_REG_ALL_NIC` or `NR_REG_NIC_SW`.
        pub reg: nmreq_register,
        /// Index of the port within its switch. An output.
        pub port_index: u32,
        /// Unused; 0.
        pub pad1: u32,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_VALE_DETACH`.
    pub struct nmreq_vale_detach {
        /// Index of the port within its switch. An output.
        pub port_index: u32,
        /// Unused; 0.
        pub pad1: u32,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_VALE_LIST`.
    pub struct nmreq_vale_list {
        /// Index of the switch: where to begin, and where the port was found.
        pub nr_bridge_idx: u16,
        /// Unused; 0.
        pub pad1: u16,
        /// Index of the port within it, likewise.
        pub nr_port_idx: u32,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_PORT_HDR_SET` and `_GET`.
    pub struct nmreq_port_hdr {
        /// Bytes: 0, 10 or 12.
        pub nr_hdr_len: u32,
        /// Unused; 0.
        pub pad1: u32,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_VALE_NEWIF`.
    pub struct nmreq_vale_newif {
        /// Slots of each tx ring; 0 asks for the default.
        pub nr_tx_slots: u32,
        /// Slots of each rx ring; 0 asks for the default.
        pub nr_rx_slots: u32,
        /// Tx rings, without host rings; 0 asks for the default.
        pub nr_tx_rings: u16,
        /// Rx rings, without host rings; 0 asks for the default.
        pub nr_rx_rings: u16,
        /// Id of the region; 0 leaves the choice to the service side.
        pub nr_mem_id: u16,
        /// Unused; 0.
        pub pad1: u16,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_VALE_POLLING_ENABLE` and `_DISABLE`.
    pub struct nmreq_vale_polling {
        /// `NETMAP_POLLING_MODE_*`.
        pub nr_mode: u32,
        /// The first processor.
        pub nr_first_cpu_id: u32,
        /// How many processors, from the first on.
        pub nr_num_polling_cpus: u32,
        /// Unused; 0.
        pub pad1: u32,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_POOLS_INFO_GET`.
    pub struct nmreq_pools_info {
        /// Bytes of the region that programs map. An output.
        pub nr_memsize: u64,
        /// Id of the region; 0 leaves the choice to the service side.
        pub nr_mem_id: u16,
        /// Unused; 0.
        pub pad1: [u16; 3],
        /// Byte of the region at which the pool of interfaces begins.
        pub nr_if_pool_offset: u64,
        /// How many interfaces.
        pub nr_if_pool_objtotal: u32,
        /// Bytes of one.
        pub nr_if_pool_objsize: u32,
        /// Byte of the region at which the pool of rings begins.
        pub nr_ring_pool_offset: u64,
        /// How many rings.
        pub nr_ring_pool_objtotal: u32,
        /// Bytes of one.
        pub nr_ring_pool_objsize: u32,
        /// Byte of the region at which the pool of buffers begins.
        pub nr_buf_pool_offset: u64,
        /// How many buffers.
        pub nr_buf_pool_objtotal: u32,
        /// Bytes of one.
        pub nr_buf_pool_objsize: u32,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_SYNC_KLOOP_START`.
    pub struct nmreq_sync_kloop_start {
        /// Microseconds between two rounds of a loop without eventfds; at most a second.
        pub sleep_us: u32,
        /// Unused; 0.
        pub pad1: u32,
    }
}

/// What the program tells the service side of one ring.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct nm_csb_atok {
    /// As `netmap_ring::head`.
    pub head: u32,
    /// As `netmap_ring::cur`.
    pub cur: u32,
    /// Not 0: the program sleeps, and wants to be notified of progress.
    pub appl_need_kick: u32,
    /// Flags of the next sync; 1 at first. No driver reads them.
    pub sync_flags: u32,
    /// Unused; 0.
    pub pad: [u32; 12],
}

/// What the service side tells the program about one ring.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct nm_csb_ktoa {
    /// The first slot that the service side has not taken over yet.
    pub hwcur: u32,
    /// The first slot that is the service side's: the ring's new `tail`.
    pub hwtail: u32,
    /// Not 0: the service side sleeps, and wants to be notified of new slots.
    pub kern_need_kick: u32,
    /// Unused; 0.
    pub pad: [u32; 13],
}

abi_struct! {
    /// `NETMAP_REQ_OPT_SYNC_KLOOP_MODE`.
    pub struct nmreq_opt_sync_kloop_mode {
        /// The head.
        pub nro_opt: nmreq_option,
        /// Bits: which direction runs in the context of a notification. Read, and no more.
        pub mode: u32,
        /// Unused; 0.
        pub pad: u32,
    }
}
abi_struct! {
    /// `NETMAP_REQ_OPT_EXTMEM`.
    pub struct nmreq_opt_extmem {
        /// The head.
        pub nro_opt: nmreq_option,
        /// User address of the memory; `nro_info.nr_memsize` is its size.
        pub nro_usrptr: u64,
        /// The pools to lay out: asked for, and granted.
        pub nro_info: nmreq_pools_info,
    }
}
abi_struct! {
    /// `NETMAP_REQ_OPT_CSB`.
    pub struct nmreq_opt_csb {
        /// The head.
        pub nro_opt: nmreq_option,
        /// User address of an array of [`nm_csb_atok`], one for each ring, tx before rx.
        pub csb_atok: u64,
        /// User address of an array of [`nm_csb_ktoa`] in the same order.
        pub csb_ktoa: u64,
    }
}
abi_struct! {
    /// `NETMAP_REQ_OPT_OFFSETS`.
    pub struct nmreq_opt_offsets {
        /// The head.
        pub nro_opt: nmreq_option,
        /// Largest offset in bytes that will be used; an output as well.
        pub nro_max_offset: u64,
        /// Bytes, stored into all slots of rings that no other handle has.
        pub nro_initial_offset: u64,
        /// Bits of `ptr` that hold the offset; 0 asks for all 64. An output as well.
        pub nro_offset_bits: u32,
        /// Alignment in bytes of what is sent; 0 asks for none.
        pub nro_tx_align: u32,
        /// The least distance in bytes of two offsets in one buffer that slots share; 0: none is shared.
        pub nro_min_gap: u64,
    }
}
