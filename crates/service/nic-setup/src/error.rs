//! What can go wrong while setting up, each with its interface, its cause and its remedy.

use std::{borrow::Cow, fmt, io};

use serde::{Deserialize, Serialize};

use crate::{AttachMode, AttachedProgram, Missing, parcel};

/// An error of the set-up. Displayed, it is the sentence for a person: `INTERFACE: PROBLEM; REMEDY`.
///
/// The data path (`Rings`, `kick_tx` and `statistics` of `ringway-xdp`) returns plain
/// errnos: it has a descriptor only, and its caller knows the port's name.
#[derive(Debug, Serialize, Deserialize)]
pub enum Error {
    /// No interface of that name in the current network namespace.
    NoInterface { interface: String },

    /// The queue is beyond the device.
    NoQueue { interface: String, queue: u32, queues: u32 },

    /// The queue is bound by another socket, and still was after the retries.
    QueueBusy { interface: String, queue: u32 },

    /// Another program has the interface.
    Occupied { interface: String, program: AttachedProgram },

    /// Capabilities are missing.
    Privileges { interface: String, missing: Missing },

    /// The XDP program attaches in none of the modes tried.
    Attach { interface: String, refused: Vec<(AttachMode, String)> },

    /// The network namespace that it is in cannot be entered.
    Netns {
        interface: String,
        #[serde(with = "parcel::io_error")]
        cause: io::Error,
    },

    /// The helper that was to do it has not answered.
    Helper {
        interface: String,
        #[serde(with = "parcel::io_error")]
        cause: io::Error,
    },

    /// Any other refusal.
    Refused {
        interface: String,
        what: Cow<'static, str>,
        #[serde(with = "parcel::io_error")]
        cause: io::Error,
        remedy: Cow<'static, str>,
    },
}

impl Error {
    /// The interface that it is about.
    pub fn interface(&self) -> &str {
        match self {
            Error::NoInterface { interface }
            | Error::NoQueue { interface, .. }
            | Error::QueueBusy { interface, .. }
            | Error::Occupied { interface, .. }
            | Error::Privileges { interface, .. }
            | Error::Attach { interface, .. }
            | Error::Netns { interface, .. }
            | Error::Helper { interface, .. }
            | Error::Refused { interface, .. } => interface,
        }
    }

    /// Whether the interface was there when it was looked up, and has gone.
    pub fn has_gone(&self) -> bool {
        matches!(self, Error::Refused { interface, cause, .. } if is_gone(interface, cause))
    }

    /// What is wrong.
    pub fn problem(&self) -> String {
        match self {
            Error::Refused { .. } if self.has_gone() => GONE.into(),
            Error::NoInterface { .. } => "no such network interface here".into(),
            Error::NoQueue { queue, queues, .. } => {
                format!("there is no queue {queue}, only {queues} (numbered from 0)")
            }
            Error::QueueBusy { queue, .. } => {
                format!("queue {queue} is in use by another AF_XDP socket")
            }
            Error::Occupied { program, .. } => format!("{program} is attached already"),
            Error::Privileges { missing, .. } => missing.to_string(),
            Error::Attach { refused, .. } => {
                format!("no XDP program can be attached: {}", reasons(refused))
            }
            Error::Netns { cause, .. } if cause.raw_os_error() == Some(libc::EAGAIN) => {
                format!("ringwayd gets no further thread: {cause}")
            }
            Error::Netns { cause, .. } => {
                format!("cannot enter the caller's network namespace: {cause}")
            }
            Error::Helper { cause, .. } if cause.raw_os_error() == Some(libc::EMFILE) => {
                format!("ringwayd cannot ask the process that sets interfaces up: {cause}")
            }
            Error::Helper { cause, .. } => {
                format!("the process that sets interfaces up for ringwayd does not answer: {cause}")
            }
            Error::Refused { what, cause, .. } => format!("{what}: {cause}"),
        }
    }

    /// What to do about it; empty where the problem says that.
    pub fn remedy(&self) -> String {
        match self {
            Error::Refused { .. } if self.has_gone() => String::new(),
            Error::NoInterface { .. } => "`ip -br link` lists those that exist".into(),
            Error::NoQueue { interface, .. } => {
                format!("where the device has more: `ethtool -L {interface} combined N`")
            }
            Error::QueueBusy { .. } => {
                "end the program that holds it (`ss -f xdp -ap` lists them) \
                                        or use another queue"
                    .into()
            }
            Error::Occupied { interface, program } => program.remedy(interface),
            Error::Privileges { .. } => String::new(),
            Error::Attach { .. } => {
                "mend what the driver says, where it says something, or ask for another mode; \
                 `ringway doctor` tells what the kernel lacks"
                    .into()
            }
            Error::Netns { cause, .. } if cause.raw_os_error() == Some(libc::EAGAIN) => {
                "raise its limit of processes (TasksMax= of its unit, RLIMIT_NPROC)".into()
            }
            Error::Netns { .. } => "run ringwayd there, or with CAP_SYS_ADMIN".into(),
            Error::Helper { cause, .. } if cause.kind() == io::ErrorKind::NotConnected => {
                "restart the daemon".into()
            }
            Error::Helper { cause, .. } if cause.raw_os_error() == Some(libc::EMFILE) => {
                "raise the daemon's limit of open files (LimitNOFILE= of its unit, or `ulimit -n` where it is started)"
                    .into()
            }
            Error::Helper { .. } => {
                "try again: there is another one; the daemon's log may tell more".into()
            }
            Error::Refused { remedy, .. } => remedy.clone().into_owned(),
        }
    }

    /// The kernel's word for it.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Error::Netns { cause, .. }
            | Error::Helper { cause, .. }
            | Error::Refused { cause, .. } => cause,
            other => io::Error::other(other.to_string()),
        }
    }

    /// Of making an interface that serves another, whose name people know.
    pub(crate) fn made_for(self, interface: &str) -> Error {
        match self {
            Error::Privileges { missing, .. } => {
                Error::Privileges { interface: interface.into(), missing }
            }
            other => other,
        }
    }

    /// For `map_err`: `what` was refused.
    pub(crate) fn refused<E: Into<io::Error>>(
        interface: &str,
        what: &'static str,
        remedy: &'static str,
    ) -> impl FnOnce(E) -> Error {
        let interface = interface.to_owned();
        move |cause| Error::Refused {
            interface,
            what: what.into(),
            cause: cause.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        sentence(f, self.interface(), &self.problem(), &self.remedy())
    }
}

impl std::error::Error for Error {}

/// What is wrong where an interface [is gone](is_gone).
pub(crate) const GONE: &str = "it has gone";

/// Whether that is why an operation at an interface was refused: no other cause has anything to do with it then.
pub(crate) fn is_gone(interface: &str, cause: &io::Error) -> bool {
    !interface.is_empty() && cause.raw_os_error() == Some(libc::ENODEV)
}

/// What a person is told: `INTERFACE: PROBLEM; REMEDY`, the last part where there is one.
pub(crate) fn sentence(
    f: &mut fmt::Formatter<'_>,
    interface: &str,
    problem: &str,
    remedy: &str,
) -> fmt::Result {
    write!(f, "{interface}: {problem}")?;
    if remedy.is_empty() { Ok(()) } else { write!(f, "; {remedy}") }
}

fn reasons(refused: &[(AttachMode, String)]) -> String {
    let reasons: Vec<_> = refused.iter().map(|(mode, e)| format!("{mode} mode: {e}")).collect();
    reasons.join("; ")
}
