//! Threads of a library's own in a program's process: the program's signals are for its own threads.
//!
//! The preload library has its own in `interpose`, which makes no calls of libc's that a program may have taken over.
#![deny(unsafe_code)]
#![deny(missing_docs)]

mod sys;

use std::{
    io,
    thread::{Builder, JoinHandle},
};

/// Starts a thread of this name that takes no signals.
///
/// # Errors
/// Those of [`Builder::spawn`].
pub fn helper_thread<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // It has the mask of the thread that makes it.
    sys::without_signals(|| Builder::new().name(name.into()).spawn(body))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The signals that a thread does not take, as the kernel says.
    fn blocked() -> u64 {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }

    #[test]
    fn it_takes_no_signals_and_those_of_the_caller_stay() {
        let before = blocked();
        let inside = helper_thread("helper", || {
            (blocked(), std::thread::current().name().map(String::from))
        });
        let (inside, name) = inside.unwrap().join().unwrap();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGALRM, libc::SIGUSR1, libc::SIGCHLD] {
            assert!(inside >> (signal - 1) & 1 == 1, "{signal}");
        }
        assert_eq!((blocked(), name.as_deref()), (before, Some("helper")));
    }
}
