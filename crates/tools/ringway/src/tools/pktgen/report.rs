//! What `pkt-gen` counts, and how it tells.

use super::options::{Mode, Options, how};
use crate::tools::log::{log, say};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What one thread has counted. The thread alone adds.
#[repr(align(64))]
#[derive(Default)]
pub struct Counters {
    packets: AtomicU64,
    bytes: AtomicU64,
    events: AtomicU64,
    /// Smallest free space of a receive ring since the last report.
    min_space: AtomicU32,
    /// When its first and its last packet passed.
    span: Mutex<Option<(Instant, Instant)>>,
}

/// Says that nothing was measured.
const NO_SPACE: u32 = 99999;

impl Counters {
    /// One batch.
    pub fn add(&self, packets: u64, bytes: u64) {
        self.packets.fetch_add(packets, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        self.events.fetch_add(1, Relaxed);
    }

    pub fn space(&self, free: u32) {
        self.min_space.fetch_min(free, Relaxed);
    }

    pub fn ran(&self, from: Instant, to: Instant) {
        *self.span.lock().unwrap_or_else(|e| e.into_inner()) = Some((from, to));
    }
}

#[derive(Clone, Copy, Default)]
struct Sum {
    packets: u64,
    bytes: u64,
    events: u64,
}

impl Sum {
    fn of(all: &[Counters]) -> Sum {
        all.iter().fold(Sum::default(), |sum, one| Sum {
            packets: sum.packets + one.packets.load(Relaxed),
            bytes: sum.bytes + one.bytes.load(Relaxed),
            events: sum.events + one.events.load(Relaxed),
        })
    }

    fn since(self, before: Sum) -> Sum {
        Sum {
            packets: self.packets - before.packets,
            bytes: self.bytes - before.bytes,
            events: self.events - before.events,
        }
    }

    fn bits(self, framing: u64) -> f64 {
        8.0 * (self.bytes + framing * self.packets) as f64
    }

    fn batch(self) -> f64 {
        if self.events == 0 { 0.0 } else { self.packets as f64 / self.events as f64 }
    }
}

/// Turns counters into the lines of the original.
pub struct Reporter<'a> {
    counters: &'a [Counters],
    before: Sum,
    last: Instant,
    /// The rates of the last intervals.
    rates: Vec<f64>,
    plain: bool,
    framing: u64,
    average: bool,
}

/// Rates that go into the average.
const SAMPLES: usize = 15;
/// Bytes of preamble, start, CRC and gap.
const FRAMING: u64 = 24;

impl<'a> Reporter<'a> {
    pub fn new(options: &Options, counters: &'a [Counters], now: Instant) -> Reporter<'a> {
        Reporter {
            counters,
            before: Sum::default(),
            last: now,
            rates: Vec::new(),
            plain: options.plain,
            framing: if options.framing { FRAMING } else { 0 },
            average: options.how & how::STATS != 0,
        }
    }

    /// The line of the interval that ends now.
    pub fn interval(&mut self, now: Instant) {
        let line = self.line(now);
        log!("main_thread", "{line}");
    }

    fn line(&mut self, now: Instant) -> String {
        let sum = Sum::of(self.counters);
        let seen = sum.since(self.before);
        let passed = now.saturating_duration_since(self.last);
        (self.before, self.last) = (sum, now);
        let rate = per_second(seen.packets as f64, passed);
        let spaces = self.counters.iter().map(|one| one.min_space.swap(NO_SPACE, Relaxed));
        let space = spaces.min().unwrap_or(NO_SPACE);
        let average = if self.average { self.average(rate) } else { String::new() };
        format!(
            "{}pps {average}({}pkts {}bps in {} usec) {:.2} avg_batch {space} min_space",
            norm(rate, self.plain),
            norm(seen.packets as f64, self.plain),
            norm(seen.bits(self.framing), self.plain),
            passed.as_micros(),
            seen.batch(),
        )
    }

    fn average(&mut self, rate: f64) -> String {
        if self.rates.len() == SAMPLES {
            self.rates.remove(0);
        }
        self.rates.push(rate);
        let n = self.rates.len() as f64;
        let mean = self.rates.iter().sum::<f64>() / n;
        let variance = self.rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / n;
        let [mean, deviation] = [mean, variance.sqrt()].map(|rate| norm(rate, self.plain));
        format!("[avg/std {mean}/{deviation} pps] ")
    }

    /// The whole run.
    pub fn total(&self, mode: Mode) {
        let sum = Sum::of(self.counters);
        if sum.packets == 0 {
            say!("{} nothing.", mode.done());
            return;
        }
        let spans: Vec<_> = self
            .counters
            .iter()
            .filter_map(|one| *one.span.lock().unwrap_or_else(|e| e.into_inner()))
            .collect();
        let start = spans.iter().map(|span| span.0).min();
        let end = spans.iter().map(|span| span.1).max();
        let time = start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start);
        say!(
            "{} {} packets {} bytes {} events {} bytes each in {:.2} seconds.",
            mode.done(),
            sum.packets,
            sum.bytes,
            sum.events,
            sum.bytes / sum.packets,
            time.as_secs_f64(),
        );
        let norm = |n| norm(per_second(n, time), self.plain);
        say!(
            "Speed: {}pps Bandwidth: {}bps (raw {}bps). Average batch: {:.2} pkts",
            norm(sum.packets as f64),
            norm(sum.bits(0)),
            norm(sum.bits(self.framing)),
            sum.batch(),
        );
    }
}

