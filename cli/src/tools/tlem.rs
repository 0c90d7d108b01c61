//! `tlem`: emulates a link between two ports.

use super::emulation::{bits, bytes, delay, hold, loss, time};
use super::ended;
use super::getopt::{Arg, Getopt, number};
use super::log::{brief, log};
use crate::error::Result;
use crate::link::{Bandwidth, Delay, Limit, Settings};
use crate::relay::Relay;
use crate::run_loop::{self, RunLoop};
use crate::units::Rate;
use ringway::Port;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: tlem [-cHvq] [-B bw]... [-D delay]... [-L loss]... [-R hold]... [-Q bytes]... \
                     [-O offset]... [-P 0|1]... [-M maxima]... [-d lag]... [-b burst] [-w wait_time] \
                     [-C cores] -i port -i port";

/// The options, as getopt is told of them.
pub const LETTERS: &str = "i:B:D:L:R:Q:M:P:O:d:G:s:arHb:w:C:cvq";

/// Bytes that wait for a bandwidth, where nothing is said of that.
const QUEUE: u64 = 50_000;

/// What may go at once beyond an average bandwidth: bits of this time, and two long frames.
const BUCKET_SECONDS: f64 = 0.01;
const BUCKET_LEAST: f64 = 3028.0;

/// Bytes that Ethernet adds to each frame: CRC, preamble and gap.
const FRAMING: u32 = 24;

/// Between two status lines.
const STATUS: Duration = Duration::from_secs(1);

struct Options {
    ports: [String; 2],
    settings: [Settings; 2],
    link_wait: i64,
    verbose: i64,
}

pub fn main(args: Vec<String>) -> ExitCode {
    match parse(args) {
        Ok(options) => ended(run(&options)),
        Err(wrong) => {
            if let Some(wrong) = wrong {
                log!("main", "{wrong}");
            }
            eprintln!("{USAGE}");
            ExitCode::FAILURE
        }
    }
}

/// What was given for an option that may be given twice.
#[derive(Default)]
struct Twice(Vec<String>);

impl Twice {
    /// For a direction: the second value is for the way back, one alone for both.
    fn of(&self, way: usize) -> Option<&str> {
        let value = self.0.get(way).or(self.0.first())?;
        (value != "none").then_some(value.as_str())
    }

    /// What `read` makes of it.
    fn read<T>(
        &self,
        letter: char,
        way: usize,
        read: impl Fn(&str) -> Option<T>,
    ) -> Parsed<Option<T>> {
        let Some(text) = self.of(way) else { return Ok(None) };
        read(text)
            .map(Some)
            .ok_or_else(|| Some(format!("-{letter} {text}: not understood; see tlem(8)")))
    }
}

/// Why usage is to be shown.
type Wrong = Option<String>;
type Parsed<T> = std::result::Result<T, Wrong>;

fn parse(args: Vec<String>) -> Parsed<Options> {
    const TWICE: &str = "iBDLRQMPOd";
    let mut given: [Twice; TWICE.len()] = Default::default();
    let (mut link_wait, mut verbose) = (0, 1);
    for arg in Getopt::new(LETTERS, args) {
        match arg {
            Ok(Arg::Opt(letter, value)) if TWICE.contains(letter) => {
                let at = TWICE.find(letter).unwrap_or_default();
                given[at].0.push(value);
                if given[at].0.len() > 2 {
                    return Err(Some(format!("-{letter} is given more than twice")));
                }
            }
            Ok(Arg::Opt('w', value)) => link_wait = number(&value),
            Ok(Arg::Opt('v', _)) => verbose += 1,
            Ok(Arg::Opt('q', _)) => verbose -= 1,
            Ok(Arg::Opt('b', value)) if !(1..=8192).contains(&number(&value)) => {
                log!("main", "invalid burst {value}, set to 1024");
            }
            Ok(Arg::Opt('C', value)) if ![1, 2, 4].contains(&value.split(',').count()) => {
                return Err(Some(format!("-C {value}: name 1, 2 or 4 cores")));
            }
            Ok(Arg::Opt('b' | 'C' | 'c' | 'H', _)) => (),
            Ok(Arg::Opt(letter @ ('s' | 'a'), _)) => {
                return Err(Some(format!(
                    "-{letter}: there are no sessions here; start tlem anew"
                )));
            }
            Ok(Arg::Opt(letter, _)) => {
                return Err(Some(format!(
                    "-{letter}: there is no route mode here; route behind the ports"
                )));
            }
            Ok(Arg::Operand(operand)) => return Err(Some(format!("{operand}: not an option"))),
            Err(wrong) => return Err(Some(wrong.to_string())),
        }
    }
    if link_wait > 100 {
        log!("main", "invalid wait_time {link_wait}, set to 4");
        link_wait = 4;
    }
    let of = |letter| &given[TWICE.find(letter).unwrap_or_default()];
    let ports = match &of('i').0[..] {
        [a, b] if a != b => [a.clone(), b.clone()],
        _ => return Err(Some("give -i twice, with two different ports".into())),
    };
    let flag = |text: &str| matches!(text, "0" | "1").then_some(());
    for way in 0..2 {
        of('P').read('P', way, flag)?;
    }
    let settings = [direction(of, 0)?, direction(of, 1)?];
    Ok(Options { ports, settings, link_wait, verbose })
}

