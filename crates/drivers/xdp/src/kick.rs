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
    /// More was left than the budget, or the completion ring, the send buffer or the qdisc is full, or a driver in
    /// zero-copy mode is being set up anew: the kernel does not say which. What it did not consume stays in the ring:
    /// drain the completions and kick again.
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
/// for AF_XDP (EBADF: `fd` is no descriptor).
pub fn kick_tx(fd: impl AsFd) -> rustix::io::Result<KickOutcome> {
    match send_nothing(fd.as_fd()) {
        Ok(()) => Ok(KickOutcome::Sent),
        Err(Errno::BUSY) => Ok(KickOutcome::Lost),
        Err(errno) => refusal(errno, || is_bound(&fd)),
    }
}

/// Makes the kernel look at the FILL ring: needed when [`crate::Producer::needs_wakeup`] says so
/// (zero-copy drivers out of buffers).
pub fn kick_rx(fd: impl AsFd) -> rustix::io::Result<KickOutcome> {
    match recv(&fd, &mut [0u8; 0][..], RecvFlags::DONTWAIT) {
        Ok(_) => Ok(KickOutcome::Sent),
        Err(Errno::BUSY) => Ok(KickOutcome::Again),
        Err(errno) => refusal(errno, || is_bound(&fd)),
    }
}

/// What an answer means that is the same for both.
#[cold]
fn refusal(errno: Errno, is_bound: impl FnOnce() -> bool) -> rustix::io::Result<KickOutcome> {
    match errno {
        // NOBUFS: no memory for an skb; the descriptor stays.
        Errno::AGAIN | Errno::NOBUFS => Ok(KickOutcome::Again),
        Errno::NETDOWN => Ok(KickOutcome::LinkDown),
        // The kernel's own answer for a socket whose interface has gone, but also that of drivers in zero-copy mode
        // whose queue has no program or memory for a moment: they are reset, or get other queues (ixgbe, igc, mlx5).
        Errno::NXIO if !is_bound() => Ok(KickOutcome::Gone),
        // So do others (i40e, ice).
        Errno::NXIO | Errno::INVAL => Ok(KickOutcome::Again),
        other => Err(other),
    }
}

/// Whether a socket is still bound to its interface: it is not once that has gone, and will never be again.
///
/// An AF_XDP socket refuses to wait (EOPNOTSUPP), but says first whether it is bound; it never gets to the driver. Only
/// for these sockets: others would wait.
pub fn is_bound(fd: impl AsFd) -> bool {
    recv(fd, &mut [0u8; 0][..], RecvFlags::empty()) != Err(Errno::NXIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver that is not ready is asked again; one whose interface has gone, never.
    #[test]
    fn only_what_is_unbound_has_gone() {
        let says = |errno, is_bound| refusal(errno, || is_bound);
        for is_bound in [false, true] {
            assert_eq!(says(Errno::INVAL, is_bound), Ok(KickOutcome::Again));
            assert_eq!(says(Errno::AGAIN, is_bound), Ok(KickOutcome::Again));
            assert_eq!(says(Errno::NETDOWN, is_bound), Ok(KickOutcome::LinkDown));
            assert_eq!(says(Errno::BADF, is_bound), Err(Errno::BADF));
        }
        assert_eq!(says(Errno::NXIO, true), Ok(KickOutcome::Again));
        assert_eq!(says(Errno::NXIO, false), Ok(KickOutcome::Gone));
    }
}
