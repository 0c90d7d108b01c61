//! Packet sockets that tell of frames what their data does not say.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};

use crate::Heard;

/// How long it waits to hear something.
const LIMIT: Duration = Duration::from_secs(30);
const ALL: u16 = (libc::ETH_P_ALL as u16).to_be();

/// A packet socket of an interface, which hears all and tells of tags.
pub fn hearing(ifindex: i32) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(LIMIT))?;
    let (level, option, on) = (libc::SOL_PACKET, libc::PACKET_AUXDATA, 1i32);
    let (value, length) = ((&raw const on).cast(), size_of_val(&on) as u32);
    // SAFETY: the kernel reads `on`, of that length.
    done(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) })?;
    // SAFETY: the structure is made of numbers: all of its bytes may be 0.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ALL;
    address.sll_ifindex = ifindex;
    let length = size_of_val(&address) as u32;
    // SAFETY: the kernel reads `address`, of that length.
    done(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(socket)
}

fn done(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Which way the next frame went, and the frame.
pub fn receive(socket: &OwnedFd, flags: i32) -> io::Result<(u8, Heard)> {
    let mut bytes = vec![0; 64 << 10];
    let mut control = [0u64; 16];
    let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the structure is made of numbers: all of its bytes may be 0.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    // SAFETY: the structure is made of numbers and addresses that may be null.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_name = (&raw mut address).cast();
    message.msg_namelen = size_of_val(&address) as u32;
    (message.msg_iov, message.msg_iovlen) = (&raw mut piece, 1);
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: what the message points to is alive during the call and written by the kernel alone, at most
    // as much as the length beside it says.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    if length < 0 {
        return Err(io::Error::last_os_error());
    }
    bytes.truncate(length as usize);
    // SAFETY: the kernel has filled in the message, and its header, if there is one, lies in `control`,
    // which is aligned for it and alive.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    let is_told = |header: &&libc::cmsghdr| {
        (header.cmsg_level, header.cmsg_type) == (libc::SOL_PACKET, libc::PACKET_AUXDATA)
    };
    let told = header.filter(is_told).map(|header| {
        // SAFETY: a message of this type holds that structure, of numbers, behind the header.
        unsafe { libc::CMSG_DATA(header).cast::<libc::tpacket_auxdata>().read_unaligned() }
    });
    let told = told.expect("it was asked for");
    let valid = told.tp_status & libc::TP_STATUS_VLAN_VALID != 0;
    let tag = valid.then_some((told.tp_vlan_tpid, told.tp_vlan_tci));
    Ok((address.sll_pkttype, Heard { tag, bytes }))
}
