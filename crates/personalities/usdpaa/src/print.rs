//! Lines for the user: on the program's own stdout, in order with what the program prints, and on stderr.

use std::{
    ffi::CString,
    io::{self, Write},
};

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
    aside(&format!("usdpaa: {line}"));
}

/// The same without a name before it. If there is no reader, it goes unread.
pub fn aside(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
