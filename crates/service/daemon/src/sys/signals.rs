//! What becomes of signals to the process.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{FromRawFd, OwnedFd},
    ptr::null_mut,
};

use libc::c_int;

fn set(signals: &[c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the call fills in the set, which is alive.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: filled in by the call above, which cannot fail.
    let mut set = unsafe { set.assume_init() };
    for &signal in signals {
        // SAFETY: an initialised set, alive during the call. What is no signal is refused.
        unsafe { libc::sigaddset(&mut set, signal) };
    }
    set
}

/// Signals as a descriptor, which is readable when there is one. Neither this thread nor the threads
/// that it starts are interrupted or ended by them any more.
pub fn as_descriptor(signals: &[c_int]) -> io::Result<OwnedFd> {
    let set = set(signals);
    // SAFETY: an initialised set, alive during the call; the old one is not asked for.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, null_mut()) } {
        0 => (),
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    // SAFETY: as above.
    match unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) } {
        fd if fd < 0 => Err(io::Error::last_os_error()),
        // SAFETY: the kernel has just made this descriptor, and no other value owns it.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

/// The process ignores these signals from now on, and so do the programs that it executes.
pub fn ignore(signals: &[c_int]) {
    for &signal in signals {
        // SAFETY: no code runs when the signal comes. What is no signal is refused.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// What a signal interrupts ends with EINTR from now on, and nothing else happens.
pub(super) fn let_interrupt(signal: c_int) {
    extern "C" fn nothing(_: c_int) {}
    let handler = nothing as extern "C" fn(c_int) as libc::sighandler_t;
    // SAFETY: all zeros are a valid action: no flags, so that what it interrupts is not begun anew.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    // SAFETY: an initialised action, alive during the call, whose handler may be called at any moment
    // and on any thread, for it touches nothing; without SA_SIGINFO it is called with the one argument
    // that it takes. The old action is not asked for.
    unsafe { libc::sigaction(signal, &action, null_mut()) };
}
