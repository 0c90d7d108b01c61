//! The program `ringwayd`, which the library has.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ringwayd::main()
}
