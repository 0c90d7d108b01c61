//! What the daemon says of itself, and how long it takes for what it does.

use serde::{Deserialize, Serialize};

use crate::version::Shown;

/// The daemon, for display.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonInfo {
    /// Its version.
    pub version: String,
    /// Seconds since 1970 when it started.
    pub started: u64,
    /// The newest version of the messages that it speaks.
    #[cfg(feature = "next")]
    #[serde(with = "Shown::<8>")]
    pub next: u32,
    /// Bytes of rings and buffers that a user may ask for at once.
    pub memory_per_user: u64,
    /// From when the daemon has read a request to its answer, for each kind that there was since the start. A kind is
    /// named as the request is, in small letters with `_` between its words.
    pub requests: Vec<(String, Durations)>,
    /// What it cannot do any more before it is restarted, and why.
    #[serde(with = "Shown::<7>", default)]
    pub degraded: Option<String>,
}

/// How often something took how long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durations {
    /// For each of the [bounds](Self::BOUNDS) how often it took so long at most, and longer than the bound before; last, how
    /// often it took longer than all of them.
    pub counts: Vec<u64>,
    /// Microseconds of all together.
    pub micros: u64,
}

impl Durations {
    /// In microseconds.
    pub const BOUNDS: [u64; 21] = [
        2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000,
        200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000,
    ];

    /// Adds what took so many microseconds.
    pub fn add(&mut self, micros: u64) {
        self.counts.resize(Self::BOUNDS.len() + 1, 0);
        let place = Self::BOUNDS.partition_point(|bound| *bound < micros);
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
        self.micros = self.micros.saturating_add(micros);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_under_the_least_bound_that_it_keeps() {
        for (micros, place) in [(0, 0), (2, 0), (3, 1), (1_000, 8), (1_001, 9), (10_000_000, 20)] {
            let mut durations = Durations::default();
            durations.add(micros);
            assert_eq!((durations.counts[place], durations.micros), (1, micros), "{micros}");
            assert_eq!(durations.counts.iter().sum::<u64>(), 1);
        }
        let mut durations = Durations::default();
        durations.add(10_000_001);
        durations.add(u64::MAX);
        assert_eq!((durations.counts[21], durations.micros), (2, u64::MAX));
        assert!(Durations::BOUNDS.is_sorted());
    }
}
