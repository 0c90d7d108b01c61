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
    pub nr_version: u16,
    pub nr_reqtype: u16,
    pub nr_reserved: u32,
    pub nr_name: [u8; 64],
    /// User address of the first [`nmreq_option`], or 0.
    pub nr_options: u64,
    /// User address of the body, or 0.
    pub nr_body: u64,
}

abi_struct! {
    /// The head of every option.
    pub struct nmreq_option {
        pub nro_next: u64,
        pub nro_reqtype: u32,
        pub nro_status: u32,
        pub nro_size: u64,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_REGISTER`.
    pub struct nmreq_register {
        pub nr_offset: u64,
        pub nr_memsize: u64,
        pub nr_tx_slots: u32,
        pub nr_rx_slots: u32,
        pub nr_tx_rings: u16,
        pub nr_rx_rings: u16,
        pub nr_host_tx_rings: u16,
        pub nr_host_rx_rings: u16,
        pub nr_mem_id: u16,
        pub nr_ringid: u16,
        pub nr_mode: u32,
        pub nr_extra_bufs: u32,
        pub pad: u32,
        pub nr_flags: u64,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_PORT_INFO_GET`.
    pub struct nmreq_port_info_get {
        pub nr_memsize: u64,
        pub nr_tx_slots: u32,
        pub nr_rx_slots: u32,
        pub nr_tx_rings: u16,
        pub nr_rx_rings: u16,
        pub nr_host_tx_rings: u16,
        pub nr_host_rx_rings: u16,
        pub nr_mem_id: u16,
        pub pad: [u16; 3],
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_VALE_ATTACH`.
    pub struct nmreq_vale_attach {
        pub reg: nmreq_register,
        pub port_index: u32,
        pub pad1: u32,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_VALE_DETACH`.
    pub struct nmreq_vale_detach {
        pub port_index: u32,
        pub pad1: u32,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_VALE_LIST`.
    pub struct nmreq_vale_list {
        pub nr_bridge_idx: u16,
        pub pad1: u16,
        pub nr_port_idx: u32,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_PORT_HDR_SET` and `_GET`.
    pub struct nmreq_port_hdr {
        pub nr_hdr_len: u32,
        pub pad1: u32,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_VALE_NEWIF`.
    pub struct nmreq_vale_newif {
        pub nr_tx_slots: u32,
        pub nr_rx_slots: u32,
        pub nr_tx_rings: u16,
        pub nr_rx_rings: u16,
        pub nr_mem_id: u16,
        pub pad1: u16,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_VALE_POLLING_ENABLE` and `_DISABLE`.
    pub struct nmreq_vale_polling {
        pub nr_mode: u32,
        pub nr_first_cpu_id: u32,
        pub nr_num_polling_cpus: u32,
        pub pad1: u32,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_POOLS_INFO_GET`.
    pub struct nmreq_pools_info {
        pub nr_memsize: u64,
        pub nr_mem_id: u16,
        pub pad1: [u16; 3],
        pub nr_if_pool_offset: u64,
        pub nr_if_pool_objtotal: u32,
        pub nr_if_pool_objsize: u32,
        pub nr_ring_pool_offset: u64,
        pub nr_ring_pool_objtotal: u32,
        pub nr_ring_pool_objsize: u32,
        pub nr_buf_pool_offset: u64,
        pub nr_buf_pool_objtotal: u32,
        pub nr_buf_pool_objsize: u32,
    }
}
abi_struct! {
    /// Body of `NETMAP_REQ_SYNC_KLOOP_START`.
    pub struct nmreq_sync_kloop_start {
        pub sleep_us: u32,
        pub pad1: u32,
    }
}

/// What the program tells the service side of one ring.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct nm_csb_atok {
    pub head: u32,
    pub cur: u32,
    pub appl_need_kick: u32,
    pub sync_flags: u32,
    pub pad: [u32; 12],
}

/// What the service side tells the program about one ring.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct nm_csb_ktoa {
    pub hwcur: u32,
    pub hwtail: u32,
    pub kern_need_kick: u32,
    pub pad: [u32; 13],
}

abi_struct! {
    /// `NETMAP_REQ_OPT_SYNC_KLOOP_MODE`.
    pub struct nmreq_opt_sync_kloop_mode {
        pub nro_opt: nmreq_option,
        pub mode: u32,
        pub pad: u32,
    }
}
abi_struct! {
    /// `NETMAP_REQ_OPT_EXTMEM`.
    pub struct nmreq_opt_extmem {
        pub nro_opt: nmreq_option,
        pub nro_usrptr: u64,
        pub nro_info: nmreq_pools_info,
    }
}
abi_struct! {
    /// `NETMAP_REQ_OPT_CSB`.
    pub struct nmreq_opt_csb {
        pub nro_opt: nmreq_option,
        pub csb_atok: u64,
        pub csb_ktoa: u64,
    }
}
abi_struct! {
    /// `NETMAP_REQ_OPT_OFFSETS`.
    pub struct nmreq_opt_offsets {
        pub nro_opt: nmreq_option,
        pub nro_max_offset: u64,
        pub nro_initial_offset: u64,
        pub nro_offset_bits: u32,
        pub nro_tx_align: u32,
        pub nro_min_gap: u64,
    }
}
