//! A ring on a port that is open, and what a cluster on a port shares out by, without a daemon or a thread. For
//! measurements.

use std::{ptr::null_mut, sync::Arc};

use ringway_balance::Choose;
use ringway_live_capture::{Live, Opened, Settings};

use crate::{
    abi::{LONG_HEADER, MAX_CAPLEN, pfring_pkthdr},
    api::recv,
    argument::Out,
    cluster,
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
        ring.set_enabled(true);
        Ring(ring)
    }

    /// The next packet, in place, as `pfring_recv` gives it; its length if there is one.
    #[inline]
    pub fn receive(&self, header: &mut pfring_pkthdr) -> Option<u32> {
        let mut data = null_mut();
        let got = recv(&self.0, Out::of(&mut data), 0, Out::of(header), 0);
        (got == 1).then_some(header.len)
    }
}

/// A packet's header.
pub type Header = pfring_pkthdr;

/// Shares out among so many queues, by flow, as the member that distributes does.
pub fn by_flow(queues: u32) -> impl Choose {
    cluster::by_flow(queues)
}
