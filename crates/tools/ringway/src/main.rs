//! `ringway`: the command line.
#![deny(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a program reads its own environment")]
// What is printed goes through `output`, or through `tools::log`, which escape what is not printable.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod action;
mod balance;
mod bridge;
mod capture;
mod capture_file;
mod checksum;
#[cfg(test)]
mod completions;
mod dissect;
mod doctor;
mod drops;
mod elf;
mod endpoint;
mod error;
mod failure;
#[cfg(test)]
mod fairness;
mod filter;
mod flush;
mod forward;
mod fragmenter;
mod fragments;
mod frame;
mod frame_check;
mod frame_uses;
mod generate;
mod help;
mod intake;
mod interface_use;
mod lasting;
mod lateness;
mod lb;
mod link;
mod listening;
mod log;
mod losses;
#[cfg(test)]
mod manual;
mod metered;
mod metrics;
mod namespace;
mod netlink;
mod opened;
mod opening;
mod output;
mod payload;
mod pf_ring;
mod ping;
mod plain_file;
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
mod rights;
mod rings;
mod route;
mod run;
mod run_loop;
mod same_rings;
mod schema;
mod shape;
mod stdout;
mod steer;
mod switch;
mod sys;
mod table;
mod template;
mod tools;
mod top;
mod traffic;
mod turn;
mod units;
mod usage;
mod verify;
mod vm;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::Failure;
use output::{Output, for_people};
use std::io::Write;
use std::process::ExitCode;

/// Packet I/O on stock Linux: generate, receive, bridge and switch packets
#[derive(Parser)]
#[command(name = "ringway", version, about, arg_required_else_help = true, after_long_help = AFTER_HELP)]
struct Cli {
    /// Print JSON, one object a line: results, and, on standard error, notes and errors
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Every command takes --json. Then each line on standard output is one JSON object with a `type`, as
`ringway schema` describes it. A command that changes something, and has no other output, prints what
it has done and the new state:
  {\"type\":\"done\",\"action\":\"switch attach\",\"of\":\"vale0\",\"now\":{\"type\":\"switch\",...}}
Standard error has objects as well, of the type `note`, and one of the type `error` if a command
fails:
  {\"type\":\"error\",\"cause\":\"exists\",\"port\":\"vale0\",\"problem\":\"there is such a switch\",...}
with `remedy`, what to do, and `text`, the message of the plain output. `cause` is invalid, busy, no_room, no_port,
not_found, no_device, exists, unsupported, denied, headers_not_accepted, closed, already_so, bad_memory,
too_many_descriptors, too_long, unreachable, untrusted, gone, version, or system, with `errno`, as the
daemon's protocol has them; or not_taken, too_few, unverified, no_answer, not_arrived, unusable, usage.

The exit status is 0, 1 if a command fails, 2 if its command line cannot be read, and 141 if the reader of
its results has closed the pipe. `ringway run` has the exit status of the program.";

#[derive(Subcommand)]
enum Command {
    /// Send test frames, or those of a capture file
    Gen(generate::Args),
    /// Send capture files, each frame at its time
    Replay(replay::Args),
    /// Count what arrives; verify, print or record it
    Recv(receive::Args),
    /// Record what ports receive into capture files, or print it
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
    /// Virtual machines on switches
    Vm(vm::Args),
    /// Show and change which frames the ports of interfaces get
    Filter(filter::Args),
    /// Show and change action programs, which decide where frames go
    Action(action::Args),
    /// Add and remove receive queues of the open port of an interface
    Queue(queue::Args),
    /// Direct only some flows to a receive queue of a NIC
    Steer(steer::Args),
    /// Show all ports
    Ports(ports::Args),
    /// Show the traffic of ports, switches and rings, live
    Top(top::Args),
    /// Print or serve what is counted and measured, for Prometheus
    Metrics(metrics::Args),
    /// Show the daemon's log: what was set up, what was refused, what has gone
    Log(log::Args),
    /// Say what works on this machine, what does not, and what to do about it
    Doctor(doctor::Args),
    /// Run a netmap program, unchanged, on Ringway
    Run(run::Args),
    /// Print the JSON schema of what --json prints
    Schema(schema::Args),
}

fn main() -> ExitCode {
    if let Some(status) = tools::called(std::env::args_os()) {
        return status;
    }
    let matches = help::wrapped(Cli::command()).try_get_matches();
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = cli.unwrap_or_else(|error| misunderstood(error));
    Output { json: cli.json }.choose();
    let result = match cli.command {
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
        Command::Vm(args) => vm::run(&args),
        Command::Filter(args) => filter::run(&args),
        Command::Action(args) => action::run(&args),
        Command::Queue(args) => queue::run(&args),
        Command::Steer(args) => steer::run(&args),
        Command::Ports(args) => ports::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Metrics(args) => metrics::run(&args),
        Command::Log(args) => log::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Run(args) => run::run(&args).map(|never| match never {}),
        Command::Schema(args) => schema::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_unread() => error.status().into(),
        Err(error) => {
            port_notes::file(&error);
            Output::chosen().fail(&error);
            error.status().into()
        }
    }
}

/// Ends with what clap says, be it help that was asked for; in JSON if it is an error, and JSON was asked for.
fn misunderstood(mut error: clap::Error) -> ! {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    usage::improve(&mut error, &Cli::command(), words);
    let mut args = std::env::args_os().take_while(|arg| arg != "--");
    if error.use_stderr() && args.any(|arg| arg == "--json") {
        Output { json: true }.tell_aside(&Failure::of_usage(&error.render().to_string()));
        std::process::exit(error.exit_code());
    }
    // In colours, unless it has something of the arguments that a terminal must not get.
    let plain = error.render().to_string();
    let shown = for_people(&plain);
    if shown != plain {
        let _ = std::io::stderr().write_all(shown.as_bytes());
        std::process::exit(error.exit_code());
    }
    error.exit()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a list: what is added takes it as well.
    #[test]
    fn every_command_takes_json() {
        fn walk(command: &clap::Command, without: &mut Vec<String>) {
            let json = command.get_arguments().find(|arg| arg.get_long() == Some("json"));
            if !json.is_some_and(|json| matches!(json.get_action(), clap::ArgAction::SetTrue)) {
                without.push(command.get_name().to_string());
            }
            // What it prints is help, for people.
            command
                .get_subcommands()
                .filter(|c| c.get_name() != "help")
                .for_each(|c| walk(c, without));
        }
        let (mut cli, mut without) = (Cli::command(), Vec::new());
        cli.build();
        walk(&cli, &mut without);
        assert!(without.is_empty(), "these take no --json: {without:?}");
    }

    #[test]
    fn the_options_of_all_commands_fit_together() {
        Cli::command().debug_assert();
    }
}
