//! The program `ringwayd` with what a next version of the messages could be, for the tests of upgrades.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ringwayd::main()
}
