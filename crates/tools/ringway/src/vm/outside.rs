//! What a confined process needs of the machine's files and services. Another process does it, which was started before, and maps
//! nothing of a guest's.
//!
//! ```text
//!   vm attach, confined: guest memory, rings        the process beside it
//!     | -- a byte that says what it wants ------------> |   connects to the daemon, and starts a private one;
//!     | <-- an error, or a descriptor ----------------- |   connects to the monitor; removes the socket
//! ```
//!
//! Which daemon, which monitor and which file that is was settled before. So a guest that has taken over the confined
//! process can have nothing that the port's user has not given it already.

use super::socket::{FileId, Reach, SocketFile};
use crate::error::{Error, Result};
use crate::sys::start_beside;
use ringway_ipc::{Start, connect, connect_by, connect_running, receive, send};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What is wanted.
const DAEMON: u8 = b'd';
const RUNNING_DAEMON: u8 = b'r';
const MONITOR: u8 = b'm';
const REMOVE: u8 = b'u';

/// Why it cannot be had: the number of the kernel's error, 0 for another, and more about it.
struct Refusal(i32, String);

type Answer = std::result::Result<Option<OwnedFd>, Refusal>;

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Refusal {
        Refusal(error.raw_os_error(), String::new())
    }
}

impl From<ringway_ipc::Error> for Refusal {
    fn from(error: ringway_ipc::Error) -> Refusal {
        use ringway_ipc::Error::{Connect, NoDescriptors};
        let number = |source: io::Error| source.raw_os_error().unwrap_or(0);
        match error {
            Connect { path, source } => Refusal(number(source), path),
            NoDescriptors { source, .. } => Refusal(number(source), String::new()),
            other => Refusal(0, other.to_string()),
        }
    }
}

impl From<Refusal> for ringway_ipc::Error {
    fn from(Refusal(number, text): Refusal) -> ringway_ipc::Error {
        let source = io::Error::from_raw_os_error(number);
        match (number, text) {
            (0, text) => ringway_ipc::Error::Start(text),
            (_, path) if path.is_empty() => {
                ringway_ipc::Error::NoDescriptors { source, is_done: false }
            }
            (_, path) => ringway_ipc::Error::Connect { path, source },
        }
    }
}

/// The process beside this one. A request waits for the one before.
pub struct Outside(Mutex<OwnedFd>);

impl Outside {
    /// Starts such a process.
    fn start(serve: impl Fn(&[u8]) -> Answer) -> io::Result<Outside> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (ours, its) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
        start_beside(its, |its| serve_all(&its, serve))?;
        Ok(Outside(Mutex::new(ours)))
    }

    fn ask(&self, request: &[u8]) -> Answer {
        let socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = send(socket.as_fd(), request, &[], SendFlags::empty());
        let answer = asked.ok().and_then(|()| receive(socket.as_fd(), RecvFlags::empty()).ok());
        let Some((bytes, mut fds)) = answer.flatten() else {
            return Err(Refusal(0, "the process that does so for this one has ended".into()));
        };
        match bytes.split_first_chunk() {
            Some((number, text)) if fds.is_empty() => {
                Err(Refusal(i32::from_le_bytes(*number), String::from_utf8_lossy(text).into()))
            }
            _ => Ok(fds.pop()),
        }
    }
}

impl Reach for Outside {
    fn connect(&self) -> std::result::Result<OwnedFd, Errno> {
        match self.ask(&[MONITOR]) {
            Ok(Some(connection)) => Ok(connection),
            Err(Refusal(number, _)) if number > 0 => Err(Errno::from_raw_os_error(number)),
            _ => Err(Errno::PIPE),
        }
    }

    fn remove(&self, (device, inode): FileId) {
        let request = [&[REMOVE][..], &device.to_le_bytes(), &inode.to_le_bytes()].concat();
        let _ = self.ask(&request);
    }
}

/// The processes beside this one. One is for the daemon alone: where that takes no connections, the process waits, and the
/// monitor is to be connected to meanwhile.
pub struct Others {
    daemon: Outside,
    place: Outside,
}

impl Others {
    /// Starts them, before this process has other threads, and a port: it would be theirs, too.
    pub fn start(path: &Path) -> Result<Others> {
        let system = |source| Error::System { what: "starting a process", source };
        let file = SocketFile(path.into());
        let place = Outside::start(|request| serve_place(&file, request)).map_err(system)?;
        let daemon = Outside::start(serve_daemon).map_err(system)?;
        Ok(Others { daemon, place })
    }

    /// From now on all connections to the daemon come from them. What is at the socket's path is reached by what this returns.
    pub fn take_over(self) -> Outside {
        let Others { daemon, place } = self;
        connect_by(Box::new(move |start| {
            let request = match start {
                Start::IfNeeded => DAEMON,
                Start::No => RUNNING_DAEMON,
            };
            let none = || ringway_ipc::Error::Start("no connection has come".into());
            daemon.ask(&[request])?.ok_or_else(none)
        }));
        place
    }
}

/// Until the other end has gone.
fn serve_all(socket: &OwnedFd, serve: impl Fn(&[u8]) -> Answer) {
    while let Ok(Some((request, _))) = receive(socket.as_fd(), RecvFlags::empty()) {
        let sent = match serve(&request) {
            Ok(Some(fd)) => send(socket.as_fd(), &[], &[fd.as_fd()], SendFlags::empty()),
            Ok(None) => send(socket.as_fd(), &[], &[], SendFlags::empty()),
            Err(Refusal(number, text)) => {
                let answer = [&number.to_le_bytes(), text.as_bytes()].concat();
                send(socket.as_fd(), &answer, &[], SendFlags::empty())
            }
        };
        if sent.is_err() {
            break;
        }
    }
}

fn serve_daemon(request: &[u8]) -> Answer {
    match request {
        [DAEMON] => Ok(Some(connect()?)),
        [RUNNING_DAEMON] => Ok(Some(connect_running()?)),
        _ => Err(Errno::INVAL.into()),
    }
}

fn serve_place(place: &SocketFile, request: &[u8]) -> Answer {
    match request {
        [MONITOR] => Ok(Some(place.connect()?)),
        [REMOVE, file @ ..] => {
            if let Some((device, rest)) = file.split_first_chunk()
                && let Ok(inode) = rest.try_into()
            {
                place.remove((u64::from_le_bytes(*device), u64::from_le_bytes(inode)));
            }
            Ok(None)
        }
        _ => Err(Errno::INVAL.into()),
    }
}
