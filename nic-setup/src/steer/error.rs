//! Why flows cannot be steered.

use std::io;

/// Each names the interface, the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The driver has no table to take a queue out of.
    #[error(
        "{interface}: its driver cannot keep other traffic off a queue (no RSS table: {cause}); \
         use a NIC that can, or a filter: `ringway filter`"
    )]
    NoTable { interface: String, cause: io::Error },
    /// There is nowhere for the other traffic to go.
    #[error(
        "{interface}: queue {queue} is the only one of its {queues} that gets traffic; \
         `ethtool -L {interface} combined N` makes more"
    )]
    OnlyQueue { interface: String, queue: u32, queues: u32 },
    /// The queue is beyond the device.
    #[error("{interface}: there is no queue {queue}, only {queues} (numbered from 0)")]
    NoQueue { interface: String, queue: u32, queues: u32 },
    /// The driver does not take rules.
    #[error("{interface}: its driver takes no flow rules: {cause}; use a NIC that does")]
    NoRules { interface: String, cause: io::Error },
    /// The driver does not take this rule.
    #[error("{interface}: its driver refuses to steer `{flow}`: {cause}; ask for another flow")]
    Rule { interface: String, flow: String, cause: io::Error },
    /// Every place for a rule is taken.
    #[error("{interface}: all {size} places for flow rules are taken; `ethtool -n {interface}`")]
    Full { interface: String, size: usize },
    /// The kernel refused something that drivers with these features take.
    #[error("{interface}: {what}: {cause}; it takes CAP_NET_ADMIN")]
    Refused { interface: String, what: &'static str, cause: io::Error },
}

impl Error {
    /// The errno that says it best.
    pub fn errno(&self) -> i32 {
        let cause = match self {
            Error::OnlyQueue { .. } | Error::NoQueue { .. } => return libc::EINVAL,
            Error::Full { .. } => return libc::ENOSPC,
            Error::NoTable { cause, .. }
            | Error::NoRules { cause, .. }
            | Error::Rule { cause, .. }
            | Error::Refused { cause, .. } => cause,
        };
        cause.raw_os_error().unwrap_or(libc::EIO)
    }
}
