//! Runs the C programs that check an API's rules, in the ways that a program can meet Ringway, and says which of the
//! rules hold.
//!
//! ```text
//!   rules.rs: what the rules are --+
//!   ways.rs: how a program runs ---+--> runs.rs: the programs, in these ways --> verdict.rs: the table
//! ```
//!
//! A [`Book`] is one API's: a folder with a program for each chapter and a list of rules that no program can check.

#![forbid(unsafe_code)]

mod rules;
mod runs;
mod verdict;
mod ways;

use std::{collections::BTreeSet, process::ExitCode};

use ringway_tests::c::Library;

use rules::Rules;
use runs::Chapter;
use verdict::Verdict;

/// One API's rules, and how its programs are built and run. Paths are within this crate.
pub struct Book {
    /// What its rules' numbers begin with: `S-`.
    pub prefix: &'static str,
    /// Where the rules are: `RULE WORDS` a line, or in a document `- **RULE** WORDS`.
    pub rules: &'static str,
    /// Rules that no program can check, and why.
    pub not_covered: &'static str,
    /// The folder of the programs.
    pub programs: &'static str,
    /// Chapters of which it matters how their programs run: they run in every way, and all others in as many ways
    /// as it takes for every two settings to meet.
    pub thorough: &'static [&'static str],
    /// The first argument of the programs, each once.
    pub variants: &'static [&'static str],
    /// Whether daemons know nothing of the variants, as of an API's generations: then each variant need not meet
    /// each kind of daemon.
    pub variants_end_in_the_process: bool,
    /// How programs come to use the library.
    pub libraries: &'static [Library],
    /// Arguments for the linker, where they are linked to it.
    pub linked: &'static [&'static str],
    /// What is installed for them beside what a home has anyway: files, with the packages that they are built from.
    pub artefacts: &'static [(&'static str, &'static str)],
}

/// Runs a book, or the programs of it that the command line names; prints the table.
pub fn run(book: &Book) -> ExitCode {
    // Options are for libtest, which this program does not use.
    let wanted: BTreeSet<String> =
        std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let rules = Rules::read(book).only(&wanted);
    let chapters = Chapter::all(book, &wanted);
    let mut verdict = Verdict::new(&rules);
    let runs = runs::run(book, &chapters);
    for outcome in runs.outcomes {
        verdict.note(outcome);
    }
    verdict.note_skipped();
    print!("{verdict}");
    for way in &runs.untidy {
        println!("{way}: its daemon did not end as it should");
    }
    if verdict.is_good() && runs.untidy.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
