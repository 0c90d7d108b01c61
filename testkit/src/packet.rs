//! A packet socket: frames as a stack sends and gets them.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::{FROM, Netns};

/// Sends through an interface what is given to it, and hears what the stack receives by it.
pub struct PacketSocket {
    socket: OwnedFd,
}

/// A frame as the stack has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The VLAN tag beside it: kind and value.
    pub tag: Option<(u16, u16)>,
    pub bytes: Vec<u8>,
}

impl PacketSocket {
    pub fn new(netns: &Netns, interface: &str) -> PacketSocket {
        let ifindex = netns.ifindex(interface);
        let open = || open(ifindex as i32);
        let socket = netns.enter(open);
        PacketSocket { socket: socket.unwrap_or_else(|e| panic!("{interface}: {e}")) }
    }

    pub fn send(&self, frame: &[u8]) {
        // SAFETY: the kernel reads `frame`.
        let sent =
            unsafe { libc::send(self.socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
    }

    /// The next [`frame`](crate::frame) that the interface received; panics after half a minute, which
    /// only a bug takes.
    pub fn hear(&self) -> Heard {
        self.next(0).unwrap_or_else(|e| panic!("the stack hears nothing: {e}"))
    }

    /// The next frame, if there is one already.
    pub fn try_hear(&self) -> Option<Heard> {
        self.next(libc::MSG_DONTWAIT).ok()
    }

    fn next(&self, flags: i32) -> io::Result<Heard> {
        loop {
            let (way, heard) = receive(&self.socket, flags)?;
            if way != libc::PACKET_OUTGOING && heard.bytes.get(6..12) == Some(&FROM[..]) {
                return Ok(heard);
            }
        }
    }
}

/// Seconds.
const LIMIT: libc::time_t = 30;
const ALL: u16 = (libc::ETH_P_ALL as u16).to_be();

fn open(ifindex: i32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no addresses.
    let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nothing else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let limit = libc::timeval { tv_sec: LIMIT, tv_usec: 0 };
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &limit)?;
    set(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1i32)?;
    // SAFETY: all bytes of the structure may be 0.
    let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ALL;
    address.sll_ifindex = ifindex;
    let length = size_of_val(&address) as u32;
    // SAFETY: the kernel reads `address`, of that length.
    done(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(socket)
}

fn set<T>(socket: &OwnedFd, level: i32, option: i32, value: &T) -> io::Result<()> {
    let length = size_of_val(value) as u32;
    let value = (&raw const *value).cast();
    // SAFETY: the kernel reads `value`, of that length.
    done(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) })
}

fn done(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Which way the frame went, and the frame.
fn receive(socket: &OwnedFd, flags: i32) -> io::Result<(u8, Heard)> {
    let mut bytes = vec![0; 64 << 10];
    let mut control = [0u64; 16];
    let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: all bytes of both structures may be 0.
    let (mut address, mut message): (libc::sockaddr_ll, libc::msghdr) =
        unsafe { (MaybeUninit::zeroed().assume_init(), MaybeUninit::zeroed().assume_init()) };
    message.msg_name = (&raw mut address).cast();
    message.msg_namelen = size_of_val(&address) as u32;
    (message.msg_iov, message.msg_iovlen) = (&raw mut piece, 1);
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: all that the message names is alive, with its length beside it.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    if length < 0 {
        return Err(io::Error::last_os_error());
    }
    bytes.truncate(length as usize);
    // SAFETY: the kernel has filled in the message.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    let told = header.filter(|header| header.cmsg_type == libc::PACKET_AUXDATA).map(|header| {
        // SAFETY: that is what a message of this type holds, wherever it lies.
        unsafe { libc::CMSG_DATA(header).cast::<libc::tpacket_auxdata>().read_unaligned() }
    });
    let told = told.expect("it was asked for");
    let valid = told.tp_status & libc::TP_STATUS_VLAN_VALID != 0;
    let tag = valid.then_some((told.tp_vlan_tpid, told.tp_vlan_tci));
    Ok((address.sll_pkttype, Heard { tag, bytes }))
}
