//! What goes wrong, with the number that the CNI specification has for it and the remedy.

use std::{fmt, io};

use ringway::Cause;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The network's configuration is of a version that the plugin does not know.
    Version,
    /// The configuration has a key, or a value, that the plugin does not support.
    Unsupported,
    /// A variable of the environment is missing or wrong.
    Environment,
    /// Something cannot be read.
    Io,
    /// What was read is no JSON, or other JSON than it should be.
    Decode,
    /// The configuration contradicts itself, or the machine.
    Config,
    /// It may work later, as when the daemon is not running.
    TryAgain,
    /// As the answer to STATUS: the plugin cannot serve an ADD.
    NotAvailable,
    /// The kernel refused something about an interface.
    Link,
    /// The daemon refused something about a switch.
    Switch,
    /// CHECK found something else than ADD had left.
    Differs,
    /// Another plugin, to which this one delegates, has failed with this number.
    Delegate(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub kind: Kind,
    pub problem: String,
    /// What to do about it; empty if that is plain.
    pub remedy: String,
}

impl Error {
    pub fn new(kind: Kind, problem: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error { kind, problem: problem.into(), remedy: remedy.into() }
    }

    /// The kernel refused `what`.
    pub fn link(what: impl fmt::Display) -> impl FnOnce(io::Error) -> Error {
        let what = what.to_string();
        move |cause| {
            let remedy = match cause.kind() {
                io::ErrorKind::PermissionDenied => "it takes CAP_NET_ADMIN and CAP_SYS_ADMIN",
                _ => "",
            };
            Error::new(Kind::Link, format!("{what}: {cause}"), remedy)
        }
    }

    /// The daemon is away.
    pub fn unreachable(error: &ringway::Error) -> Error {
        let remedy = "start it (`systemctl start ringwayd.socket`), then try again";
        Error::new(Kind::TryAgain, error.to_string(), remedy)
    }

    /// The number of its kind.
    pub fn code(&self) -> u32 {
        self.kind.number()
    }
}

impl Kind {
    /// The number for it, as the specification has them; from 100 on, they are this plugin's.
    pub fn number(self) -> u32 {
        match self {
            Kind::Version => 1,
            Kind::Unsupported => 2,
            Kind::Environment => 4,
            Kind::Io => 5,
            Kind::Decode => 6,
            Kind::Config => 7,
            Kind::TryAgain => 11,
            Kind::NotAvailable => 50,
            Kind::Link => 100,
            Kind::Switch => 101,
            Kind::Differs => 102,
            Kind::Delegate(code) => code,
        }
    }
}

impl From<ringway::Error> for Error {
    fn from(error: ringway::Error) -> Error {
        match error.cause() {
            Cause::Unreachable | Cause::Gone => Error::unreachable(&error),
            _ => Error::new(Kind::Switch, error.to_string(), ""),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.remedy {
            "" => f.write_str(&self.problem),
            remedy => write!(f, "{}; {remedy}", self.problem),
        }
    }
}

impl std::error::Error for Error {}
