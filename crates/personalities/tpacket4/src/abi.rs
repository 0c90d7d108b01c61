//! The numbers and structures of AF_PACKET V4. `include/linux/if_packet_v4.h` has the same for programs.

use std::mem::{offset_of, size_of};

use libc::c_int;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// What a packet socket is of in the beginning.
pub const TPACKET_V1: c_int = 0;
/// The kernel's last one is 2.
pub const TPACKET_V4: c_int = 3;
pub const PACKET_MEMREG: c_int = 200;
pub const PACKET_ZEROCOPY: c_int = 201;

/// The kernel has the slot.
pub const TP4_DESC_KERNEL: u8 = 0x80;
/// The packet goes on in the next descriptor.
pub const TP4_PKT_CONT: u8 = 0x01;

/// Bytes of a frame, at least. It has a page at most.
pub const MIN_FRAME_SIZE: u32 = 2048;
pub const PAGE: u32 = 4096;
/// Bytes of a frame that are in front of received data.
pub const KERNEL_HEADROOM: u32 = 256;
/// What the program asks for as headroom besides is rounded up to this.
pub const DATA_HEADROOM_ALIGN: u32 = 64;

/// Descriptors of a ring, at most.
pub const MAX_DESCS: u32 = 1 << 20;

/// A slot of a ring. [`Desc`](crate::desc::Desc) reads and writes it as two words.
#[repr(C)]
pub struct tpacket4_desc {
    pub idx: u64,
    pub len: u32,
    pub offset: u16,
    pub error: u8,
    pub flags: u8,
}

/// The argument of PACKET_MEMREG.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct tpacket_memreg_req {
    pub addr: u64,
    pub len: u64,
    pub frame_size: u32,
    pub data_headroom: u32,
}

/// The argument of PACKET_RX_RING and PACKET_TX_RING.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct tpacket_req4 {
    pub mr_fd: i32,
    pub desc_nr: u32,
}

/// The argument of PACKET_ADD_MEMBERSHIP: the kernel's structure.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct packet_mreq {
    pub ifindex: c_int,
    pub kind: u16,
    pub alen: u16,
    pub address: [u8; 8],
}

/// What PACKET_STATISTICS answers: the kernel's `struct tpacket_stats_v3`.
#[derive(Clone, Copy, Default, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct tpacket_stats_v3 {
    pub tp_packets: u32,
    pub tp_drops: u32,
    pub tp_freeze_q_cnt: u32,
}

const _: () = {
    assert!(size_of::<tpacket4_desc>() == 16);
    assert!(offset_of!(tpacket4_desc, idx) == 0);
    assert!(offset_of!(tpacket4_desc, len) == 8);
    assert!(offset_of!(tpacket4_desc, offset) == 12);
    assert!(offset_of!(tpacket4_desc, error) == 14);
    assert!(offset_of!(tpacket4_desc, flags) == 15);
    assert!(size_of::<tpacket_memreg_req>() == 24);
    assert!(offset_of!(tpacket_memreg_req, addr) == 0);
    assert!(offset_of!(tpacket_memreg_req, len) == 8);
    assert!(offset_of!(tpacket_memreg_req, frame_size) == 16);
    assert!(offset_of!(tpacket_memreg_req, data_headroom) == 20);
    assert!(size_of::<tpacket_req4>() == 8);
    assert!(offset_of!(tpacket_req4, mr_fd) == 0);
    assert!(offset_of!(tpacket_req4, desc_nr) == 4);
    assert!(size_of::<tpacket_stats_v3>() == 12);
    assert!(size_of::<packet_mreq>() == size_of::<libc::packet_mreq>());
};
