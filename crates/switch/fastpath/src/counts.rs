//! What the program counts.

/// What the program has counted of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastCounts {
    /// From the port to others.
    pub sent_packets: u64,
    pub sent_bytes: u64,
    /// From others to the port.
    pub received_packets: u64,
    pub received_bytes: u64,
    /// For the port, and longer than it sends.
    pub too_long: u64,
    /// From the port: frames that may have overtaken earlier ones, for the worker did not get through
    /// with those.
    pub reordered: u64,
    /// From the port: frames of which the worker did not get the copy that it was to have.
    pub not_copied: u64,
    /// From the port, for another that is isolated as it is.
    pub isolated: u64,
    /// From the port: more than it may send.
    pub over_rate: u64,
    /// From the port, and for it: what its filters do not match.
    pub denied_sent: u64,
    pub denied_received: u64,
    /// Bytes of `over_rate`, `denied_sent` and `bad_source`.
    pub refused_bytes: u64,
    /// From the port: frames with a source address that no machine has.
    pub bad_source: u64,
}

impl FastCounts {
    pub(crate) const FIELDS: usize = 13;
    /// Those that each processor counts by itself: all but the last five.
    pub(crate) const OF_PROCESSORS: usize = 8;

    pub(crate) fn of(values: [u64; Self::FIELDS]) -> FastCounts {
        let [sent_packets, sent_bytes, received_packets, received_bytes, rest @ ..] = values;
        let [too_long, reordered, not_copied, isolated, rest @ ..] = rest;
        let [over_rate, denied_sent, denied_received, refused_bytes, bad_source] = rest;
        FastCounts {
            sent_packets,
            sent_bytes,
            received_packets,
            received_bytes,
            too_long,
            reordered,
            not_copied,
            isolated,
            over_rate,
            denied_sent,
            denied_received,
            refused_bytes,
            bad_source,
        }
    }

    fn values(self) -> [u64; Self::FIELDS] {
        let FastCounts { sent_packets, sent_bytes, received_packets, received_bytes, .. } = self;
        let FastCounts { too_long, reordered, not_copied, isolated, .. } = self;
        let FastCounts { over_rate, denied_sent, denied_received, .. } = self;
        let FastCounts { refused_bytes, bad_source, .. } = self;
        #[rustfmt::skip]
        let values = [
            sent_packets, sent_bytes, received_packets, received_bytes,
            too_long, reordered, not_copied, isolated,
            over_rate, denied_sent, denied_received, refused_bytes, bad_source,
        ];
        values
    }

    /// What has been counted since `before`.
    pub fn since(self, before: FastCounts) -> FastCounts {
        let (now, before) = (self.values(), before.values());
        let mut grown = now;
        grown.iter_mut().zip(before).for_each(|(now, before)| *now = now.wrapping_sub(before));
        FastCounts::of(grown)
    }
}
