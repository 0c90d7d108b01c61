//! A process beside this one, which does what this one may not.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Signals that ask a command to end.
const ENDS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// Starts a process that runs `serve` with an end of a pair of sockets, and ends with this one.
///
/// It has no other descriptors, and writes nothing to those that are standard. What asks this process to end, as the terminal
/// asks all of a group, does not end it: this one may still need it then.
///
/// # Errors
/// Those of `fork(2)`, and that this process has other threads, which the other would not have, but what they hold.
pub fn start_beside(end: OwnedFd, serve: impl FnOnce(OwnedFd)) -> io::Result<()> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("the process has several threads"));
    }
    let parent = rustix::process::getpid();
    // SAFETY: there is no other thread that could hold a lock, or have anything half done: it would be another entry of the
    // folder, and only a thread of this process could start one meanwhile.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {}
        _ => return Ok(()),
    }
    let served = AssertUnwindSafe(|| {
        // SAFETY: numbers. The signal comes when the parent's thread ends, which is its only one now and its first, or has
        // ended by the time that is looked at below.
        let bound = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } == 0;
        for signal in ENDS {
            // SAFETY: no code runs when the signal comes.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        if bound && rustix::process::getppid() == Some(parent) && keep_only(&end).is_ok() {
            serve(end);
        }
    });
    // A panic has been told on a standard error that leads nowhere, or to the user where it comes that early.
    let _ = catch_unwind(served);
    // SAFETY: it ends the process, whose parent writes what is buffered.
    unsafe { libc::_exit(0) }
}

/// Closes all descriptors but this one, and has the standard ones lead nowhere: a reader of what the parent writes sees the end
/// of it when the parent ends.
fn keep_only(end: &OwnedFd) -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    for standard in 0..=libc::STDERR_FILENO {
        // SAFETY: numbers. Standard descriptors are owned by no value.
        if unsafe { libc::dup2(null.as_raw_fd(), standard) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    let kept = end.as_raw_fd() as libc::c_uint;
    let all_but = [
        (libc::STDERR_FILENO as libc::c_uint + 1, kept.wrapping_sub(1)),
        (kept + 1, libc::c_uint::MAX),
    ];
    // `null` is among them.
    std::mem::forget(null);
    for (from, to) in all_but.into_iter().filter(|(from, to)| from <= to) {
        // SAFETY: numbers; values of the parent's that own these descriptors are not used in this process any more, nor
        // dropped: it ends by `_exit`.
        if unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// A call with arguments that no kernel takes, or none at all.
#[cfg(test)]
pub fn raw_call(number: libc::c_long) -> io::Result<()> {
    raw_call_of(number, -1)
}

/// The same, where the first argument is that.
#[cfg(test)]
pub fn raw_call_of(number: libc::c_long, first: libc::c_long) -> io::Result<()> {
    // SAFETY: no number stands for memory that there is; 0 and 1, as a descriptor, are changed by no call of the tests.
    match unsafe { libc::syscall(number, first, -1, -1, -1, -1, -1) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
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
