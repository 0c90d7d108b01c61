//! The network namespace in which a caller means names of interfaces.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Where the names of interfaces in a request are meant. To be told by who knows, never by the request.
#[derive(Debug, Default)]
pub enum Netns {
    /// This process's.
    #[default]
    Own,
    Other(OwnedFd),
    /// It is not known, or not to be entered, for that reason: what takes an interface is refused.
    Unknown(&'static str),
}

impl Netns {
    /// A descriptor, where it is known and another one than this process's.
    pub(crate) fn other(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Netns::Other(fd) => Some(fd.as_fd()),
            _ => None,
        }
    }

    /// Whether names of this process's interfaces are meant.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self, Netns::Own)
    }

    /// What tells the namespace from others; `None`: it is this process's.
    pub(crate) fn id(&self) -> Option<u64> {
        match self {
            Netns::Own => None,
            // It fails for a descriptor that is none: no namespace has this number.
            Netns::Other(fd) => Some(rustix::fs::fstat(fd).map_or(u64::MAX, |stat| stat.st_ino)),
            Netns::Unknown(_) => Some(u64::MAX),
        }
    }
}
