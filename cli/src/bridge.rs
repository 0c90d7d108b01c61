//! `ringway bridge`: forwards between two ports, both ways, without copying where possible.

use crate::course::{self, Course};
use crate::drops::{DropBook, Drops, Losses};
use crate::error::{Error, Result};
use crate::output::Opened;
use crate::report::{Counters, Reporter};
use ringway::{Interest, Port};
use serde::Serialize;
use std::fmt;
use std::time::Instant;

#[derive(clap::Args)]
#[command(after_help = "\
Between ports of one region (pipes and network interfaces of one user) buffers change hands and
nothing is copied. Ports of a switch have regions of their own: there each frame is copied once.
A bridge waits for room rather than drop.

Examples (quote the braces of a pipe's name):
  ringway bridge 'p}0' 'p{1'
  ringway bridge netmap:veth0 netmap:veth2
  ringway bridge vale0:a 'p{0' --json")]
pub struct Args {
    /// One port
    a: String,

    /// The other port
    b: Option<String>,

    #[command(flatten)]
    course: course::Args,
}

/// Slots forwarded from one ring before others have their turn.
const BATCH: usize = 256;

/// Forwards until the time is through or the user stops it.
pub fn run(args: &Args) -> Result<()> {
    let other = args.b.as_ref().filter(|b| **b != args.a).ok_or_else(|| {
        Error::Value(format!(
            "{}: a bridge needs two different ports; one between an interface and its host stack \
             is not supported yet",
            args.a
        ))
    })?;
    let ports = [Port::open(&args.a)?, Port::open(other)?];
    let [a, b] = &ports;
    let books = [DropBook::open(a)?, DropBook::open(b)?];
    let course = Course::begin(&args.course)?;
    course.output.write(&Opened::new(a))?;
    course.output.write(&Opened::new(b))?;
    course.output.write(&Method { zero_copy: a.shares_region_with(b) })?;
    let flow = |from: &Port, to: &Port| Flow {
        reporter: Reporter::new(format!("{} -> {}", from.name(), to.name()), course.start),
        counted: Counters::default(),
        misfits: 0,
        last: course.start,
    };
    let flows = [flow(a, b), flow(b, a)];
    let mut bridge = Bridge { ports, books, flows, course };
    let forwarded = bridge.forward();
    bridge.finish(forwarded)
}

/// How frames get across.
#[derive(Serialize)]
#[serde(tag = "type", rename = "bridge")]
struct Method {
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

struct Bridge {
    ports: [Port; 2],
    books: [DropBook; 2],
    flows: [Flow; 2],
    course: Course,
}

impl Bridge {
    fn forward(&mut self) -> Result<()> {
        loop {
            let [a, b] = &mut self.ports;
            let [there, back] = &mut self.flows;
            let moved = [forward(a, b, there), forward(b, a, back)];
            let now = Instant::now();
            for (flow, moved) in self.flows.iter_mut().zip(moved) {
                if moved > 0 {
                    flow.last = now;
                }
            }
            self.report(now)?;
            if self.course.is_over(now) {
                return Ok(());
            }
            if moved == [0, 0] {
                self.wait()?;
            }
        }
    }

    /// Waits for what each direction lacks: packets to take, or, if there are some, room for them.
    fn wait(&mut self) -> Result<()> {
        let due = self.flows[0].reporter.due();
        let waiting = self.ports.each_mut().map(has_packets);
        let [a, b] = &mut self.ports;
        let lacks = |own: bool, others: bool| match (own, others) {
            (false, false) => Some(Interest::Rx),
            (false, true) => Some(Interest::Both),
            (true, true) => Some(Interest::Tx),
            (true, false) => None,
        };
        let wanted = [(a, lacks(waiting[0], waiting[1])), (b, lacks(waiting[1], waiting[0]))];
        let mut wanted: Vec<_> =
            wanted.into_iter().filter_map(|(port, lack)| Some((port, lack?))).collect();
        self.course.wait(&mut wanted, due)
    }

    /// Drops by direction: not received by the one port, or not sent by the other.
    fn count_drops(&mut self) -> Result<[Drops; 2]> {
        let [a, b] = [0, 1].map(|i| self.books[i].read(&self.ports[i]));
        let (a, b) = (a?, b?);
        for (flow, (from, to)) in self.flows.iter_mut().zip([(a, b), (b, a)]) {
            flow.counted.drops = flow.misfits + from.receiving() + to.sending();
        }
        Ok([a, b])
    }

    fn report(&mut self, now: Instant) -> Result<()> {
        if self.flows[0].reporter.is_due(now) {
            self.count_drops()?;
            for flow in &mut self.flows {
                self.course.output.write(&flow.reporter.tick(now, flow.counted))?;
            }
        }
        Ok(())
    }

    /// The summary is told even if the run has failed.
    fn finish(mut self, run: Result<()>) -> Result<()> {
        let drops = self.count_drops().unwrap_or_default();
        let output = self.course.output;
        for flow in self.flows {
            output.write(&flow.reporter.finish(flow.last, flow.counted))?;
        }
        for (port, drops) in self.ports.iter_mut().zip(drops) {
            let left = port.split().0.iter().map(|tx| tx.pending() as u64).sum();
            output.write(&Losses { port: port.name().into(), drops, left })?;
        }
        run
    }
}

fn has_packets(port: &mut Port) -> bool {
    port.split().1.iter().any(|rx| rx.available() > 0)
}

/// Moves what is there, as far as there is room; returns how many slots that were.
///
/// Ring `i` goes to ring `i` of the other port first, so that flows stay in order, and to others
/// if that is full.
fn forward(from: &mut Port, to: &mut Port, flow: &mut Flow) -> usize {
    let (mut sending, _) = to.split();
    let (_, mut receiving) = from.split();
    let mut moved = 0;
    for (i, rx) in receiving.iter_mut().enumerate() {
        for k in 0..sending.len() {
            let at = (i + k) % sending.len();
            let tx = &mut sending[at];
            let room = rx.available().min(tx.space()).min(BATCH);
            if room == 0 {
                continue;
            }
            for (frame, mut slot) in rx.batch(room).zip(tx.batch(room)) {
                let (bytes, whole) = (frame.len() as u64, !frame.more_fragments());
                if frame.forward(&mut slot) {
                    flow.counted.packets += u64::from(whole);
                    flow.counted.bytes += bytes;
                } else {
                    flow.misfits += 1;
                }
            }
            // The sender's ring first: the buffers of the other are on their way there.
            tx.sync();
            moved += room;
        }
        rx.sync();
    }
    moved
}
