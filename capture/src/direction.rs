//! Which way a packet went.

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
}
