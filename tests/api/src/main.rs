//! The public API of the crate `ringway`, held against the record `crates/client/ringway/api.txt`: what it has itself,
//! and what it hands on of other crates. `make lint` compares, `make api` records.
#![forbid(unsafe_code)]

mod listing;
mod rustdoc;

use std::{collections::BTreeSet, fs, process::ExitCode};

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/client/ringway/api.txt");

fn main() -> ExitCode {
    match run(std::env::args().nth(1).as_deref() == Some("record")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(record: bool) -> Result<(), String> {
    let is = listing::listing()?;
    if record {
        let text: String = is.iter().map(|line| format!("{line}\n")).collect();
        return fs::write(RECORD, text).map_err(|e| format!("{RECORD}: {e}"));
    }
    let record = fs::read_to_string(RECORD).map_err(|e| format!("{RECORD}: {e}"))?;
    let was: BTreeSet<String> = record.lines().map(str::to_owned).collect();
    let gone: Vec<_> = was.difference(&is).map(|line| format!("- {line}\n")).collect();
    let new: Vec<_> = is.difference(&was).map(|line| format!("+ {line}\n")).collect();
    let advice = match (gone.is_empty(), new.is_empty()) {
        (true, true) => return Ok(()),
        (true, false) => "It has more than before: `make api` records that.",
        (false, _) => {
            "What is gone or changed (-) breaks programs: docs/stability.md says when that may be. `make api` records it; \
             CHANGELOG.md tells what to write in its place."
        }
    };
    Err(format!(
        "The public API of the crate ringway has changed.\n{}{}{advice}",
        gone.concat(),
        new.concat()
    ))
}
