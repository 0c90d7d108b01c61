//! The parts of the daemon that are processes of their own.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

/// The first descriptor that is not the standard input, output or error output.
const FIRST: libc::c_int = 3;

/// Makes a copy of this process. True in the copy. It fails where there are other threads, which the copy
/// would not have, but what they hold.
pub fn fork() -> io::Result<bool> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("the process has several threads"));
    }
    // SAFETY: there is no other thread that could hold a lock, or have anything half done: it would be
    // another entry of the folder, and only a thread of this process could start one meanwhile.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(child == 0),
    }
}

/// Closes all descriptors but the standard ones and these, which get other numbers.
///
/// For a process that [`fork`] has made, which uses no other value that owned one, and [exits](std::process::exit)
/// without dropping it: such a value now names nothing, or what is opened next.
pub fn keep_only(fd: OwnedFd, other: Option<OwnedFd>) -> io::Result<(OwnedFd, Option<OwnedFd>)> {
    // Out of the way first: one may have the number that another is to have.
    let move_up = |fd: OwnedFd| rustix::io::fcntl_dupfd_cloexec(&fd, FIRST + 2);
    let (fd, other) = (move_up(fd)?, other.map(move_up).transpose()?);
    let place = |fd: OwnedFd, number: libc::c_int| {
        // SAFETY: numbers. What the descriptor was before is no one's any more, as the caller promises.
        if unsafe { libc::dup3(fd.as_raw_fd(), number, libc::O_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // It is closed below.
        std::mem::forget(fd);
        // SAFETY: open, by the call above, and no other value owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(number) })
    };
    let fd = place(fd, FIRST)?;
    let other = other.map(|other| place(other, FIRST + 1)).transpose()?;
    let rest = FIRST + 1 + libc::c_int::from(other.is_some());
    // SAFETY: numbers; the descriptors are no one's any more, as above.
    if unsafe { libc::syscall(libc::SYS_close_range, rest, u32::MAX, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((fd, other))
}

/// A call with arguments that no kernel takes, or none at all.
#[cfg(test)]
pub fn call(number: libc::c_long) -> io::Result<()> {
    // SAFETY: no number stands for memory or a descriptor that there is.
    match unsafe { libc::syscall(number, -1, -1, -1, -1, -1, -1) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A request of `ioctl(2)` about no file.
#[cfg(test)]
pub fn ioctl_of_nothing(request: libc::c_ulong) -> io::Result<()> {
    // SAFETY: there is no such descriptor, so the kernel reads nothing.
    match unsafe { libc::syscall(libc::SYS_ioctl, -1, request, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A command of `bpf(2)` that is told nothing.
#[cfg(test)]
pub fn bpf_without_more(command: libc::c_long) -> io::Result<()> {
    // SAFETY: the kernel reads no byte of what it is told.
    match unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::null::<u8>(), 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A process that ends at once, if the kernel lets this one make it.
#[cfg(test)]
pub fn fork_anyway() -> io::Result<()> {
    // SAFETY: the copy makes one call that does not return, and touches nothing.
    match unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: as above.
        0 => unsafe { libc::_exit(0) },
        _ => Ok(()),
    }
}
