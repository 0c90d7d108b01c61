//! `bridge`: forwards between two ports, or between an interface and its host stack.

use super::getopt::{Arg, Getopt, number};
use super::log::{ended, log, tell};
use crate::error::Result;
use crate::forward::{Moved, Path, has_packets, wait};
use crate::opening;
use crate::run_loop::{self, RunLoop};
use ringway::{Interest, Port};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: bridge [-v] [-i ifa] [-i ifb] [-b burst] [-w wait_time] [-L] [-c] \
                     [ifa [ifb [burst]]]";

/// The options, as getopt is told of them.
pub const LETTERS: &str = "hb:ci:vw:L";

/// How long nothing may happen before that is said.
const PATIENCE: Duration = Duration::from_millis(2500);

struct Options {
    a: String,
    b: String,
    burst: i64,
    link_wait: i64,
    loop_back: bool,
    copy: bool,
    verbose: u32,
}

pub fn main(args: Vec<String>) -> ExitCode {
    let Some(options) = parse(args) else {
        tell!("{USAGE}");
        return ExitCode::FAILURE;
    };
    ended(run(&options))
}

/// `None` where usage is to be shown.
fn parse(args: Vec<String>) -> Option<Options> {
    let mut options = Options {
        a: String::new(),
        b: String::new(),
        burst: 1024,
        link_wait: 4,
        loop_back: false,
        copy: false,
        verbose: 0,
    };
    let (mut named, mut operands) = (Vec::new(), Vec::new());
    for arg in Getopt::new(LETTERS, args) {
        match arg {
            Ok(Arg::Opt('b', value)) => options.burst = number(&value),
            Ok(Arg::Opt('c', _)) => options.copy = true,
            Ok(Arg::Opt('i', name)) if named.len() < 2 => named.push(name),
            Ok(Arg::Opt('i', name)) => log!("main", "{name} ignored, already have 2 interfaces"),
            Ok(Arg::Opt('v', _)) => options.verbose += 1,
            Ok(Arg::Opt('w', value)) => options.link_wait = number(&value),
            Ok(Arg::Opt('L', _)) => options.loop_back = true,
            Ok(Arg::Opt(..)) => return None,
            Ok(Arg::Operand(operand)) => operands.push(operand),
            Err(wrong) => {
                tell!("bridge: {wrong}");
                return None;
            }
        }
    }
    // Operands take the places that options have left.
    let [a, b, burst] = [0, 1, 2].map(|at| operands.get(at));
    let [first, second] = [named.first().or(a), named.get(1).or(b)];
    options.a = first?.clone();
    options.b = second.unwrap_or(&options.a).clone();
    if let Some(burst) = burst {
        options.burst = number(burst);
    }
    if !(1..=8192).contains(&options.burst) {
        log!("main", "invalid burst {}, set to 1024", options.burst);
        options.burst = 1024;
    }
    if options.link_wait > 100 {
        log!("main", "invalid wait_time {}, set to 4", options.link_wait);
        options.link_wait = 4;
    }
    Some(options)
}

/// The two sides of the bridge, or a port that is both.
enum Sides {
    Two(Box<[Port; 2]>),
    Same(Box<Port>),
}

impl Sides {
    fn open(options: &Options) -> Result<Sides> {
        let Options { a, b, .. } = options;
        Ok(match (a == b, options.loop_back) {
            (true, true) => {
                log!("main", "same interface, loopback");
                let port = opening::open_both_ways(&Port::options(), a, Default::default())?;
                Sides::Same(Box::new(port))
            }
            // Host rings on one side, those of the interface on the other.
            (true, false) => Sides::two(&format!("{a}^"), b)?,
            (false, _) => Sides::two(a, b)?,
        })
    }

    fn two(a: &str, b: &str) -> Result<Sides> {
        let ports = opening::open_pair([a, b], Default::default())?;
        Ok(Sides::Two(Box::new(ports)))
    }

    fn ports(&self) -> [&Port; 2] {
        match self {
            Sides::Two(ports) => ports.each_ref(),
            Sides::Same(port) => [port, port],
        }
    }

    fn forward(&mut self, [there, back]: &mut [Path; 2]) -> [Moved; 2] {
        match self {
            Sides::Two(ports) => {
                let [a, b] = &mut **ports;
                [there.forward(a, b), back.forward(b, a)]
            }
            Sides::Same(port) => {
                let (mut sending, mut receiving) = port.split();
                [there.forward_rings(&mut receiving, &mut sending), Moved::default()]
            }
        }
    }

    fn wait(&mut self, run_loop: &RunLoop, until: Instant) -> Result<()> {
        match self {
            Sides::Two(ports) => wait(ports, run_loop, until),
            Sides::Same(port) => {
                let lack = if has_packets(port) { Interest::Tx } else { Interest::Rx };
                run_loop.wait(&mut [(port, lack)], until)
            }
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let mut sides = Sides::open(options)?;
    let [a, b] = sides.ports();
    let zero_copy = !options.copy && a.shares_region_with(b);
    log!("main", "------- zerocopy {}supported", if zero_copy { "" } else { "NOT " });
    let run_loop = RunLoop::begin(&run_loop::Args::default())?;
    let wait_time = options.link_wait.max(0) as u64;
    log!("main", "Wait {wait_time} secs for link to come up...");
    run_loop.sleep(Instant::now() + Duration::from_secs(wait_time))?;
    let [a, b] = sides.ports().map(|port| {
        let first = port.rx_index(0).unwrap_or(0);
        format!("{} {first:#x}/{}", port.name(), port.rx_rings())
    });
    log!("main", "Ready to go, {a} <-> {b}.");

    let mut paths = [(); 2].map(|()| Path::new(options.burst as usize, options.copy));
    while !run_loop.is_interrupted() {
        let moved = sides.forward(&mut paths);
        let slots = moved[0].slots + moved[1].slots;
        if slots > 0 {
            verbose(options, &moved);
            continue;
        }
        let until = Instant::now() + PATIENCE;
        sides.wait(&run_loop, until)?;
        if Instant::now() >= until && !run_loop.is_interrupted() {
            log!("main", "poll timeout");
        }
    }
    Ok(())
}

fn verbose(options: &Options, moved: &[Moved; 2]) {
    let names = [&options.a, &options.b];
    for (moved, name) in moved.iter().zip(names) {
        if options.verbose > 0 && moved.slots > 0 {
            log!("process_rings", "{name}: moved {} slots, {} packets", moved.slots, moved.packets);
        }
        if options.verbose > 1 {
            log!("process_rings", "{name}: {} bytes, {} too long", moved.bytes, moved.misfits);
        }
    }
}
