//! netmap's rules. Arguments are names of programs (`life`, `poll`, …): only these are run, and judged.

use std::process::ExitCode;

use ringway_conformance::{Book, run};
use ringway_tests::c::Library;

fn main() -> ExitCode {
    run(&Book {
        prefix: "S-",
        rules: "rules.txt",
        not_covered: "not-covered.txt",
        programs: "c",
        // Generations of the API.
        thorough: &["life", "poll", "legacy", "ctrl", "extmem"],
        variants: &["14", "15"],
        variants_end_in_the_process: true,
        libraries: &[Library::Preloaded, Library::Linked],
        linked: &["-lringway_netmap"],
        artefacts: &[],
    })
}
