//! The log: what an operator is told, on standard error. All of it passes here, so that no name or text
//! of a client's does anything to the terminal that shows it.

use std::fmt::Display;
use std::io::{self, Write};

use ringway_proto::printable;

/// Writes one line, in one piece: other processes of the daemon write there too.
pub fn log(text: impl Display) {
    // There is nobody to tell that nobody listens.
    let _ = io::stderr().write_all(line(&text.to_string()).as_bytes());
}

/// The same for an error that may take several lines, as one of the configuration does.
pub fn log_lines(text: impl Display) {
    let text = printable(&text.to_string(), &['\n']);
    let _ = io::stderr().write_all(format!("ringwayd: {text}\n").as_bytes());
}

fn line(text: &str) -> String {
    format!("ringwayd: {}\n", printable(text, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_and_does_nothing_to_a_terminal() {
        for (text, written) in [
            ("vale0:b\u{fc}ro is full", "ringwayd: vale0:b\u{fc}ro is full\n"),
            ("\u{1b}[2J\nringwayd: all is well", "ringwayd: \\u{1b}[2J\\nringwayd: all is well\n"),
            ("\u{9b}2J \u{202e}a\u{200b}", "ringwayd: \\u{9b}2J \\u{202e}a\\u{200b}\n"),
        ] {
            assert_eq!(line(text), written);
        }
    }
}
