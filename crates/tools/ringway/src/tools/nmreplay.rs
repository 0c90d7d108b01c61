//! `nmreplay`: sends a capture file for ever, through an emulated link.

use super::emulation::{bits, delay, loss, scaled};
use super::getopt::{Arg, Getopt, number};
use super::log;
use crate::error::{Error, Result};
use crate::link::{Delay, Loss, LossModel, Random, TransmitTime};
use crate::opening;
use crate::replay::sender::{Next, Pump, Stop, Timeline};
use crate::run_loop::{self, RunLoop};
use crate::units::Rate;
use ringway::{Interest, Port};
use ringway_file::{InUse, Reader};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: nmreplay [-v] [-B bandwidth] [-D delay] [-L loss] [-b burst] [-w wait_time] \
                     [-C cores] -f pcap-file -i port";

/// The options, as getopt is told of them.
pub const LETTERS: &str = "f:i:B:D:L:b:w:C:v";

/// Packets of a schedule, at least: shorter files are repeated in it.
const SCHEDULED: usize = 10_000;

/// Bytes that Ethernet adds to each frame: CRC, preamble and gap.
const FRAMING: u32 = 24;

/// Between two status lines.
const STATUS: Duration = Duration::from_secs(1);

/// What decides when packets enter the link.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bandwidth {
    /// Their times in the file, so many times as fast.
    Recorded(f64),
    /// Bits a second, and bytes that each packet takes beside its own.
    Constant(f64, u32),
    /// Nothing.
    None,
}

struct Options {
    file: String,
    port: String,
    bandwidth: Bandwidth,
    delay: Delay,
    loss: Loss,
    burst: i64,
    link_wait: i64,
}

/// Why nothing is sent: what usage or the configuration lack, and the exit status.
type Wrong = (String, u8);

pub fn main(args: Vec<String>) -> ExitCode {
    let options = match parse(args) {
        Ok(options) => options,
        Err((wrong, status)) => {
            log::log!("main", "{wrong}");
            log::tell!("{USAGE}");
            return status.into();
        }
    };
    log::ended(run(&options))
}

fn bandwidth(text: &str) -> Option<Bandwidth> {
    let (value, overhead) = match text.split(',').collect::<Vec<_>>()[..] {
        ["real"] => return Some(Bandwidth::Recorded(1.0)),
        ["real", speed] => {
            let speed = scaled(speed, &[]).filter(|speed| *speed > 0.0 && *speed <= 1000.0)?;
            return Some(Bandwidth::Recorded(speed));
        }
        [value] | ["constant", value] => (value, 0),
        ["ether", value] => (value, FRAMING),
        _ => return None,
    };
    let bps = bits(value)?;
    Some(if bps > 0.0 { Bandwidth::Constant(bps, overhead) } else { Bandwidth::None })
}

fn parse(args: Vec<String>) -> std::result::Result<Options, Wrong> {
    const ONCE: &str = "fiBDL";
    let mut given: [Option<String>; ONCE.len()] = Default::default();
    let (mut burst, mut link_wait) = (128, 0);
    for arg in Getopt::new(LETTERS, args) {
        match arg {
            Ok(Arg::Opt(letter, value)) if ONCE.contains(letter) => {
                let place = &mut given[ONCE.find(letter).unwrap_or_default()];
                if place.replace(value).is_some() {
                    return Err((format!("-{letter} is given twice"), 1));
                }
            }
            Ok(Arg::Opt('b', value)) => burst = number(&value),
            Ok(Arg::Opt('w', value)) => link_wait = number(&value),
            Ok(Arg::Opt('C', value)) if ![1, 2, 4].contains(&value.split(',').count()) => {
                return Err((format!("-C {value}: name 1, 2 or 4 cores"), 1));
            }
            Ok(Arg::Opt(..)) => (),
            Ok(Arg::Operand(operand)) => return Err((format!("{operand}: not an option"), 1)),
            Err(wrong) => return Err((wrong.to_string(), 1)),
        }
    }
    if !(1..=8192).contains(&burst) {
        log::log!("main", "invalid burst {burst}, set to 1024");
        burst = 1024;
    }
    if link_wait > 100 {
        log::log!("main", "invalid wait_time {link_wait}, set to 4");
        link_wait = 4;
    }
    let [file, port, width, late, lost] = given;
    let (Some(file), Some(port)) = (file, port) else {
        return Err(("give a file with -f, and a port with -i".into(), 1));
    };
    // As many as there are is the exit status.
    let mut wrong = Vec::new();
    let bandwidth = read('B', width, bandwidth, &mut wrong).unwrap_or(Bandwidth::Recorded(1.0));
    let no_gaps = |text: &str| delay(text).filter(|(_, gaps)| gaps.is_none());
    let (delay, _) = read('D', late, no_gaps, &mut wrong).unwrap_or_default();
    let loss = read('L', lost, loss, &mut wrong).unwrap_or_default();
    match wrong.len() {
        0 => Ok(Options { file, port, bandwidth, delay, loss, burst, link_wait }),
        errors => Err((wrong.join("; "), errors as u8)),
    }
}

