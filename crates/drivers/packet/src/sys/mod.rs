//! The unsafe code of this crate: the memory that it shares with the kernel, and the system calls on
//! AF_PACKET sockets that rustix does not wrap.
#![allow(unsafe_code)]

mod messages;
mod pieces;
mod ring_memory;
pub mod socket;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

pub use messages::{HEADROOM, MESSAGES, Message, Messages, time_messages};
pub use pieces::Pieces;
pub use ring_memory::RingMemory;

/// Packets in one system call at most.
pub const BATCH: usize = 64;

/// The address that an AF_PACKET socket is bound to: the interface's index is negative when that has gone, and
/// 0 where there has never been one.
pub fn bound_to(socket: BorrowedFd<'_>) -> io::Result<libc::sockaddr_ll> {
    // SAFETY: the structure is made of numbers: all of its bytes may be 0.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `address`, which is as long, made of numbers and
    // alive during the call.
    let result = unsafe {
        libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length)
    };
    check(result)?;
    if address.sll_family != libc::AF_PACKET as libc::c_ushort {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    Ok(address)
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use ringway_testkit::{Netns, datagram_sockets, skip_without_root};
    use rustix::net::{recv, send};

    use super::*;

    #[test]
    fn other_sockets_are_none_of_packets() {
        let (own, _peer) = datagram_sockets();
        let code = |error: io::Error| error.raw_os_error();
        assert_eq!(bound_to(own.as_fd()).map(drop).map_err(code), Err(Some(libc::EINVAL)));
        assert!(socket::take_drops(own.as_fd()).is_err());
        assert!(socket::is_pair(own.as_fd()).is_err());
    }

    #[test]
    fn the_end_of_a_pair_is_one() {
        if skip_without_root("the_end_of_a_pair_is_one") {
            return;
        }
        let netns = Netns::quiet("rwp");
        netns.run("ip link add p0 type veth peer name p1");
        netns.run("ip tuntap add t0 mode tap");
        let (yes, no) = (Some(true), Some(false));
        // The loopback interface does not tell a driver's name.
        for (name, is_pair) in [("p0", yes), ("p1", yes), ("t0", no), ("lo", None)] {
            let socket = netns.enter(socket::new).unwrap();
            let index = rustix::net::netdevice::name_to_index(&socket, name).unwrap();
            socket::bind(socket.as_fd(), index, 0).unwrap();
            // Also from elsewhere.
            assert_eq!(socket::is_pair(socket.as_fd()).ok(), is_pair, "{name}");
        }
    }

    /// Any socket takes one: of these packets, those that begin with a 7.
    #[test]
    fn a_filter_decides_what_is_received() {
        let (own, peer) = datagram_sockets();
        let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        let (load, jump, done) = (0x30, 0x15, 0x06);
        let mut program =
            [step(load, 0, 0, 0), step(jump, 0, 1, 7), step(done, 0, 0, 99), step(done, 0, 0, 0)];
        socket::set_filter(own.as_fd(), &mut program).unwrap();
        for first in [6, 7, 8, 7] {
            send(&peer, &[first, 1], rustix::net::SendFlags::empty()).unwrap();
        }
        let mut bytes = [0; 9];
        let mut received = 0;
        while recv(&own, &mut bytes[..], rustix::net::RecvFlags::DONTWAIT).is_ok() {
            assert_eq!(bytes[0], 7);
            received += 1;
        }
        assert_eq!(received, 2);
    }

    #[test]
    fn a_name_that_no_interface_can_have_is_refused() {
        let error = |name: &str| socket::driver(name).unwrap_err();
        assert_eq!(error("sixteen-letters-").kind(), io::ErrorKind::InvalidInput);
        assert_eq!(error("fifteen-letters").raw_os_error(), Some(libc::ENODEV));
    }
}
