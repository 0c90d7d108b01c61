//! netmap's own tools: this program, when it is called by their names.
//!
//! Options, output and exit statuses are the original's, for the scripts that know them; what
//! moves packets is what `ringway`'s own commands use.

mod bridge;
mod dedup;
mod emulation;
mod getopt;
mod lb;
mod log;
mod nmreplay;
mod pktgen;
mod portname;
mod tlem;
mod valectl;

use crate::opening;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// A tool takes its arguments, without its name.
type Tool = fn(Vec<String>) -> ExitCode;

const TOOLS: [(&str, Tool); 7] = [
    ("bridge", bridge::main),
    ("dedup", dedup::main),
    ("lb", lb::main),
    ("nmreplay", nmreplay::main),
    ("pkt-gen", pktgen::main),
    ("tlem", tlem::main),
    ("vale-ctl", valectl::main),
];

/// As of `ringway`'s own commands: take an interface although that stops what uses it.
const FORCE: &str = "--force";

/// Becomes the tool that the program was called as, if it is one.
pub fn called(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let name = args.next()?;
    let name = Path::new(&name).file_name()?.to_str()?;
    let (_, tool) = TOOLS.iter().find(|(known, _)| *known == name)?;
    let mut args: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    // The one option that is ours, and not netmap's.
    let count = args.len();
    args.retain(|arg| arg != FORCE);
    if args.len() < count {
        opening::force_all();
    }
    Some(tool(args))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Who adds an option describes it.
    #[test]
    fn the_manual_pages_name_the_options_that_there_are() {
        for (name, letters) in [
            ("bridge", bridge::LETTERS),
            ("dedup", dedup::LETTERS),
            ("lb", lb::options::LETTERS),
            ("nmreplay", nmreplay::LETTERS),
            ("pkt-gen", pktgen::options::LETTERS),
            ("tlem", tlem::options::LETTERS),
            ("vale-ctl", valectl::LETTERS),
        ] {
            assert!(TOOLS.iter().any(|(tool, _)| *tool == name));
            let man = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../man/netmap-tools");
            let page = std::fs::read_to_string(man.join(name).with_extension("8")).unwrap();
            // Options that take a value are followed by what it is.
            let described: BTreeSet<(char, bool)> = page
                .split("\n.TP\n")
                .filter_map(|item| {
                    let (font, rest) = item.split_once(" \\-")?;
                    let valued = match font {
                        ".BI" => true,
                        ".B" => false,
                        _ => return None,
                    };
                    Some((rest.chars().next()?, valued))
                })
                .collect();
            let known = letters.char_indices().filter(|(_, letter)| *letter != ':');
            let known: BTreeSet<_> =
                known.map(|(at, letter)| (letter, letters[at + 1..].starts_with(':'))).collect();
            assert_eq!(described, known, "{name}");
        }
    }

    #[test]
    fn only_the_names_of_tools_are_tools() {
        for other in ["ringway", "/usr/bin/ringway", "pkt-gen2", ""] {
            assert!(called([OsString::from(other)].into_iter()).is_none());
        }
        assert!(called(std::iter::empty()).is_none());
    }
}
