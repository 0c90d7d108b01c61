//! The launcher: what has the capabilities still when the broker has none, and starts what needs them.

use std::{
    io::{
        self,
        ErrorKind::{BrokenPipe, ConnectionReset, NotConnected},
    },
    os::fd::{AsFd, OwnedFd},
    path::Path,
    process::exit,
    sync::{Mutex, MutexGuard},
};

use ringway_ipc::{receive, send};
use ringway_proto::EventKind;
use rustix::{
    event::epoll,
    net::{RecvFlags, SendFlags},
};

use super::{broker_end::BrokerEnd, messages::pair, process, reader};
use crate::{
    confine, janitor,
    log::{self, Entry, log},
    sys,
};

/// What the broker may ask for, by a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Helper = b'h' as isize,
    /// The same for what is quick.
    Quick = b'q' as isize,
    Janitor = b'j' as isize,
    /// Reads the configuration, and sends it.
    Configuration = b'c' as isize,
}

impl Part {
    /// The process's.
    pub fn name(self) -> &'static str {
        match self {
            Part::Helper => "ringwayd-nic",
            Part::Quick => "ringwayd-quick",
            Part::Janitor => "ringwayd-janitor",
            Part::Configuration => "ringwayd-config",
        }
    }
}

/// The broker's side.
#[derive(Debug)]
pub struct Launcher(Mutex<OwnedFd>);

impl Launcher {
    fn socket(&self) -> MutexGuard<'_, OwnedFd> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Has an event of that number come, once, when the launcher has ended.
    pub fn watch(&self, epoll: &OwnedFd, key: u64) -> io::Result<()> {
        // It is told that the other side has gone without asking.
        let data = epoll::EventData::new_u64(key);
        Ok(epoll::add(epoll, &*self.socket(), data, epoll::EventFlags::ONESHOT)?)
    }

    /// Starts a process; the connection to it.
    ///
    /// # Errors
    /// `NotConnected`: the launcher has ended, for good; else there are no processes or descriptors left.
    pub fn launch(&self, part: Part) -> io::Result<OwnedFd> {
        let socket = self.socket();
        let gone = || io::Error::new(NotConnected, "what starts it has ended");
        let ask = send(socket.as_fd(), &[part as u8], &[], SendFlags::empty());
        ask.map_err(|error| match error.kind() {
            BrokenPipe | ConnectionReset => gone(),
            _ => error,
        })?;
        let answer = receive(socket.as_fd(), RecvFlags::empty()).map_err(io::Error::other)?;
        let (errno, mut fds) = answer.ok_or_else(gone)?;
        match fds.pop() {
            Some(connection) => Ok(connection),
            None => {
                let errno = errno.try_into().map_or(libc::EIO, i32::from_ne_bytes);
                Err(io::Error::from_raw_os_error(errno))
            }
        }
    }
}

/// Parts this process in two: the launcher, which ends with this process, and the caller. To be called
/// before there are other threads.
/// `config`: the file of the configuration.
pub fn start(config: &Path) -> io::Result<Launcher> {
    let (ours, theirs) = pair()?;
    let broker = std::process::id();
    if sys::fork()? {
        drop(ours);
        exit(match run(theirs, config, broker) {
            Ok(()) => 0,
            Err(error) => {
                let text = format!("its helper for network interfaces cannot be started: {error}");
                log(Entry::error(EventKind::Process, text).caused_by(&error));
                1
            }
        });
    }
    Ok(Launcher(Mutex::new(ours)))
}

/// The launcher's own life.
fn run(socket: OwnedFd, config: &Path, broker: u32) -> io::Result<()> {
    let (socket, end) = become_part("ringwayd-launch", socket, broker)?;
    confine::apply().map_err(io::Error::other)?;
    confine::launcher()?;
    // Its children leave nothing to be collected.
    sys::ignore(&[libc::SIGCHLD]);
    while end.await_message(socket.as_fd())
        && let Some((part, _)) =
            receive(socket.as_fd(), RecvFlags::empty()).map_err(io::Error::other)?
    {
        let launch = |part| launch(part, broker, config);
        let started = match part.as_slice() {
            b"h" => launch(Part::Helper),
            b"q" => launch(Part::Quick),
            b"j" => launch(Part::Janitor),
            b"c" => launch(Part::Configuration),
            _ => return Ok(()),
        };
        match started {
            Ok(connection) => send(socket.as_fd(), &[], &[connection.as_fd()], SendFlags::empty())?,
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EIO);
                send(socket.as_fd(), &errno.to_ne_bytes(), &[], SendFlags::empty())?;
            }
        }
    }
    Ok(())
}

fn launch(part: Part, broker: u32, config: &Path) -> io::Result<OwnedFd> {
    let (ours, theirs) = pair()?;
    if sys::fork()? {
        let _ = ours;
        let done = become_part(part.name(), theirs, broker).and_then(|(socket, end)| match part {
            Part::Helper => process::run(socket, end),
            Part::Quick => process::run_quick(socket, end),
            Part::Janitor => janitor::run(socket, Some(end)),
            Part::Configuration => reader::run(&socket, config),
        });
        exit(match done {
            Ok(()) => 0,
            Err(error) => {
                let text = format!("{part:?}: {error}");
                log(Entry::error(EventKind::Process, text).caused_by(&error));
                1
            }
        });
    }
    Ok(ours)
}

/// What a new process keeps of its parent: this socket, its error output, and a connection
/// to the journal. It watches the broker.
fn become_part(name: &str, socket: OwnedFd, broker: u32) -> io::Result<(OwnedFd, BrokerEnd)> {
    // They go to all processes of a unit, or a terminal; this one ends with the broker.
    sys::ignore(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT]);
    let _ = rustix::process::setsid();
    let name = std::ffi::CString::new(name).unwrap_or_default();
    let _ = rustix::thread::set_name(&name);
    let (socket, journal) = sys::keep_only(socket, log::forked())?;
    log::keep_journal(journal);
    Ok((socket, BrokerEnd::watch(broker)?))
}
