//! The hashing forwarding function: every flow has one port of several.
#![expect(
    clippy::indexing_slicing,
    reason = "256 entries, indexed by a port's number of 8 bits; `peek` tells how much of the slice it has filled"
)]

use ringway_flow::{HASHED_BYTES, flow_hash};
use ringway_switch_port::PortIndex;

use crate::function::{Forward, Packet, Verdict};

pub(crate) struct Spread {
    over: Vec<PortIndex>,
    /// Which ports those are.
    is_one: Box<[bool; 256]>,
    back: Verdict,
}

impl Spread {
    pub fn new(over: &[PortIndex], back: Option<PortIndex>) -> Spread {
        let mut is_one = Box::new([false; 256]);
        over.iter().for_each(|&port| is_one[usize::from(port)] = true);
        Spread { over: over.into(), is_one, back: back.map_or(Verdict::Drop, Verdict::Port) }
    }
}

impl Forward for Spread {
    #[inline]
    fn decide(&mut self, packet: &Packet<'_>) -> Verdict {
        if self.is_one[usize::from(packet.source())] {
            return self.back;
        }
        let mut bytes = [0; HASHED_BYTES];
        let read = packet.peek(&mut bytes);
        let hash = u64::from(flow_hash(&bytes[..read]).hash);
        // As even as a remainder, without the division.
        let choice = (hash * self.over.len() as u64) >> 32;
        self.over.get(choice as usize).map_or(Verdict::Drop, |&port| Verdict::Port(port))
    }
}
