//! `lb`: shares the packets of one port out over groups of pipes, flow by flow.
//!
//! The engine is [`ringway_balance`], as of `ringway lb`.

pub mod options;
mod stats;

use super::log::{ended, log, say, tell};
use crate::balance::chooser::{Chooser, Method};
use crate::balance::{self, Balancer};
use crate::error::{Error, Result};
use crate::opening;
use crate::run_loop::{self, RunLoop};
use options::{Options, Parsed, USAGE, parse};
use ringway::{Port, PortSpec};
use ringway_balance::{Counters, Output, Share};
use stats::{Moment, Reporter, Sink};
use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Instant;

pub fn main(args: Vec<String>) -> ExitCode {
    let options = match parse(args) {
        Parsed::Run(options) => options,
        Parsed::Help => {
            say!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Parsed::Wrong(why) => {
            tell!("{why}\n{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    ended(run(&options))
}

fn run(options: &Options) -> Result<()> {
    let mut balancer = open(options)?;
    let run_loop = RunLoop::begin(&run_loop::Args::default())?;
    run_loop.sleep(Instant::now() + options.link_wait)?;
    log!("main", "Ready...");
    let now = Instant::now();
    let sinks = [(Sink::Syslog, options.syslog), (Sink::Stdout, options.stdout)];
    let mut reporters: Vec<_> = sinks
        .into_iter()
        .filter_map(|(sink, interval)| Some(Reporter::new(sink, interval?, now)))
        .collect();
    let ran = balance::run(&mut balancer, &run_loop, |balancer, waited, now| {
        waited?;
        for reporter in reporters.iter_mut().filter(|reporter| reporter.due() <= now) {
            reporter.report(now, &moment(balancer, &options.input));
        }
        Ok(reporters.iter().map(Reporter::due).min())
    });
    balancer.close();
    let Counters { forwarded, dropped, .. } = balancer.total();
    let total = forwarded + dropped;
    say!("{forwarded} packets forwarded.  {dropped} packets dropped. Total {total}");
    ran
}

fn open(options: &Options) -> Result<Balancer> {
    let wanted = Port::options().rx_only().extra_bufs(options.extra);
    let pipes = options.groups.iter().map(|group| group.pipes).fold(0, u32::saturating_add);
    let wanted = balance::with_room(wanted, &options.input, pipes)?;
    let mut input = opening::open(&wanted, &options.input, Default::default())?;
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
            let (name, id) = (format!("{base}{{{next}"), *next);
            *next += 1;
            let port = Port::open(&format!("{name}/xT@{}", input.mem_id()))?;
            if !port.shares_region_with(&input) {
                return Err(Error::Value(format!(
                    "{name}: not in the memory of {}; close what has it open first",
                    options.input
                )));
            }
            log!("main", "opened pipe {name}");
            Ok(Output::new(port, name, id, &input))
        });
        groups.push(pipes.collect::<Result<Vec<_>>>()?);
    }
    let share = Share::One(Chooser::new(Method::Flow, groups[0].len()));
    Ok(Balancer::new(input, stock, groups, share).with_batch(options.batch, options.busy))
}

fn moment<'b>(balancer: &'b Balancer, input: &'b str) -> Moment<'b> {
    Moment {
        input,
        pipes: balancer.outputs().collect(),
        received: balancer.received(),
        free: balancer.free_buffers(),
    }
}
