//! Which network namespace this is.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::AsRawFd;

/// The number by which the kernel knows the calling thread's network namespace, and no other while the machine runs
/// (Linux 5.14).
pub fn netns_cookie() -> io::Result<u64> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    let mut cookie = 0u64;
    let mut len = size_of_val(&cookie) as libc::socklen_t;
    let value = std::ptr::from_mut(&mut cookie).cast();
    // SAFETY: the kernel writes at most `len` bytes, the size of `cookie`, and the new length to `len`; both live until
    // the call returns.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            value,
            &mut len,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(cookie) }
}
