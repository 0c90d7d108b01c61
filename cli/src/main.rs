//! `ringway`: the command line.
#![deny(unsafe_code)]

mod balance;
mod bridge;
mod capture;
mod capture_file;
mod checksum;
mod dissect;
mod doctor;
mod drops;
mod elf;
mod endpoint;
mod error;
mod filter;
mod flush;
mod forward;
mod fragmenter;
mod fragments;
mod frame;
mod frame_check;
mod frame_uses;
mod generate;
mod lateness;
mod lb;
mod link;
mod metered;
mod output;
mod payload;
mod ping;
mod pong;
mod port_notes;
mod ports;
mod print;
mod printable;
mod queue;
mod rate;
mod receive;
mod recording;
mod reflect;
mod relay;
mod replay;
mod report;
mod rings;
mod run;
mod run_loop;
mod shape;
mod steer;
mod switch;
mod sys;
mod table;
mod template;
mod tools;
mod top;
mod traffic;
mod units;
mod verify;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Packet I/O on stock Linux: generate, receive, bridge and switch packets
#[derive(Parser)]
#[command(name = "ringway", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Send test frames, or those of a capture file
    Gen(generate::Args),
    /// Send capture files, each frame at its time
    Replay(replay::Args),
    /// Count what arrives; verify, print or record it
    Recv(receive::Args),
    /// Record what ports receive into capture files
    Capture(capture::Args),
    /// Forward between two ports, both ways
    Bridge(bridge::Args),
    /// Share the packets of a port out over others
    Lb(lb::Args),
    /// Measure round-trip times to a `ringway pong`
    Ping(ping::Args),
    /// Answer `ringway ping`
    Pong(pong::Args),
    /// Emulate a link between two ports: bandwidth, delay, loss
    Shape(shape::Args),
    /// Make, show and change VALE switches
    Switch(switch::Args),
    /// Show and change which frames the ports of interfaces get
    Filter(filter::Args),
    /// Add and remove receive queues of the open port of an interface
    Queue(queue::Args),
    /// Keep everything but some flows off a receive queue of a NIC
    Steer(steer::Args),
    /// Show all ports
    Ports(ports::Args),
    /// Show what ports, switches and rings are doing, as it happens
    Top(top::Args),
    /// Say what works on this machine, what does not, and what to do about it
    Doctor(doctor::Args),
    /// Run a netmap program, unchanged, on Ringway
    Run(run::Args),
}

fn main() -> ExitCode {
    if let Some(status) = tools::called(std::env::args_os()) {
        return status;
    }
    let result = match Cli::parse().command {
        Command::Gen(args) => generate::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Recv(args) => receive::run(&args),
        Command::Capture(args) => capture::run(&args),
        Command::Bridge(args) => bridge::run(&args),
        Command::Lb(args) => lb::run(&args),
        Command::Ping(args) => ping::run(&args),
        Command::Pong(args) => pong::run(&args),
        Command::Shape(args) => shape::run(&args),
        Command::Switch(args) => switch::run(&args),
        Command::Filter(args) => filter::run(&args),
        Command::Queue(args) => queue::run(&args),
        Command::Steer(args) => steer::run(&args),
        Command::Ports(args) => ports::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Run(args) => run::run(&args).map(|never| match never {}),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error::Error::Unread) => output::UNREAD.into(),
        Err(error) => {
            let status = error.status();
            output::note(error);
            status.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// The pages in `man/` are made from the same text as `--help`. With RINGWAY_UPDATE_MAN set
    /// this test writes them.
    #[test]
    fn the_manual_pages_are_current() {
        let man = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../man");
        if std::env::var_os("RINGWAY_UPDATE_MAN").is_some() {
            clap_mangen::generate_to(Cli::command(), &man).unwrap();
        }
        let made = std::env::temp_dir().join(format!("ringway-man-{}", std::process::id()));
        std::fs::create_dir(&made).unwrap();
        clap_mangen::generate_to(Cli::command(), &made).unwrap();
        let pages: Vec<_> = std::fs::read_dir(&made).unwrap().flatten().collect();
        let stale: Vec<_> = pages
            .iter()
            .filter(|page| {
                let kept = std::fs::read(man.join(page.file_name())).unwrap_or_default();
                std::fs::read(page.path()).unwrap() != kept
            })
            .map(|page| page.file_name())
            .collect();
        std::fs::remove_dir_all(&made).unwrap();
        assert!(stale.is_empty(), "stale: {stale:?}; set RINGWAY_UPDATE_MAN and test again");
    }

    #[test]
    fn the_options_of_all_commands_fit_together() {
        Cli::command().debug_assert();
    }
}
