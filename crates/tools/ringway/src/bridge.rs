//! `ringway bridge`: forwards between two ports, both ways, without copying where possible.

use crate::capture_file;
use crate::drops::{Losses, PortDrops};
use crate::error::{Error, Result};
use crate::flush::{Drain, left};
use crate::forward::{Moved, Path, wait};
use crate::lasting::{Lasting, outlive, until};
use crate::opened::{Opened, shown_name};
use crate::opening;
use crate::port_notes;
use crate::report::{Counters, Reporter};
use crate::run_loop::{self, RunLoop};
use ringway::{FileSpec, Port, PortSpec};
use serde::Serialize;
use std::fmt;
use std::time::Instant;

#[derive(clap::Args)]
#[command(after_help = "\
Between ports of one region (pipes and network interfaces of one user) buffers change hands and
nothing is copied. Ports of a switch have regions of their own: there each frame is copied once.
A bridge waits for room rather than drop; frames that are longer than a buffer of the other port are
dropped, and counted as too long: `ringway shape` cuts them into several. A monitor (vale0:a/rt), or a
port with /R, sends nothing: then frames go one way, and the other port only sends.

Examples (quote the braces of a pipe's name):
  ringway bridge 'p}0' 'p{1'
  ringway bridge netmap:veth0 netmap:veth2
  ringway bridge netmap:veth0                 as if nothing were between it and its stack
  ringway bridge file:in.pcapng vale0:a       sends a capture file; ends with it
  ringway bridge vale0:a/rt file:out.pcapng   records; a file that is there is read, unless it says
                                              file:out.pcapng@write
  ringway bridge vale0:a 'p{0' --json")]
pub struct Args {
    /// One port
    a: String,

    /// The other port; the host's stack behind the interface if there is none
    b: Option<String>,

    #[command(flatten)]
    opening: opening::Args,

    #[command(flatten)]
    run_loop: run_loop::Args,
}

/// The name of the other port.
fn other_end(args: &Args) -> Result<String> {
    let interface = match FileSpec::is_file(&args.a) {
        true => None,
        false => Some(PortSpec::parse(&args.a)?).filter(opening::is_interface),
    };
    if let Some(b) = args.b.as_ref().filter(|b| **b != args.a || interface.is_none()) {
        return Ok(b.clone());
    }
    match interface {
        Some(spec) => {
            if !opening::is_whole(&spec) {
                let name = spec.name;
                return Err(Error::Value(format!(
                    "{}: the stack is behind the interface as a whole; write netmap:{name}, or name both ports",
                    args.a
                )));
            }
            // It has the interface's memory and mode; what is chosen from it are the frames of the wire.
            let is_choice =
                |option: &str| option.starts_with("filter=") || option.starts_with("sample=");
            Ok(opening::renamed(&args.a, '^', |option| !is_choice(option)))
        }
        None => Err(Error::Value(format!(
            "{}: only a network interface has a stack behind it; name another port to bridge with",
            args.a
        ))),
    }
}

/// Forwards until the time is through or the user stops it.
pub fn run(args: &Args) -> Result<()> {
    let other = &other_end(args)?;
    let ports = opening::open_pair([&args.a, other], args.opening)?;
    let [a, b] = &ports;
    port_notes::receiving(a, &args.a);
    port_notes::receiving(b, other);
    let lasting = [Lasting::begin(a)?, Lasting::begin(b)?];
    let run_loop = RunLoop::begin(&args.run_loop)?;
    run_loop.output.write(&Opened::new(a))?;
    run_loop.output.write(&Opened::new(b))?;
    run_loop.output.write(&Method { zero_copy: a.shares_region_with(b) })?;
    let names = [shown_name(a), shown_name(b)];
    let flow = |from: &str, to: &str| Flow {
        reporter: Reporter::new(format!("{from} -> {to}"), run_loop.start),
        counted: Counters::default(),
        misfits: 0,
        last: run_loop.start,
    };
    let flows = [flow(&names[0], &names[1]), flow(&names[1], &names[0])];
    let paths = [Path::default(), Path::default()];
    let mut bridge = Bridge { ports, paths, lasting, flows, run_loop };
    let mut forwarded = bridge.forward();
    if capture_file::is_end(&forwarded) {
        forwarded = capture_file::ended(forwarded).and_then(|()| bridge.drain());
    }
    bridge.finish(forwarded)
}

/// How frames get across.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "bridge")]
pub struct Method {
    zero_copy: bool,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.zero_copy {
            true => "bridging without copying: both ports are in one region",
            false => "bridging by copying: the ports are in different regions",
        })
    }
}

