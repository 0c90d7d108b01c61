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
    pub(crate) fn dirs(self) -> impl Iterator<Item = Dir> {
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
    /// The bells, perhaps.
    Rung,
    /// The daemon hung up.
    HungUp,
    TimedOut,
}

/// Sleeps until `bells` is readable, `connection` hangs up, or `deadline` is there. A signal
/// does not end it: the loop around it looks again anyway.
pub(crate) fn sleep(
    bells: BorrowedFd<'_>,
    connection: Option<BorrowedFd<'_>>,
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
    let other = connection.unwrap_or(bells);
    let mut fds = [
        PollFd::from_borrowed_fd(bells, PollFlags::IN),
        PollFd::from_borrowed_fd(other, PollFlags::empty()),
    ];
    let count = if connection.is_some() { 2 } else { 1 };
    match poll(&mut fds[..count], timeout.as_ref()) {
        Ok(0) => Ok(Woken::TimedOut),
        Ok(_) if count == 2 && fds[1].revents().contains(PollFlags::HUP) => Ok(Woken::HungUp),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(Woken::Rung),
        Err(e) => Err(Error::System { what: "cannot wait", source: io::Error::from(e) }),
    }
}
