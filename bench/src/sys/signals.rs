//! Signals that a thread waits for.

use std::{io, mem::MaybeUninit, ptr::null_mut};

/// Signals that interrupt nothing any more, and end nothing.
pub struct Signals(libc::sigset_t);

impl Signals {
    /// Holds these signals back from the calling thread, and from those that it starts.
    pub fn hold_back(signals: &[libc::c_int]) -> io::Result<Signals> {
        let mut set = MaybeUninit::uninit();
        // SAFETY: the call fills in the set, which is alive.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: filled in by the call above, which cannot fail.
        let mut set = unsafe { set.assume_init() };
        for &signal in signals {
            // SAFETY: an initialised set, alive during the call. What is no signal is refused.
            unsafe { libc::sigaddset(&mut set, signal) };
        }
        // SAFETY: an initialised set, alive during the call; the old one is not asked for.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, null_mut()) } {
            0 => Ok(Signals(set)),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Waits until there is one.
    pub fn wait(&self) -> io::Result<libc::c_int> {
        let mut signal = 0;
        // SAFETY: it reads the set and writes the number, both alive during the call.
        match unsafe { libc::sigwait(&self.0, &mut signal) } {
            0 => Ok(signal),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}
