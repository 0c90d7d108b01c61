//! The laboratory's program: see `lib.rs`.
//!
//! ```text
//! ringway-lab run [--kernel SERIES]... [--card CARD]... [CHECK | MODE]...
//!                       boots guests; what they tell is kept in lab/reports
//! ringway-lab run ... --script FILE                  runs a script in them instead
//! ringway-lab table                                                  prints docs/kernels.md from what is kept
//! ringway-lab guest CARD [CHECK | MODE]...                    what a guest runs
//! ```
#![forbid(unsafe_code)]

use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ringway_lab::card::{CARDS, Card};
use ringway_lab::guest;
use ringway_lab::kernel::Kernel;
use ringway_lab::machine::Machine;
use ringway_lab::report::{Report, Verdict};
use ringway_lab::table;

/// Debian 12's own, its backports', and those of Debian 13's backports.
const SERIES: [&str; 5] = ["6.1", "6.12", "6.18", "7.2", "7.3"];

/// Of a guest: many times what it takes on a machine with nothing else to do.
const LIMIT: Duration = Duration::from_secs(1800);

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((command, rest)) if command == "run" => run(rest),
        Some((command, [])) if command == "table" => Report::all().map(|reports| {
            print!("{}", table::document(&reports));
            true
        }),
        Some((command, [card, option, script])) if command == "guest" && option == "--script" => {
            card_named(card).map(|card| {
                guest::run_script(card, Path::new(script));
                true
            })
        }
        Some((command, [card, checks @ ..])) if command == "guest" => {
            card_named(card).map(|card| {
                guest::run(card, checks);
                true
            })
        }
        _ => Err("usage: ringway-lab run [--kernel SERIES]... [--card CARD]... [CHECK | MODE]..., or table".into()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("ringway-lab: {problem}");
            ExitCode::from(2)
        }
    }
}

fn card_named(name: &str) -> Result<Card, String> {
    let names = || CARDS.map(|card| card.name).join(", ");
    Card::named(name).ok_or_else(|| format!("no card {name}; there are {}", names()))
}

/// Boots a guest for each kernel and card. Whether all checks passed.
fn run(arguments: &[String]) -> Result<bool, String> {
    let (mut series, mut cards, mut checks) = (Vec::new(), Vec::new(), Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--kernel" => series.push(arguments.next().ok_or("--kernel SERIES")?.as_str()),
            "--card" => cards.push(card_named(arguments.next().ok_or("--card CARD")?)?),
            "--script" => {
                let script = Path::new(arguments.next().ok_or("--script FILE")?);
                let script = script.canonicalize();
                let script = script.map_err(|e| format!("the script: {e}"))?;
                checks = vec!["--script".into(), script.display().to_string()];
            }
            one if guest::names().chain(guest::modes()).any(|name| name == one) => {
                checks.push(one.to_string());
            }
            other => {
                let names: Vec<_> = guest::names().chain(guest::modes()).collect();
                return Err(format!("no check or mode {other}; there are {}", names.join(", ")));
            }
        }
    }
    if series.is_empty() {
        series.extend(SERIES);
    }
    if cards.is_empty() {
        cards.extend(CARDS);
    }
    let kernels: Vec<Kernel> =
        series.into_iter().map(Kernel::of_series).collect::<Result<_, _>>()?;
    let program = env::current_exe().map_err(|e| e.to_string())?;
    let mut all_passed = true;
    for kernel in &kernels {
        for &card in &cards {
            let begun = Instant::now();
            println!("Linux {}, {}", kernel.release, card.name);
            let machine =
                Machine { kernel, card, program: program.clone(), checks: &checks, limit: LIMIT };
            let report = machine.run(|entry| {
                let verdict = match entry.verdict {
                    Verdict::Pass => "pass",
                    Verdict::Fail => "FAIL",
                    Verdict::Refused => "refused",
                };
                let (mode, check) = (&entry.mode, &entry.check);
                println!(
                    "  {verdict:<8}{mode:<9}{check:<12}{:>3} s  {}",
                    entry.seconds, entry.detail
                );
            })?;
            println!("  {} s", begun.elapsed().as_secs());
            all_passed &= report.failures().is_empty();
            // A choice of checks is no row of the table.
            if checks.is_empty() {
                report.keep()?;
            }
        }
    }
    Ok(all_passed)
}
