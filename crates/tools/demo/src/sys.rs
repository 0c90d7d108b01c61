//! The demo's unsafe code.
#![allow(unsafe_code)]

use std::{os::unix::process::CommandExt, process::Command};

use rustix::process::{Signal, set_parent_process_death_signal};

/// The command dies with the thread that starts it, however that ends.
pub fn mortal(mut command: Command) -> Command {
    let bind = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: between fork and exec it makes a single system call: it allocates nothing and takes no lock.
    unsafe { command.pre_exec(bind) };
    command
}
