//! Types and constants of libpcap's interface (`pcap/pcap.h` of 1.10), on machines with 64-bit `long`.

use std::ffi::{c_int, c_uint};

/// In front of each packet.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct pcap_pkthdr {
    pub seconds: i64,
    /// Microseconds, or nanoseconds where the program has asked for those.
    pub fraction: i64,
    /// Bytes that the program gets.
    pub caplen: u32,
    /// Bytes that the packet has.
    pub len: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct pcap_stat {
    pub ps_recv: c_uint,
    pub ps_drop: c_uint,
    pub ps_ifdrop: c_uint,
}

const _: () = assert!(size_of::<pcap_pkthdr>() == 24 && size_of::<pcap_stat>() == 12);

/// The longest packet that can be asked for, and what "no limit" comes to.
pub const MAX_SNAPLEN: c_int = 262_144;

pub const PCAP_TSTAMP_HOST: c_int = 0;
pub const PCAP_TSTAMP_HOST_HIPREC: c_int = 2;
pub const PCAP_TSTAMP_ADAPTER_UNSYNCED: c_int = 4;

pub const PCAP_D_INOUT: c_int = 0;
pub const PCAP_D_IN: c_int = 1;
pub const PCAP_D_OUT: c_int = 2;
