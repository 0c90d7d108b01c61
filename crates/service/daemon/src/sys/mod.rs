//! The daemon's unsafe code: system calls that have no safe interface, each behind a function that any
//! code may call.
#![allow(unsafe_code)]

mod interrupts;
mod processes;
mod signals;
mod sockets;

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

pub use interrupts::Interrupts;
#[cfg(test)]
pub use processes::{bpf_without_more, call, fork_anyway, ioctl_of_nothing};
pub use processes::{fork, keep_only};
use rustix::{
    io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd},
    thread::{UnshareFlags, unshare_unsafe},
};
pub use signals::{as_descriptor, ignore};
pub use sockets::{connected_by, netns_cookie, peer_groups, peer_pidfd};

/// Makes each object of 128 KiB or more a mapping of its own, which the kernel has back when the object is
/// freed. glibc's default threshold grows with what is freed, to 32 MiB: then the arena of each thread that
/// has opened an interface keeps megabytes.
pub fn return_large_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes and keeps numbers only.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10)
    };
}

/// Moves the calling thread into a network namespace of its own.
pub fn leave_netns() -> rustix::io::Result<()> {
    // SAFETY: what other code could count on is the table of descriptors and the file system of the
    // thread; both stay shared with the process's other threads.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
}

/// A descriptor that the program was started with, other than the standard ones. It is given once; the
/// program's children do not get it. EBADF: the program was not started with it.
pub fn inherited(fd: RawFd) -> rustix::io::Result<OwnedFd> {
    if fd <= libc::STDERR_FILENO {
        return Err(Errno::BADF);
    }
    // SAFETY: not -1. It is used by the two calls below alone, which fail if it is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    if fcntl_getfd(borrowed)?.contains(FdFlags::CLOEXEC) {
        return Err(Errno::BADF);
    }
    fcntl_setfd(borrowed, FdFlags::CLOEXEC)?;
    // SAFETY: it is open, and no other value owns it: what this process opens closes when a program is
    // executed, from the call on that opens it, and what was given here does since the call above. So
    // one that did not has come from the program's start, and is given for the first time.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Asks for memory that can be executed.
#[cfg(test)]
pub fn map_code() -> rustix::io::Result<()> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    let (rights, none) = (ProtFlags::READ | ProtFlags::EXEC, std::ptr::null_mut());
    // SAFETY: without an address the kernel chooses one where nothing is.
    let code = unsafe { mmap_anonymous(none, 4096, rights, MapFlags::PRIVATE)? };
    // SAFETY: the mapping of the call above, of that length, which nothing refers to.
    unsafe { munmap(code, 4096) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_descriptor_of_the_start_is_given_once_and_no_other() {
        let own = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(inherited(own.as_raw_fd()).unwrap_err(), Errno::BADF);
        assert_eq!(inherited(RawFd::MAX).unwrap_err(), Errno::BADF);
        assert_eq!(inherited(0).unwrap_err(), Errno::BADF);
        // As if it had come through `execve`.
        let copy = rustix::io::dup(&own).unwrap();
        let number = std::os::fd::IntoRawFd::into_raw_fd(copy);
        let given = inherited(number).unwrap();
        assert_eq!(inherited(number).unwrap_err(), Errno::BADF);
        assert_eq!(fcntl_getfd(&given), Ok(FdFlags::CLOEXEC));
    }
}
