//! How late frames have gone out.

use crate::units::human_time;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::fmt;

/// Times from when frames were due to when they had been handed over; one percent exact.
pub struct Lateness {
    times: Histogram<u64>,
}

/// Nanoseconds: an hour. What is later counts as that.
const MOST: u64 = 3_600_000_000_000;

impl Lateness {
    pub fn new() -> Lateness {
        // The bounds are good ones: only then is there a histogram.
        let times = Histogram::new_with_max(MOST, 2).unwrap_or_else(|_| unreachable!());
        Lateness { times }
    }

    /// A frame that was `due` had gone at `sent`.
    #[inline]
    pub fn record(&mut self, due: u64, sent: u64) {
        self.times.saturating_record(sent.saturating_sub(due));
    }

    /// What is to be told of it; `None`: no frame was due at any time. `slipped`: nanoseconds
    /// by which the schedule was moved.
    pub fn pacing(&self, port: &str, slipped: u64) -> Option<Pacing> {
        let at = |quantile| self.times.value_at_quantile(quantile);
        (!self.times.is_empty()).then(|| Pacing {
            port: port.into(),
            frames: self.times.len(),
            late_ns: Percentiles {
                p50: at(0.5),
                p90: at(0.9),
                p99: at(0.99),
                p99_9: at(0.999),
                max: self.times.max(),
            },
            slipped_ns: slipped,
        })
    }
}

/// Nanoseconds that so many of a hundred frames were late at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Percentiles {
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
    pub max: u64,
}

/// How well the times were kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "pacing")]
pub struct Pacing {
    pub port: String,
    pub frames: u64,
    pub late_ns: Percentiles,
    /// The schedule was moved by so much: the port took nothing for long, or the program did not run, and
    /// a rate is not exceeded to make up for that.
    pub slipped_ns: u64,
}

impl fmt::Display for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Percentiles { p50, p90, p99, p99_9, max } = &self.late_ns;
        let [p50, p90, p99, p99_9, max] = [p50, p90, p99, p99_9, max].map(|&time| human_time(time));
        write!(f, "  late: 50 % {p50}, 90 % {p90}, 99 % {p99}, 99.9 % {p99_9}, max {max}")?;
        match self.slipped_ns {
            0 => Ok(()),
            slipped => write!(f, "; {} behind a rate, and not made up for", human_time(slipped)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_times_one_percent_exact() {
        let mut lateness = Lateness::new();
        assert_eq!(lateness.pacing("p", 0), None);
        for late in 1..=10_000u64 {
            lateness.record(1_000_000, 1_000_000 + late);
        }
        lateness.record(50, 10);
        let pacing = lateness.pacing("p", 0).unwrap();
        assert_eq!(pacing.frames, 10_001);
        let Percentiles { p50, p90, p99, p99_9, max } = pacing.late_ns;
        for (got, wanted) in [(p50, 5000), (p90, 9000), (p99, 9900), (p99_9, 9990), (max, 10_000)] {
            assert!(got.abs_diff(wanted) * 100 <= wanted, "{got} for {wanted}");
        }
        lateness.record(0, u64::MAX);
        let told = lateness.pacing("p", 2_500_000).unwrap().to_string();
        assert!(told.ends_with("2.500 ms behind a rate, and not made up for"), "{told}");
    }
}
