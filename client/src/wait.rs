//! Waiting for slots.

use std::{
    io,
    time::{Duration, Instant},
};

use ringway_abi::Dir;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::BorrowedFd,
};

use crate::error::Error;

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Received packets.
    Rx,
    /// Room to send.
    Tx,
    /// Either.
    Both,
}

impl Interest {
    pub(crate) fn dirs(self) -> impl Iterator<Item = Dir> + Clone {
        let (tx, rx) = match self {
            Interest::Rx => (None, Some(Dir::Rx)),
            Interest::Tx => (Some(Dir::Tx), None),
            Interest::Both => (Some(Dir::Tx), Some(Dir::Rx)),
        };
        tx.into_iter().chain(rx)
    }
}

/// What ended a sleep.
pub(crate) enum Woken {
    /// The doorbells, perhaps.
    Rung,
    /// The daemon hung up.
    HungUp,
    TimedOut,
}

/// Sleeps until one of `sources` has what is asked of it, `connection` hangs up, or `deadline` is
/// there. A signal does not end it: the loop around it looks again anyway.
pub(crate) fn sleep<'a>(
    sources: impl Iterator<Item = (BorrowedFd<'a>, PollFlags)>,
    connection: Option<BorrowedFd<'a>>,
    deadline: Option<Instant>,
) -> Result<Woken, Error> {
    let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
    if left == Some(Duration::ZERO) {
        return Ok(Woken::TimedOut);
    }
    let timeout = left.map(|left| Timespec {
        tv_sec: left.as_secs().min(i64::MAX as u64) as i64,
        tv_nsec: left.subsec_nanos().into(),
    });
    // Only a hang-up of the connection matters; the kernel reports it unasked.
    let connection = connection.map(|fd| (fd, PollFlags::empty()));
    let has_connection = connection.is_some();
    let mut fds: Vec<_> = connection
        .into_iter()
        .chain(sources)
        .map(|(fd, events)| PollFd::from_borrowed_fd(fd, events))
        .collect();
    match poll(&mut fds, timeout.as_ref()) {
        Ok(0) => Ok(Woken::TimedOut),
        Ok(_) if has_connection && fds[0].revents().contains(PollFlags::HUP) => Ok(Woken::HungUp),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(Woken::Rung),
        Err(e) => Err(Error::System { what: "cannot wait", source: io::Error::from(e) }),
    }
}
