//! Where results go: lines for people or one JSON object a line for machines, on standard output. What is
//! no result, notes and the cause of a failure, goes to standard error in the same format. All of it is
//! [printable](crate::printable).

use crate::error::{Error, Result};
use crate::failure::Failure;
use crate::printable::{self, printable};
use crate::stdout;
use serde::Serialize;
use serde_json::Value;
use std::fmt::{self, Display};
use std::io::{self, StdoutLock, Write};
use std::sync::OnceLock;

/// The format of everything that is printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output {
    pub json: bool,
}

/// As the user has chosen it.
static CHOSEN: OnceLock<Output> = OnceLock::new();

/// Tells the user something that is no result.
pub fn note(text: impl Display) {
    let output = Output::chosen();
    let text = text.to_string();
    let text = if output.json { text } else { printable(&text, &[]) };
    output.tell_aside(&Note { text });
}

/// Something that is no result.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "note")]
pub struct Note {
    text: String,
}

impl Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a command has changed, and how that is now. People see that it has succeeded by its silence.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "done")]
pub struct Done<'a> {
    action: &'a str,
    of: &'a str,
    /// The file and the line that declare it otherwise: the daemon sets it back when it reads them next.
    #[serde(skip_serializing_if = "Option::is_none")]
    declared_at: Option<String>,
    /// As the command that shows such things has it; nothing if it is not there any more.
    #[cfg_attr(test, schemars(with = "Option<crate::schema::described::Now>"))]
    now: Option<Value>,
}

impl Output {
    /// The format that the user has chosen, of lines for people by default.
    pub fn chosen() -> Output {
        CHOSEN.get().copied().unwrap_or_default()
    }

    /// Chooses the format, once.
    pub fn choose(self) {
        // A second time would be a mistake, and changes nothing.
        let _ = CHOSEN.set(self);
    }

    /// Writes beside the results, in one piece: they may be on the same terminal.
    pub fn tell_aside(self, what: &(impl Display + Serialize)) {
        let line = match self.json {
            true => printable::json(what),
            false => format!("ringway: {}", for_people(&what.to_string())),
        };
        // There is nobody to tell that nobody listens.
        let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
    }

    /// Says why the command has failed.
    pub fn fail(self, error: &Error) {
        let mut failure = Failure::of(error);
        if !self.json {
            failure.text = match is_sentence(error) {
                true => printable(&failure.text, &[]),
                false => failure.text.replacen(&failure.port, &printable(&failure.port, &[]), 1),
            };
        }
        self.tell_aside(&failure);
    }

    /// Tells machines that `action` was done, where it is declared otherwise, and what has become `of` it.
    pub fn done(
        self,
        action: &str,
        of: &str,
        declared_at: Option<String>,
        now: impl FnOnce() -> Option<Value>,
    ) -> Result<()> {
        match self.json {
            true => write_json(&[Done { action, of, declared_at, now: now() }]),
            false => Ok(()),
        }
    }

    /// Writes a list: one object a line for machines, for people what `text` says.
    pub fn write_all(self, list: &[impl Serialize], text: impl FnOnce() -> String) -> Result<()> {
        if !self.json {
            return write(|out| writeln!(out, "{}", for_people(&text())));
        }
        write_json(list)
    }

    /// Writes lines of results that were made before, each with its end.
    pub fn write_lines(self, lines: &str) -> Result<()> {
        write(|out| out.write_all(for_people(lines).as_bytes()))
    }

    /// Writes one result. Where standard output has the frames of a file, that is on standard error.
    pub fn write(self, result: &(impl Display + Serialize)) -> Result<()> {
        if stdout::has_frames() {
            self.tell_aside(result);
            return Ok(());
        }
        self.write_all(&[result], || result.to_string())
    }
}

/// Whether an error has one line, so that another is of a name in it. What an action program is refused for may have
/// many.
fn is_sentence(error: &Error) -> bool {
    !matches!(error, Error::Ringway(error) if error.refusal().is_some())
}

/// A text of several lines.
pub fn for_people(text: &str) -> String {
    printable(text, &['\n', '\t'])
}

/// Writes one object a line.
fn write_json(list: &[impl Serialize]) -> Result<()> {
    write(|out| {
        for item in list {
            printable::write_json(&mut *out, item)?;
            writeln!(out)?;
        }
        Ok(())
    })
}

/// Fails when nobody reads it any more (a closed pipe).
fn write(fill: impl FnOnce(&mut StdoutLock) -> io::Result<()>) -> Result<()> {
    let mut out = io::stdout().lock();
    fill(&mut out).and_then(|()| out.flush()).map_err(|source| match source.kind() {
        io::ErrorKind::BrokenPipe => Error::Unread,
        _ => Error::System { what: "writing the result", source },
    })
}
