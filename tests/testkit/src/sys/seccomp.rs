//! Filters of system calls.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{sock_filter, sock_fprog};
use rustix::thread::set_no_new_privs;

/// The program that `command` runs has its system calls looked at by this one, for good.
pub fn confine(command: &mut Command, filter: Vec<sock_filter>) {
    let install = move || install(&filter);
    // SAFETY: between fork and exec it makes two system calls on memory that was made before: it allocates
    // nothing and takes no lock.
    unsafe { command.pre_exec(install) };
}

/// The same of the calling thread, and of those that it starts.
pub fn confine_thread(filter: &[sock_filter]) -> io::Result<()> {
    install(filter)
}

fn install(filter: &[sock_filter]) -> io::Result<()> {
    set_no_new_privs(true)?;
    let (len, steps) = (filter.len() as u16, filter.as_ptr().cast_mut());
    let program = sock_fprog { len, filter: steps };
    let (option, mode) = (libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER);
    // SAFETY: the kernel reads `program` and the steps that it names, alive during the call.
    match unsafe { libc::prctl(option, mode, &raw const program) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