/// One direction: number 0 is from port 0 to port 1, number 1 the other way.
struct Flow {
    reporter: Reporter,
    counted: Counters,
    /// Frames that did not fit a buffer of the port they were to go to.
    misfits: u64,
    last: Instant,
}

impl Flow {
    fn count(&mut self, moved: &Moved, now: Instant) {
        self.counted.packets += moved.packets;
        self.counted.bytes += moved.bytes;
        self.misfits += moved.misfits;
        if moved.slots > 0 {
            self.last = now;
        }
    }
}

struct Bridge {
    ports: [Port; 2],
    paths: [Path; 2],
    lasting: [Lasting; 2],
    flows: [Flow; 2],
    run_loop: RunLoop,
}

impl Bridge {
    fn forward(&mut self) -> Result<()> {
        loop {
            let [a, b] = &mut self.ports;
            let [there, back] = &mut self.paths;
            let moved = [there.forward(a, b), back.forward(b, a)];
            let now = Instant::now();
            for (flow, moved) in self.flows.iter_mut().zip(&moved) {
                flow.count(moved, now);
            }
            self.report(now)?;
            if self.run_loop.is_over(now) {
                return Ok(());
            }
            if moved.iter().all(|moved| moved.slots == 0) {
                self.wait()?;
            }
        }
    }

    fn wait(&mut self) -> Result<()> {
        let Bridge { ports, lasting, run_loop, .. } = self;
        let due = until(self.flows[0].reporter.due(), &*lasting);
        let waited = wait(ports, run_loop, due);
        outlive(waited, lasting.iter_mut().zip(ports), run_loop)?;
        Ok(())
    }

    /// Waits until what was sent has been taken: a file that was sent has ended, and so does its port.
    fn drain(&mut self) -> Result<()> {
        for index in 0..self.ports.len() {
            let mut drain = Drain::new(self.ports[index].tx_rings());
            loop {
                let due = self.flows[0].reporter.due();
                if drain.step(&mut self.ports[index], &self.run_loop, due)? {
                    break;
                }
                self.report(Instant::now())?;
            }
        }
        Ok(())
    }

    /// Drops by direction: not received by the one port, or not sent by the other.
    fn count_drops(&mut self) -> [PortDrops; 2] {
        let [a, b] = [0, 1].map(|i| self.lasting[i].drops(&self.ports[i]));
        for (flow, (from, to)) in self.flows.iter_mut().zip([(a, b), (b, a)]) {
            flow.counted.drops = flow.misfits + from.receiving + to.sending;
            flow.counted.drops_either_way = from.either + to.either;
        }
        [a, b]
    }

    fn report(&mut self, now: Instant) -> Result<()> {
        if self.flows[0].reporter.is_due(now) {
            self.count_drops();
            for flow in &mut self.flows {
                self.run_loop.output.write(&flow.reporter.tick(now, flow.counted))?;
            }
        }
        Ok(())
    }

    /// The summary is told even if the run has failed.
    fn finish(mut self, run: Result<()>) -> Result<()> {
        let written = self.ports.each_mut().map(Port::finish_file);
        let drops = self.count_drops();
        let output = self.run_loop.output;
        for flow in &mut self.flows {
            output.write(&flow.reporter.finish(flow.last, flow.counted))?;
        }
        let misfits = [self.flows[1].misfits, self.flows[0].misfits];
        for ((port, drops), misfits) in self.ports.iter_mut().zip(drops).zip(misfits) {
            let (mut drops, left) = (drops.all, left(port));
            drops.too_long += misfits;
            output.write(&Losses { port: shown_name(port), drops, left })?;
        }
        for (port, lasting) in self.ports.iter().zip(&self.lasting) {
            lasting.tell_device(port, output)?;
        }
        run?;
        written.into_iter().try_for_each(|written| Ok(written?))
    }
}