/// The value of an option, if it is given.
fn read<T>(
    letter: char,
    text: Option<String>,
    read: impl Fn(&str) -> Option<T>,
    wrong: &mut Vec<String>,
) -> Option<T> {
    let text = text?;
    let value = read(&text);
    if value.is_none() {
        wrong.push(format!("-{letter} {text}: not understood; see nmreplay(8)"));
    }
    value
}

/// A file in memory.
#[derive(Default)]
struct Trace {
    bytes: Vec<u8>,
    /// Where each packet lies, and when it was recorded, in nanoseconds since the first.
    packets: Vec<(std::ops::Range<usize>, u64)>,
    _file: InUse,
}

impl Trace {
    fn load(file: &str) -> Result<Trace> {
        let mut reader = Reader::open(Path::new(file))?;
        let mut trace = Trace { _file: reader.in_use(), ..Trace::default() };
        let (mut first, mut last) = (None, 0);
        while reader.next(|packet| {
            let since = packet.time.saturating_sub(*first.get_or_insert(packet.time));
            last = since.max(last);
            let start = trace.bytes.len();
            trace.bytes.extend_from_slice(packet.bytes);
            trace.packets.push((start..trace.bytes.len(), last));
        })? {}
        match trace.packets.is_empty() {
            true => {
                Err(Error::Value(format!("{file}: there is no packet in it; give another file")))
            }
            false => Ok(trace),
        }
    }

    /// From one round's first packet to the next one's: the gap between them is the mean gap.
    fn period(&self) -> u64 {
        let span = self.packets.last().map_or(0, |(_, time)| *time);
        span + span / (self.packets.len() as u64 - 1).max(1)
    }
}

/// Packets with their times, again and again.
struct Scheduled {
    trace: Trace,
    /// When a packet is due, and its number.
    entries: Vec<(u64, usize)>,
    /// Nanoseconds until it starts over.
    period: u64,
    /// Packets that were to be sent, and those that the link has lost.
    packets: u64,
    lost: u64,
    at: usize,
    base: u64,
    round: u64,
}

impl Scheduled {
    fn new(trace: Trace, options: &Options, seed: u64) -> Scheduled {
        let (mut random, mut model) = (Random::new(seed), LossModel::new(options.loss));
        let mut times = match options.bandwidth {
            Bandwidth::Constant(bps, overhead) => {
                Some(TransmitTime::new(Rate::Bits(bps), overhead))
            }
            Bandwidth::Recorded(_) | Bandwidth::None => None,
        };
        let (mut entries, mut packets, mut lost) = (Vec::new(), 0, 0);
        let (mut base, mut through, mut last) = (0, 0, 0);
        while packets < SCHEDULED {
            for (number, (place, time)) in trace.packets.iter().enumerate() {
                packets += 1;
                through = match (options.bandwidth, &mut times) {
                    (Bandwidth::Recorded(speed), _) => ((base + time) as f64 / speed) as u64,
                    (_, Some(times)) => through + times.of(place.len()),
                    (_, None) => 0,
                };
                if model.loses(place.len(), &mut random) {
                    lost += 1;
                    continue;
                }
                last = last.max(through + options.delay.draw(&mut random));
                entries.push((last, number));
            }
            base += trace.period();
        }
        let period = match options.bandwidth {
            Bandwidth::Recorded(speed) => (base as f64 / speed) as u64,
            _ => through,
        };
        let (packets, lost) = (packets as u64, lost);
        Scheduled { trace, entries, period, packets, lost, at: 0, base: 0, round: 0 }
    }

    /// Packets that were to be sent until now.
    fn scheduled(&self) -> u64 {
        self.round * self.packets + self.at as u64
    }

    fn loss(&self) -> f64 {
        self.lost as f64 / self.packets as f64
    }
}

impl Timeline for Scheduled {
    fn next(&mut self, _now: u64) -> Result<Next<'_>> {
        let Some((due, number)) = self.entries.get(self.at) else { return Ok(Next::Nothing) };
        let (place, _) = &self.trace.packets[*number];
        let bytes = &self.trace.bytes[place.clone()];
        Ok(Next::Frame { bytes, due: Some(self.base + due), recorded: None })
    }

    fn advance(&mut self) {
        self.at += 1;
        if self.at == self.entries.len() {
            (self.at, self.round) = (0, self.round + 1);
            self.base += self.period;
        }
    }

    /// Only where everything is lost is there nothing.
    fn wait(&mut self, run_loop: &RunLoop, until: Instant) -> Result<()> {
        run_loop.sleep(until)
    }

    fn slipped(&self) -> u64 {
        0
    }
}

