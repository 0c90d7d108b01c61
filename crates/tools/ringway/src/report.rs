//! One line a second while packets flow, and a summary at the end.

use crate::units::human;
use serde::Serialize;
use std::fmt;
use std::time::{Duration, Instant};

/// Between two lines.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// What has been counted since the start: the packets that a command has passed on, or taken where it passes none
/// on, and those dropped on both sides of it. What was lost before does not count as a packet; what the port or the
/// file behind has dropped counts as both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counters {
    pub packets: u64,
    /// Frame bytes, without CRC.
    pub bytes: u64,
    pub drops: u64,
    /// Of a command that forwards both ways: dropped on one of them, as a switch's ports count by which VLANs and filters
    /// they do not pass, and not on which way. Both ways have the same number.
    #[serde(skip_serializing_if = "is_none")]
    pub drops_either_way: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// `; 3 more dropped on this way or back`, if there are any.
fn either_way(drops: u64) -> String {
    if drops == 0 { String::new() } else { format!("; {drops} more dropped on this way or back") }
}

/// The rates of one interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// The same, on this way or back.
    #[serde(skip_serializing_if = "is_none")]
    pub drops_either_way: u64,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { label, pps, bps, drops, .. } = self;
        write!(f, "{label}  {}pps  {}bit/s  {drops} dropped", human(*pps), human(*bps))?;
        f.write_str(&either_way(self.drops_either_way))
    }
}

