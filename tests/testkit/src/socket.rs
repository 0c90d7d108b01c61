//! Sockets of this process, in the place of the kernel's or of another program's.

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// Two that are connected, and carry datagrams.
pub fn datagram_sockets() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .expect("there is a descriptor left")
}