fn run(options: &Options) -> Result<()> {
    let trace = Trace::load(&options.file)?;
    let scheduled = Scheduled::new(trace, options, u64::from(std::process::id()));
    let mut port = opening::open(&Port::options().tx_only(), &options.port, Default::default())?;
    let run_loop = RunLoop::begin(&run_loop::Args::default())?;
    let wait_time = options.link_wait.max(0) as u64;
    run_loop.sleep(Instant::now() + Duration::from_secs(wait_time))?;
    let mut pump = Pump::new(&mut port, scheduled, Some(options.burst as usize));
    let origin = Instant::now();
    let mut due = origin + STATUS;
    while !run_loop.is_interrupted() {
        let now = Instant::now();
        if now >= due {
            status(&pump, options);
            due = now + STATUS;
            // There may be room for long after the port has gone.
            port.check(Interest::Tx)?;
        }
        match pump.send_due(&mut port, origin, now, u64::MAX)? {
            Stop::Batch | Stop::End => (),
            Stop::Due(at) => {
                let at = origin.checked_add(Duration::from_nanos(at)).unwrap_or(due);
                run_loop.sleep_exactly(at, due)?;
            }
            Stop::Full => run_loop.wait(&mut [(&mut port, Interest::Tx)], due)?,
            Stop::Nothing => pump.timeline.wait(&run_loop, due)?,
        }
    }
    status(&pump, options);
    Ok(())
}

fn status(pump: &Pump<Scheduled>, options: &Options) {
    let (timeline, sent) = (&pump.timeline, pump.counted.packets);
    let mean = timeline.trace.bytes.len() / timeline.trace.packets.len().max(1);
    let (nominal, actual) = (options.loss.expected(mean), timeline.loss());
    let (scheduled, round) = (timeline.scheduled(), timeline.round);
    log::brief("status ", line!(), format_args!("\t{scheduled} -> {sent} maxq 0 round {round}"));
    log::brief("status ", line!(), format_args!("\tplr nominal {nominal:e} actual {actual:e}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(args: &str) -> std::result::Result<Options, Wrong> {
        parse(format!("-f x -i p{{0 {args}").split_whitespace().map(String::from).collect())
    }

    /// Ten packets of 125 bytes, 1 ms apart.
    fn schedule(args: &str) -> Scheduled {
        let packets = (0..10).map(|n| (125 * n..125 * (n + 1), n as u64 * 1_000_000)).collect();
        let trace = Trace { bytes: vec![0; 1250], packets, ..Trace::default() };
        Scheduled::new(trace, &options(args).unwrap_or_else(|(wrong, _)| panic!("{wrong}")), 1)
    }

    fn dues(args: &str) -> Vec<u64> {
        schedule(args).entries.iter().map(|(due, _)| *due).take(12).collect()
    }

    #[test]
    fn recorded_gaps_are_kept_scaled_or_replaced() {
        let each = |gap: u64| (0..12).map(|n| n * gap).collect::<Vec<_>>();
        assert_eq!(dues(""), each(1_000_000));
        assert_eq!(dues("-B real,2"), each(500_000));
        assert_eq!(
            dues("-B 1m"),
            each(1_000_000).iter().map(|t| t + 1_000_000).collect::<Vec<_>>()
        );
        assert_eq!(dues("-B ether,1m")[0], 1_192_000);
        assert_eq!(dues("-B 0"), each(0));
        assert_eq!(dues("-D 5m")[..2], [5_000_000, 6_000_000]);
        assert!(dues("-D uniform,0,10m").is_sorted());
    }

    #[test]
    fn it_starts_over_in_time() {
        let mut scheduled = schedule("");
        assert_eq!((scheduled.entries.len(), scheduled.period), (SCHEDULED, 10_000_000_000));
        (0..SCHEDULED).for_each(|_| scheduled.advance());
        let Ok(Next::Frame { due, .. }) = scheduled.next(0) else { panic!("there is no end") };
        assert_eq!(
            (due, scheduled.round, scheduled.scheduled()),
            (Some(10_000_000_000), 1, 10_000)
        );
    }

    #[test]
    fn losses_are_left_out_and_counted() {
        let scheduled = schedule("-L 0.1");
        assert_eq!(scheduled.entries.len() as u64 + scheduled.lost, scheduled.packets);
        assert!((0.08..0.12).contains(&scheduled.loss()), "{}", scheduled.loss());
        let mut nothing = schedule("-L 1");
        assert!(matches!(nothing.next(0), Ok(Next::Nothing)));
    }

    #[test]
    fn errors_are_counted_and_usage_is_explained() {
        for (bad, told, status) in [
            ("-B fast -D late -L much", "-B fast", 3),
            ("-B real,1001", "-B real,1001", 1),
            ("-D inter-packet,1,2,3", "-D inter", 1),
            ("-B 1 -B 2", "given twice", 1),
            ("-x", "invalid option", 1),
            ("-C 1,2,3", "1, 2 or 4", 1),
        ] {
            let (wrong, got) = options(bad).err().unwrap_or_default();
            assert!(wrong.contains(told) && got == status, "{bad}: {wrong}, {got}");
        }
        assert!(parse(vec!["-i".into(), "p{0".into()]).is_err());
    }
}
