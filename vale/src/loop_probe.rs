//! Finds loops: interfaces that are connected outside the switch, so that what leaves by one comes back
//! by another, for ever.
//!
//! A loop shows by frames of interfaces that are flooded, by the thousand: but so does much multicast. So
//! the worker sends a frame of its own by each interface, no more than one a second, with a source address
//! that it has made up: where that comes back, there is a loop, whatever others send. It is one of the
//! Ethernet Configuration Testing Protocol (Ethernet 2.0, chapter 8), which hosts ignore.

use std::hash::{BuildHasher, RandomState};

use ringway_bridge_port::PortIndex;

/// Flooded frames of interfaces in a second from which on the worker looks. Two switches that are
/// connected twice should not look at the same moment, lest each blocks another of the two cables: so there is
/// a random number more.
const FLOODED: u64 = 500;

/// Bytes of a probe: Ethernet's shortest frame.
const LENGTH: usize = 60;

/// For what assists in looking for loops, and its type.
const GROUP: [u8; 6] = [0xcf, 0, 0, 0, 0, 0];
const TYPE: [u8; 2] = [0x90, 0x00];

/// The first five bytes of a source address; the last one is the port's index.
const SECRET: u64 = 0xff_ffff_ffff;

/// The worker's suspicion, and what it has sent.
#[derive(Debug)]
pub(crate) struct LoopProbe {
    flooded: u64,
    /// From how many on it looks.
    limit: u64,
    /// It has looked within this second.
    has_looked: bool,
    /// The source of what it has sent.
    secret: Option<u64>,
}

impl LoopProbe {
    pub fn new() -> LoopProbe {
        let limit = FLOODED + RandomState::new().hash_one(0) % FLOODED;
        LoopProbe { flooded: 0, limit, has_looked: false, secret: None }
    }

    /// So many frames of interfaces were flooded.
    pub fn note_flooded(&mut self, frames: u64) {
        self.flooded += frames;
    }

    /// Whether it is time to look.
    pub fn is_due(&self) -> bool {
        self.flooded > self.limit && !self.has_looked
    }

    /// Begins to look, with a source address of its own.
    pub fn begin(&mut self) {
        let random = RandomState::new().hash_one(self.flooded);
        self.has_looked = true;
        // An address of one machine, given by no maker of machines.
        self.secret = Some(random & SECRET & !0x03 | 0x02);
    }

    /// The frame that leaves by a port.
    pub fn frame(&self, port: PortIndex) -> [u8; LENGTH] {
        let mut frame = [0; LENGTH];
        let [a, b, c, d, e, ..] = self.secret.unwrap_or_default().to_le_bytes();
        let header = [&GROUP[..], &[a, b, c, d, e, port], &TYPE].concat();
        frame.iter_mut().zip(header).for_each(|(to, byte)| *to = byte);
        frame
    }

    /// What its frames are recognised by, as long as it looks.
    pub fn secret(&self) -> Option<u64> {
        self.secret
    }

    /// It has found a loop.
    pub fn end(&mut self) {
        (self.flooded, self.secret) = (0, None);
    }

    /// Another second begins. What was sent before the last one does not come back any more.
    pub fn tick(&mut self) {
        self.secret = self.secret.filter(|_| self.has_looked);
        (self.flooded, self.has_looked) = (0, false);
    }
}

/// The port by which a frame with that source has left, if it is the worker's own.
#[inline]
pub(crate) fn left_by(source: u64, secret: u64) -> Option<PortIndex> {
    (source & SECRET == secret).then_some((source >> 40) as PortIndex)
}
