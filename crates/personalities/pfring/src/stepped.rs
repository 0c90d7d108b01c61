//! A ring on a port that is open, and what a cluster on a port shares out by, without a daemon or a thread. For
//! measurements.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use ringway_balance::Choose;
use ringway_live_capture::{Live, Opened, Settings};

use crate::{
    abi::{LONG_HEADER, MAX_CAPLEN, pfring_pkthdr},
    cluster,
    receive::Got,
    ring::Ring as Inner,
    source::Source,
};

/// A ring.
pub struct Ring(Inner);

impl Ring {
    /// With long headers, if they are to be parsed.
    pub fn new(live: Live, parsed: bool) -> Ring {
        let name = live.port().name().to_owned();
        let opened = Opened::Port(Arc::new(live));
        let source = Source::over(name.clone(), true, 0, opened, Settings::default());
        let source = source.expect("there are descriptors");
        let flags = if parsed { LONG_HEADER } else { 0 };
        let ring = Inner::over(&name, MAX_CAPLEN, flags, vec![source]).expect("there is memory");
        ring.enabled.store(true, Relaxed);
        Ring(ring)
    }

    /// The next packet, in place; its length if there is one.
    #[inline]
    pub fn receive(&self, header: &mut pfring_pkthdr) -> Option<u32> {
        let got = self.0.next(false, |reader, _| *header = reader.header);
        matches!(got, Some(Got::Packet(_))).then_some(header.len)
    }
}

/// A packet's header.
pub type Header = pfring_pkthdr;

/// Shares out among so many queues, by flow, as the member that distributes does.
pub fn by_flow(queues: u32) -> impl Choose {
    cluster::by_flow(queues)
}
