//! `ringway run -- PROGRAM …`: starts a program with the preload library.

use crate::elf;
use crate::error::{Error, Result};
use std::convert::Infallible;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: &str = "libringway_preload.so";

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  ringway run -- pkt-gen -i vale0:a -f tx
  ringway run -- ./my-netmap-program netmap:eth0
  RINGWAY_FILTER='udp port 53' ringway run -- ./my-netmap-program netmap:eth0

What a program's names of ports cannot say, the environment can: RINGWAY_FILTER is the filter of all
interfaces that it receives by, RINGWAY_NIC_MODE their mode (see `ringway ports --help`). With
RINGWAY_VERBOSE, stderr hears why a port is refused. `man ringwayd` has them all.

The library is looked for beside the ringway executable, then in ../lib/ringway and ../lib from
there, /usr/local/lib and /usr/lib. An LD_PRELOAD that is set already is kept, after the library. Programs with the
setuid bit or with file capabilities ignore LD_PRELOAD: link those against the library. Programs that
are statically linked are refused: nothing can be loaded into them. The exit status is the program's; 127 if there is no such program, 126 if it cannot be run.")]
pub struct Args {
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Becomes the program; returns only if that fails.
pub fn run(args: &Args) -> Result<Infallible> {
    let executable = env::current_exe()
        .map_err(|source| Error::System { what: "finding the ringway executable", source })?;
    let library = find(&places(&executable), Path::is_file)?;
    let preload = preload(&library, env::var_os("LD_PRELOAD").as_deref());
    let (program, arguments) = args.command.split_first().expect("clap asks for at least one");
    if let Some(path) = elf::find(program, env::var_os("PATH").as_deref())
        && elf::is_static(&path)
    {
        return Err(Error::Static { program: program.to_string_lossy().into() });
    }
    let source = Command::new(program).args(arguments).env("LD_PRELOAD", preload).exec();
    Err(Error::Exec { program: program.to_string_lossy().into(), source })
}

/// The directories where the library may be, the best first.
fn places(executable: &Path) -> Vec<PathBuf> {
    let beside = executable.parent();
    let prefix = beside.and_then(Path::parent);
    let within = |lib| prefix.map(|prefix| prefix.join(lib));
    beside
        .map(Path::to_path_buf)
        .into_iter()
        .chain(["lib/ringway", "lib"].into_iter().filter_map(within))
        .chain(["/usr/local/lib", "/usr/lib"].map(PathBuf::from))
        .collect()
}

fn find(places: &[PathBuf], exists: impl Fn(&Path) -> bool) -> Result<PathBuf> {
    places.iter().map(|place| place.join(LIBRARY)).find(|path| exists(path)).ok_or_else(|| {
        let searched: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
        Error::NoPreload { searched: searched.join(", ") }
    })
}

/// The new LD_PRELOAD: the library first, what was there before after it.
fn preload(library: &Path, before: Option<&OsStr>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    if let Some(before) = before.filter(|before| !before.is_empty() && *before != value) {
        value.push(":");
        value.push(before);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_library_wins() {
        let places = places(Path::new("/opt/ringway/bin/ringway"));
        let found = |there: &[&str]| {
            find(&places, |path| there.iter().any(|known| Path::new(known) == path)).ok()
        };
        let beside = "/opt/ringway/bin/libringway_preload.so";
        let packaged = "/opt/ringway/lib/ringway/libringway_preload.so";
        let installed = "/opt/ringway/lib/libringway_preload.so";
        let system = "/usr/lib/libringway_preload.so";
        assert_eq!(found(&[system, installed, packaged, beside]), Some(beside.into()));
        assert_eq!(found(&[system, installed, packaged]), Some(packaged.into()));
        assert_eq!(found(&[system, installed]), Some(installed.into()));
        assert_eq!(found(&[system]), Some(system.into()));
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn a_missing_library_is_explained() {
        let message = find(&places(Path::new("/a/b/ringway")), |_| false).unwrap_err().to_string();
        assert!(
            message.contains("/a/b, /a/lib/ringway, /a/lib, /usr/local/lib, /usr/lib"),
            "{message}"
        );
        assert!(message.contains("make build"), "{message}");
    }

    #[test]
    fn an_earlier_preload_is_kept_once() {
        let library = Path::new("/x/libringway_preload.so");
        assert_eq!(preload(library, None), "/x/libringway_preload.so");
        assert_eq!(preload(library, Some(OsStr::new(""))), "/x/libringway_preload.so");
        let other = OsStr::new("/y/libfaketime.so");
        assert_eq!(preload(library, Some(other)), "/x/libringway_preload.so:/y/libfaketime.so");
        assert_eq!(preload(library, Some(library.as_os_str())), "/x/libringway_preload.so");
    }
}
