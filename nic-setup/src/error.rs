//! What can go wrong while setting up, each with its interface, its cause and its remedy.

use std::io;

use crate::{AttachMode, AttachedProgram, Missing};

/// An error of the set-up: interface, cause and remedy in one sentence.
///
/// The data path ([`crate::Rings`], [`crate::kick_tx`], [`crate::statistics`]) returns plain
/// errnos: it has a descriptor only, and its caller knows the port's name.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No interface of that name in the current network namespace.
    #[error("{interface}: no such network interface here; `ip -br link` lists those that exist")]
    NoInterface { interface: String },

    /// The queue is beyond the device.
    #[error(
        "{interface}: there is no queue {queue}, only {queues} (numbered from 0); \
         where the device has more: `ethtool -L {interface} combined N`"
    )]
    NoQueue { interface: String, queue: u32, queues: u32 },

    /// The queue is bound by another socket, and still was after the retries.
    #[error(
        "{interface}: queue {queue} is in use by another AF_XDP socket; \
         end the program that holds it (`ss -f xdp -ap` lists them) or use another queue"
    )]
    QueueBusy { interface: String, queue: u32 },

    /// Another program has the interface.
    #[error("{interface}: {program} is attached already; {}", program.remedy(interface))]
    Occupied { interface: String, program: AttachedProgram },

    /// Capabilities are missing.
    #[error("{interface}: {missing}")]
    Privileges { interface: String, missing: Missing },

    /// The XDP program attaches in none of the modes tried.
    #[error(
        "{interface}: no XDP program can be attached: {}; the kernel needs to be 5.9 or newer",
        reasons(refused)
    )]
    Attach { interface: String, refused: Vec<(AttachMode, io::Error)> },

    /// Any other refusal.
    #[error("{interface}: {what}: {cause}; {remedy}")]
    Refused { interface: String, what: &'static str, cause: io::Error, remedy: &'static str },
}

impl Error {
    /// The interface, with which every sentence begins.
    pub fn interface(&self) -> &str {
        match self {
            Error::NoInterface { interface }
            | Error::NoQueue { interface, .. }
            | Error::QueueBusy { interface, .. }
            | Error::Occupied { interface, .. }
            | Error::Privileges { interface, .. }
            | Error::Attach { interface, .. }
            | Error::Refused { interface, .. } => interface,
        }
    }

    /// For `map_err`: `what` was refused.
    pub(crate) fn refused<E: Into<io::Error>>(
        interface: &str,
        what: &'static str,
        remedy: &'static str,
    ) -> impl FnOnce(E) -> Error {
        let interface = interface.to_owned();
        move |cause| Error::Refused { interface, what, cause: cause.into(), remedy }
    }
}

fn reasons(refused: &[(AttachMode, io::Error)]) -> String {
    let reasons: Vec<_> = refused.iter().map(|(mode, e)| format!("{mode} mode: {e}")).collect();
    reasons.join("; ")
}
