//! Signals of a child.

use std::{io, os::unix::process::CommandExt, process::Command};

/// A shell has what it starts with `&` ignore the first two, nohup(1) the third, and a process what it executes.
const IGNORED_IN_BACKGROUND: [libc::c_int; 3] = [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP];

/// SIGINT, SIGQUIT and SIGHUP end the program, also if this process ignores them.
pub fn with_default_signals(command: &mut Command) {
    let reset = || {
        for signal in IGNORED_IN_BACKGROUND {
            // SAFETY: it sets no handler.
            if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between `fork` and `exec` it calls signal(2) alone, which a signal handler may call, too, and
    // allocates nothing.
    unsafe { command.pre_exec(reset) };
}