/// The lowest, middle and highest of the intervals' rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
        let Counters { packets, bytes, drops, drops_either_way } = self.total;
        let more = either_way(drops_either_way);
        writeln!(
            f,
            "{}: {packets} packets, {bytes} bytes in {:.3} s, {drops} dropped{more}",
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

/// Turns counters into lines. Nothing here waits.
#[derive(Debug)]
pub struct Reporter {
    label: String,
    start: Instant,
    last: Instant,
    counted: Counters,
    /// Packets and bits a second of each full interval.
    samples: Vec<(f64, f64)>,
}

impl Reporter {
    /// Begins at `start` with all counters at zero.
    pub fn new(label: impl Into<String>, start: Instant) -> Reporter {
        Reporter {
            label: label.into(),
            start,
            last: start,
            counted: Counters::default(),
            samples: Vec::new(),
        }
    }

    /// When the next line is due.
    pub fn due(&self) -> Instant {
        self.last + INTERVAL
    }

    /// Whether it is.
    pub fn is_due(&self, now: Instant) -> bool {
        self.due() <= now
    }

    /// The line for the interval that ends now.
    pub fn tick(&mut self, now: Instant, counters: Counters) -> Line {
        let (line, sample) = self.interval_until(now, counters);
        self.samples.push(sample);
        self.last = now;
        self.counted = counters;
        line
    }

    /// The summary of a run whose last packet passed at `end`; without a packet, it has lasted until now.
    ///
    /// Intervals before the first and after the last packet say nothing about speed and are left
    /// out, and so is a last one that is shorter than half, unless it is all there is. The two in
    /// which the packets begin and end are full only in part: they count only if there are no
    /// others.
    pub fn finish(&mut self, end: Instant, counters: Counters) -> Summary {
        let now = self.last.max(Instant::now());
        let end = if counters.packets == 0 { end.max(now) } else { end };
        let rest = end.saturating_duration_since(self.last);
        if rest >= INTERVAL / 2 || self.samples.is_empty() {
            let (_, sample) = self.interval_until(end, counters);
            self.samples.push(sample);
        }
        let busy = |sample: &(f64, f64)| sample.0 > 0.0;
        let first = self.samples.iter().position(busy).unwrap_or(0);
        let last = self.samples.iter().rposition(busy).map_or(0, |at| at + 1);
        let samples = match &self.samples[first..last.max(first)] {
            [_, full @ .., _] if !full.is_empty() => full,
            few => few,
        };
        Summary {
            seconds: end.saturating_duration_since(self.start).as_secs_f64(),
            total: counters,
            pps: Spread::of(samples.iter().map(|sample| sample.0)),
            bps: Spread::of(samples.iter().map(|sample| sample.1)),
            label: self.label.clone(),
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
            drops_either_way: counters.drops_either_way - self.counted.drops_either_way,
        };
        (line, (pps, bps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(packets: u64) -> Counters {
        Counters { packets, bytes: 60 * packets, drops: packets / 10, drops_either_way: 0 }
    }

    #[test]
    fn a_line_is_due_every_second_and_covers_the_time_since_the_last() {
        let start = Instant::now();
        let mut reporter = Reporter::new("p", start);
        assert!(!reporter.is_due(start + INTERVAL / 4));
        assert!(reporter.is_due(start + INTERVAL));
        let line = reporter.tick(start + 2 * INTERVAL, counters(1000));
        assert_eq!((line.pps, line.bps, line.drops), (500.0, 240_000.0, 100));
        assert_eq!(line.to_string(), "p  500.000 pps  240.000 kbit/s  100 dropped");
        assert!(!reporter.is_due(start + INTERVAL * 5 / 2));
        let line = reporter.tick(start + 3 * INTERVAL, counters(1100));
        assert_eq!((line.pps, line.drops), (100.0, 10));
    }

    /// What was dropped on one of both ways is told with each.
    #[test]
    fn drops_on_either_way_are_told_where_there_are_any() {
        let start = Instant::now();
        let mut reporter = Reporter::new("p", start);
        let counted = |drops_either_way| Counters { drops_either_way, ..counters(100) };
        let line = reporter.tick(start + INTERVAL, counted(0));
        assert!(line.to_string().ends_with("10 dropped"));
        let json = |line: &Line| serde_json::to_value(line).unwrap()["drops_either_way"].clone();
        assert!(json(&line).is_null());
        let line = reporter.tick(start + 2 * INTERVAL, counted(7));
        assert!(line.to_string().ends_with("0 dropped; 7 more dropped on this way or back"));
        assert_eq!(json(&line), 7);
        let summary = reporter.finish(start + 2 * INTERVAL, counted(9));
        let text = summary.to_string();
        assert!(text.contains("s, 10 dropped; 9 more dropped on this way or back\n"), "{text}");
        assert_eq!(serde_json::to_value(&summary).unwrap()["drops_either_way"], 9);
    }

    #[test]
    fn a_run_without_packets_lasts_until_its_end() {
        let start = Instant::now();
        let mut reporter = Reporter::new("p", start);
        reporter.tick(start + 2 * INTERVAL, counters(0));
        assert_eq!(reporter.finish(start, counters(0)).seconds, 2.0);
        let ago = start.checked_sub(3 * INTERVAL).unwrap();
        assert!(Reporter::new("p", ago).finish(ago, counters(0)).seconds >= 3.0);
    }

    fn run(ticks: &[u64], rest: Duration, total: u64) -> Summary {
        let start = Instant::now();
        let mut now = start;
        let mut reporter = Reporter::new("p", start);
        for packets in ticks {
            now += INTERVAL;
            reporter.tick(now, counters(*packets));
        }
        reporter.finish(now + rest, counters(total))
    }

    #[test]
    fn the_summary_has_min_median_and_max() {
        let summary = run(&[900, 1000, 1300, 1400, 1450], Duration::ZERO, 1450);
        assert_eq!(summary.pps, Spread { min: 100.0, median: 100.0, max: 300.0 });
        let summary = run(&[100, 400], Duration::ZERO, 400);
        assert_eq!(summary.pps.median, 200.0);
        assert_eq!(summary.bps.max, 300.0 * 480.0);
        assert_eq!(summary.total, counters(400));
    }

    #[test]
    fn silence_at_both_ends_is_left_out_but_not_in_between() {
        let summary = run(&[0, 50, 150, 150, 200, 200, 200], Duration::ZERO, 200);
        assert_eq!(summary.pps, Spread { min: 0.0, median: 50.0, max: 100.0 });
    }

    #[test]
    fn a_short_last_interval_counts_only_alone() {
        assert_eq!(run(&[100], INTERVAL / 4, 1100).pps.max, 100.0);
        assert_eq!(run(&[100], INTERVAL / 2, 1100).pps.max, 2000.0);
        assert_eq!(run(&[], INTERVAL / 4, 1000).pps.median, 4000.0);
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
        let mut reporter = Reporter::new("p", Instant::now());
        let line = reporter.tick(Instant::now() + INTERVAL, counters(10));
        assert_eq!(serde_json::to_value(line).unwrap()["type"], "rate");
    }
}