/// What is asked of one direction.
fn direction<'a>(of: impl Fn(char) -> &'a Twice, way: usize) -> Parsed<Settings> {
    let queue = of('Q').read('Q', way, bytes)?;
    let bandwidth = of('B').read('B', way, |text| bandwidth(text, queue))?;
    let (mut delay, gaps) = of('D').read('D', way, delay)?.unwrap_or_default();
    if let Some(offset) = of('O').read('O', way, time)? {
        delay = earlier(delay, offset);
    }
    Ok(Settings {
        loss: of('L').read('L', way, loss)?.unwrap_or_default(),
        bandwidth: bandwidth.flatten(),
        delay,
        gaps,
        hold: of('R').read('R', way, hold)?,
        ..Settings::default()
    })
}

/// Reads a bandwidth; 0 is none.
fn bandwidth(text: &str, queue: Option<u64>) -> Option<Option<Bandwidth>> {
    let (value, overhead, police) = match text.split(',').collect::<Vec<_>>()[..] {
        [value] | ["constant", value] => (value, 0, false),
        ["ether", value] => (value, FRAMING, false),
        ["avg", value] => (value, 0, true),
        _ => return None,
    };
    let bps = bits(value)?;
    let bucket = (bps / 8.0 * BUCKET_SECONDS).max(BUCKET_LEAST) as u64;
    let most = queue.unwrap_or(if police { bucket } else { QUEUE });
    let limit = Limit::Bytes(most);
    Some((bps > 0.0).then_some(Bandwidth { rate: Rate::Bits(bps), overhead, limit, police }))
}

/// A delay without what the path takes itself.
fn earlier(delay: Delay, offset: f64) -> Delay {
    let less = |time: f64| (time - offset).max(0.0);
    match delay {
        Delay::Constant(time) => Delay::Constant(less(time)),
        Delay::Uniform { min, max } => Delay::Uniform { min: less(min), max: less(max) },
        Delay::Exponential { min, mean } => Delay::Exponential { min: less(min), mean: less(mean) },
        other => other,
    }
}

fn run(options: &Options) -> Result<()> {
    let [a, b] = &options.ports;
    let ports = [Port::open(a)?, Port::open(b)?];
    let run_loop = RunLoop::begin(&run_loop::Args::default())?;
    let wait_time = options.link_wait.max(0) as u64;
    run_loop.sleep(Instant::now() + Duration::from_secs(wait_time))?;
    let seed = u64::from(std::process::id());
    let mut relay = Relay::new(ports, options.settings, seed, 1, Instant::now());
    if options.verbose > 0 {
        log!("main", "Ready to go, {a} <-> {b}.");
    }
    let mut due = Instant::now() + STATUS;
    let (mut last, mut round) = (Instant::now(), Duration::ZERO);
    while !run_loop.is_interrupted() {
        let now = Instant::now();
        round = round.max(now.saturating_duration_since(last));
        let moved = relay.step(now);
        last = now;
        if now >= due {
            if options.verbose > 0 {
                status(&relay, round);
            }
            (due, round) = (now + STATUS, Duration::ZERO);
        }
        if !moved {
            relay.wait(&run_loop, due)?;
            last = Instant::now();
        }
    }
    if options.verbose > 0 {
        status(&relay, round);
    }
    Ok(())
}

