//! What is known of a packet beside its bytes.

/// How a packet passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    pub direction: Direction,
    /// It had a VLAN tag that the kernel kept beside it. It is in the packet again.
    pub had_tag_beside: bool,
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

/// What the kernel knows of the checksum of TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    Unknown,
    /// It is not there yet: the hardware was to compute it.
    Left,
    /// It was looked at.
    Good,
}

impl Passage {
    /// Of a packet of which no more is known.
    #[inline]
    pub(crate) fn of(is_outgoing: bool) -> Passage {
        let direction = if is_outgoing { Direction::Out } else { Direction::In };
        Passage { direction, had_tag_beside: false, checksum: Checksum::Unknown }
    }
}
