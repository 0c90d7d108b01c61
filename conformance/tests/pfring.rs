//! PF_RING's rules (`docs/pfring-rules.md`). Arguments are names of programs (`receive`, `rules`, …): only these are
//! run, and judged.

use std::process::ExitCode;

use ringway_conformance::{Book, run};
use ringway_tests::c::Library;

fn main() -> ExitCode {
    run(&Book {
        prefix: "PF-",
        rules: "../docs/pfring-rules.md",
        not_covered: "pfring/not-covered.txt",
        programs: "pfring",
        thorough: &[],
        variants: &["8.9"],
        variants_end_in_the_process: true,
        libraries: &[Library::Linked],
        linked: &["-lpfring", "-lpthread"],
        artefacts: &[("libpfring.so", "ringway-libpfring")],
    })
}
