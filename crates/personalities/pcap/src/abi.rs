//! Types and constants of libpcap's interface (`pcap/pcap.h` of 1.10), on machines with 64-bit `long`.

use std::ffi::{c_char, c_int, c_uint};

use ringway_filter::Insn;
pub use ringway_live_capture::abi::*;

/// What a program calls a handle. It is never looked into: see `handles`.
#[repr(C)]
pub struct pcap_t {
    _opaque: [u8; 0],
}

/// The writer of a capture file, which is the system library's alone.
#[repr(C)]
pub struct pcap_dumper_t {
    _opaque: [u8; 0],
}

/// A device in a list.
#[repr(C)]
pub struct pcap_if_t {
    pub next: *mut pcap_if_t,
    pub name: *mut c_char,
    pub description: *mut c_char,
    pub addresses: *mut pcap_addr_t,
    pub flags: c_uint,
}

/// An address of a device, in a list; each of the four may be null.
#[repr(C)]
pub struct pcap_addr_t {
    pub next: *mut pcap_addr_t,
    pub addr: *mut libc::sockaddr,
    pub netmask: *mut libc::sockaddr,
    pub broadaddr: *mut libc::sockaddr,
    pub dstaddr: *mut libc::sockaddr,
}

#[repr(C)]
pub struct bpf_program {
    pub bf_len: c_uint,
    pub bf_insns: *mut Insn,
}

pub type pcap_handler = Option<unsafe extern "C-unwind" fn(*mut u8, *const pcap_pkthdr, *const u8)>;

const _: () = assert!(size_of::<pcap_if_t>() == 40 && size_of::<bpf_program>() == 16);
const _: () = assert!(size_of::<pcap_addr_t>() == 40);

pub const PCAP_ERRBUF_SIZE: usize = 256;
pub const DLT_EN10MB: c_int = 1;

pub const PCAP_ERROR: c_int = -1;
pub const PCAP_ERROR_BREAK: c_int = -2;
pub const PCAP_ERROR_NOT_ACTIVATED: c_int = -3;
pub const PCAP_ERROR_ACTIVATED: c_int = -4;
pub const PCAP_ERROR_NO_SUCH_DEVICE: c_int = -5;
pub const PCAP_ERROR_RFMON_NOTSUP: c_int = -6;
pub const PCAP_ERROR_PERM_DENIED: c_int = -8;
pub const PCAP_ERROR_PROMISC_PERM_DENIED: c_int = -11;
pub const PCAP_ERROR_TSTAMP_PRECISION_NOTSUP: c_int = -12;
pub const PCAP_WARNING_PROMISC_NOTSUP: c_int = 2;
pub const PCAP_WARNING_TSTAMP_TYPE_NOTSUP: c_int = 3;

pub const PCAP_TSTAMP_PRECISION_MICRO: c_int = 0;
pub const PCAP_TSTAMP_PRECISION_NANO: c_int = 1;

pub const PCAP_IF_UP: c_uint = 2;
pub const PCAP_IF_RUNNING: c_uint = 4;
pub const PCAP_IF_CONNECTION_STATUS_NOT_APPLICABLE: c_uint = 0x30;
