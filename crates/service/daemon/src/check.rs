//! `ringwayd --check`: what is wrong with a configuration, and what a daemon that runs would change to have it.

use std::{
    error::Error,
    fmt::Display,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use ringway_proto::printable;
use ringway_registry::{
    Change, LastingAttachment, LastingNetns, changes, idle_addresses, renamed_interfaces,
    why_not_attached,
};

mod restart_keys;

use crate::{
    config::Config,
    confine,
    log::log_lines,
    running::{running_at, running_with},
    service_manager::LISTEN_ELSEWHERE,
    socket_file,
    state::StateFile,
};

/// The status when the reader of standard output has gone, as a shell reports it of a program that SIGPIPE has ended.
const UNREAD: u8 = 128 + libc::SIGPIPE as u8;

/// Checks the file at `path`, and those beside it, and says on standard output what it has found, or on standard error
/// what is wrong with them.
pub fn main(path: &Path) -> ExitCode {
    let failed = |error: &dyn Display| {
        log_lines(error);
        ExitCode::FAILURE
    };
    let lines = match run(path) {
        Ok(lines) => lines,
        Err(error) => return failed(&error),
    };
    match write_lines(&lines) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => UNREAD.into(),
        Err(error) => failed(&format_args!("writing what was found: {error}")),
    }
}

fn write_lines(lines: &[String]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    lines.iter().try_for_each(|line| writeln!(out, "{}", printable(line, &[])))?;
    out.flush()
}

/// What is to be said of the file at `path`, and those beside it, a line each.
///
/// # Errors
/// What is wrong with them.
fn run(path: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    // What only root's privileges can read is good for a start, and for no reading by a daemon that runs.
    let config = confine::as_reader(|| Config::read(path))?;
    let declared = config.declared()?;
    let mut socket = PathBuf::from(&config.socket);
    socket_file::look(&socket)?;
    let mut lines = Vec::new();
    let mut say = |line: &str| lines.push(line.to_owned());
    say(&format!("{}: the configuration is good", path.display()));
    Config::doubts(path).iter().for_each(|doubt| say(&format!("note: {doubt}")));
    let mut daemon = running_at(&socket);
    if daemon.is_none()
        && let Some((pid, its)) = running_with(path)
    {
        say(&format!(
            "would take a restart: `socket`: the daemon with this configuration (process {pid}) listens at {}; {LISTEN_ELSEWHERE}",
            its.display(),
        ));
        (daemon, socket) = (Some(pid), its);
    }
    let runs = daemon.is_some();
    if runs {
        match restart_keys::otherwise(&config, &socket) {
            Ok(keys) => keys.iter().for_each(|key| say(&format!("would take a restart: `{key}`"))),
            Err(error) => say(&format!("which keys would take a restart is not known: {error}")),
        }
    }
    match StateFile::beside(&socket).look() {
        Ok(now) => {
            if !runs {
                say(&format!("no daemon runs at {}: what the last one left", socket.display()));
            }
            let netns = daemon.and_then(|pid| File::open(format!("/proc/{pid}/ns/net")).ok());
            let own = LastingNetns::of_process(netns.map(Into::into));
            let changes = changes(&now, &declared, own);
            changes.iter().for_each(|change| say(&format!("would change: {change}")));
            renamed_interfaces(&now, &declared).iter().for_each(|it| say(&format!("note: {it}")));
            idle_addresses(&now, &declared).iter().for_each(|idle| say(&format!("note: {idle}")));
            // What is to be detached is not waited for any more.
            let stays = |it: &&LastingAttachment| {
                let leaves = Change::Detach(it.name.clone());
                declared.iter().any(|switch| switch.attaches(&it.name))
                    && !changes.contains(&leaves)
            };
            let absent = now.attached.iter().filter(|it| it.absent || it.never_there);
            let waiting: Vec<_> = absent.filter(stays).collect();
            let why = if runs { " (`ringway switch list` says why)" } else { "" };
            for LastingAttachment { name, .. } in &waiting {
                match why_not_attached(&now, own, name) {
                    Some(held) => say(&format!("not attached: {name}: {held}")),
                    None => say(&format!("not attached: {name}{why}")),
                }
            }
            match (changes.is_empty(), waiting.is_empty()) {
                (true, true) => say("switches are as declared"),
                (true, false) => say("switches are as declared otherwise"),
                (false, _) => {}
            }
        }
        Err(error) => say(&format!("what would change is not known: {error}")),
    }
    Ok(lines)
}
