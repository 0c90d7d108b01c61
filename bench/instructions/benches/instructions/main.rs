//! Instructions a packet, held against those that are recorded: a gate for speed that gives the
//! same answer on every machine.
//!
//! Each path that packets take through Ringway's own code is a [case](cases). The program runs
//! itself under callgrind once for each, counts the instructions of the [counted] parts, without
//! those of libc (which chooses them by the processor), and compares with `record.toml`.
//!
//! | arguments | what it does |
//! | --- | --- |
//! | none | measures, and fails when a case has grown by more than 3 % |
//! | `record` | measures, and writes the record |
//! | `case NAME` | runs a case: what callgrind is given |
//!
//! Nothing that is counted depends on time, threads, addresses or the kernel. The compiler matters:
//! with another than the recorded one, differences are shown and are no failure.
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

mod callgrind;
mod cases;
mod pcap;
mod pfring;
mod queues;
mod record;
mod tpacket4;
mod usdpaa_reflector;

use std::{env, process::ExitCode};

use cases::CASES;
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
    let counts = CASES.iter().map(|case| {
        let instructions = callgrind::instructions(case.name)?;
        Ok((case.name.to_owned(), instructions as f64 / f64::from(cases::PACKETS)))
    });
    Ok(Record::new(counts.collect::<Result<_, String>>()?))
}
