//! Where results go: lines for people or one JSON object a line for machines, on standard output. JSON
//! has all texts as they are, people see no control characters.

use crate::error::{Error, Result};
use crate::printable::printable;
use ringway::{FileSpec, Port};
use serde::Serialize;
use std::fmt::{self, Display};
use std::io::{self, StdoutLock, Write};

/// The format of results.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    pub json: bool,
}

/// Tells the user something that is no result, in one piece: results may be on the same terminal.
pub fn note(text: impl Display) {
    // There is nobody to tell that nobody listens.
    let text = printable(&text.to_string(), &['\n', '\t']);
    let _ = io::stderr().write_all(format!("ringway: {text}\n").as_bytes());
}

/// A port is open and ready.
#[derive(Serialize)]
#[serde(tag = "type", rename = "open")]
pub struct Opened {
    port: String,
    kind: String,
    region: u16,
    tx_rings: usize,
    rx_rings: usize,
}

impl Opened {
    pub fn new(port: &Port) -> Opened {
        Opened {
            port: port.name().into(),
            kind: if FileSpec::is_file(port.name()) {
                "file".into()
            } else {
                port.kind().to_string()
            },
            region: port.mem_id(),
            tx_rings: port.tx_rings(),
            rx_rings: port.rx_rings(),
        }
    }
}

impl Display for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Opened { port, kind, region, tx_rings, rx_rings } = self;
        write!(f, "{port} is open ({kind}, region {region}, {tx_rings} tx and {rx_rings} rx rings)")
    }
}

impl Output {
    /// Writes a list: one object a line for machines, for people what `text` says.
    pub fn write_all(self, list: &[impl Serialize], text: impl FnOnce() -> String) -> Result<()> {
        if !self.json {
            return write(|out| writeln!(out, "{}", printable(&text(), &['\n', '\t'])));
        }
        write(|out| {
            for item in list {
                serde_json::to_writer(&mut *out, item)?;
                writeln!(out)?;
            }
            Ok(())
        })
    }

    /// Writes lines of results that were made before.
    pub fn write_lines(self, lines: &str) -> Result<()> {
        write(|out| out.write_all(lines.as_bytes()))
    }

    /// Writes one result.
    pub fn write(self, result: &(impl Display + Serialize)) -> Result<()> {
        self.write_all(&[result], || result.to_string())
    }
}

/// Exit status of a program whose results nobody reads any more, as a shell tells it of one that
/// SIGPIPE has ended.
pub const UNREAD: u8 = 128 + libc::SIGPIPE as u8;

/// Fails when nobody reads it any more (a closed pipe).
fn write(fill: impl FnOnce(&mut StdoutLock) -> io::Result<()>) -> Result<()> {
    let mut out = io::stdout().lock();
    fill(&mut out).and_then(|()| out.flush()).map_err(|source| match source.kind() {
        io::ErrorKind::BrokenPipe => Error::Unread,
        _ => Error::System { what: "writing the result", source },
    })
}
