//! Types and constants of PF_RING's interface (`include/pfring.h`, `include/linux/pf_ring.h`).

use std::ffi::{c_char, c_int, c_void};

pub const VERSION: u32 = 0x08_0900;
pub const MAX_CAPLEN: u32 = 65600;
pub const SLOT_VERSION: u32 = 21;
/// Packets that a ring holds by PF_RING's own setting.
pub const SLOTS: u32 = 4096;

pub const ERROR_GENERIC: c_int = -1;
pub const ERROR_INVALID_ARGUMENT: c_int = -2;
pub const ERROR_NO_PKT_AVAILABLE: c_int = -3;
pub const ERROR_WRONG_CONFIGURATION: c_int = -5;
pub const ERROR_NOT_SUPPORTED: c_int = -7;
pub const ERROR_RING_NOT_ENABLED: c_int = -12;

pub const REENTRANT: u32 = 1 << 1;
pub const LONG_HEADER: u32 = 1 << 2;
pub const PROMISC: u32 = 1 << 3;
pub const RX_PACKET_BOUNCE: u32 = 1 << 6;
pub const USERSPACE_BPF: u32 = 1 << 13;
pub const L7_FILTERING: u32 = 1 << 20;
pub const TX_BPF: u32 = 1 << 22;

pub const RX_AND_TX: c_int = 0;
pub const RX_ONLY: c_int = 1;
pub const TX_ONLY: c_int = 2;

pub const SEND_ONLY: c_int = 1;
pub const RECV_ONLY: c_int = 2;
pub const MANAGEMENT_ONLY: c_int = 3;

pub const ANY_VLAN: u16 = 0xffff;
pub const NO_TUNNEL_ID: u32 = u32::MAX;
pub const UNKNOWN_INTERFACE: c_int = -1;
pub const MAX_NUM_RX_CHANNELS: usize = 64;

pub const CHECKSUM_OFFLOAD: u32 = 1 << 0;
pub const CHECKSUM_OK: u32 = 1 << 1;
pub const IP_MORE_FRAG: u32 = 1 << 2;
pub const IP_FRAG_OFFSET: u32 = 1 << 3;
pub const VLAN_HWACCEL: u32 = 1 << 4;

/// An IPv4 address in host order in the first four bytes, or an IPv6 address.
pub type ip_addr = [u8; 16];

#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct pkt_offset {
    pub eth: i16,
    pub vlan: i16,
    pub l3: i16,
    pub l4: i16,
    pub payload: i16,
}

#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct tunnel_info {
    pub id: u32,
    pub dmac: [u8; 6],
    pub smac: [u8; 6],
    pub eth_type: u16,
    pub ip_version: u8,
    pub proto: u8,
    pub ip_src: ip_addr,
    pub ip_dst: ip_addr,
    pub l4_src_port: u16,
    pub l4_dst_port: u16,
}

#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct pkt_parsing_info {
    pub dmac: [u8; 6],
    pub smac: [u8; 6],
    pub eth_type: u16,
    pub vlan_id: u16,
    pub qinq_vlan_id: u16,
    pub ip_version: u8,
    pub l3_proto: u8,
    pub ip_tos: u8,
    pub ip_src: ip_addr,
    pub ip_dst: ip_addr,
    pub l4_src_port: u16,
    pub l4_dst_port: u16,
    pub icmp_type: u8,
    pub icmp_code: u8,
    pub tcp_flags: u8,
    pub _tcp_padding: [u8; 3],
    pub tcp_seq_num: u32,
    pub tcp_ack_num: u32,
    pub tunnel: tunnel_info,
    pub last_matched_rule_id: i32,
    pub offset: pkt_offset,
}

#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct pfring_pkthdr {
    pub tv_sec: i64,
    pub tv_usec: i64,
    pub caplen: u32,
    pub len: u32,
    pub timestamp_ns: u64,
    pub flags: u32,
    pub rx_direction: u8,
    pub port_id: u8,
    pub device_id: u16,
    pub if_index: i32,
    pub pkt_hash: u32,
    pub bounce_interface: i32,
    pub _tx_padding: [u8; 4],
    pub _tx_reserved: u64,
    pub pid: u32,
    pub parsed_pkt: pkt_parsing_info,
}

/// Bytes of a header that are given without LONG_HEADER.
pub const SHORT: usize = 48;
pub const LONG: usize = size_of::<pfring_pkthdr>();

const _: () = {
    use std::mem::offset_of;
    assert!(LONG == 209 && offset_of!(pfring_pkthdr, bounce_interface) == SHORT);
    assert!(offset_of!(pfring_pkthdr, pid) == 64 && offset_of!(pfring_pkthdr, parsed_pkt) == 68);
    assert!(size_of::<pkt_parsing_info>() == 141 && size_of::<tunnel_info>() == 56);
    assert!(offset_of!(pkt_parsing_info, tcp_seq_num) == 63);
    assert!(
        offset_of!(pkt_parsing_info, tunnel) == 71 && offset_of!(pkt_parsing_info, offset) == 131
    );
};

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct pfring_stat {
    pub recv: u64,
    pub drop: u64,
    pub shunt: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct timespec {
    pub tv_sec: i64,
    pub tv_nsec: i64,
}

#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default)]
pub struct pfring_card_settings {
    pub max_packet_size: u32,
    pub rx_ring_slots: u32,
    pub tx_ring_slots: u32,
}

#[repr(C)]
pub struct pfring_if_t {
    pub name: *mut c_char,
    pub system_name: *mut c_char,
    pub module: *mut c_char,
    pub module_version: *mut c_char,
    pub sn: *mut c_char,
    pub mac: [u8; 6],
    pub bus_id: [c_int; 4],
    pub status: c_int,
    pub license: c_int,
    pub license_expiration: i64,
    pub next: *mut pfring_if_t,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct bpf_program {
    pub len: u32,
    pub insns: *mut ringway_filter::Insn,
}

/// A ring, as programs see it: zeros, but for what is ours and what they read.
#[repr(C)]
pub struct pfring {
    pub head: [u8; 88],
    /// `priv_data`.
    pub ring: *mut crate::ring::Ring,
    pub functions: [u64; 77],
    pub flags: u32,
    pub caplen: u32,
    pub slot_header_len: u16,
    pub mtu: u16,
    pub rest: [u32; 55],
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<pfring>() == 944 && size_of::<pfring_if_t>() == 88);
    assert!(offset_of!(pfring, flags) == 712 && offset_of!(pfring, mtu) == 722);
};

pub type looper = Option<unsafe extern "C-unwind" fn(*const pfring_pkthdr, *const u8, *const u8)>;
/// Of a type that only hardware has.
pub type unused = c_void;
