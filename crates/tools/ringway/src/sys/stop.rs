//! Ctrl-C and SIGTERM as an event: a data loop ends its batch and prints its summary.

use crate::error::{Error, Result};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the handler touches: it stays, for a signal may come at any time.
struct Signalled {
    requested: AtomicBool,
    wake: OwnedFd,
}

impl Signalled {
    fn new() -> Result<Signalled> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| Error::System { what: "eventfd", source: error.into() })?;
        Ok(Signalled { requested: AtomicBool::new(false), wake })
    }

    /// As a handler of signals may.
    fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
        // It fails when it was written to as often as a number has values: then it is readable.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

static SIGNALLED: OnceLock<Signalled> = OnceLock::new();

/// Becomes readable when the user wants the program to end.
pub struct Stop(&'static Signalled);

impl Stop {
    /// Takes over SIGINT and SIGTERM. A second signal ends the program at once.
    pub fn install() -> Result<Stop> {
        let new = Signalled::new()?;
        let signalled = SIGNALLED.get_or_init(|| new);
        for signal in [libc::SIGINT, libc::SIGTERM] {
            let fail = |source| Error::System { what: "taking over signals", source };
            handle(signal).map_err(fail)?;
        }
        Ok(Stop(signalled))
    }

    /// True once a signal has come. Costs one load.
    pub fn requested(&self) -> bool {
        self.0.requested.load(Ordering::Relaxed)
    }
}

/// Of a test alone, that other tests do not see.
#[cfg(test)]
impl Stop {
    pub fn of_test() -> Stop {
        Stop(Box::leak(Box::new(Signalled::new().unwrap())))
    }

    pub fn request(&self) {
        self.0.request();
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }
}

fn handle(signal: i32) -> io::Result<()> {
    // SAFETY: sigaction is plain old data, for which zero is a valid value (no flags, empty mask).
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_signal as extern "C" fn(i32) as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART | libc::SA_RESETHAND;
    // SAFETY: `action` is initialised and alive during the call; the old action is not asked for. The
    // handler may run at any moment and on any thread: it reads what was set before, stores an atomic and
    // makes one system call, by which not even errno changes; it allocates nothing and takes no lock.
    // Without SA_SIGINFO it is called with the one argument that it takes.
    match unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

extern "C" fn on_signal(_signal: i32) {
    if let Some(signalled) = SIGNALLED.get() {
        signalled.request();
    }
}
