//! Runs every chapter of `conformance/c` in every way that a program can meet Ringway, and says
//! which of netmap's rules hold.
//!
//! Arguments are names of programs (`life`, `poll`, …): only these are run, and judged.

mod rules;
mod runs;
mod verdict;

use std::{collections::BTreeSet, process::ExitCode};

use rules::Rules;
use runs::Chapter;
use verdict::Verdict;

fn main() -> ExitCode {
    // Whoever passes options means libtest, which is not here.
    let wanted: BTreeSet<String> =
        std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let rules = Rules::read().only(&wanted);
    let chapters = Chapter::all(&wanted);
    let mut verdict = Verdict::new(&rules);
    let runs = runs::run(&chapters);
    for outcome in runs.outcomes {
        verdict.note(outcome);
    }
    print!("{verdict}");
    for way in &runs.untidy {
        println!("{way}: its daemon did not end as it should");
    }
    if verdict.is_good() && runs.untidy.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
