//! netmap's way to say something on standard error: `SSS.uuuuuu function [line] text`. A tool that
//! nobody listens to any more ends, as the originals do by SIGPIPE.

use std::fmt::Arguments;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::Result;
use crate::error::UNREAD;
use crate::output::for_people;
use crate::stdout;

/// Writes one line, in one piece: threads do this at the same time.
pub fn line(function: &str, line: u32, text: Arguments<'_>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, micros) = (now.as_secs() % 1000, now.subsec_micros());
    aside(format_args!("{seconds:03}.{micros:06} {function} [{line}] {text}"));
}

/// The shorter way of tlem and nmreplay: `SSS.mmm function [line] text`.
pub fn brief(function: &str, line: u32, text: Arguments<'_>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (now.as_secs() % 1000, now.subsec_millis());
    aside(format_args!("{seconds:03}.{millis:03} {function}[{line}] {text}"));
}

/// Writes lines on standard error, in one piece.
pub fn aside(text: Arguments<'_>) {
    let whole = for_people(&text.to_string()) + "\n";
    heard(io::stderr().write_all(whole.as_bytes()));
}

/// Writes a line of results on standard output, unless that has the frames of a file.
pub fn result(text: Arguments<'_>) {
    if stdout::has_frames() {
        return aside(text);
    }
    heard(writeln!(io::stdout(), "{}", for_people(&text.to_string())));
}

fn heard(written: io::Result<()>) {
    if written.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        std::process::exit(UNREAD.into());
    }
}

/// Says something in the name of a function: `log!("main", "port {name} is open")`.
macro_rules! log {
    ($function:literal, $($text:tt)*) => {
        $crate::tools::log::line($function, line!(), format_args!($($text)*))
    };
}
pub(crate) use log;

/// Results on standard output.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::tools::log::result(format_args!($($text)*))
    };
}
pub(crate) use say;

/// Says something on standard error, without the time.
macro_rules! tell {
    ($($text:tt)*) => {
        $crate::tools::log::aside(format_args!($($text)*))
    };
}
pub(crate) use tell;

/// What a tool that has ended tells its caller.
pub fn ended(ran: Result<()>) -> ExitCode {
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log!("main", "{error}");
            ExitCode::FAILURE
        }
    }
}
