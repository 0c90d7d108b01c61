//! The rules of AF_PACKET V4 (`docs/tpacket4-rules.md`). Arguments are names of programs (`setup`, `rings`, …): only
//! these are run, and judged.

use std::process::ExitCode;

use ringway_conformance::{Book, run};
use ringway_tests::c::Library;

fn main() -> ExitCode {
    run(&Book {
        prefix: "V4-",
        rules: "../docs/tpacket4-rules.md",
        not_covered: "tpacket4/not-covered.txt",
        programs: "tpacket4",
        thorough: &["process"],
        variants: &["4"],
        variants_end_in_the_process: true,
        libraries: &[Library::Preloaded, Library::Linked],
        linked: &["-lringway_netmap"],
        artefacts: &[],
    })
}
