//! The daemon's socket: where it is, what is said on it, and how a daemon comes to be there.
//!
//! A client is connected by one `SOCK_SEQPACKET` Unix socket. The connection *is* the netmap
//! fd: it stands for one registry handle, survives `dup`, `fork` and `SCM_RIGHTS`, and the
//! daemon lets the port go when the last copy is closed. Every process with a copy may ask on it.
//!
//! One request is one datagram: the [`Request`] in postcard's format behind a version byte,
//! with the sending end of a fresh socket pair attached. The reply comes back on that pair,
//! so processes that share the connection never read each other's answers; and the pair tells the
//! daemon in which network namespace names of interfaces are meant, the one that it was made in:
//!
//! ```text
//!  client                                       daemon
//!    | -- version, Request, [reply end] ---------> |   on the connection
//!    | <-- Result<Reply, Error>, [fds] ----------- |   on the pair
//! ```
//!
//! The version byte of an answer is that of the request. A client asks in its newest version, and a daemon that does not
//! speak it says which versions it speaks (`docs/control-protocol.md` has the rules by which messages change). postcard's format is easily written in any language:
//! fields follow one another, without names; numbers of more than a byte are variable-length (seven
//! bits a byte, the lowest first; signed ones zigzag), an enumeration is the number of its variant and
//! then its fields, a text or a list its length and then its parts. `docs/control-protocol.md` has it
//! all, byte for byte.
//!
//! The daemon says only one thing on the connection: why it closes it at once, if it does. That is
//! a version byte and an [`Error`](ringway_proto::Error).
//!
//! [`Request`]: ringway_proto::Request
#![deny(unsafe_code)]
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

mod answer;
mod call;
mod message;
mod process;
mod ring_texts;
mod shared_folder;
mod socket_path;
mod start;
mod sys;
mod users;

use std::os::unix::fs::FileTypeExt;

use ringway_proto::{Cause, Versions};

pub use answer::{Answer, HeaderLen, Index, Page, SwitchFound};
pub use call::{Heard, call, hear, hung_daemon};
pub use message::{
    Datagram, MAX_FDS, MAX_MESSAGE, Received, receive, receive_request, refuse, send, send_reply,
};
pub use process::has_ended;
pub use ring_texts::{RingTexts, sweep_ring_texts};
pub use shared_folder::{leave_shared_folder, shared_folder};
pub use socket_path::{SocketPath, is_daemon, is_of_system, leave_user_folder, user_folder};
pub use start::{
    Connector, LISTEN_FD, ShutdownLock, Start, connect, connect_by, connect_running,
    connect_system, connect_to, daemon_binary,
};
pub use sys::unread_bytes;
pub use users::{GROUPS, USERS, home_of, id_of, members_of};

/// Why there is no answer from a daemon.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The daemon said no.
    #[error(transparent)]
    Refused(#[from] ringway_proto::Error),
    /// A socket directory that others could tamper with.
    #[error("{path} {problem}; {remedy}, or name another directory in RINGWAY_DIR")]
    Unsafe { path: String, problem: String, remedy: &'static str },
    /// A socket directory of another user: this one cannot remove it.
    #[error("{path} belongs to user {uid}, not to you; name another directory in RINGWAY_DIR")]
    Theirs { path: String, uid: u32 },
    /// No daemon, and none could be started.
    #[error("cannot start ringwayd: {0}")]
    Start(String),
    /// The socket exists and does not answer.
    #[error("cannot reach ringwayd at {path}: {source}; {}", socket_remedy(path, source))]
    Connect { path: String, source: std::io::Error },
    /// The process, or the machine, has no descriptors left for what is asked. `is_done`: those of the answer are
    /// missing, and the daemon has done it.
    #[error("ringwayd cannot be asked: {source}; {}", descriptors_remedy(source))]
    NoDescriptors { source: std::io::Error, is_done: bool },
    /// The connection broke in mid-call.
    #[error("ringwayd ended or was restarted ({0}); try again")]
    Lost(std::io::Error),
    /// The daemon was killed, and a thread of it waits in the kernel, so that its sockets stay open.
    #[error(
        "ringwayd (process {pid}) was killed and does not end: a file system in user space (FUSE) holds it up; as root, \
         start ringwayd again, or abort that file system (/sys/fs/fuse/connections/*/abort)"
    )]
    Hung { pid: u32 },
    /// The daemon speaks other versions.
    #[error(
        "ringwayd speaks {daemon} of the control protocol, and this program {}; {}",
        Versions::SPOKEN, version_remedy(*daemon)
    )]
    Version { daemon: Versions },
    /// The daemon speaks an older version, which has no words for what is asked.
    #[error(
        "ringwayd speaks version {daemon} of the control protocol, which lacks what is asked for; upgrade ringwayd, and \
         restart it"
    )]
    TooNew { daemon: u8 },
    /// What came is no message of that version.
    #[error("ringwayd's answer cannot be read; ringwayd or this library is not as it was released")]
    Malformed,
}

