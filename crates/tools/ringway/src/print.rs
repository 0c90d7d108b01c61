//! `--print`: a line for each packet.

use crate::dissect::Packet;
use crate::error::{Error, Result};
use crate::output::Output;
use crate::printable::{json, printable};
use crate::stdout;
use serde::Serialize;
use std::fmt::{self, Write};
use std::path::Path;

#[derive(clap::Args)]
// Several of these are in one command: as groups they would all be called `Args`.
#[group(skip)]
pub struct Args {
    /// Print a line for each packet: time (UTC), addresses, bytes, and what its headers say
    #[arg(short, long)]
    print: bool,

    /// Print the bytes of each packet, too
    #[arg(short = 'x', long, requires = "print")]
    hex: bool,
}

impl Args {
    /// What prints, if anything is to be printed. Without JSON, all other results are for standard error.
    pub fn printer(&self) -> Option<Printer> {
        let output = Output::chosen();
        self.print.then(|| Printer { output, hex: self.hex, named: false, lines: String::new() })
    }

    /// Keeps standard output for frames that are printed, or recorded there. Fails if both are.
    pub fn choose_stdout(&self, recorded: Option<&Path>) -> Result<()> {
        let recorded = recorded.filter(|file| stdout::is(file));
        if let (true, Some(file)) = (self.print, recorded) {
            return Err(Error::Value(format!(
                "--print and --write {} both want standard output; write to a file",
                file.display()
            )));
        }
        if recorded.is_some() || self.print && !Output::chosen().json {
            stdout::keep_for_frames();
        }
        Ok(())
    }
}

#[derive(Debug)]
pub struct Printer {
    output: Output,
    hex: bool,
    named: bool,
    /// Printed with the next [flush](Printer::flush).
    lines: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "packet")]
pub struct Line<'a> {
    port: &'a str,
    /// Nanoseconds since 1970.
    time_ns: u64,
    length: usize,
    #[serde(flatten)]
    packet: Packet,
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.time_ns / 1_000_000_000, self.time_ns / 1000 % 1_000_000);
        let [hour, minute, second] = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60];
        let Line { length, packet, .. } = self;
        write!(f, "{hour:02}:{minute:02}:{second:02}.{micros:06} {length:>4} {packet}")
    }
}

impl Printer {
    /// The same, with the name of its port before each packet.
    pub fn with_names(self) -> Printer {
        Printer { named: true, ..self }
    }

    /// A packet that came from `port` at so many nanoseconds since 1970, and had so many bytes
    /// then.
    pub fn packet(&mut self, port: &str, time_ns: u64, frame: &[u8], length: usize) {
        let hex = (self.hex && self.output.json).then(|| digits(frame));
        let packet = Packet::read(frame);
        let line = Line { port, time_ns, length, packet, hex };
        if self.output.json {
            self.lines.push_str(&json(&line));
        } else {
            if self.named {
                let _ = write!(self.lines, "{} ", printable(port, &[]));
            }
            let _ = write!(self.lines, "{line}");
            if self.hex {
                self.lines.push_str(&dump(frame));
            }
        }
        self.lines.push('\n');
    }

    /// Prints what there is.
    pub fn flush(&mut self) -> Result<()> {
        if !self.lines.is_empty() {
            self.output.write_lines(&self.lines)?;
            self.lines.clear();
        }
        Ok(())
    }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lines of 16 bytes, as `tcpdump -xx` shows them, with the letters among them.
fn dump(frame: &[u8]) -> String {
    let mut text = String::new();
    for (at, row) in (0..).step_by(16).zip(frame.chunks(16)) {
        let pairs: Vec<_> = row.chunks(2).map(digits).collect();
        let letter = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' };
        let letters: String = row.iter().map(letter).collect();
        let _ = write!(text, "\n\t0x{at:04x}:  {:<39}  {letters}", pairs.join(" "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_the_day() {
        let line = Line {
            port: "p",
            time_ns: (86_400 * 3 + 3600 * 7 + 60 * 8 + 9) * 1_000_000_000 + 1_234_567,
            length: 13,
            packet: Packet::read(&[0; 13]),
            hex: None,
        };
        assert_eq!(line.to_string(), "07:08:09.001234   13 no Ethernet header");
    }

    #[test]
    fn bytes_are_shown_with_their_letters() {
        let text = dump(b"0123456789abcdef\x1b[");
        assert_eq!(
            text,
            format!(
                "\n\t0x0000:  3031 3233 3435 3637 3839 6162 6364 6566  0123456789abcdef\
                 \n\t0x0010:  {:<39}  .[",
                "1b5b"
            )
        );
    }
}
