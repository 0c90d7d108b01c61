//! `lb`: shares the packets of one port out over groups of pipes, flow by flow.
//!
//! A packet goes to one pipe of the first group. When that pipe's consumer has released it, it
//! goes on to the next group, so that each group sees all packets. Nothing is copied: buffers
//! are exchanged, all within the input's region.

pub mod options;
mod pipe;
mod stats;

use super::ended;
use super::log::{log, say};
use crate::error::{Error, Result};
use crate::run_loop::{self, RunLoop};
use options::{Options, Parsed, USAGE, parse};
use pipe::{Counters, Parcel, Pipe, Stock};
use ringway::{HASHED_BYTES, Interest, Port, PortSpec, flow_hash};
use stats::{Moment, Received, Reporter, Sink};
use std::collections::HashMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Buffers taken at once from the longest queue when there are no more, and those that it keeps.
const REVOKED: usize = 150;
const KEPT: usize = 64;
/// Between two looks when nothing happens.
const PATIENCE: Duration = Duration::from_secs(1);

pub fn main(args: Vec<String>) -> ExitCode {
    let options = match parse(args) {
        Parsed::Run(options) => options,
        Parsed::Help => {
            say!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Parsed::Wrong(why) => {
            eprintln!("{why}\n{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    ended(run(&options))
}

fn run(options: &Options) -> Result<()> {
    let mut balancer = Balancer::open(options)?;
    let run_loop = RunLoop::begin(&run_loop::Args::default())?;
    run_loop.sleep(Instant::now() + options.link_wait)?;
    log!("main", "Ready...");
    let now = Instant::now();
    let sinks = [(Sink::Syslog, options.syslog), (Sink::Stdout, options.stdout)];
    let mut reporters: Vec<_> = sinks
        .into_iter()
        .filter_map(|(sink, interval)| Some(Reporter::new(sink, interval?, now)))
        .collect();
    let ran = balancer.balance(options, &run_loop, &mut reporters);
    balancer.close();
    let Counters { forwarded, dropped, .. } = balancer.total();
    let total = forwarded + dropped;
    say!("{forwarded} packets forwarded.  {dropped} packets dropped. Total {total}");
    ran
}

struct Balancer {
    input: Port,
    name: String,
    groups: Vec<Vec<Pipe>>,
    stock: Stock,
    received: Received,
}

impl Balancer {
    fn open(options: &Options) -> Result<Balancer> {
        let mut input = Port::options().rx_only().extra_bufs(options.extra).open(&options.input)?;
        let stock = input.take_extra_bufs();
        log!("main", "obtained {} extra buffers", stock.len());
        let own = super::portname::with_prefix(&PortSpec::parse(&options.input)?.name);
        // Groups with one name count on where the last one ended.
        let mut next: HashMap<String, u32> = HashMap::new();
        let mut groups = Vec::new();
        for group in &options.groups {
            let base = group.base.as_ref().unwrap_or(&own);
            let next = next.entry(base.clone()).or_default();
            let pipes = (0..group.pipes).map(|_| {
                let pipe = Pipe::open(base, *next, input.mem_id())?;
                *next += 1;
                if !pipe.port.shares_region_with(&input) {
                    return Err(Error::Value(format!(
                        "{}: not in the memory of {}; close what has it open first",
                        pipe.name, options.input
                    )));
                }
                log!("main", "opened pipe {}", pipe.name);
                Ok(pipe)
            });
            groups.push(pipes.collect::<Result<Vec<_>>>()?);
        }
        Ok(Balancer {
            input,
            name: options.input.clone(),
            groups,
            stock,
            received: Received::default(),
        })
    }

    fn balance(
        &mut self,
        options: &Options,
        run_loop: &RunLoop,
        reporters: &mut [Reporter],
    ) -> Result<()> {
        while !run_loop.is_interrupted() {
            let moved = self.receive(options.batch) + self.hand_over(options.busy);
            let now = Instant::now();
            let due = reporters.iter().map(Reporter::due).min();
            if due.is_some_and(|due| due <= now) {
                self.report(reporters, now);
            } else if moved == 0 && !options.busy {
                let until = due.unwrap_or(now + PATIENCE);
                self.wait(run_loop, until)?;
            }
        }
        Ok(())
    }

    /// Takes up to `batch` packets in and gives each to a pipe of the first group; returns the
    /// slots that were taken.
    fn receive(&mut self, batch: u32) -> u32 {
        let (mut taken, mut left) = (0, batch);
        let mut bytes = [0; HASHED_BYTES];
        for ring in 0..self.input.rx_rings() {
            let mut rx = self.input.rx(ring);
            rx.sync();
            let mut slots = rx.slots();
            let (mut at, end) = (0, slots.held());
            while at < end && left > 0 {
                let read = slots.read(at, &mut bytes);
                let flow = flow_hash(&bytes[..read]);
                self.received.packets += 1;
                self.received.non_ip += u64::from(!flow.is_ip);
                let parcel = Parcel::find(&slots, at, end, flow.hash);
                let to = choose(flow.hash, self.groups[0].len());
                if self.groups[0][to].is_congested(parcel.count) {
                    settle(&mut self.groups, &mut self.stock, 0, to, true);
                }
                if self.groups[0][to].is_congested(parcel.count) {
                    replenish(&mut self.groups, &mut self.stock, parcel.count as usize);
                }
                self.groups[0][to].take(&mut slots, parcel, &mut self.stock);
                at += parcel.count;
                left -= 1;
            }
            slots.advance(at);
            taken += at;
        }
        taken
    }

    /// Gives the consumers what is theirs, and the next group what they have released; returns
    /// the slots that moved.
    fn hand_over(&mut self, always: bool) -> u32 {
        let mut moved = 0;
        for at in 0..self.groups.len() {
            for pipe in 0..self.groups[at].len() {
                let from = &self.groups[at][pipe];
                let always = always || from.queued() > 0 || from.is_busy();
                moved += settle(&mut self.groups, &mut self.stock, at, pipe, always);
            }
        }
        // The pipes first: buffers of theirs are on their way back.
        for ring in 0..self.input.rx_rings() {
            self.input.rx(ring).sync();
        }
        moved
    }

    /// Waits for packets, and for room where some are queued or are to be passed on.
    fn wait(&mut self, run_loop: &RunLoop, until: Instant) -> Result<()> {
        let last = self.groups.len() - 1;
        let mut wanted = vec![(&mut self.input, Interest::Rx)];
        for (at, group) in self.groups.iter_mut().enumerate() {
            for pipe in group {
                if pipe.queued() > 0 || (at < last && pipe.is_busy()) {
                    pipe.await_release();
                    wanted.push((&mut pipe.port, Interest::Tx));
                }
            }
        }
        run_loop.wait(&mut wanted, until)
    }

    fn report(&self, reporters: &mut [Reporter], now: Instant) {
        let moment = Moment {
            input: &self.name,
            pipes: self.groups.iter().flatten().collect(),
            received: self.received,
            free: self.stock.len(),
        };
        for reporter in reporters.iter_mut().filter(|reporter| reporter.due() <= now) {
            reporter.report(now, &moment);
        }
    }

    fn total(&self) -> Counters {
        let mut total = Counters::default();
        self.groups.iter().flatten().for_each(|pipe| total += pipe.counters);
        total
    }

    /// Returns all buffers to where they came from.
    fn close(&mut self) {
        self.groups.iter_mut().flatten().for_each(|pipe| pipe.abandon(&mut self.stock));
        self.input.return_extra_bufs(self.stock.drain(..));
    }
}

/// Has a pipe and its consumer exchange what they have for each other, passes on to the next
/// group what was released, and fills the room with what waits; returns the slots that moved.
fn settle(
    groups: &mut [Vec<Pipe>],
    stock: &mut Stock,
    group: usize,
    pipe: usize,
    always: bool,
) -> u32 {
    groups[group][pipe].sync(always);
    if group + 1 < groups.len() {
        let released = groups[group][pipe].new_releases();
        let congested = groups[group + 1].iter().any(|next| next.is_congested(released));
        if released > 0 && congested {
            replenish(groups, stock, released as usize);
        }
    }
    let (before, after) = groups.split_at_mut(group + 1);
    let this = &mut before[group][pipe];
    let mut moved = this.released(|slots, parcel| {
        if let Some(next) = after.first_mut() {
            let to = choose(parcel.hash, next.len());
            next[to].take(slots, parcel, stock);
        }
    });
    moved += this.drain(stock);
    this.sync(false);
    moved
}

/// One of `count`, as even as a remainder, without the division.
fn choose(hash: u32, count: usize) -> usize {
    ((u64::from(hash) * count as u64) >> 32) as usize
}

/// Takes buffers from the longest queue if there are too few.
fn replenish(groups: &mut [Vec<Pipe>], stock: &mut Stock, wanted: usize) {
    if stock.len() >= wanted {
        return;
    }
    if let Some(longest) = groups.iter_mut().flatten().max_by_key(|pipe| pipe.queued()) {
        let count = longest.queued().saturating_sub(KEPT).min(REVOKED);
        longest.revoke(count, stock);
    }
}
