//! What a sleeping party listens to: a datagram socket connected to itself.
//!
//! An eventfd would do if its holders trusted each other. But whoever holds one can fill it
//! and take its `O_NONBLOCK` away, and the next `write`, in the daemon, would never return.
//! Calls on a socket say for themselves that they do not wait.

use std::io;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind,
        connect, getsockname, recv, send, socket_with,
    },
};

use crate::mailbox::Notify;

/// Rings taken in at once. More of them than that are somebody's who only wants to keep us.
const MAX_RINGS: usize = 16;

/// A socket that never blocks, rung by anyone who holds it. Readable while rung.
#[derive(Debug)]
pub struct Doorbell(OwnedFd);

impl Doorbell {
    /// A new, silent doorbell.
    pub fn new() -> io::Result<Doorbell> {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        // Without a name to bind to, the kernel finds one that is free. Once connected to
        // itself, the socket takes nothing from anybody else who guesses it.
        bind(&socket, &SocketAddrUnix::new_unnamed())?;
        connect(&socket, &getsockname(&socket)?)?;
        Ok(Doorbell(socket))
    }

    /// Wakes whoever listens. A doorbell that is rung already stays so: the error of a full queue
    /// says just that.
    pub fn notify(&self) {
        let _ = send(&self.0, &[], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    /// Silences the doorbell. Only a party that is about to arm, to look for work and then to
    /// sleep may do so, and where others listen too it rings again if it finds work: see
    /// `csb.rs` for what else would be lost. Says whether it had been rung.
    pub fn drain(&self) -> bool {
        let heard = || recv(&self.0, &mut [0u8; 1][..], RecvFlags::DONTWAIT).is_ok();
        (0..MAX_RINGS).take_while(|_| heard()).count() > 0
    }
}

impl Notify for Doorbell {
    fn notify(&self) {
        Doorbell::notify(self);
    }
}

impl From<OwnedFd> for Doorbell {
    fn from(fd: OwnedFd) -> Doorbell {
        Doorbell(fd)
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use rustix::{
        event::{PollFd, PollFlags, Timespec, poll},
        io::ioctl_fionbio,
    };

    use super::*;

    fn is_notified(doorbell: &Doorbell) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(doorbell, PollFlags::IN)], Some(&now)).unwrap() == 1
    }

    #[test]
    fn rings_until_silenced() {
        let doorbell = Doorbell::new().unwrap();
        assert!(!is_notified(&doorbell) && !doorbell.drain());
        doorbell.notify();
        doorbell.notify();
        assert!(is_notified(&doorbell) && doorbell.drain());
        assert!(!is_notified(&doorbell) && !doorbell.drain());
    }

    /// Another holder fills the doorbell, and makes it blocking: nobody waits for it.
    #[test]
    fn never_blocks() {
        let doorbell = Doorbell::new().unwrap();
        ioctl_fionbio(&doorbell, false).unwrap();
        (0..10_000).for_each(|_| doorbell.notify());
        while doorbell.drain() {}
        doorbell.notify();
        assert!(is_notified(&doorbell));
    }
}
