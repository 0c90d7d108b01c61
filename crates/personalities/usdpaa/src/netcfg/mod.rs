//! The two XML files of a program: which interface distributes received frames by which policy (`config.rs`), and what
//! the policies are (`policy.rs`).
//!
//! Names are references of the files to each other; what is found by them is what the reference's reader finds,
//! which looks at prefixes, and takes the first.

pub mod config;
pub mod policy;
pub mod select;

#[cfg(test)]
mod tests;

use std::{fmt, fs, io, path::Path};

use roxmltree::{Node, ParsingOptions};
use rustix::io::Errno;

/// Why a configuration cannot be had: a line for the user, and the error number.
#[derive(Debug)]
pub struct Problem {
    pub errno: Errno,
    pub text: String,
}

impl Problem {
    pub fn new(errno: Errno, text: impl Into<String>) -> Problem {
        Problem { errno, text: text.into() }
    }

    /// The same, said of a file.
    pub fn of(self, file: &Path) -> Problem {
        Problem { text: format!("{}: {}", file.display(), self.text), ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads a file, and what `parse` makes of its root element.
pub fn read<T>(
    file: &Path,
    parse: impl FnOnce(Node<'_, '_>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let text = fs::read_to_string(file)
        .map_err(|error| Problem::new(Errno::INVAL, unreadable(&error)).of(file))?;
    parse_text(&text, parse).map_err(|problem| problem.of(file))
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!(
            "cannot be read: {error}; the files that come with Ringway are in dist/usdpaa, or in \
             lib/ringway/usdpaa where it is installed"
        ),
        _ => format!("cannot be read: {error}"),
    }
}

/// Why a file has no root element called `expected`.
fn other_root(root: Node<'_, '_>, what: &str, expected: &str) -> Problem {
    let found = root.tag_name().name();
    let remedy = match found {
        "netpcd" | "cfgdata" => "; policies come first, the configuration second: exchange them",
        _ => "",
    };
    let text = format!("is no {what}: it begins with <{found}>, not with <{expected}>{remedy}");
    Problem::new(Errno::INVAL, text)
}

fn parse_text<T>(
    text: &str,
    parse: impl FnOnce(Node<'_, '_>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = roxmltree::Document::parse_with_options(text, options)
        .map_err(|error| Problem::new(Errno::INVAL, format!("is no XML: {error}")))?;
    parse(document.root_element())
}

/// The elements called `name` within `node`.
fn elements<'a, 'i>(node: Node<'a, 'i>, name: &'a str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| child.has_tag_name(name))
}

/// An attribute that an element must have, without blanks around it.
fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Result<&'a str, Problem> {
    node.attribute(name).map(str::trim).ok_or_else(|| {
        let element = node.tag_name().name();
        Problem::new(Errno::INVAL, format!("<{element}> has no attribute {name}"))
    })
}

/// A number as in C: hexadecimal after 0x, octal after 0.
fn number(node: Node<'_, '_>, name: &str) -> Result<u32, Problem> {
    let text = attribute(node, name)?;
    let digits = |prefixes: [&str; 2]| prefixes.iter().find_map(|prefix| text.strip_prefix(prefix));
    let parsed = match (digits(["0x", "0X"]), text.strip_prefix('0')) {
        (Some(hex), _) => u32::from_str_radix(hex, 16),
        (None, Some(octal)) if !octal.is_empty() => u32::from_str_radix(octal, 8),
        _ => text.parse(),
    };
    parsed.map_err(|_| {
        let element = node.tag_name().name();
        Problem::new(Errno::INVAL, format!("<{element} {name}=\"{text}\"> is no number"))
    })
}