/// What each direction has done. `round`: the longest time between two looks at the ports.
fn status(relay: &Relay, round: Duration) {
    let round = round.as_nanos();
    let [there, back] = [0, 1].map(|way| {
        let flow = &relay.flows[way];
        let counters = &flow.link.counters;
        let dropped = counters.queue_full + counters.no_memory + flow.too_long;
        (counters.frames, flow.packets, counters.queued_max, dropped, counters.lost)
    });
    let (came, sent, queue, out, lost) = there;
    let (back_came, back_sent, back_queue, back_out, back_lost) = back;
    brief(
        "",
        line!(),
        format_args!(
            "{came} -> {sent} maxq {queue} round {round} drop {out}/{lost}, {back_came} <- {back_sent} maxq \
         {back_queue} round {round} drop {back_out}/{back_lost}"
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Gaps, Hold, Loss};

    fn read(args: &str) -> Parsed<Options> {
        parse(
            format!("-i vale0:a -i vale0:b {args}").split_whitespace().map(String::from).collect(),
        )
    }

    fn settings(args: &str) -> [Settings; 2] {
        read(args).map_err(|wrong| wrong.unwrap_or_default()).unwrap().settings
    }

    #[test]
    fn one_value_is_for_both_directions_and_none_for_neither() {
        let [there, back] = settings("-D 10m -L 0.1 -L ber,1e-6 -R 0.5,1m -R none");
        assert_eq!([there.delay, back.delay], [Delay::Constant(1e7); 2]);
        assert_eq!([there.loss, back.loss], [Loss::Random(0.1), Loss::BitErrors(1e-6)]);
        assert_eq!(
            [there.hold, back.hold],
            [Some(Hold { probability: 0.5, time: 1_000_000 }), None]
        );
        assert_eq!(settings(""), [Settings::default(); 2]);
    }

    /// In the original both directions have the first queue.
    #[test]
    fn each_direction_has_its_queue() {
        let limits = |args| settings(args).map(|s| s.bandwidth.map(|width| width.limit));
        assert_eq!(limits("-B 10m"), [Some(Limit::Bytes(QUEUE)); 2]);
        let both = [Some(Limit::Bytes(10_240)), Some(Limit::Bytes(20_480))];
        assert_eq!(limits("-B 10m -Q 10k -Q 20k"), both);
        assert_eq!(limits("-B 0"), [None; 2]);
    }

    #[test]
    fn bandwidths_are_on_the_wire_or_on_average() {
        let width = |args| settings(args)[0].bandwidth.unwrap();
        assert_eq!((width("-B ether,1g").overhead, width("-B constant,1g").overhead), (24, 0));
        let average = width("-B avg,1g");
        assert!(average.police);
        assert_eq!(average.limit, Limit::Bytes(1_250_000));
    }

    #[test]
    fn delays_are_shorter_by_the_offset_and_gaps_are_kept() {
        assert_eq!(settings("-D 10m -O 2m")[0].delay, Delay::Constant(8e6));
        assert_eq!(settings("-D 1m -O 2m")[0].delay, Delay::Constant(0.0));
        let gaps = Some(Gaps { min: 1e6, max: 2e6 });
        assert_eq!(settings("-D inter-packet,1m,2m,10m")[1].gaps, gaps);
    }

    #[test]
    fn bad_usage_is_explained() {
        for (bad, told) in [
            ("-B fast", "-B fast: not understood"),
            ("-D 1 -D 2 -D 3", "more than twice"),
            ("-i vale0:c", "more than twice"),
            ("-s file", "no sessions"),
            ("-r", "no route mode"),
            ("-P 2", "-P 2"),
            ("-C 1,2,3", "1, 2 or 4 cores"),
            ("vale0:c", "not an option"),
        ] {
            let wrong = read(bad).err().flatten().unwrap_or_default();
            assert!(wrong.contains(told), "{bad}: {wrong}");
        }
        let same = ["-i", "vale0:a", "-i", "vale0:a"].map(String::from).to_vec();
        assert!(parse(same).is_err());
    }
}
