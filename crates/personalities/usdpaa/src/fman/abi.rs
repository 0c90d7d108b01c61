//! What programs see of interfaces: the structures of `fman.h` and `usdpaa_netcfg.h`.

use std::{
    ffi::{c_char, c_int},
    ptr,
};

/// A node of a list, or its head.
#[repr(C)]
#[derive(Debug)]
pub struct list_head {
    pub prev: *mut list_head,
    pub next: *mut list_head,
}

impl list_head {
    pub const fn unlinked() -> list_head {
        list_head { prev: ptr::null_mut(), next: ptr::null_mut() }
    }
}

/// Makes a list of the nodes behind `head`.
///
/// # Safety
/// All are valid, stay where they are, and nobody else has them yet.
pub unsafe fn link(head: *mut list_head, nodes: impl IntoIterator<Item = *mut list_head>) {
    // SAFETY: by the caller's contract.
    unsafe {
        let mut last = head;
        for node in nodes {
            (*last).next = node;
            (*node).prev = last;
            last = node;
        }
        (*last).next = head;
        (*head).prev = last;
    }
}

#[repr(C)]
pub struct fman_if_bpool {
    pub bpid: u32,
    pub count: u64,
    pub size: u64,
    pub addr: u64,
    pub node: list_head,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ether_addr {
    pub octets: [u8; 6],
}

#[repr(C)]
pub struct macless_port_cfg {
    pub macless_name: *mut c_char,
    pub rx_start: u32,
    pub rx_count: u32,
    pub tx_start: u32,
    pub tx_count: u32,
    pub src_mac: ether_addr,
    pub peer_mac: ether_addr,
}

#[repr(C)]
pub struct shared_mac_cfg {
    pub is_shared_mac: c_int,
    pub shared_mac_name: *mut c_char,
}

#[repr(C)]
pub struct fman_if {
    pub fman_idx: u8,
    /// A number of 24 bits.
    pub fqid_rx_def: [u8; 3],
    pub mac_type: c_int,
    pub is_memac: u8,
    pub mac_idx: u8,
    pub mac_addr: ether_addr,
    pub tx_channel_id: u16,
    pub fqid_rx_err: u32,
    pub fqid_tx_err: u32,
    pub fqid_tx_confirm: u32,
    pub macless_info: macless_port_cfg,
    pub shared_mac_info: shared_mac_cfg,
    pub bpool_list: list_head,
    pub node: list_head,
}

#[repr(C)]
pub struct fm_eth_port_fqrange {
    pub list: list_head,
    pub start: u32,
    pub count: u32,
}

#[repr(C)]
pub struct fm_eth_port_cfg {
    pub list: *mut list_head,
    pub rx_def: u32,
    pub fman_if: *mut fman_if,
}

/// Followed by as many `fm_eth_port_cfg`.
#[repr(C)]
pub struct usdpaa_netcfg_info {
    pub num_ethports: u8,
    pub port_cfg: [fm_eth_port_cfg; 0],
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<fman_if_bpool>() == 48);
    assert!(size_of::<fman_if>() == 120);
    assert!(std::mem::offset_of!(fman_if, tx_channel_id) == 16);
    assert!(std::mem::offset_of!(fman_if, macless_info) == 32);
    assert!(std::mem::offset_of!(fman_if, bpool_list) == 88);
    assert!(size_of::<fm_eth_port_fqrange>() == 24);
    assert!(size_of::<fm_eth_port_cfg>() == 24);
    assert!(size_of::<usdpaa_netcfg_info>() == 8);
};
