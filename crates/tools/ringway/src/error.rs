//! Why a command failed: the cause and the remedy, in one sentence for the user.

use ringway::{Cause, FileSpec};
use std::io;

/// Exit status when the reader of standard output has gone, as a shell reports it for a program that
/// SIGPIPE has ended.
pub const UNREAD: u8 = 128 + libc::SIGPIPE as u8;

/// Every way in which a `ringway` command fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A port, a switch or the daemon refused.
    #[error(transparent)]
    Ringway(#[from] ringway::Error),

    /// An option's value cannot be understood or is out of range.
    #[error("{0}")]
    Value(String),

    /// There is no such port or interface.
    #[error("{port}: {problem}")]
    NoPort { port: String, problem: &'static str },

    /// Something is wrong with a capture file.
    #[error(transparent)]
    File(Box<ringway_file::Error>),

    /// The preload library is in none of the places where it belongs.
    #[error(
        "libringway_preload.so not found in {searched}; run `make build`, or put the library \
         beside the ringway executable"
    )]
    NoPreload { searched: String },

    /// A library that the loader cannot be told of.
    #[error(
        "{library}: the loader takes a blank or a colon for the end of the path, so it would not load the library; \
         install Ringway in a folder whose path has neither (`make install`), or move it there"
    )]
    Unloadable { library: String },

    /// A program that does not load libraries.
    #[error(
        "{program}: statically linked, so nothing can be loaded into it; link it dynamically, or, \
         if it only starts other programs, run `ringway run -- env {program}`"
    )]
    Static { program: String },

    /// A program whose rights keep libraries of its user's choice from it.
    #[error(
        "{program}: has {what}, so nothing that its user names is loaded into it; run a copy without that \
         (`cp {path} .`: a port takes no rights of the program's), or a program that is linked to \
         libringway_netmap.so, or to libringway_pcap.so; if it starts other programs, as sudo does, give it \
         `ringway run` to start"
    )]
    MoreRights { program: String, path: String, what: &'static str },

    /// A program could not be started.
    #[error("cannot run {program}: {source}; check its path and permissions")]
    Exec { program: String, source: io::Error },

    /// A generator's last packets stay in the ring.
    #[error("{port}: {left} packets were not taken within a second; {remedy}")]
    Left { port: String, left: u64, remedy: &'static str },

    /// A receiver got fewer packets than it was told to wait for.
    #[error(
        "{port}: {received} of {wanted} packets came; look at the drops, and send slower or wait \
         longer"
    )]
    TooFew { port: String, received: u64, wanted: u64 },

    /// `recv --verify` found fault.
    #[error("{port}: {fault}")]
    Unverified { port: String, fault: String },

    /// `doctor --try`: frames have not arrived.
    #[error("{interface}: {problem}; {remedy}")]
    NotArrived { interface: String, problem: String, remedy: String },

    /// An interface that the machine, or the user, cannot do without.
    #[error("{interface}: {problem}; {remedy}")]
    InUse { interface: String, problem: String, remedy: String },

    /// The user may not have an interface.
    #[error("{interface}: {problem}; {remedy}")]
    NoRights { interface: String, problem: String, remedy: String },

    /// No ping came back in time.
    #[error(
        "{port}: none of {sent} pings was answered in time; start `ringway pong` at the other side, \
         give a longer --timeout, or look at the drops"
    )]
    NoAnswer { port: String, sent: u64 },

    /// Whoever was to read the results has gone: `| head` has enough.
    #[error("nobody reads the results any more")]
    Unread,

    /// A system call that should always work did not.
    #[error("{what}: {source}{}", system_remedy(source))]
    System { what: &'static str, source: io::Error },

    /// The machine lacks something that even pipes and VALE switches need.
    #[error("pipes and VALE switches will not work here: {0}")]
    Unusable(String),
}

impl From<ringway_file::Error> for Error {
    fn from(error: ringway_file::Error) -> Error {
        Error::File(Box::new(error))
    }
}

impl Error {
    /// Whether the reader of what is written to standard output has gone.
    pub fn is_unread(&self) -> bool {
        const CLOSED: Option<i32> = Some(libc::EPIPE);
        match self {
            Error::Unread => true,
            Error::File(error) | Error::Ringway(ringway::Error::File(error)) => {
                error.io().is_some_and(|e| e.raw_os_error() == CLOSED)
            }
            Error::Ringway(error) => {
                let is_file = error.port().is_some_and(FileSpec::is_file);
                is_file && matches!(error.cause(), Cause::System(errno) if Some(errno) == CLOSED)
            }
            _ => false,
        }
    }

    /// The exit status. For a program that cannot be run those of env(1).
    pub fn status(&self) -> u8 {
        match self {
            error if error.is_unread() => UNREAD,
            Error::Exec { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Error::Exec { .. } | Error::Static { .. } | Error::MoreRights { .. } => 126,
            _ => 1,
        }
    }
}

/// What to do about an error of the system that the user can do something about.
fn system_remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; make room on the disk, or write to another one"
        }
        _ => "",
    }
}

/// The result of a command.
pub type Result<T> = std::result::Result<T, Error>;
