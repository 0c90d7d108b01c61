//! Names of capture files that options take (`--write x.pcap`), which are no names of ports: what stands before and
//! behind the name of a file that is a port (`file:x.pcap@snaplen=128`) is refused, and not a part of it.

use crate::error::{Error, Result};
use clap::builder::{OsStringValueParser, TypedValueParser};
use ringway::FileSpec;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// For a file to write.
pub fn written() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|name| check(name, false))
}

/// For a file to read, which may have any name.
pub fn read() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|name| check(name, true))
}

fn check(name: OsString, reads: bool) -> Result<PathBuf> {
    let is_plain = name.to_str().is_none_or(|text| problem(text).is_none());
    if is_plain || reads && Path::new(&name).exists() {
        return Ok(name.into());
    }
    let text = name.to_string_lossy();
    Err(Error::Value(format!("{text}: {}", problem(&text).unwrap_or_default())))
}

/// What is wrong with a name, if it is written as that of a port.
fn problem(text: &str) -> Option<String> {
    let path = text.strip_prefix("file:").unwrap_or(text);
    let (mut plain, mut options) = (path, Vec::new());
    while let Some((front, option)) = plain.rsplit_once('@').filter(|(_, it)| is_option(it)) {
        options.push(option.split(['=', ':']).next().unwrap_or(option));
        plain = front;
    }
    if plain.len() == text.len() {
        return None;
    }
    let mut problem = format!("this option takes the plain name of a file; write {plain}");
    for option in options.iter().rev() {
        let remedy = match *option {
            "snaplen" => "for `@snaplen` there is `ringway capture --snaplen`",
            "rotate" => "for `@rotate` there are `ringway capture --rotate-size` and --rotate-time",
            "files" => "for `@files` there is `ringway capture --files`",
            "filter" => "for `@filter` there is --filter",
            "sample" => "for `@sample` there is --sample",
            "read" | "write" => continue,
            other => {
                problem += &format!("; `@{other}` is for the name of a port");
                continue;
            }
        };
        problem += "; ";
        problem += remedy;
    }
    Some(problem)
}

/// Whether that is an option behind the name of a port, with a good value or a bad one.
fn is_option(text: &str) -> bool {
    match FileSpec::parse(&format!("file:x@{text}")) {
        Ok(Some(spec)) => spec.file == Path::new("x"),
        Ok(None) => false,
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ports_are_refused_with_a_remedy() {
        for (name, expected) in [
            ("file:o.pcap", "write o.pcap"),
            ("o.pcap@snaplen=20", "write o.pcap; for `@snaplen` there is `ringway capture --snap"),
            ("o.pcap@snaplen=", "write o.pcap; for `@snaplen`"),
            ("a@b@rotate=1k@files=3", "write a@b; for `@rotate` there are `ringway capture --rot"),
            ("o.pcap@write", "write o.pcap"),
            ("o.pcap@filter=udp port 53", "write o.pcap; for `@filter` there is --filter"),
            ("o.pcap@mode=copy", "write o.pcap; `@mode` is for the name of a port"),
        ] {
            let said = check(name.into(), false).unwrap_err().to_string();
            assert!(said.starts_with(&format!("{name}: ")), "{said}");
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn all_other_names_are_taken_as_they_are() {
        for name in ["o.pcap", "-", "a@b.pcap", "x-%Y@%H.pcap", "dir/file:x", "x@Y=z", ""] {
            assert_eq!(check(name.into(), false).unwrap(), PathBuf::from(name));
        }
    }

    #[test]
    fn a_file_that_is_there_is_read_by_any_name() {
        let folder = ringway_testkit::Folder::new();
        let file = folder.path().join("x.pcap@loop");
        std::fs::write(&file, "").unwrap();
        assert_eq!(check(file.clone().into(), true).unwrap(), file);
        assert!(check(file.into(), false).is_err());
        assert!(check("file:x.pcap".into(), true).is_err());
    }
}
