//! Telling the kernel to look at the rings, and what its answer means for the descriptors.

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::sys::send_nothing;

/// What one kick did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KickOutcome {
    /// The kernel went as far as it could; it stops early, without a word, after an invalid
    /// descriptor. Done when the TX ring is empty, else kick again.
    Sent,
    /// More was left than the budget, or the completion ring, the send buffer or the qdisc is full:
    /// the kernel does not say which. What it did not consume stays in the ring: drain the
    /// completions and kick again.
    Again,
    /// The last consumed frame was lost (the peer's ring is full, the peer is down, or the frame
    /// is shorter than 14 bytes or longer than the MTU allows); it completes like the others.
    Lost,
    /// The interface is down; the descriptors stay and go out once it is up and kicked.
    LinkDown,
    /// The interface is gone for good. Poll would report nothing.
    Gone,
}

/// Makes the kernel send what the TX ring holds, up to its budget.
///
/// The same call for copy and zero-copy, privileged or not. Kick until [`crate::Producer::pending`]
/// is 0 or an answer says that it is no use now. An errno returned is none of the kernel's answers
/// for AF_XDP (EBADF: `fd` is no socket).
pub fn kick_tx(fd: impl AsFd) -> rustix::io::Result<KickOutcome> {
    match send_nothing(fd.as_fd()) {
        Ok(()) => Ok(KickOutcome::Sent),
        // NOBUFS: no memory for an skb; the descriptor stays.
        Err(Errno::AGAIN | Errno::NOBUFS) => Ok(KickOutcome::Again),
        Err(Errno::BUSY) => Ok(KickOutcome::Lost),
        Err(Errno::NETDOWN) => Ok(KickOutcome::LinkDown),
        Err(Errno::NXIO) => Ok(KickOutcome::Gone),
        Err(other) => Err(other),
    }
}

/// Makes the kernel look at the FILL ring: needed when [`crate::Producer::needs_wakeup`] says so
/// (zero-copy drivers out of buffers).
pub fn kick_rx(fd: impl AsFd) -> rustix::io::Result<KickOutcome> {
    match recv(fd, &mut [0u8; 0][..], RecvFlags::DONTWAIT) {
        Ok(_) => Ok(KickOutcome::Sent),
        Err(Errno::AGAIN | Errno::NOBUFS | Errno::BUSY) => Ok(KickOutcome::Again),
        Err(Errno::NETDOWN) => Ok(KickOutcome::LinkDown),
        Err(Errno::NXIO) => Ok(KickOutcome::Gone),
        Err(other) => Err(other),
    }
}
