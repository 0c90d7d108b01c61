//! Which way a packet went.

use std::ffi::c_int;

use crate::abi::{PCAP_D_INOUT, PCAP_D_OUT};

/// As the port or the interface sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received.
    In,
    /// Sent by this host.
    Out,
}

impl Direction {
    #[inline]
    pub(crate) fn of(is_outgoing: bool) -> Direction {
        if is_outgoing { Direction::Out } else { Direction::In }
    }

    /// Whether a program gets it that has asked for one of `PCAP_D_*`.
    #[inline]
    pub(crate) fn is_wanted(self, wanted: c_int) -> bool {
        wanted == PCAP_D_INOUT || (self == Direction::Out) == (wanted == PCAP_D_OUT)
    }
}
