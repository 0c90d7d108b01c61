//! `ringway shape`: a link between two ports that is as slow, late and lossy as asked.

mod settings;

use crate::capture_file;
use crate::drops::Losses;
use crate::error::{Error, Result};
use crate::flush::{Drain, left};
use crate::lasting::{Lasting, outlive, until};
use crate::link::{Bandwidth, Counters as LinkCounters, Limit, Settings};
use crate::opened::Opened;
use crate::opening;
use crate::port_notes;
use crate::relay::Relay;
use crate::report::{Counters, Reporter};
use crate::run_loop::{self, RunLoop};
use crate::units::{number, parse_count};
use ringway::Port;
use serde::Serialize;
use settings::{
    BandwidthArg, DelayArg, LimitArg, LinkRate, LossArg, Maybe, ReorderArg, UNLIMITED, both,
    overhead, share,
};
use std::fmt;
use std::time::{Instant, SystemTime};

#[derive(clap::Args)]
#[command(after_help = "\
Every option of the link that has a value may be given twice: the first value is for frames from A to B,
the second for frames from B to A. A single value is for both directions. `none` is no limit, delay, loss
or overhead.

Two ports of one switch are no ends of a link: what is sent by one comes back by the other.

The link first loses frames; the others wait for the bandwidth, in a queue that drops frames that
come when it is full. The delay begins after that. Frames stay in their order, also with delays that vary, unless
--overtake or --reorder says otherwise.

Times: 20ms; uniform,MIN,MAX; normal,MEAN,DEVIATION; exp,MIN,MEAN; pareto,MIN,MEAN.
Loss: 1%; bits,1e-6 for each bit; burst,BEGINS,ENDS[,LOST-BAD[,LOST-GOOD]] for the model of Gilbert and
Elliott: probabilities that a good link becomes bad, that a bad one becomes good, and of loss in each.

Examples:
  ringway shape netmap:veth-a netmap:veth-b --bandwidth 10Mbps --delay 20ms
  ringway shape vale0:a vale1:a --delay 300ms --delay 20ms --loss burst,1%,20%
  ringway shape vale0:a vale1:a --delay normal,20ms,2ms --reorder 1%,5ms --duplicate 0.1%
  ringway shape file:in.pcap@speed=1 file:out.pcap --loss 10% --seed 1")]
pub struct Args {
    /// One port
    a: String,

    /// The other port
    b: String,

    /// Bits a second, 10Mbps or tc's 10mbit, or packets, 1kpps
    #[arg(short = 'w', long, value_name = "RATE")]
    bandwidth: Vec<BandwidthArg>,

    /// What may wait for the bandwidth: 100 frames, or 64kB [default: 1000]
    #[arg(short, long, value_name = "LIMIT")]
    queue: Vec<LimitArg>,

    /// Bytes of the bandwidth that each frame takes beside its own; of Ethernet, with CRC, preamble and gap, 24
    /// [default: 0]
    #[arg(long, value_name = "BYTES", value_parser = overhead)]
    overhead: Vec<u32>,

    /// Time that frames take
    #[arg(short = 'D', long, value_name = "TIME")]
    delay: Vec<DelayArg>,

    /// Let frames with a shorter delay overtake others
    #[arg(long)]
    overtake: bool,

    /// Hold a share of the frames back, so that others overtake them: 1%,5ms
    #[arg(short, long, value_name = "SHARE,TIME")]
    reorder: Vec<ReorderArg>,

    /// Share of the frames that is lost
    #[arg(short, long, value_name = "LOSS")]
    loss: Vec<LossArg>,

    /// Share of the frames that comes twice
    #[arg(long, value_name = "SHARE", value_parser = share)]
    duplicate: Vec<f64>,

    /// Lose and delay the same frames as the run that had this number
    #[arg(long, value_name = "NUMBER", value_parser = number(0..=u64::MAX, 7))]
    seed: Option<u64>,

    /// Bytes of memory for the frames that are on their way in one direction, one frame for each 256 of them
    #[arg(long, value_name = "BYTES", value_parser = parse_count, default_value = "16M")]
    memory: u64,

    #[command(flatten)]
    opening: opening::Args,

    #[command(flatten)]
    run_loop: run_loop::Args,
}

/// Frames that wait for a bandwidth, where nothing is said of that.
const QUEUE: Limit = Limit::Frames(1000);

/// The most memory of a direction.
const MEMORY: u64 = 1 << 36;

