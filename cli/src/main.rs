//! `ringway`: the command line.

mod bridge;
mod checksum;
mod course;
mod doctor;
mod drops;
mod endpoint;
mod error;
mod frame;
mod generate;
mod output;
mod payload;
mod pcap;
mod ports;
mod rate;
mod reading;
mod receive;
mod report;
mod run;
mod stop;
mod switch;
mod table;
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
    /// Send test frames, or those of a capture file
    Gen(generate::Args),
    /// Count what arrives, and verify it
    Recv(receive::Args),
    /// Forward between two ports, both ways
    Bridge(bridge::Args),
    /// Make, show and change VALE switches
    Switch(switch::Args),
    /// Show all ports
    Ports(ports::Args),
    /// Say what works on this machine, what does not, and what to do about it
    Doctor(doctor::Args),
    /// Run a netmap program, unchanged, on Ringway
    Run(run::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Gen(args) => generate::run(&args),
        Command::Recv(args) => receive::run(&args),
        Command::Bridge(args) => bridge::run(&args),
        Command::Switch(args) => switch::run(&args),
        Command::Ports(args) => ports::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Run(args) => run::run(&args).map(|never| match never {}),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(error);
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_options_of_all_commands_fit_together() {
        Cli::command().debug_assert();
    }
}
