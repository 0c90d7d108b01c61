//! A limit of what a port may send or flood, and what of it is left: so much for as long as it likes, and a burst at once.

use ringway_fastpath::{Limit, Rate};
use serde::{Deserialize, Serialize};

use crate::clock::{Fine, Micros};

/// What a port may send: frames over it are dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// Bits of frames, without CRC.
    pub bits_per_second: u64,
    /// Bytes that it may send at once after it was silent. A longer frame passes when all of it is left.
    pub burst_bytes: u64,
}

impl RateLimit {
    /// In bytes.
    pub(crate) fn limit(self) -> Limit {
        Limit { rate: Rate::of_bits(self.bits_per_second), burst: self.burst_bytes }
    }
}

/// How many frames of a kind a port may send that are flooded: so many a second, and so many at once after there were
/// none for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloodLimit {
    pub frames_per_second: u32,
    pub burst_frames: u32,
}

impl FloodLimit {
    /// In frames.
    pub(crate) fn limit(self) -> Limit {
        let rate = Rate::per_second(self.frames_per_second.into());
        Limit { rate, burst: self.burst_frames.into() }
    }
}

/// A limit, and what of it is left. See the module `rate` of ringway-fastpath: the program in the kernel does the
/// same.
#[derive(Debug)]
pub(crate) struct Bucket {
    limit: Limit,
    clock: Fine,
    /// When it began to earn: by the clock itself, a part of a unit that was earned before would count.
    begin: Micros,
    /// Of what was earned: a burst behind it at most.
    spent: u64,
}

impl Bucket {
    /// A full one.
    pub fn new(limit: Limit, clock: Fine) -> Bucket {
        Bucket { limit, clock, begin: clock(), spent: 0u64.wrapping_sub(limit.burst) }
    }

    /// What may be taken at once.
    pub fn burst(&self) -> u64 {
        self.limit.burst
    }

    fn earned(&self) -> u64 {
        self.limit.rate.earned((self.clock)().wrapping_sub(self.begin).wrapping_mul(1000))
    }

    /// What may be taken now; negative after a frame that was longer than a burst.
    pub fn left(&mut self) -> i64 {
        let (earned, burst) = (self.earned(), self.limit.burst);
        if earned.wrapping_sub(self.spent) as i64 > burst as i64 {
            self.spent = earned.wrapping_sub(burst);
        }
        earned.wrapping_sub(self.spent) as i64
    }

    /// So much is taken.
    pub fn take(&mut self, units: u64) {
        self.spent = self.spent.wrapping_add(units);
    }
}
