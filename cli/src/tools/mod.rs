//! netmap's own tools: this program, when it is called by their names.
//!
//! Options, output and exit statuses are the original's, for the scripts that know them; what
//! moves packets is what `ringway`'s own commands use.

mod bridge;
mod getopt;
mod lb;
mod log;
mod pktgen;
mod portname;
mod valectl;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// A tool takes its arguments, without its name.
type Tool = fn(Vec<String>) -> ExitCode;

const TOOLS: [(&str, Tool); 4] = [
    ("bridge", bridge::main),
    ("lb", lb::main),
    ("pkt-gen", pktgen::main),
    ("vale-ctl", valectl::main),
];

/// Becomes the tool that the program was called as, if it is one.
pub fn called(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let name = args.next()?;
    let name = Path::new(&name).file_name()?.to_str()?;
    let (_, tool) = TOOLS.iter().find(|(known, _)| *known == name)?;
    Some(tool(args.map(|arg| arg.to_string_lossy().into_owned()).collect()))
}
