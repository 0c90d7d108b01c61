//! Ctrl-C and SIGTERM as an event: a data loop ends its batch and prints its summary.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The eventfd that the signal handler writes to. -1: none yet.
static WAKE: AtomicI32 = AtomicI32::new(-1);
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Becomes readable when the user wants the program to end.
pub struct Stop {
    wake: OwnedFd,
}

impl Stop {
    /// Takes over SIGINT and SIGTERM. Call once. A second signal ends the program at once.
    pub fn install() -> Result<Stop> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| Error::System { what: "eventfd", source: error.into() })?;
        WAKE.store(wake.as_raw_fd(), Ordering::Release);
        for signal in [libc::SIGINT, libc::SIGTERM] {
            handle(signal)
                .map_err(|source| Error::System { what: "taking over signals", source })?;
        }
        Ok(Stop { wake })
    }

    /// True once a signal has come. Costs one load.
    pub fn requested(&self) -> bool {
        REQUESTED.load(Ordering::Relaxed)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

fn handle(signal: i32) -> io::Result<()> {
    // SAFETY: sigaction is plain old data, for which zero is a valid value (no flags, empty mask).
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_signal as *const () as usize;
    action.sa_flags = libc::SA_RESTART | libc::SA_RESETHAND;
    // SAFETY: `action` is initialised and outlives the call; the old action is not asked for; the
    // handler only makes calls that are allowed in signal handlers.
    match unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

extern "C" fn on_signal(_signal: i32) {
    REQUESTED.store(true, Ordering::Relaxed);
    let one = 1u64.to_ne_bytes();
    let wake = WAKE.load(Ordering::Acquire);
    // SAFETY: `one` is eight readable bytes. A descriptor that is closed by now gives EBADF.
    unsafe { libc::write(wake, one.as_ptr().cast(), one.len()) };
}
