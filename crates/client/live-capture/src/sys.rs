//! Waiting in a thread of the program's, which the program may cancel (`pthread_cancel`); and another file behind a
//! descriptor.
#![allow(unsafe_code)]

use std::{
    io,
    ptr::{from_ref, null},
};

use libc::{c_int, nfds_t, pollfd, sigset_t, timespec};
use rustix::{
    event::{PollFlags, Timespec},
    fd::{AsRawFd, BorrowedFd, OwnedFd},
    io::Errno,
};

unsafe extern "C-unwind" {
    /// libc's, for that unwinds the stack of a cancelled thread, as a panic does. A system call would go on.
    fn ppoll(
        fds: *mut pollfd,
        count: nfds_t,
        timeout: *const timespec,
        mask: *const sigset_t,
    ) -> c_int;
}

/// Waits for any of these events; returns those of each descriptor. A thread that is cancelled ends here, and drops
/// what its callers hold. A handler of a signal may jump out of it: its callers hold nothing that others wait for, so a
/// descriptor is a number, which its owner has open as long as the port.
///
/// # Errors
/// Those of `poll(2)`; a signal is EINTR.
pub fn poll(
    fds: &[(impl AsRawFd, PollFlags)],
    timeout: Option<Timespec>,
) -> Result<Vec<PollFlags>, Errno> {
    let asked = fds.iter().map(|(fd, events)| pollfd {
        fd: fd.as_raw_fd(),
        events: events.bits() as i16,
        revents: 0,
    });
    let mut list: Vec<pollfd> = asked.collect();
    let timeout = timeout.map(|t| timespec { tv_sec: t.tv_sec, tv_nsec: t.tv_nsec });
    let timeout = timeout.as_ref().map_or(null(), from_ref);
    // SAFETY: the list has so many entries, and the time is there or null; no mask is set.
    let ready = unsafe { ppoll(list.as_mut_ptr(), list.len() as nfds_t, timeout, null()) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
    }
    Ok(list.iter().map(|fd| PollFlags::from_bits_retain(fd.revents as u16)).collect())
}

/// Has the file of another descriptor behind this one; its own is closed.
pub fn replace_fd(fd: BorrowedFd<'_>, by: OwnedFd) -> io::Result<()> {
    // SAFETY: both are open, and the first stays what its owner has open.
    let result = unsafe { libc::dup3(by.as_raw_fd(), fd.as_raw_fd(), libc::O_CLOEXEC) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
