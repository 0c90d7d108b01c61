//! What the kernel counted on a socket. Readable by any holder of the descriptor.

use std::os::fd::AsFd;

use rustix::net::sockopt::{xdp_options, xdp_statistics};
use rustix::net::xdp::XdpOptionsFlags;

/// The kernel's counters since the socket was made, in frames (`XDP_STATISTICS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Dropped on receipt, too long for a chunk included.
    pub rx_dropped: u64,
    /// FILL entries that named no chunk.
    pub rx_invalid_descs: u64,
    /// TX descriptors that did not fit a chunk; they complete all the same.
    pub tx_invalid_descs: u64,
    /// Dropped because the RX ring was full.
    pub rx_ring_full: u64,
    /// Dropped because the FILL ring was empty.
    pub rx_fill_ring_empty: u64,
    /// Times that the kernel found the TX ring empty.
    pub tx_ring_empty: u64,
}

/// Frames that the kernel dropped instead of receiving them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Longer than a buffer.
    pub too_long: u64,
    /// There was no buffer for them, or no room on the ring.
    pub ring_full: u64,
}

impl Statistics {
    /// What was lost; `frags`: packets may have several buffers ([`crate::Xsk::frags`]).
    pub fn lost(&self, frags: bool) -> Lost {
        let (dropped, empty) = (self.rx_dropped, self.rx_fill_ring_empty);
        // What found no buffer counts as dropped, too; what found too few of them, as nothing else.
        let too_long = if frags { 0 } else { dropped.saturating_sub(empty) };
        let no_buffer = if frags { dropped.max(empty) } else { empty };
        Lost { too_long, ring_full: self.rx_ring_full + no_buffer }
    }
}

/// Reads the counters.
pub fn statistics(fd: impl AsFd) -> rustix::io::Result<Statistics> {
    let s = xdp_statistics(fd)?;
    // The last three came with kernel 5.9; before, they were not counted.
    Ok(Statistics {
        rx_dropped: s.rx_dropped,
        rx_invalid_descs: s.rx_invalid_descs,
        tx_invalid_descs: s.tx_invalid_descs,
        rx_ring_full: s.rx_ring_full.unwrap_or(0),
        rx_fill_ring_empty: s.rx_fill_ring_empty_descs.unwrap_or(0),
        tx_ring_empty: s.tx_ring_empty_descs.unwrap_or(0),
    })
}

/// Whether the socket was bound zero-copy (`XDP_OPTIONS`).
pub fn is_zero_copy(fd: impl AsFd) -> rustix::io::Result<bool> {
    Ok(xdp_options(fd)?.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
}