/// What to do about a daemon of other versions.
fn version_remedy(daemon: Versions) -> &'static str {
    match daemon.newest < Versions::SPOKEN.oldest {
        true => "upgrade ringwayd, and restart it",
        false => "start the program again with the library of this ringwayd",
    }
}

/// What to do about a daemon that cannot be reached at this path.
fn socket_remedy(path: &str, source: &std::io::Error) -> &'static str {
    match std::fs::metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            "that is no socket, so name the daemon's in RINGWAY_SOCKET"
        }
        _ => connect_remedy(source),
    }
}

/// What to do about a daemon that cannot be reached.
pub fn connect_remedy(source: &std::io::Error) -> &'static str {
    match source.kind() {
        _ if source.raw_os_error() == Some(libc::ENAMETOOLONG) => {
            "a socket's path has 107 bytes at most, so name a shorter directory in RINGWAY_DIR"
        }
        std::io::ErrorKind::PermissionDenied => {
            "join the group that the socket belongs to, or name a directory in RINGWAY_DIR for a \
             daemon of your own"
        }
        std::io::ErrorKind::InvalidInput => "write all of it, from / on",
        std::io::ErrorKind::ConnectionRefused => "it has ended, so start it again",
        _ => "is it running? RINGWAY_SOCKET names its socket",
    }
}

/// What to do where there are no descriptors left.
fn descriptors_remedy(source: &std::io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::ENFILE) => "raise fs.file-max, the machine's limit",
        _ => {
            "close some of the program's descriptors, or raise its limit (ulimit -n, RLIMIT_NOFILE)"
        }
    }
}

/// Whether it says that there are no descriptors left.
fn is_no_descriptors(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

impl Error {
    /// Why a call on the connection, or for it, has failed.
    fn in_call(source: impl Into<std::io::Error>) -> Error {
        let source = source.into();
        match is_no_descriptors(&source) {
            true => Error::NoDescriptors { source, is_done: false },
            false => Error::Lost(source),
        }
    }

    /// What the daemon said, if it said no.
    pub fn refusal(&self) -> Option<&ringway_proto::Error> {
        match self {
            Error::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Of which kind it is.
    pub fn cause(&self) -> Cause {
        match self {
            Error::Refused(error) => error.cause,
            Error::Unsafe { .. } | Error::Theirs { .. } => Cause::Untrusted,
            Error::Start(_) => Cause::Unreachable,
            Error::Connect { source, .. } | Error::NoDescriptors { source, .. } => {
                source.raw_os_error().map_or(Cause::Unreachable, Cause::System)
            }
            Error::Lost(_) | Error::Hung { .. } => Cause::Gone,
            Error::Version { .. } | Error::Malformed => Cause::Version,
            Error::TooNew { .. } => Cause::Unsupported,
        }
    }
}
