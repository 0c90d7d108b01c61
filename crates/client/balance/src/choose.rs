//! Which output gets a packet.

use std::time::Duration;

use ringway::{HASHED_BYTES, PARSED_BYTES};

/// Bytes of each packet that are looked at first.
pub const HEAD: usize = 64;

/// Bytes of a packet that are looked at, at most.
pub const LOOKED_AT: usize = if HASHED_BYTES > PARSED_BYTES { HASHED_BYTES } else { PARSED_BYTES };

/// What decides.
pub trait Choose {
    /// Called before a batch: what has changed meanwhile.
    fn refresh(&mut self) {}

    /// The only output of a packet, by its first bytes alone: what [`choose`](Self::choose) would return as a
    /// [final](Choice::is_final) choice. `None`, with nothing changed, if `choose` has to decide.
    #[inline]
    fn choose_at_once(&mut self, head: &[u8]) -> Option<usize> {
        let _ = head;
        None
    }

    /// The outputs of a packet that begins with `bytes` and came at `now`, by a clock that only goes forward.
    fn choose(&mut self, bytes: &[u8], now: Duration) -> Choice;
}

/// Where one packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// `None` if it is nobody's.
    pub output: Option<usize>,
    /// Another that gets a copy, if it is somebody's.
    pub also: Option<usize>,
    /// If the output has no room, another may have the packet.
    pub spills: bool,
    /// What the next group goes by.
    pub hash: u32,
    pub is_ip: bool,
}

impl Choice {
    /// Whether the output is the only one, come what may.
    #[inline]
    pub fn is_final(&self) -> bool {
        self.also.is_none() && !self.spills
    }
}

/// One of `count`, as even as a remainder, without the division.
pub fn scaled(hash: u32, count: usize) -> usize {
    ((u64::from(hash) * count as u64) >> 32) as usize
}
