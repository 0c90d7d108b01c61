//! The rules of USDPAA (`docs/usdpaa-rules.md`). Arguments are names of programs (`queue`, `buffer`, …): only these are
//! run, and judged.

use std::process::ExitCode;

use ringway_conformance::{Book, run};
use ringway_tests::c::Library;

fn main() -> ExitCode {
    run(&Book {
        prefix: "QB-",
        rules: "../docs/usdpaa-rules.md",
        not_covered: "usdpaa/not-covered.txt",
        programs: "usdpaa",
        thorough: &[],
        variants: &["sdk"],
        variants_end_in_the_process: true,
        libraries: &[Library::Linked],
        linked: &["-lusdpaa", "-lpthread"],
        artefacts: &[("libusdpaa.so", "ringway-usdpaa")],
    })
}
