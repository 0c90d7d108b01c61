//! Lines for the user: on the program's own stdout, in order with what the program prints, and on stderr.

use std::ffi::CString;

/// Text on stdout.
pub fn text(text: &str) {
    let Ok(text) = CString::new(text) else { return };
    // SAFETY: the format takes one C string.
    unsafe { libc::printf(c"%s".as_ptr(), text.as_ptr()) };
}

/// A line on stdout.
pub fn line(line: &str) {
    text(&format!("{line}\n"));
}

/// A line on stderr.
pub fn error(line: &str) {
    eprintln!("usdpaa: {line}");
}
