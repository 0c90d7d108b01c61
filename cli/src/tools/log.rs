//! netmap's way to say something on standard error: `SSS.uuuuuu function [line] text`.

use std::fmt::Arguments;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// Writes one line, in one piece: threads do this at the same time.
pub fn line(function: &str, line: u32, text: Arguments<'_>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, micros) = (now.as_secs() % 1000, now.subsec_micros());
    let whole = format!("{seconds:03}.{micros:06} {function} [{line}] {text}\n");
    // There is nobody to tell that nobody listens.
    let _ = io::stderr().write_all(whole.as_bytes());
}

/// Says something in the name of a function: `log!("main", "port {name} is open")`.
macro_rules! log {
    ($function:literal, $($text:tt)*) => {
        $crate::tools::log::line($function, line!(), format_args!($($text)*))
    };
}
pub(crate) use log;

/// Results on standard output; when nobody reads them there is nothing left to do for.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}
pub(crate) use say;
