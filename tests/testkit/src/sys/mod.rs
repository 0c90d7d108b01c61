//! The tests' unsafe code: system calls that have no safe interface, each behind a function that any test
//! may call.
#![allow(unsafe_code)]

mod bpf;
mod packet;
mod seccomp;
mod signals;
mod stuck_write;

pub use bpf::{Kind, Tagger, detach, next_id, programs_at};
pub use packet::{hearing, receive};
use rustix::thread::{UnshareFlags, unshare_unsafe};
pub use seccomp::{confine, confine_thread};
pub use signals::with_default_signals;
pub use stuck_write::StuckWrite;

/// Moves the calling thread into a network namespace of its own.
pub fn leave_netns() -> rustix::io::Result<()> {
    // SAFETY: what other code could count on is the table of descriptors and the file system of the
    // thread; both stay shared with the process's other threads.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
}
