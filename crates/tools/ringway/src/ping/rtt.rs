//! Round-trip times and their distribution.

use crate::units::human_time;
use hdrhistogram::Histogram;
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::fmt;

/// The longest time that is told from longer ones, in nanoseconds: a minute.
const LONGEST: u64 = 60_000_000_000;
/// Times are exact to a thousandth.
const DIGITS: u8 = 3;
const PERCENTILES: [(&str, f64); 5] =
    [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9), ("p99.99", 99.99)];

/// Round-trip times in nanoseconds.
pub struct RoundTrips(Histogram<u64>);

impl RoundTrips {
    pub fn new() -> RoundTrips {
        RoundTrips(Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("valid bounds"))
    }

    pub fn add(&mut self, nanoseconds: u64) {
        self.0.saturating_record(nanoseconds);
    }

    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// `None` where there are none.
    pub fn distribution(&self) -> Option<Distribution> {
        if self.0.is_empty() {
            return None;
        }
        let times = PERCENTILES.map(|(_, part)| self.0.value_at_percentile(part));
        Some(Distribution {
            min: self.0.min(),
            mean: self.0.mean(),
            times,
            // The largest time that counts as the same.
            max: self.0.max(),
        })
    }
}

/// Least, mean and greatest time, and the times that so many percent do not exceed, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distribution {
    pub min: u64,
    pub mean: f64,
    times: [u64; PERCENTILES.len()],
    pub max: u64,
}

impl Distribution {
    pub fn median(&self) -> u64 {
        self.times[0]
    }

    /// What 99 percent do not exceed.
    pub fn p99(&self) -> u64 {
        self.times[2]
    }
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(PERCENTILES.len() + 3))?;
        map.serialize_entry("min", &self.min)?;
        map.serialize_entry("mean", &self.mean)?;
        for ((name, _), time) in PERCENTILES.iter().zip(&self.times) {
            map.serialize_entry(name, time)?;
        }
        map.serialize_entry("max", &self.max)?;
        map.end()
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "  min     {:>12}\n  mean    {:>12}",
            human_time(self.min),
            human_time(self.mean as u64)
        )?;
        for ((_, part), time) in PERCENTILES.iter().zip(&self.times) {
            write!(f, "\n  {:<7} {:>12}", format!("{part}%"), human_time(*time))?;
        }
        write!(f, "\n  max     {:>12}", human_time(self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let mut trips = RoundTrips::new();
        assert_eq!(trips.distribution(), None);
        // 1 us to 100 ms in steps of 1 us.
        (1..=100_000).for_each(|n| trips.add(1000 * n));
        let found = trips.distribution().unwrap();
        let near = |found: u64, wanted: f64| (found as f64 / wanted - 1.0).abs() < 0.001;
        for ((_, part), time) in PERCENTILES.iter().zip(found.times) {
            assert!(near(time, part * 1e6), "{part}: {time}");
        }
        assert!(near(found.min, 1e3) && near(found.max, 1e8), "{found:?}");
        trips.add(u64::MAX);
        assert!(near(trips.distribution().unwrap().max, 6e10), "a time beyond all is the longest");
        trips.clear();
        assert_eq!(trips.distribution(), None);
    }

    #[test]
    fn machines_get_nanoseconds_by_percentile() {
        let mut trips = RoundTrips::new();
        trips.add(512);
        let json = serde_json::to_value(trips.distribution()).unwrap();
        for name in ["min", "p50", "p99.99", "max"] {
            assert_eq!(json[name], 512, "{name}");
        }
        assert!(trips.distribution().unwrap().to_string().contains("99.99%      0.512 us"));
    }
}
