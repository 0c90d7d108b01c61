//! Why flows cannot be steered.

use std::{borrow::Cow, fmt, io};

use serde::{Deserialize, Serialize};

use crate::{
    error::{GONE, is_gone, sentence},
    parcel,
};

/// Displayed, it is the sentence for a person: `INTERFACE: PROBLEM; REMEDY`.
#[derive(Debug, Serialize, Deserialize)]
pub enum Error {
    /// The driver has no table to take a queue out of.
    NoTable {
        interface: String,
        #[serde(with = "parcel::io_error")]
        cause: io::Error,
    },
    /// There is nowhere for the other traffic to go.
    OnlyQueue { interface: String, queue: u32, queues: u32 },
    /// The queue is beyond the device.
    NoQueue { interface: String, queue: u32, queues: u32 },
    /// The driver does not take rules.
    NoRules {
        interface: String,
        #[serde(with = "parcel::io_error")]
        cause: io::Error,
    },
    /// The driver does not take this rule.
    Rule {
        interface: String,
        flow: String,
        #[serde(with = "parcel::io_error")]
        cause: io::Error,
    },
    /// Every place for a rule is taken.
    Full { interface: String, size: usize },
    /// The kernel refused something that drivers with these features take.
    Refused {
        interface: String,
        what: Cow<'static, str>,
        #[serde(with = "parcel::io_error")]
        cause: io::Error,
    },
    /// It is nothing that has to do with steering.
    Setup(crate::Error),
}

impl Error {
    /// The errno that says it best.
    pub fn errno(&self) -> i32 {
        let cause = match self {
            Error::OnlyQueue { .. } | Error::NoQueue { .. } => return libc::EINVAL,
            Error::Full { .. } => return libc::ENOSPC,
            Error::Setup(
                crate::Error::Netns { cause, .. } | crate::Error::Helper { cause, .. },
            ) => cause,
            Error::Setup(_) => return libc::EIO,
            Error::NoTable { cause, .. }
            | Error::NoRules { cause, .. }
            | Error::Rule { cause, .. }
            | Error::Refused { cause, .. } => cause,
        };
        cause.raw_os_error().unwrap_or(libc::EIO)
    }

    /// The interface that it is about.
    pub fn interface(&self) -> &str {
        match self {
            Error::NoTable { interface, .. }
            | Error::OnlyQueue { interface, .. }
            | Error::NoQueue { interface, .. }
            | Error::NoRules { interface, .. }
            | Error::Rule { interface, .. }
            | Error::Full { interface, .. }
            | Error::Refused { interface, .. } => interface,
            Error::Setup(error) => error.interface(),
        }
    }

    /// Whether the interface was there when it was looked up, and has gone.
    fn has_gone(&self) -> bool {
        match self {
            Error::NoTable { interface, cause }
            | Error::NoRules { interface, cause }
            | Error::Rule { interface, cause, .. }
            | Error::Refused { interface, cause, .. } => is_gone(interface, cause),
            Error::OnlyQueue { .. } | Error::NoQueue { .. } | Error::Full { .. } => false,
            Error::Setup(error) => error.has_gone(),
        }
    }

    /// What is wrong.
    pub fn problem(&self) -> String {
        match self {
            _ if self.has_gone() => GONE.into(),
            Error::NoTable { cause, .. } => {
                format!("its driver cannot keep other traffic off a queue (no RSS table: {cause})")
            }
            Error::OnlyQueue { queue, queues, .. } => {
                format!("queue {queue} is the only one of its {queues} that gets traffic")
            }
            Error::NoQueue { queue, queues, .. } => {
                format!("there is no queue {queue}, only {queues} (numbered from 0)")
            }
            Error::NoRules { cause, .. } => format!("its driver takes no flow rules: {cause}"),
            Error::Rule { flow, cause, .. } => {
                format!("its driver refuses to steer `{flow}`: {cause}")
            }
            Error::Full { size, .. } => format!("all {size} places for flow rules are taken"),
            Error::Refused { what, cause, .. } => format!("{what}: {cause}"),
            Error::Setup(error) => error.problem(),
        }
    }

    /// What to do about it; empty if that is plain.
    pub fn remedy(&self) -> String {
        match self {
            _ if self.has_gone() => String::new(),
            Error::NoTable { .. } => "use a NIC that can, or a filter: `ringway filter`".into(),
            Error::OnlyQueue { interface, .. } => {
                format!("`ethtool -L {interface} combined N` makes more")
            }
            Error::NoQueue { .. } => String::new(),
            Error::NoRules { .. } => "use a NIC that does".into(),
            Error::Rule { .. } => "ask for another flow".into(),
            Error::Full { interface, .. } => format!("`ethtool -n {interface}`"),
            Error::Refused { .. } => "it takes CAP_NET_ADMIN".into(),
            Error::Setup(error) => error.remedy(),
        }
    }
}

impl From<crate::Error> for Error {
    fn from(error: crate::Error) -> Error {
        Error::Setup(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        sentence(f, self.interface(), &self.problem(), &self.remedy())
    }
}

impl std::error::Error for Error {}