fn per_second(n: f64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { n / time.as_secs_f64() }
}

/// `14.881 M`, or if `plain` is asked for `14881000.000 `.
fn norm(mut n: f64, plain: bool) -> String {
    let mut unit = "";
    for next in ["K", "M", "G", "T"] {
        if plain || n < 1000.0 {
            break;
        }
        n /= 1000.0;
        unit = next;
    }
    format!("{n:.3} {unit}")
}

#[cfg(test)]
mod tests {
    use super::super::options::{Parsed, parse};
    use super::*;

    fn options(line: &str) -> Options {
        match parse(line.split(' ').map(String::from).collect()) {
            Parsed::Run(options) => *options,
            _ => panic!("{line}"),
        }
    }

    #[test]
    fn lines_of_the_original() {
        let counters = [Counters::default(), Counters::default()];
        let start = Instant::now();
        let mut reporter = Reporter::new(&options("-i null"), &counters, start);
        counters[0].packets.store(7_448_000, Relaxed);
        counters[1].packets.store(7_448_000, Relaxed);
        counters[0].bytes.store(14_896_000 * 60, Relaxed);
        counters[0].events.store(14_896_000 / 512, Relaxed);
        let now = start + Duration::from_micros(1_001_000);
        assert_eq!(
            reporter.line(now),
            "14.881 Mpps (14.896 Mpkts 7.150 Gbps in 1001000 usec) 512.01 avg_batch 0 min_space"
        );
        counters[0].add(2, 120);
        assert_eq!(
            reporter.line(now + Duration::from_secs(2)),
            "1.000 pps (2.000 pkts 960.000 bps in 2000000 usec) 2.00 avg_batch 99999 min_space"
        );
    }

    #[test]
    fn options_of_the_line() {
        let counters = [Counters::default()];
        let start = Instant::now();
        let mut reporter = Reporter::new(&options("-i null -A -B -N"), &counters, start);
        counters[0].add(1000, 60_000);
        reporter.line(start + Duration::from_secs(1));
        counters[0].add(3000, 180_000);
        counters[0].space(7);
        assert_eq!(
            reporter.line(start + Duration::from_secs(2)),
            "3000.000 pps [avg/std 2000.000 /1000.000  pps] (3000.000 pkts 2016000.000 bps in \
             1000000 usec) 3000.00 avg_batch 7 min_space"
        );
    }

    #[test]
    fn numbers_have_a_unit_or_none() {
        assert_eq!(norm(999.0, false), "999.000 ");
        assert_eq!(norm(1000.0, false), "1.000 K");
        assert_eq!(norm(14_880_952.0, false), "14.881 M");
        assert_eq!(norm(14_880_952.0, true), "14880952.000 ");
    }
}
