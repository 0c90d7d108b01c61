//! How long rounds of a worker take. One in [`CLOCK_ROUNDS`](crate::worker) in which there was work is measured: by two looks
//! at the clock, and none for a packet or a port.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::clock::Micros;

/// How often a round took how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// For each of the [bounds](Self::BOUNDS) how many took so long at most, and longer than the bound before; last, how many
    /// took longer than all of them.
    pub counts: [u64; Rounds::BOUNDS.len() + 1],
    /// All of them together.
    pub micros: Micros,
}

impl Rounds {
    pub const BOUNDS: [Micros; 21] = [
        2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000,
        200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000,
    ];
}

/// [`Rounds`] that one thread adds to and others read. No line of it has anything else that is written to.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct SharedRounds {
    counts: [AtomicU64; Rounds::BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl SharedRounds {
    /// For the worker only.
    pub fn add(&self, micros: Micros) {
        let place = Rounds::BOUNDS.partition_point(|bound| *bound < micros);
        for (counter, more) in self
            .counts
            .get(place)
            .map(|count| (count, 1))
            .into_iter()
            .chain([(&self.micros, micros)])
        {
            counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
        }
    }

    /// A round that ends meanwhile may be in one of the numbers, and not yet in the other.
    pub fn read(&self) -> Rounds {
        let counts = self.counts.each_ref().map(|count| count.load(Relaxed));
        Rounds { counts, micros: self.micros.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_counts_under_the_least_bound_that_it_keeps() {
        let shared = SharedRounds::default();
        for micros in [0, 2, 3, 1_000, 1_001, 10_000_000, 10_000_001] {
            shared.add(micros);
        }
        let Rounds { counts, micros } = shared.read();
        let places: Vec<_> = (0..).zip(counts).filter(|(_, count)| *count > 0).collect();
        assert_eq!(places, [(0, 2), (1, 1), (8, 1), (9, 1), (20, 1), (21, 1)]);
        assert_eq!(micros, 5 + 2_001 + 20_000_001);
    }
}
