//! The benchmark's unsafe code: what has no safe interface, each behind a function that any code may call.
#![allow(unsafe_code)]

mod calls;
mod datagrams;
mod libpcap;
mod packet_rings;
mod signals;
mod tap;

use std::{io, mem};

pub use calls::Calls;
pub use datagrams::Datagrams;
pub use libpcap::Capture;
pub use packet_rings::{Memory, Messages, Piece, Socket};
use rustix::thread::{UnshareFlags, unshare_unsafe};
pub use signals::Signals;
pub use tap::open_tap;

/// Moves the calling thread into a network namespace of its own.
pub fn leave_netns() -> rustix::io::Result<()> {
    // SAFETY: what other code could count on is the table of descriptors and the file system of the
    // thread; both stay shared with the process's other threads.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
}

/// What this process has used of the machine.
pub fn usage() -> io::Result<libc::rusage> {
    // SAFETY: the structure is made of numbers: all of its bytes may be 0.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes to `usage`, alive during the call.
    match unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) } {
        0 => Ok(usage),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The time-stamp counter; 0 where there is none.
#[cfg(target_arch = "x86_64")]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 has it, and Linux lets programs read it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn ticks() -> u64 {
    0
}

/// Waits for a grace period of the kernel's RCU: `membarrier(MEMBARRIER_CMD_GLOBAL)` does nothing else.
pub fn await_processors() -> io::Result<()> {
    const GLOBAL: libc::c_int = 1;
    // SAFETY: the command takes no addresses, and changes nothing.
    match unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
