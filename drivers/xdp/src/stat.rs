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