impl Args {
    fn settings(&self) -> Result<[Settings; 2]> {
        let bandwidth = both(&self.bandwidth, Maybe(None))?;
        let queue = both(&self.queue, LimitArg(QUEUE))?;
        let delay = both(&self.delay, DelayArg(Settings::default().delay))?;
        let loss = both(&self.loss, LossArg(Settings::default().loss))?;
        let hold = both(&self.reorder, Maybe(None))?;
        let overhead = both(&self.overhead, 0)?;
        let duplicate = both(&self.duplicate, 0.0)?;
        let is_unlimited = self.bandwidth.iter().all(|bandwidth| bandwidth.0.is_none());
        if self.queue.iter().any(|queue| *queue != UNLIMITED) && is_unlimited {
            let wrong = "a --queue is what waits for a --bandwidth: give that, too";
            return Err(Error::Value(wrong.into()));
        }
        if overhead != [0; 2] && is_unlimited {
            let wrong = "--overhead is what frames take of a --bandwidth: give that, too";
            return Err(Error::Value(wrong.into()));
        }
        if self.memory > MEMORY {
            return Err(Error::Value(format!(
                "--memory {}: {MEMORY} bytes are the most; write 64G or less",
                self.memory
            )));
        }
        Ok([0, 1].map(|way| Settings {
            loss: loss[way].0,
            duplicate: duplicate[way],
            bandwidth: bandwidth[way].0.map(|LinkRate(rate)| Bandwidth {
                rate,
                overhead: overhead[way],
                limit: queue[way].0,
                police: false,
            }),
            delay: delay[way].0,
            gaps: None,
            overtake: self.overtake,
            hold: hold[way].0.map(|hold| hold.0),
            memory: self.memory as usize,
            ..Settings::default()
        }))
    }
}

/// Emulates the link until the time is through, the user stops it, or a file that is sent has ended.
pub fn run(args: &Args) -> Result<()> {
    let settings = args.settings()?;
    let ports = opening::open_pair([&args.a, &args.b], args.opening)?;
    let [a, b] = &ports;
    port_notes::receiving(a, &args.a);
    port_notes::receiving(b, &args.b);
    let lasting = [Lasting::begin(a)?, Lasting::begin(b)?];
    let labels = [format!("{} -> {}", a.name(), b.name()), format!("{} -> {}", b.name(), a.name())];
    let seed = args.seed.unwrap_or_else(some_seed);
    let run_loop = RunLoop::begin(&args.run_loop)?;
    let output = run_loop.output;
    output.write(&Opened::new(a))?;
    output.write(&Opened::new(b))?;
    let relay = Relay::new(ports, settings, seed, usize::MAX, run_loop.start);
    output.write(&Begun { seed })?;
    let reporters = labels.map(|label| Reporter::new(label, run_loop.start));
    let mut shaper = Shaper { relay, lasting, reporters, run_loop };
    let mut shaped = shaper.shape();
    if capture_file::is_end(&shaped) {
        shaped = capture_file::ended(shaped).and_then(|()| shaper.drain());
    }
    shaper.finish(shaped)
}

/// One that another run does not have.
fn some_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ u64::from(std::process::id())
}

/// With the same seed the same becomes of the same frames.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "shape")]
pub struct Begun {
    seed: u64,
}

impl fmt::Display for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shaping with --seed {}", self.seed)
    }
}

/// What one direction has done to frames.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "link")]
pub struct Outcome<'l> {
    label: &'l str,
    #[serde(flatten)]
    counters: LinkCounters,
    /// Longer than what the port's rings can hold.
    too_long: u64,
    /// Still on their way at the end.
    left: u64,
}

impl fmt::Display for Outcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { label, counters, too_long, left } = self;
        write!(f, "  {label}: {} frames came", counters.frames)?;
        for (what, count) in [
            ("lost", counters.lost),
            ("dropped by the full queue", counters.queue_full),
            ("dropped for lack of memory", counters.no_memory),
            ("doubled", counters.duplicated),
            ("held back", counters.held),
            ("too long", *too_long),
            ("still on their way", *left),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        match counters.queued_max {
            0 => Ok(()),
            bytes => write!(f, "; the queue had {bytes} bytes at most"),
        }
    }
}

struct Shaper {
    relay: Relay,
    lasting: [Lasting; 2],
    reporters: [Reporter; 2],
    run_loop: RunLoop,
}

