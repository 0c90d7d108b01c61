//! One line a second while packets flow, and a summary at the end.

use crate::units::human;
use serde::Serialize;
use std::fmt;
use std::time::{Duration, Instant};

/// What has been counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    pub packets: u64,
    /// Frame bytes, without CRC.
    pub bytes: u64,
    pub drops: u64,
}

/// The rates of one interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename = "rate")]
pub struct Line {
    pub label: String,
    /// Seconds since the start.
    pub time: f64,
    /// Packets a second.
    pub pps: f64,
    /// Bits a second, of frames without CRC.
    pub bps: f64,
    /// Dropped in this interval.
    pub drops: u64,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { label, pps, bps, drops, .. } = self;
        write!(f, "{label}  {}pps  {}bit/s  {drops} dropped", human(*pps), human(*bps))
    }
}

/// The lowest, middle and highest of the intervals' rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

impl Spread {
    /// All zero if there are no samples.
    fn of(samples: impl Iterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = samples.collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            return Spread::default();
        };
        let half = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[half]
        } else {
            f64::midpoint(sorted[half - 1], sorted[half])
        };
        Spread { min, median, max }
    }
}

/// The whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename = "summary")]
pub struct Summary {
    pub label: String,
    pub seconds: f64,
    #[serde(flatten)]
    pub total: Counters,
    /// Packets a second.
    pub pps: Spread,
    /// Bits a second, of frames without CRC.
    pub bps: Spread,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counters { packets, bytes, drops } = self.total;
        writeln!(
            f,
            "{}: {packets} packets, {bytes} bytes in {:.3} s, {drops} dropped",
            self.label, self.seconds
        )?;
        for (unit, Spread { min, median, max }) in [("pps", self.pps), ("bit/s", self.bps)] {
            let [min, median, max] = [min, median, max].map(human);
            write!(f, "  min {min}{unit}, median {median}{unit}, max {max}{unit}")?;
            if unit == "pps" {
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

/// Turns counters into lines. The caller looks at the clock; nothing here waits.
#[derive(Debug)]
pub struct Reporter {
    label: String,
    interval: Duration,
    start: Instant,
    last: Instant,
    counted: Counters,
    /// Packets and bits a second of each full interval.
    samples: Vec<(f64, f64)>,
}

impl Reporter {
    /// Begins at `start` with all counters at zero.
    pub fn new(label: impl Into<String>, interval: Duration, start: Instant) -> Reporter {
        Reporter {
            label: label.into(),
            interval,
            start,
            last: start,
            counted: Counters::default(),
            samples: Vec::new(),
        }
    }

    /// How long until the next line is due.
    pub fn due_in(&self, now: Instant) -> Duration {
        (self.last + self.interval).saturating_duration_since(now)
    }

    /// The line for the interval that ends now, if one does.
    pub fn tick(&mut self, now: Instant, counters: Counters) -> Option<Line> {
        self.due_in(now).is_zero().then(|| {
            let (line, sample) = self.interval_until(now, counters);
            self.samples.push(sample);
            self.last = now;
            self.counted = counters;
            line
        })
    }

    /// The summary of a run whose last packet passed at `end`.
    ///
    /// Intervals before the first and after the last packet say nothing about speed and are left
    /// out, and so is a last one that is shorter than half, unless it is all there is.
    pub fn finish(mut self, end: Instant, counters: Counters) -> Summary {
        let rest = end.saturating_duration_since(self.last);
        if rest >= self.interval / 2 || self.samples.is_empty() {
            let (_, sample) = self.interval_until(end, counters);
            self.samples.push(sample);
        }
        let busy = |sample: &(f64, f64)| sample.0 > 0.0;
        let first = self.samples.iter().position(busy).unwrap_or(0);
        let last = self.samples.iter().rposition(busy).map_or(0, |at| at + 1);
        let samples = &self.samples[first..last.max(first)];
        Summary {
            seconds: end.saturating_duration_since(self.start).as_secs_f64(),
            total: counters,
            pps: Spread::of(samples.iter().map(|sample| sample.0)),
            bps: Spread::of(samples.iter().map(|sample| sample.1)),
            label: self.label,
        }
    }

    fn interval_until(&self, now: Instant, counters: Counters) -> (Line, (f64, f64)) {
        let seconds = now.saturating_duration_since(self.last).as_secs_f64();
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let pps = per_second(counters.packets - self.counted.packets);
        let bps = 8.0 * per_second(counters.bytes - self.counted.bytes);
        let line = Line {
            label: self.label.clone(),
            time: now.saturating_duration_since(self.start).as_secs_f64(),
            pps,
            bps,
            drops: counters.drops - self.counted.drops,
        };
        (line, (pps, bps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn counters(packets: u64) -> Counters {
        Counters { packets, bytes: 60 * packets, drops: packets / 10 }
    }

    #[test]
    fn a_line_comes_when_it_is_due_and_only_then() {
        let start = Instant::now();
        let mut reporter = Reporter::new("p", SECOND, start);
        let early = start + SECOND / 4;
        assert_eq!(reporter.tick(early, counters(5)), None);
        assert_eq!(reporter.due_in(early), SECOND * 3 / 4);
        let line = reporter.tick(start + 2 * SECOND, counters(1000)).unwrap();
        assert_eq!((line.pps, line.bps, line.drops), (500.0, 240_000.0, 100));
        assert_eq!(line.to_string(), "p  500.000 pps  240.000 kbit/s  100 dropped");
        let line = reporter.tick(start + 3 * SECOND, counters(1100)).unwrap();
        assert_eq!((line.pps, line.drops), (100.0, 10));
    }

    fn run(ticks: &[u64], rest: Duration, total: u64) -> Summary {
        let start = Instant::now();
        let mut now = start;
        let mut reporter = Reporter::new("p", SECOND, start);
        for packets in ticks {
            now += SECOND;
            reporter.tick(now, counters(*packets)).unwrap();
        }
        reporter.finish(now + rest, counters(total))
    }

    #[test]
    fn the_summary_has_min_median_and_max() {
        let summary = run(&[100, 400, 500], Duration::ZERO, 500);
        assert_eq!(summary.pps, Spread { min: 100.0, median: 100.0, max: 300.0 });
        let summary = run(&[100, 400], Duration::ZERO, 400);
        assert_eq!(summary.pps.median, 200.0);
        assert_eq!(summary.bps.max, 300.0 * 480.0);
        assert_eq!(summary.total, counters(400));
    }

    #[test]
    fn silence_at_both_ends_is_left_out_but_not_in_between() {
        let summary = run(&[0, 100, 100, 200, 200, 200], Duration::ZERO, 200);
        assert_eq!(summary.pps, Spread { min: 0.0, median: 100.0, max: 100.0 });
    }

    #[test]
    fn a_short_last_interval_counts_only_alone() {
        assert_eq!(run(&[100], SECOND / 4, 1100).pps.max, 100.0);
        assert_eq!(run(&[100], SECOND / 2, 1100).pps.max, 2000.0);
        assert_eq!(run(&[], SECOND / 4, 1000).pps.median, 4000.0);
    }

    #[test]
    fn a_run_without_packets_is_all_zero() {
        let summary = run(&[0, 0], Duration::ZERO, 0);
        assert_eq!((summary.pps, summary.bps), (Spread::default(), Spread::default()));
        assert_eq!(run(&[], Duration::ZERO, 0).pps, Spread::default());
    }

    #[test]
    fn machines_get_flat_objects_with_a_type() {
        let summary = serde_json::to_value(run(&[100], Duration::ZERO, 100)).unwrap();
        assert_eq!(summary["type"], "summary");
        assert_eq!(summary["packets"], 100);
        assert_eq!(summary["pps"]["median"], 100.0);
        let mut reporter = Reporter::new("p", SECOND, Instant::now());
        let line = reporter.tick(Instant::now() + SECOND, counters(10)).unwrap();
        assert_eq!(serde_json::to_value(line).unwrap()["type"], "rate");
    }
}
