//! What the kernel tells of a socket, and rustix does not ask.

use std::{
    ffi::c_int,
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

/// The value of a socket's option that has this many words.
fn option<const WORDS: usize>(socket: BorrowedFd<'_>, name: c_int) -> io::Result<[u32; WORDS]> {
    let mut value = [0; WORDS];
    let mut length = size_of_val(&value) as libc::socklen_t;
    let (to, length_at) = (value.as_mut_ptr().cast(), &raw mut length);
    // SAFETY: the kernel writes at most `length` bytes to `value`, any of which are numbers, and the
    // bytes that there are to `length`; both are alive during the call, and nothing refers to them.
    match unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, to, length_at) } {
        0 if length as usize == size_of_val(&value) => Ok(value),
        0 => Err(io::ErrorKind::InvalidData.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The process at the other end, as it was when the socket was connected, or of a pair's maker: its
/// number, which is 0 where it is in no pid namespace that this process sees, and its user id.
///
/// rustix has this call, for which a pid of 0 is undefined behaviour.
pub fn connected_by(socket: BorrowedFd<'_>) -> io::Result<(libc::pid_t, u32)> {
    let [pid, uid, _gid] = option(socket, libc::SO_PEERCRED)?;
    Ok((pid.cast_signed(), uid))
}

/// The groups of the process at the other end, as they were when the socket was connected.
pub fn peer_groups(socket: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    let [_pid, _uid, gid] = option(socket, libc::SO_PEERCRED)?;
    // The kernel's limit (NGROUPS_MAX), which few users come near.
    for most in [32, 1 << 16] {
        let mut groups = vec![0u32; most];
        let mut length = size_of_val(&groups[..]) as libc::socklen_t;
        let (to, length_at) = (groups.as_mut_ptr().cast(), &raw mut length);
        let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERGROUPS);
        // SAFETY: the kernel writes at most `length` bytes to `groups`, any of which are numbers,
        // and how many it has, or would have, written to `length`; both are alive during the call,
        // and nothing refers to them.
        match unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, to, length_at) } {
            0 => {
                groups.truncate(length as usize / size_of::<u32>());
                groups.push(gid);
                return Ok(groups);
            }
            _ => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ERANGE) => {}
                error => return Err(error),
            },
        }
    }
    Err(io::Error::from_raw_os_error(libc::ERANGE))
}

/// What tells the network namespace of a socket from every other. Kernel 5.14 and newer.
pub fn netns_cookie(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let words: [u32; 2] = option(socket, libc::SO_NETNS_COOKIE)?;
    let mut cookie = [0; 8];
    cookie.copy_from_slice(words.map(u32::to_ne_bytes).as_flattened());
    Ok(u64::from_ne_bytes(cookie))
}

/// The process that connected. Kernel 6.5 and newer.
pub fn peer_pidfd(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let [fd] = option(socket, libc::SO_PEERPIDFD)?;
    // SAFETY: the kernel has just made this descriptor, and no other value owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd.cast_signed()) })
}
