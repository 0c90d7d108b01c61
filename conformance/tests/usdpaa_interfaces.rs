//! The rules of USDPAA's interfaces (`docs/usdpaa-rules.md`), at every kind of wire. Arguments are names of programs
//! (`receive`, `config`, …): only these are run, and judged.

use std::process::ExitCode;

use ringway_conformance::{Book, run};
use ringway_tests::c::Library;

fn main() -> ExitCode {
    run(&Book {
        prefix: "FM-",
        rules: "../docs/usdpaa-rules.md",
        not_covered: "usdpaa/interfaces/not-covered.txt",
        programs: "usdpaa/interfaces",
        thorough: &[],
        variants: &["switch", "pipe", "veth"],
        variants_end_in_the_process: false,
        libraries: &[Library::Linked],
        linked: &["-lringway_netmap", "-lusdpaa", "-lpthread"],
        artefacts: &[("libusdpaa.so", "ringway-usdpaa")],
    })
}
