//! The mask of signals.
#![allow(unsafe_code)]

use std::{mem, ptr};

/// Runs `spawn` with all signals blocked in the calling thread.
pub(crate) fn without_signals<T>(spawn: impl FnOnce() -> T) -> T {
    // SAFETY: sets of signals are plain data, and the calls write to these alone.
    unsafe {
        let (mut all, mut before) = (mem::zeroed(), mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let spawned = spawn();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        spawned
    }
}
