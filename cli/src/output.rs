//! Where results go: lines for people or one JSON object a line for machines, on standard output.

use crate::error::{Error, Result};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, Write};

/// The format of results.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    pub json: bool,
}

impl Output {
    /// Writes one result. Fails when nobody reads it any more (a closed pipe).
    pub fn write(self, result: &(impl Display + Serialize)) -> Result<()> {
        let mut out = io::stdout().lock();
        let written = if self.json {
            serde_json::to_writer(&mut out, result)
                .map_err(io::Error::from)
                .and_then(|()| writeln!(out))
        } else {
            writeln!(out, "{result}")
        };
        written
            .and_then(|()| out.flush())
            .map_err(|source| Error::System { what: "writing the result", source })
    }
}
