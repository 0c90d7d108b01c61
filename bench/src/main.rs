//! `make bench`: Ringway's speed, and its peers' in the same run.
//!
//! Every figure is measured between separate processes and is the median of several runs, taken in
//! rounds. The table goes to standard output, progress to standard error, the records to a file, and plots of them to
//! a page beside it. Reading order: [`plan`] says what is measured, [`study`] what for, [`experiment`] how one run goes,
//! [`rounds`] in which order, [`roles`] how processes are run together, [`traffic`] what Ringway's do, [`dpdk`] how the peers
//! are, [`nic`] what is done on network interfaces, [`selected`] what of them a program and the stack share, [`opening`] how long they take to open,
//! [`containers`] what two stacks exchange over a switch, [`machines`] what two virtual machines do, [`pcap`] what a program of libpcap does, [`tpacket4`] what one
//! of AF_PACKET V4, [`pfring`] one of PF_RING, [`l2fwd`] what all of these do alike; [`merge`] puts rows of a later run into a record.
#![deny(unsafe_code)]

mod bench;
mod c_program;
mod cgroup;
mod containers;
mod cpu;
mod datagrams;
mod distance;
mod dpdk;
mod experiment;
mod extent;
mod figure;
mod html;
mod hugepages;
mod idle;
mod l2fwd;
mod latency;
mod machine;
mod machines;
mod memory;
mod merge;
mod netns;
mod nic;
mod open_vswitch;
mod opening;
mod origin;
mod paced;
mod pcap;
mod pfring;
mod plan;
mod plot;
mod record;
mod roles;
mod rounds;
mod scratch;
mod selected;
mod stack_end;
mod study;
mod sys;
mod table;
mod target;
mod tcpdump;
mod testpmd;
mod tpacket4;
mod traffic;
mod turn;
mod usage;
mod usdpaa;
mod waiting;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use std::{env, fs, io};

use clap::{Args, Parser, Subcommand};

use crate::traffic::Traffic;

/// Where a complete run leaves its records, seen from the project's folder.
const RESULTS: &str = "bench/results/latest.json";

/// Seconds of counting of a quick run.
const QUICK: f64 = 0.2;

/// Load average from which on other programs are likely to disturb the figures.
const BUSY: f64 = 0.5;

/// Measures Ringway and its peers, prints a table and writes bench/results/latest.json
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    role: Option<Roles>,
}

