//! `ringway`: the command line.

#![allow(dead_code)]
mod checksum;
mod doctor;
mod endpoint;
mod error;
mod frame;
mod output;
mod payload;
mod pcap;
mod rate;
mod reading;
mod report;
mod run;
mod stop;
mod traffic;
mod units;
mod verify;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Packet I/O on stock Linux: generate, receive, bridge and switch packets
#[derive(Parser)]
#[command(version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say what works on this machine, what does not, and what to do about it
    Doctor(doctor::Args),
    /// Run a netmap program, unchanged, on Ringway
    Run(run::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Doctor(args) => doctor::run(&args),
        Command::Run(args) => run::run(&args).map(|never| match never {}),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ringway: {error}");
            ExitCode::FAILURE
        }
    }
}
