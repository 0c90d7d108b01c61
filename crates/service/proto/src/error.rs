//! Why a request was refused.

use std::{fmt, io};

use serde::{Deserialize, Serialize};

use crate::options::Statuses;

/// The kind of a refusal, for programs: what a personality makes its own codes of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// The request asks for what cannot be.
    Invalid,
    /// Something else uses it.
    Busy,
    /// No memory, or no room below some limit.
    NoRoom,
    /// There is no such port, or interface, or nothing is bound.
    NoPort,
    /// There is no such switch, or nothing more in a list.
    NotFound,
    /// There is no such end of a pipe.
    NoDevice,
    /// There is such a thing already.
    Exists,
    /// The port, the interface or the kernel cannot do that.
    Unsupported,
    /// Policy or the kernel does not allow it.
    Denied,
    /// The port's packets have headers that the program does not accept.
    HeadersNotAccepted,
    /// The handle is closed.
    Closed,
    /// Nothing would change.
    AlreadySo,
    /// The memory that came along cannot be used.
    BadMemory,
    /// The user has as many descriptors of the daemon as there may be.
    TooManyDescriptors,
    /// The answer does not fit a message.
    TooLong,
    /// No daemon can be reached or started.
    Unreachable,
    /// Other users could tamper with the place of the daemon's socket.
    Untrusted,
    /// The daemon, the interface or the monitored port has gone.
    Gone,
    /// The two sides speak different versions.
    Version,
    /// The operating system said so, by this error number of Linux.
    System(i32),
}

/// One of several ways in which something was tried, and why it was not to be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What was tried, `zerocopy or copy`; empty if it is what was asked for.
    pub tried: String,
    /// What is wrong.
    pub problem: String,
    /// What to do about it; empty if that is plain.
    pub remedy: String,
}

/// What was refused, in the order in which it was tried. Displayed, it is one sentence of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusals(pub Vec<Refusal>);

/// A refused request. Displayed, it is the sentence for a person: `PORT: PROBLEM; REMEDY`, or, of several
/// refusals, `PORT: PROBLEM: REFUSALS`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// Its kind, for programs.
    pub cause: Cause,
    /// The port, interface or switch that it is about; empty if none is.
    pub port: String,
    /// What is wrong.
    pub problem: String,
    /// What to do about it; empty if that is plain.
    pub remedy: String,
    /// How far the options of a registration came.
    pub options: Statuses,
    /// What it comes from, where several ways were tried.
    pub refusals: Box<Refusals>,
}

/// What most functions here return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A refusal that names no port and no remedy; see [`at`](Self::at) and [`remedy`](Self::remedy).
    pub fn new(cause: Cause, problem: impl Into<String>) -> Error {
        Error {
            cause,
            port: String::new(),
            problem: problem.into(),
            remedy: String::new(),
            options: Statuses::default(),
            refusals: Box::default(),
        }
    }

    /// The same, about this port.
    pub fn at(self, port: impl Into<String>) -> Error {
        Error { port: port.into(), ..self }
    }

    /// The same, with what to do about it.
    pub fn remedy(self, remedy: impl Into<String>) -> Error {
        Error { remedy: remedy.into(), ..self }
    }

    /// The same, which comes from these.
    pub fn because(self, refusals: Refusals) -> Error {
        Error { refusals: Box::new(refusals), ..self }
    }

    /// The request asks for what cannot be.
    pub fn invalid(problem: impl Into<String>) -> Error {
        Error::new(Cause::Invalid, problem)
    }

    /// Another user, or another handle, has it.
    pub fn busy(problem: impl Into<String>) -> Error {
        Error::new(Cause::Busy, problem)
    }

    /// No memory, or no room below some limit.
    pub fn no_memory(problem: impl Into<String>) -> Error {
        Error::new(Cause::NoRoom, problem)
    }

    /// There is no such port.
    pub fn absent(problem: impl Into<String>) -> Error {
        Error::new(Cause::NoPort, problem)
    }

    /// What the operating system refused.
    pub fn io(what: &str, error: io::Error) -> Error {
        Error::new(Cause::of(&error), format!("{what}: {error}"))
    }

    /// Problem and remedy, for a sentence that names the port by itself.
    pub fn without_port(&self) -> impl fmt::Display {
        Tail(self)
    }
}

struct Tail<'a>(&'a Error);

impl fmt::Display for Tail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Error { problem, remedy, refusals, .. } = self.0;
        f.write_str(problem)?;
        if !refusals.0.is_empty() {
            write!(f, ": {refusals}")?;
        }
        write_remedy(f, remedy)
    }
}

fn write_remedy(f: &mut fmt::Formatter<'_>, remedy: &str) -> fmt::Result {
    match remedy {
        "" => Ok(()),
        remedy => write!(f, "; {remedy}"),
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tried.as_str() {
            "" => f.write_str(&self.problem)?,
            tried => write!(f, "not {tried}: {}", self.problem)?,
        }
        write_remedy(f, &self.remedy)
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, refusal) in self.0.iter().enumerate() {
            write!(f, "{}{refusal}", if i == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl Refusals {
    /// And these, which were tried after.
    pub fn then(mut self, others: Refusals) -> Refusals {
        self.0.extend(others.0);
        self
    }
}

impl Cause {
    /// What the operating system said.
    pub fn of(error: &io::Error) -> Cause {
        error.raw_os_error().map_or(Cause::Gone, Cause::System)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port.as_str() {
            "" => Tail(self).fmt(f),
            port => write!(f, "{port}: {}", Tail(self)),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_port_problem_and_remedy() {
        let bare = Error::busy("in use");
        assert_eq!(bare.to_string(), "in use");
        assert_eq!(bare.clone().remedy("close it").to_string(), "in use; close it");
        let whole = bare.at("vale0:a").remedy("close it");
        assert_eq!(whole.to_string(), "vale0:a: in use; close it");
        assert_eq!(whole.without_port().to_string(), "in use; close it");
    }

    #[test]
    fn refusals_are_one_sentence() {
        let refusal = |tried: &str, problem: &str, remedy: &str| Refusal {
            tried: tried.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        };
        let first = refusal("zerocopy or copy", "no hook", "raise the MTU");
        let refusals = Refusals(vec![first]);
        let refusals = refusals.then(Refusals(vec![refusal("generic", "no socket", "")]));
        let error = Error::busy("cannot be opened").because(refusals);
        assert_eq!(
            error.to_string(),
            "cannot be opened: not zerocopy or copy: no hook; raise the MTU; not generic: no socket"
        );
        let one = Refusals(vec![refusal("", "no hook", "close it")]);
        let error = Error::busy("it was asked for").at("n0").because(one);
        assert_eq!(error.to_string(), "n0: it was asked for: no hook; close it");
    }
}