#[derive(Args)]
struct Options {
    /// Runs of each experiment
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Seconds of counting in a run; half of them on network interfaces
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Only the experiments whose line in the table contains this; may be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Puts the experiments of --only into the records that --output has: those of the same names
    /// are replaced, the rest stays, and each says which run it is of
    #[arg(long, requires = "only", requires = "output", conflicts_with = "quick")]
    merge: bool,
    /// One short run of each experiment and of a few points of each curve, to see that all work
    #[arg(long)]
    quick: bool,
    /// File for the records; by default bench/results/latest.json, unless --only or --quick
    /// leave something out
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Roles {
    /// Makes the page with plots of a file of records, on standard output
    Report {
        #[arg(default_value = RESULTS)]
        records: PathBuf,
    },
    /// One process of an experiment; started by the benchmark itself
    #[command(hide = true)]
    Role {
        /// CPU to stay on
        #[arg(long)]
        cpu: Option<usize>,
        /// A file of the network namespace to live in
        #[arg(long)]
        netns: Option<PathBuf>,
        /// A control group to be in
        #[arg(long)]
        cgroup: Option<PathBuf>,
        #[command(subcommand)]
        name: Name,
    },
}

#[derive(Subcommand)]
enum Name {
    PipeTx {
        #[command(flatten)]
        traffic: Traffic,
    },
    PipeRx {
        #[command(flatten)]
        traffic: Traffic,
    },
    ValeTx {
        #[command(flatten)]
        traffic: Traffic,
        /// How many ports the packets are for
        #[arg(long)]
        receivers: usize,
    },
    ValeRx {
        #[command(flatten)]
        traffic: Traffic,
        /// Which of the receivers this is
        #[arg(long)]
        index: u8,
    },
    /// Moves packets on network interfaces
    Nic {
        #[command(flatten)]
        part: nic::Part,
    },
    /// Sends packets to what sends them back
    L2Generate {
        #[command(flatten)]
        generate: l2fwd::Generate,
    },
    /// Sends packets back, their addresses exchanged
    L2Forward {
        #[arg(long)]
        at: String,
    },
    /// Sends datagrams by a UDP socket
    SendDatagrams { from: std::net::SocketAddr, to: std::net::SocketAddr },
    /// Takes datagrams by a UDP socket
    Datagrams { at: std::net::SocketAddr },
    /// Opens an interface, and says how long that took
    Open {
        /// Opens and closes it before
        #[arg(long)]
        again: bool,
    },
    /// Opens ports of a switch, and says how long one took
    OpenMany {
        #[arg(long)]
        count: usize,
    },
    /// Opens ports, and says how much memory they have
    Memory { names: Vec<String> },
    /// Has ports of a switch, and waits
    Idle {
        #[arg(long)]
        ports: usize,
    },
    /// An end of a path on which one packet goes round
    Trip {
        #[command(flatten)]
        end: latency::End,
    },
    /// Answers what the host's stack sends
    StackEnd {
        #[command(flatten)]
        end: stack_end::StackEnd,
    },
    /// Sends so many packets a second
    Paced {
        #[command(flatten)]
        paced: paced::Paced,
    },
    /// Receives what is sent so
    Drain {
        #[arg(long)]
        at: String,
    },
    /// Has two interfaces on a switch
    Join {
        interfaces: Vec<String>,
        /// The first with the host's stack
        #[arg(long)]
        host: bool,
        /// Each on a switch of its own, with a program between the two
        #[arg(long)]
        program: bool,
    },
    /// Counts packets by libpcap
    Pcap {
        #[command(flatten)]
        counter: pcap::Counter,
    },
    /// Becomes another program
    Exec {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.role {
        Some(Roles::Role { cpu, netns, cgroup, name }) => {
            roles::settle(netns.as_deref(), cgroup.as_deref()).and_then(|()| play(cpu, name))
        }
        Some(Roles::Report { records }) => show(&records),
        None => measure(cli.options),
    };
    done.unwrap_or_else(|error| {
        eprintln!("ringway-bench: {error}");
        ExitCode::FAILURE
    })
}

fn play(cpu: Option<usize>, name: Name) -> io::Result<ExitCode> {
    match name {
        Name::PipeTx { traffic } => traffic::pipe_tx(cpu, &traffic)?,
        Name::PipeRx { traffic } => traffic::pipe_rx(cpu, &traffic)?,
        Name::ValeTx { traffic, receivers } => traffic::vale_tx(cpu, &traffic, receivers)?,
        Name::ValeRx { traffic, index } => traffic::vale_rx(cpu, &traffic, index)?,
        Name::Nic { part } => nic::play(cpu, &part)?,
        Name::L2Generate { generate } => l2fwd::generate(cpu, &generate)?,
        Name::L2Forward { at } => l2fwd::forward(cpu, &at)?,
        Name::SendDatagrams { from, to } => datagrams::send(cpu, from, to)?,
        Name::Datagrams { at } => datagrams::play(cpu, at)?,
        Name::Open { again } => opening::play(again)?,
        Name::OpenMany { count } => opening::play_many(count)?,
        Name::Memory { names } => memory::play(&names)?,
        Name::Idle { ports } => idle::play(ports)?,
        Name::Trip { end } => latency::play(cpu, &end)?,
        Name::StackEnd { end } => stack_end::play(cpu, &end)?,
        Name::Paced { paced } => paced::send(cpu, &paced)?,
        Name::Drain { at } => paced::receive(cpu, &at)?,
        Name::Join { program: true, .. } => containers::play_program()?,
        Name::Join { interfaces, host, program: false } => {
            containers::play_join(&interfaces, host)?
        }
        Name::Pcap { counter } => pcap::play(cpu, &counter)?,
        Name::Exec { command } => {
            cpu.map_or(Ok(()), cpu::pin)?;
            let error = Command::new(&command[0]).args(&command[1..]).exec();
            let message = format!("cannot run {}: {error}", command[0]);
            return Err(io::Error::new(error.kind(), message));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(records: &Path) -> io::Result<ExitCode> {
    let report = record::Report::read(records)?;
    print!("{}", html::page(&report).map_err(io::Error::other)?);
    Ok(ExitCode::SUCCESS)
}

fn measure(options: Options) -> io::Result<ExitCode> {
    let (runs, counting) = match options.quick {
        true => (1, QUICK),
        false => (options.runs as usize, options.seconds),
    };
    let scratch = scratch::Scratch::new()?;
    let bench = bench::Bench {
        daemon: scratch.folder("ringwayd")?,
        scratch,
        cpus: cpu::allowed(),
        warm_up: Duration::from_secs_f64((counting / 2.0).min(0.5)),
        counting: Duration::from_secs_f64(counting),
    };
    let extent = if options.quick { extent::Extent::Quick } else { extent::Extent::Whole };
    let planned = || {
        let mut experiments = plan::experiments(extent);
        let wanted = |name: &str| options.only.iter().any(|text| name.contains(text.as_str()));
        experiments.retain(|experiment| {
            options.only.is_empty() || wanted(&experiment.subject.to_string())
        });
        experiments
    };
    let mut experiments = planned();
    if rustix::process::geteuid().is_root()
        && experiments.iter().any(experiment::Experiment::is_dpdk)
    {
        // Whether there are some is among the settings.
        hugepages::reserve();
        experiments = planned();
    }
    let needs_root = experiment::Experiment::needs_root;
    if !rustix::process::geteuid().is_root() && experiments.iter().any(needs_root) {
        eprintln!("without root nothing is measured on network interfaces");
        experiments.retain(|experiment| !needs_root(experiment));
    }
    if experiments.is_empty() {
        return Err(io::Error::other("no experiment's line in the table contains that text"));
    }

    let machine = machine::Machine::describe();
    if let Some(path) = options.output.as_deref().filter(|_| options.merge) {
        // Before an hour is spent for nothing.
        record::Report::read(path)?.check_machine(&machine)?;
    }
    if let Some(load) = machine.load.filter(|&load| load > BUSY) {
        eprintln!(
            "the machine is busy (load {load}): figures will be too low; stop what else runs"
        );
    }
    if !options.quick {
        let counting = bench.counting.min(Duration::from_millis(300));
        experiments.iter_mut().for_each(|experiment| experiment.tune(&bench, counting));
    }
    let outcomes = rounds::run(&bench, experiments, runs);
    hugepages::give_back();
    let outcomes = outcomes?;
    print!("{}", table::render(&outcomes));

    let interrupted = scratch::is_interrupted();
    let failed = outcomes.iter().any(|outcome| outcome.failure.is_some());
    let all = options.only.is_empty() && !options.quick && !interrupted;
    let complete = all && !failed;
    let output = options.output.as_deref().or(all.then(|| Path::new(RESULTS)));
    if options.merge && interrupted {
        eprintln!("interrupted: the records stay as they were");
    } else if let Some(path) = output {
        let records = outcomes.iter().filter_map(rounds::Outcome::record).collect();
        let report = match options.merge {
            true => merged(path, &machine, records)?,
            false => record::Report::new(machine, command_line(), complete, records),
        };
        let of = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
        };
        report.write(path).map_err(of)?;
        let page = path.with_extension("html");
        fs::write(&page, html::page(&report).map_err(io::Error::other)?).map_err(of)?;
        eprintln!("records written to {}, plots to {}", path.display(), page.display());
    }
    if interrupted {
        return Ok(ExitCode::from(scratch::INTERRUPTED));
    }
    match failed {
        true => Ok(ExitCode::FAILURE),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// The records of `path` with these among them, of this run.
fn merged(
    path: &Path,
    machine: &machine::Machine,
    mut records: Vec<record::Record>,
) -> io::Result<record::Report> {
    let origin = origin::Origin::new(machine, command_line());
    records.iter_mut().for_each(|record| record.origin = Some(origin.clone()));
    let record::Report { machine: mut of_record, command, complete, records: old, .. } =
        record::Report::read(path)?;
    of_record.learn_peers(machine);
    let mut report = record::Report::new(of_record, command, complete, old);
    let order = plan::experiments(extent::Extent::Whole);
    let order: Vec<String> = order.iter().map(|one| one.subject.to_string()).collect();
    report.merge(records, &order);
    Ok(report)
}

/// How this was called, without where it is.
fn command_line() -> String {
    let arguments = env::args().skip(1);
    std::iter::once("ringway-bench".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.1 to 3600".into()),
    }
}
