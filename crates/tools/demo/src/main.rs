//! `make demo`: what Ringway does, shown with the command that users have.
//!
//! Everything is run by `ringway` in processes of their own, with no daemon started by hand.
//! The part with network interfaces runs inside namespaces that vanish with their last
//! process, so that nothing stays behind however the demo ends.
#![deny(unsafe_code)]

mod command;
mod nics;
mod sys;
mod virtual_ports;

use std::process::ExitCode;

/// A line of the table.
pub struct Row {
    what: &'static str,
    result: String,
}

impl Row {
    fn new(what: &'static str, result: impl Into<String>) -> Row {
        Row { what, result: result.into() }
    }
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let inside = std::env::args_os().nth(1).is_some_and(|arg| arg == nics::INSIDE);
    let done = if inside { nics::show() } else { show() };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ringway-demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn show() -> Result<()> {
    println!("Ringway: 60-byte frames between separate processes\n");
    print(virtual_ports::pipe()?);
    print(virtual_ports::switch()?);
    if rustix::process::getuid().is_root() {
        println!("\nReal traffic: two network namespaces, joined by a switch through AF_XDP\n");
        nics::run_inside()?;
    } else {
        println!("\nLeft out without root: network interfaces (`sudo make demo` shows them)");
    }
    println!("\nNothing is left running; the daemon left with its last port.");
    Ok(())
}

fn print(rows: Vec<Row>) {
    for Row { what, result } in rows {
        println!("  {what:<44} {result}");
    }
}
