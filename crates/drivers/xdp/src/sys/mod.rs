//! The unsafe code of this crate: memory that it shares with the kernel, and the one system call on
//! AF_XDP sockets that rustix does not wrap.
#![allow(unsafe_code)]

mod ring;
mod time_flag;
mod umem;

use std::os::fd::{AsRawFd, BorrowedFd};

pub use ring::{Entry, Ring};
use rustix::io::Errno;
pub use time_flag::TimeFlag;
pub use umem::Umem;

/// Sends nothing, as AF_XDP wants it: without a buffer, which rustix's `send` always has.
pub fn send_nothing(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    let (fd, nothing) = (socket.as_raw_fd(), std::ptr::null());
    // SAFETY: the kernel reads none of a buffer of no bytes, wherever that is.
    match unsafe { libc::send(fd, nothing, 0, libc::MSG_DONTWAIT) } {
        0.. => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
