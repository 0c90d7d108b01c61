//! Ctrl-C, SIGQUIT, SIGTERM and SIGHUP as an event: a data loop ends its batch and prints its summary.

use crate::error::{Error, Result};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Signals that come so soon after the first are one with it: coreutils' `timeout` signals its child, and then the
/// child's process group.
const TOGETHER: Duration = Duration::from_millis(500);

/// What the handler touches: it stays, for a signal may come at any time.
struct Signalled {
    requested: AtomicBool,
    wake: OwnedFd,
    /// The first signal came so many nanoseconds after `since`.
    since: Instant,
    first: AtomicU64,
}

impl Signalled {
    fn new() -> Result<Signalled> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| Error::System { what: "eventfd", source: error.into() })?;
        let (since, first) = (Instant::now(), AtomicU64::new(u64::MAX));
        Ok(Signalled { requested: AtomicBool::new(false), wake, since, first })
    }

    /// Whether a signal that comes now is the first, or one with it. As a handler of signals may.
    fn is_first(&self) -> bool {
        let now = self.since.elapsed().as_nanos() as u64;
        now < self
            .first
            .fetch_min(now, Ordering::Relaxed)
            .saturating_add(TOGETHER.as_nanos() as u64)
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
    /// Takes over SIGINT, SIGQUIT, SIGTERM and, unless it is ignored as under nohup(1), SIGHUP. A signal later than half a
    /// second after the first ends the program at once.
    pub fn install() -> Result<Stop> {
        let new = Signalled::new()?;
        let signalled = SIGNALLED.get_or_init(|| new);
        let fail = |source| Error::System { what: "taking over signals", source };
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
            if signal != libc::SIGHUP || !is_ignored(signal).map_err(fail)? {
                handle(signal).map_err(fail)?;
            }
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
    act(signal, on_signal as extern "C" fn(i32) as libc::sighandler_t)
}

fn is_ignored(signal: i32) -> io::Result<bool> {
    // SAFETY: sigaction is plain old data, for which zero is a valid value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: no action is set, and the present one is written to `action`, which is alive during the call.
    match unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) } {
        0 => Ok(action.sa_sigaction == libc::SIG_IGN),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Chooses what a signal does: a handler, or `SIG_DFL`.
fn act(signal: i32, handler: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: sigaction is plain old data, for which zero is a valid value (no flags, empty mask).
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: `action` is initialised and alive during the call; the old action is not asked for. The
    // handler may run at any moment and on any thread: it reads what was set before, stores atomics, reads the
    // clock, and makes system calls that signal-safety(7) allows, by which not even errno changes; it allocates
    // nothing and takes no lock. Without SA_SIGINFO it is called with the one argument that it takes.
    match unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

extern "C" fn on_signal(signal: i32) {
    let Some(signalled) = SIGNALLED.get() else { return };
    if signalled.is_first() {
        signalled.request();
    } else if act(signal, libc::SIG_DFL).is_ok() {
        // It is blocked until the handler returns, and then ends the program.
        // SAFETY: raise takes any number, and a handler may call it.
        unsafe { libc::raise(signal) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_together_are_one() {
        let signalled = Signalled::new().unwrap();
        assert!(signalled.is_first() && signalled.is_first());
        let since = signalled.since.checked_sub(2 * TOGETHER).unwrap();
        let signalled = Signalled { since, first: AtomicU64::new(0), ..signalled };
        assert!(!signalled.is_first());
    }
}
