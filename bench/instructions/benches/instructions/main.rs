//! Instructions a packet, held against those that are recorded: a gate for speed that gives the
//! same answer on every machine.
//!
//! Each path that packets take through Ringway's own code is a [case](cases). The program runs
//! itself under callgrind once for each, counts the instructions of the [counted] parts, in Ringway's own code and in the
//! whole process, and the system calls, and compares with `record.toml`. A [program in C](netmap_calls) under the preload
//! library is counted in the same way.
//!
//! | arguments | what it does |
//! | --- | --- |
//! | none | measures, and fails when a case has grown by more than 3 %, or makes more calls |
//! | `record` | measures, and writes the record |
//! | `case NAME` | runs a case: what callgrind is given |
//!
//! Nothing that is counted depends on time, threads, addresses or the kernel. The compiler matters, and for the whole process
//! libc: with others than the recorded ones that is said, and more is allowed.
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

mod callgrind;
mod cases;
mod machine;
mod netmap_calls;
mod packet_mode;
mod pcap;
mod pfring;
mod ports;
mod queues;
mod record;
mod switch;
mod tpacket4;
mod usdpaa_reflector;

use std::{env, process::ExitCode};

use cases::{CASES, PRELOADED};
use netmap_calls::NetmapCalls;
use record::Record;

/// Runs `work`; what it executes is counted.
///
/// callgrind finds the function by its name.
#[inline(never)]
fn counted<R>(work: impl FnOnce() -> R) -> R {
    work()
}

fn main() -> ExitCode {
    // cargo adds `--bench`.
    let arguments: Vec<String> = env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        [] => measure().and_then(|now| Record::read()?.compare(&now)),
        ["record"] => measure().and_then(|now| now.write()),
        ["case", name] => return run(name),
        _ => Err("usage: instructions [record | case NAME]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(name: &str) -> ExitCode {
    let Some(case) = CASES.iter().find(|case| case.name == name) else {
        eprintln!("no case {name}");
        return ExitCode::FAILURE;
    };
    (case.run)();
    ExitCode::SUCCESS
}

fn measure() -> Result<Record, String> {
    let mut counts = Vec::new();
    let own = callgrind::this_program()?;
    let program = own.display().to_string();
    for case in CASES {
        let command = [program.as_str(), "case", case.name];
        counts.push((case.name, callgrind::count(case.name, &own, &command, &[])?));
    }
    let preloaded = NetmapCalls::build()?;
    for &(name, way, batch) in PRELOADED {
        counts.push((name, preloaded.count(name, way, batch)?));
    }
    Ok(Record::new(&counts))
}
