//! What the kernel counted on a socket. Readable by any holder of the descriptor.

use std::os::fd::AsFd;

use rustix::net::sockopt::{xdp_options, xdp_statistics};
use rustix::net::xdp::XdpOptionsFlags;

/// The kernel's counters since the socket was made, in frames (`XDP_STATISTICS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Dropped on receipt, too long for a chunk included.
    pub rx_dropped: u64,
    /// By the kernel's document FILL entries that named no chunk; Linux 6.18 passes over such without
    /// counting them.
    pub rx_invalid_descs: u64,
    /// TX descriptors that did not fit a chunk; they complete all the same.
    pub tx_invalid_descs: u64,
    /// Dropped because the RX ring was full.
    pub rx_ring_full: u64,
    /// Times that the kernel found the FILL ring empty: where it copies, each costs a frame. A driver in zero-copy mode
    /// looks ahead, with frames' buffers left.
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

/// What the kernel has dropped on a socket, by the reasons that ports count by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Received, but longer than a buffer.
    pub too_long: u64,
    /// Received, but there was no free slot.
    pub ring_full: u64,
    /// Descriptors that led nowhere.
    pub bad_slot: u64,
}

impl Lost {
    /// On the way in; `frags`: the socket takes packets of several buffers. What a card in zero-copy mode loses for
    /// want of buffers is among its own counters alone.
    pub fn receiving(fd: impl AsFd, frags: bool) -> Lost {
        // A broken descriptor loses nothing that anything could count.
        let zero_copy = is_zero_copy(&fd).unwrap_or(false);
        Lost::received(Lost::counted(fd), frags, zero_copy)
    }

    fn received(counted: Statistics, frags: bool, zero_copy: bool) -> Lost {
        let dropped = counted.rx_dropped;
        let empty = if zero_copy { 0 } else { counted.rx_fill_ring_empty };
        // What found no buffer counts as dropped, too; what found too few of them, as nothing else.
        let too_long = if frags { 0 } else { dropped.saturating_sub(empty) };
        let no_buffer = if frags { dropped.max(empty) } else { empty };
        let ring_full = counted.rx_ring_full + no_buffer;
        Lost { too_long, ring_full, bad_slot: counted.rx_invalid_descs }
    }

    /// On the way out: but for what a kick [says](crate::KickOutcome::Lost) that it has lost.
    pub fn sending(fd: impl AsFd) -> Lost {
        Lost { bad_slot: Lost::counted(fd).tx_invalid_descs, ..Lost::default() }
    }

    /// It fails for a broken descriptor alone, by which nothing is received or sent either.
    fn counted(fd: impl AsFd) -> Statistics {
        statistics(fd).unwrap_or_default()
    }
}

impl std::ops::Add for Lost {
    type Output = Lost;

    fn add(self, other: Lost) -> Lost {
        Lost {
            too_long: self.too_long + other.too_long,
            ring_full: self.ring_full + other.ring_full,
            bad_slot: self.bad_slot + other.bad_slot,
        }
    }
}

/// Whether the socket was bound zero-copy (`XDP_OPTIONS`).
pub fn is_zero_copy(fd: impl AsFd) -> rustix::io::Result<bool> {
    Ok(xdp_options(fd)?.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the kernel copies, each frame without a buffer is also dropped; a driver that looks for buffers in vain
    /// has lost none yet.
    #[test]
    fn a_refill_in_vain_is_no_loss() {
        let counted = Statistics {
            rx_dropped: 7,
            rx_ring_full: 100,
            rx_fill_ring_empty: 5,
            ..Statistics::default()
        };
        let lost = |frags, zero_copy| {
            let lost = Lost::received(counted, frags, zero_copy);
            (lost.too_long, lost.ring_full)
        };
        assert_eq!((lost(false, false), lost(true, false)), ((2, 105), (0, 107)));
        assert_eq!((lost(false, true), lost(true, true)), ((7, 100), (0, 107)));
        let only_refills = Statistics { rx_fill_ring_empty: 1 << 40, ..Statistics::default() };
        assert_eq!(Lost::received(only_refills, true, true), Lost::default());
    }

    #[test]
    fn losses_both_ways_add_up() {
        let [one, other] = [[2, 3, 5], [7, 11, 13]].map(|[too_long, ring_full, bad_slot]| Lost {
            too_long,
            ring_full,
            bad_slot,
        });
        assert_eq!(one + other, Lost { too_long: 9, ring_full: 14, bad_slot: 18 });
    }
}
