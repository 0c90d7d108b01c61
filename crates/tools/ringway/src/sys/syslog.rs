//! The system's log, by the C library.

use std::ffi::CStr;

/// Names this program in what it logs from now on.
pub fn open(name: &'static CStr) {
    // SAFETY: the C library keeps the address; the name ends with a zero and stays for ever.
    unsafe { libc::openlog(name.as_ptr(), libc::LOG_PID, libc::LOG_LOCAL1) };
}

pub fn write(line: &CStr) {
    // SAFETY: the format asks for one string, which `line` is; both live during the call.
    unsafe { libc::syslog(libc::LOG_INFO, c"%s".as_ptr(), line.as_ptr()) };
}