impl Shaper {
    fn shape(&mut self) -> Result<()> {
        loop {
            let now = Instant::now();
            let moved = self.relay.step(now);
            self.report(now)?;
            if self.run_loop.is_over(now) {
                return Ok(());
            }
            if !moved {
                self.wait()?;
            }
        }
    }

    fn wait(&mut self) -> Result<()> {
        let Shaper { relay, lasting, run_loop, .. } = self;
        let due = until(self.reporters[0].due(), &*lasting);
        let waited = relay.wait(run_loop, due);
        self.outlive(waited)
    }

    /// The same when nothing is taken any more. False: nothing is on its way.
    fn wait_for_rest(&mut self) -> Result<bool> {
        let Shaper { relay, lasting, run_loop, .. } = self;
        let due = until(self.reporters[0].due(), &*lasting);
        let waited = relay.wait_for_rest(run_loop, due);
        let is_left = waited.as_ref().copied().unwrap_or(true);
        self.outlive(waited.map(drop)).map(|()| is_left)
    }

    /// Goes on without a port whose daemon has ended, and with it when it is open again.
    fn outlive(&mut self, waited: Result<()>) -> Result<()> {
        let Shaper { relay, lasting, run_loop, .. } = self;
        for opened in outlive(waited, lasting.iter_mut().zip(&mut relay.ports), run_loop)? {
            relay.opened(opened);
        }
        Ok(())
    }

    /// A file that was sent has ended: waits for what is on its way.
    fn drain(&mut self) -> Result<()> {
        loop {
            let now = Instant::now();
            let moved = self.relay.release(now);
            self.report(now)?;
            if self.run_loop.is_over(now) {
                return Ok(());
            }
            if !moved && !self.wait_for_rest()? {
                break;
            }
        }
        for index in 0..2 {
            let mut drain = Drain::new(self.relay.ports[index].tx_rings());
            loop {
                let due = self.reporters[0].due();
                if drain.step(&mut self.relay.ports[index], &self.run_loop, due)? {
                    break;
                }
                self.report(Instant::now())?;
            }
        }
        Ok(())
    }

    /// Drops by direction: not received by the one port, dropped by the link, or not sent by the other port.
    fn counted(&mut self) -> [Counters; 2] {
        let Shaper { relay, lasting, .. } = self;
        let at_ports = [0, 1].map(|port| lasting[port].drops(&relay.ports[port]));
        [0, 1].map(|way| {
            let flow = &relay.flows[way];
            let link = flow.link.counters.dropped() + flow.too_long;
            let drops = at_ports[way].receiving + link + at_ports[1 - way].sending;
            let drops_either_way = at_ports.iter().map(|drops| drops.either).sum();
            Counters { packets: flow.packets, bytes: flow.bytes, drops, drops_either_way }
        })
    }

    fn report(&mut self, now: Instant) -> Result<()> {
        if self.reporters[0].is_due(now) {
            let counted = self.counted();
            for (counted, reporter) in counted.into_iter().zip(&mut self.reporters) {
                let line = reporter.tick(now, counted);
                self.run_loop.output.write(&line)?;
            }
        }
        Ok(())
    }

    /// The summary is told even if the run has failed.
    fn finish(mut self, run: Result<()>) -> Result<()> {
        let end = Instant::now();
        let written = self.relay.ports.each_mut().map(Port::finish_file);
        let (counted, output) = (self.counted(), self.run_loop.output);
        for (way, reporter) in self.reporters.iter_mut().enumerate() {
            let flow = &self.relay.flows[way];
            let summary = reporter.finish(end, counted[way]);
            output.write(&summary)?;
            let counters = flow.link.counters;
            let gone = flow.packets + counters.dropped() + flow.too_long;
            output.write(&Outcome {
                label: &summary.label,
                counters,
                too_long: flow.too_long,
                left: (counters.frames + counters.duplicated).saturating_sub(gone),
            })?;
            if let Some(pacing) = flow.lateness.pacing(&summary.label, 0) {
                output.write(&pacing)?;
            }
        }
        for (port, lasting) in self.relay.ports.iter_mut().zip(&mut self.lasting) {
            let drops = lasting.drops(port).all;
            let left = left(port);
            output.write(&Losses { port: port.name().into(), drops, left })?;
            lasting.tell_device(port, output)?;
        }
        run?;
        written.into_iter().try_for_each(|written| Ok(written?))
    }
}
