//! `tlem`: emulates a link between two ports.

mod maxima;
pub mod options;
mod session;

use super::log::{brief, ended, log, tell};
use crate::error::{Error, Result};
use crate::opening;
use crate::relay::Relay;
use crate::route::Router;
use crate::run_loop::{self, RunLoop};
use options::{Given, Options, USAGE, Wrong};
use rustix::thread::{CpuSet, sched_setaffinity};
use session::{Order, Role, Server};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Between two status lines.
const STATUS: Duration = Duration::from_secs(1);

pub fn main(args: Vec<String>) -> ExitCode {
    let given = match Given::parse(args.clone()) {
        Ok(given) => given,
        Err(wrong) => return misused(wrong),
    };
    let Some(file) = given.session.clone() else { return begin(given, None) };
    match session::join(Path::new(&file), given.end) {
        Ok(Role::First(server)) => begin(given, Some(server)),
        Ok(Role::Later(server)) => ended(session::ask(Path::new(&file), server, &args)),
        Err(error) => ended(Err(error)),
    }
}

fn misused(wrong: Wrong) -> ExitCode {
    if let Some(wrong) = wrong {
        log!("main", "{wrong}");
    }
    tell!("{USAGE}");
    ExitCode::FAILURE
}

fn begin(given: Given, server: Option<Server>) -> ExitCode {
    match Options::new(given) {
        Ok(options) => ended(run(options, server)),
        Err(wrong) => misused(wrong),
    }
}

/// Emulates the link until it is interrupted, or its session ended.
fn run(options: Options, mut server: Option<Server>) -> Result<()> {
    let [a, b] = &options.ports;
    let given = &options.given;
    place(&given.cores)?;
    let [there, back] = options.gateways;
    // The way there leads to the second port.
    let router = given.route.then(|| Router::new(&options.ports, [back, there])).transpose()?;
    let ports = opening::open_pair([a, b], Default::default())?;
    let mut run_loop = RunLoop::begin(&run_loop::Args::default())?;
    run_loop.sleep(Instant::now() + given.link_wait)?;
    let seed = u64::from(std::process::id());
    let mut relay = Relay::new(ports, options.settings, seed, 1, Instant::now())
        .with_batch(given.burst)
        .with_lag(options.lag);
    relay.router = router;
    let is_told = given.verbose > 0;
    if is_told {
        log!("main", "Ready to go, {a} <-> {b}.");
    }
    if let Some(server) = &mut server {
        server.serve(options.clone(), run_loop.waker()?)?;
    }
    let mut due = Instant::now() + STATUS;
    let (mut last, mut round) = (Instant::now(), Duration::ZERO);
    let mut is_over = false;
    while !run_loop.is_interrupted() && !is_over {
        let now = Instant::now();
        round = round.max(now.saturating_duration_since(last));
        let moved = relay.step(now);
        last = now;
        if now >= due {
            if is_told {
                status(&relay, round);
            }
            (due, round) = (now + STATUS, Duration::ZERO);
        }
        match server.as_mut().and_then(Server::next) {
            Some(Order::Change(settings, done)) => {
                relay.change(*settings);
                // It may not wait any more.
                let _ = done.send(());
            }
            Some(Order::End) => is_over = true,
            None if !moved => {
                relay.wait(&run_loop, due)?;
                last = Instant::now();
            }
            None => (),
        }
    }
    if is_told {
        status(&relay, round);
    }
    Ok(())
}

/// Has this process run on these cores alone, if any are named.
fn place(cores: &[usize]) -> Result<()> {
    if cores.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for core in cores {
        if *core >= CpuSet::MAX_CPU {
            return Err(Error::Value(format!("-C: there is no core {core}; see nproc(1)")));
        }
        set.set(*core);
    }
    sched_setaffinity(None, &set)
        .map_err(|_| Error::Value("-C: none of these cores is here; see nproc(1)".into()))
}

/// What each direction has done. `round`: the longest time between two looks at the ports.
fn status(relay: &Relay, round: Duration) {
    let round = round.as_nanos();
    let [there, back] = [0, 1].map(|way| {
        let flow = &relay.flows[way];
        let counters = &flow.link.counters;
        let dropped = counters.queue_full + counters.no_memory + flow.too_long;
        let unrouted = relay.unrouted(way);
        let came = counters.frames + unrouted.waiting + unrouted.dropped;
        let lost = counters.lost + unrouted.dropped;
        (came, flow.packets, counters.queued_max, dropped, lost)
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
