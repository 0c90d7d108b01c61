//! `ringwayd`: the registry behind a Unix socket.
//!
//! A *private* daemon is started by the first program of a user that opens a port, on a
//! socket that only this user can reach, and leaves after the last. A *system* daemon is
//! started by the administrator and serves the users that its configuration admits.
#![deny(unsafe_code)]
// What is told goes through `log`, which escapes what is not printable.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests write to the temporary folder")
)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::unimplemented,
        clippy::string_slice
    )
)]

mod check;
mod closer;
mod config;
mod confine;
mod guard;
mod hang_up;
mod helper;
mod janitor;
mod listener;
mod log;
mod pace;
mod peer;
mod place;
mod policy;
mod ready;
mod request_times;
mod reservations;
mod running;
mod server;
mod service_manager;
mod socket_file;
mod state;
mod sys;
mod uid_ranges;
mod unread;
mod workers;

use std::{
    error::Error,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::Parser;
use ringway_proto::{Error as Refusal, EventKind, Level};

use crate::{
    config::Config,
    helper::Launcher,
    listener::Listener,
    log::{Entry, Place, log, log_lines},
    policy::Policy,
    server::{Server, Signals},
    service_manager::ServiceManager,
};

/// The Ringway daemon: keeps the book of ports and switches, and does what needs privileges.
///
/// Programs start a private daemon by themselves; run ringwayd by hand only as the system
/// daemon, for machines that share NICs or switches between users.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Serve one user on the socket inherited as descriptor 3, in this directory
    #[arg(long, value_name = "DIR", hide = true)]
    private: Option<PathBuf>,

    /// Undo what a daemon leaves behind; see janitor.rs
    #[arg(long, hide = true, conflicts_with_all = ["private", "config"])]
    janitor: bool,

    /// Configuration of the system daemon; it has what is in FILE, and in the folder beside it: for ringwayd.toml,
    /// ringwayd.d/*.toml
    #[arg(long, value_name = "FILE", default_value = config::DEFAULT_PATH)]
    config: PathBuf,

    /// Say what is wrong with the configuration, or what a daemon that runs would change to have it, and end
    #[arg(
        long, value_name = "FILE", num_args = 0..=1, default_missing_value = config::DEFAULT_PATH,
        conflicts_with = "config"
    )]
    check: Option<PathBuf>,

    /// What is logged: error, warn, info or debug [default: log_level of the configuration, or info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<Level>,
}

/// The program.
pub fn main() -> ExitCode {
    sys::return_large_memory();
    log::begin(service_manager::journal_stream());
    let args = Args::parse();
    if let Some(path) = &args.check {
        return check::main(path);
    }
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log_lines(error);
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Result<(), Box<dyn Error>> {
    if args.janitor {
        return Ok(janitor::main()?);
    }
    let descriptors = confine::take_descriptors();
    // A limit of file sizes, which counts for regions, is to fail a request, and not to end the daemon; and what
    // other daemons take for a request is none here.
    sys::ignore(&[libc::SIGXFSZ, libc::SIGUSR1, libc::SIGUSR2]);
    // Before a client can connect: a signal that comes right then must not leave the directory behind.
    let signals = Signals {
        end: sys::as_descriptor(&[libc::SIGTERM, libc::SIGINT])?,
        hangup: Some(sys::as_descriptor(&[libc::SIGHUP])?),
    };
    let mut launcher = None;
    let (listener, config) = match args.private.clone() {
        Some(dir) => {
            use_all_cpus();
            let mut listener = Listener::private(dir)?;
            if confine::leave_netns() {
                listener.move_in()?;
            }
            let refuse = |error: &dyn Error| {
                listener.refuse_all(&Refusal::invalid(format!("ringwayd cannot start: {error}")));
            };
            descriptors.inspect_err(|error| refuse(error))?;
            let config = Config::private().inspect_err(|error| refuse(error))?;
            (listener, config)
        }
        None => {
            descriptors?;
            // A private daemon's memory is its user's, for debugging.
            confine::forbid_dumps()?;
            let config = Config::read(&args.config)?;
            // It has no descriptor of the socket.
            launcher = Some(Arc::new(helper::start(&args.config)?));
            (Listener::system(&config)?, config)
        }
    };
    let level = args.log_level.unwrap_or(config.log_level);
    begin_log(level, &listener, args.config.clone());
    if args.private.is_none() {
        helper::log_doubts(&args.config);
    }
    let policy = Policy::read(&config, listener.is_private())?;
    match &launcher {
        Some(launcher) => confine_broker(launcher, listener.path())?,
        // A private daemon has its user's privileges, or those that the user has given it.
        None => confine::apply()?,
    }
    ringway_registry::confine_workers(confine::worker);
    if args.private.is_none() {
        service_manager::keep_programs();
    }
    Server::new(listener, signals, policy, launcher)?.run(&ServiceManager::find())?;
    Ok(())
}

/// Opens the log, which begins with what this daemon is. `config`: the system daemon's configuration.
fn begin_log(level: Level, listener: &Listener, config: PathBuf) {
    let is_private = listener.is_private();
    let (whose, config, file) = match is_private {
        true => ("private", Config::private_file(), log::private_path()),
        false => ("system", Some(config), None),
    };
    let place = if is_private { Place::Private(file.as_deref()) } else { Place::System };
    let missing = log::open(level, place);
    let config = config.filter(|path| path.exists());
    let config = config.map_or("no configuration file".into(), |path| path.display().to_string());
    log(Entry::info(
        EventKind::DaemonStart,
        format_args!(
            "ringwayd {} has started: process {}, {whose} daemon at {}, Linux {}, {config}",
            env!("CARGO_PKG_VERSION"),
            std::process::id(),
            listener.path().display(),
            rustix::system::uname().release().to_string_lossy(),
        ),
    ));
    if let (Some(error), Some(file)) = (missing, file) {
        let text = format!("{}: {error}; the events of this daemon are in no file", file.display());
        log(Entry::info(EventKind::Config, text));
    }
}

/// Leaves the privileges to the helper.
fn confine_broker(launcher: &Arc<Launcher>, socket: &Path) -> Result<(), Box<dyn Error>> {
    let client = helper::Client::new(launcher)?;
    confine::broker(socket.parent().unwrap_or(Path::new("/")))?;
    client.watch()?;
    ringway_nic_setup::use_helper(client);
    Ok(())
}

/// The system daemon of that configuration within a process that does other things, too, until `end` is
/// readable: for fuzz targets. What a process can do but once is left out: it keeps its capabilities, and the
/// workers of its switches may do what all its threads may.
///
/// # Errors
/// The configuration is wrong, or the daemon cannot listen.
pub fn serve(config: &Path, end: OwnedFd) -> Result<(), Box<dyn Error>> {
    let config = Config::read(config)?;
    let listener = Listener::system(&config)?;
    let policy = Policy::read(&config, listener.is_private())?;
    let signals = Signals { end, hangup: None };
    Ok(Server::new(listener, signals, policy, None)?.run(&ServiceManager::find())?)
}

/// The program that happened to start us may have tied itself to a CPU: that is its affair.
fn use_all_cpus() {
    let mut all = rustix::thread::CpuSet::new();
    (0..rustix::thread::CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    // The kernel keeps those that are there; where it refuses, we stay where we are.
    let _ = rustix::thread::sched_setaffinity(None, &all);
}
