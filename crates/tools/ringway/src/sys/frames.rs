//! Descriptors that each read of which is a frame: TAP devices and packet sockets.

use super::interfaces::named;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes a TAP device of that name of an open `/dev/net/tun`, or takes the one that there is.
pub fn be_tap(tun: impl AsFd, name: &str) -> io::Result<()> {
    let mut request = named(name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    let tun = tun.as_fd().as_raw_fd();
    // SAFETY: the kernel reads and writes the request alone, alive during the call; its name ends with a
    // zero.
    done(unsafe { libc::ioctl(tun, libc::TUNSETIFF, &raw mut request) })
}

/// Binds a packet socket to an interface, and makes it hear all that comes in there, to whomever.
pub fn hear_all(socket: impl AsFd, interface: u32) -> io::Result<()> {
    let socket = socket.as_fd().as_raw_fd();
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::c_ushort,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: interface as libc::c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel reads the address, of that length, alive during the call.
    done(unsafe { libc::bind(socket, (&raw const address).cast(), length) })?;
    let everything = libc::packet_mreq {
        mr_ifindex: interface as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    let (level, option) = (libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP);
    let length = size_of_val(&everything) as libc::socklen_t;
    let value = (&raw const everything).cast();
    // SAFETY: the kernel reads the option's value, of that length, alive during the call.
    done(unsafe { libc::setsockopt(socket, level, option, value, length) })
}
