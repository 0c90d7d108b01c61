//! Metadata of a packet: what the kernel or the ring says of it beside its bytes.

/// Direction, VLAN tag and checksum of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    pub direction: Direction,
    /// The kernel had stripped the VLAN tag; the capture has put it back into the packet.
    pub tag_was_stripped: bool,
    pub checksum: Checksum,
}

/// As the port or the interface sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received.
    In,
    /// Sent by this host.
    Out,
}

/// State of the TCP or UDP checksum, as the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    Unknown,
    /// Left to the hardware (`TP_STATUS_CSUMNOTREADY`).
    NotComputed,
    /// Verified by the hardware or the kernel (`TP_STATUS_CSUM_VALID`).
    Verified,
}

impl Metadata {
    /// Of a packet of which only the direction is known.
    #[inline]
    pub(crate) fn of(is_outgoing: bool) -> Metadata {
        let direction = if is_outgoing { Direction::Out } else { Direction::In };
        Metadata { direction, tag_was_stripped: false, checksum: Checksum::Unknown }
    }
}
