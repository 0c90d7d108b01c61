//! Sending: by a packet socket through an interface, as complete frames.

use std::{ffi::c_int, io};

use ringway_packet::socket;
use rustix::{
    fd::{AsFd, OwnedFd},
    io::Errno,
    net::{SendFlags, send},
};

/// A socket that sends, and receives nothing.
pub struct Sender(OwnedFd);

impl Sender {
    pub fn new(index: u32) -> io::Result<Sender> {
        let fd = socket::new()?;
        socket::bind(fd.as_fd(), index, 0)?;
        Ok(Sender(fd))
    }

    /// Hands a packet to the interface's queue; an error number else: ENOBUFS where there is no room.
    pub fn send(&self, packet: &[u8]) -> Result<(), c_int> {
        match send(&self.0, packet, SendFlags::DONTWAIT) {
            Ok(_) => Ok(()),
            Err(Errno::AGAIN) => Err(libc::ENOBUFS),
            Err(error) => Err(error.raw_os_error()),
        }
    }
}
