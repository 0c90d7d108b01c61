//! Many datagrams with one call: see `recvmmsg(2)`.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::{io, mem, ptr};

/// Bytes of the longest datagram; what is longer is cut.
const LONGEST: usize = 2048;

/// A socket, and room for `N` datagrams.
pub struct Datagrams<const N: usize> {
    socket: UdpSocket,
    messages: Box<[libc::mmsghdr; N]>,
    // What the messages point to.
    _vectors: Box<[libc::iovec; N]>,
    _room: Vec<[u8; LONGEST]>,
}

impl<const N: usize> Datagrams<N> {
    pub fn new(socket: UdpSocket) -> Datagrams<N> {
        let mut room = vec![[0; LONGEST]; N];
        let mut vectors = Box::new([libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; N]);
        // SAFETY: made of numbers and addresses: all zero is a message of nothing.
        let mut messages = Box::new(unsafe { mem::zeroed::<[libc::mmsghdr; N]>() });
        let places = room.iter_mut().zip(vectors.iter_mut()).zip(messages.iter_mut());
        for ((bytes, vector), message) in places {
            *vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: LONGEST };
            (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (vector, 1);
        }
        Datagrams { socket, messages, _vectors: vectors, _room: room }
    }

    /// Takes what there is, `N` at most; returns how many that were. It waits for the first as long as the socket's
    /// timeout says.
    pub fn receive(&mut self) -> io::Result<usize> {
        let (fd, most) = (self.socket.as_raw_fd(), N as libc::c_uint);
        let messages = self.messages.as_mut_ptr();
        // SAFETY: `most` messages, whose vectors and bytes are on the heap and live as long as `self`; nothing else
        // refers to them. A null timeout is none.
        let got =
            unsafe { libc::recvmmsg(fd, messages, most, libc::MSG_WAITFORONE, ptr::null_mut()) };
        match got {
            0.. => Ok(got as usize),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                error => Err(error),
            },
        }
    }
}
