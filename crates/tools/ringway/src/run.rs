//! `ringway run -- PROGRAM …`: starts a program with the preload library, and with libpcap's stand-in.

use crate::error::{Error, Result};
use crate::{elf, rights};
use std::convert::Infallible;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::{ffi::OsStrExt, process::CommandExt};
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: &str = "libringway_preload.so";
/// Takes libpcap's place. An installation may be without it.
const PCAP: &str = "libringway_pcap.so";
/// For programs that are linked to it: found by the loader. An installation may be without it.
const PFRING: &str = "libpfring.so";

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  ringway run -- pkt-gen -i vale0:a -f tx
  ringway run -- ./my-netmap-program netmap:eth0
  ringway run -- tcpdump -i vale0:a
  RINGWAY_FILTER='udp port 53' ringway run -- ./my-netmap-program netmap:eth0

If a program cannot give options in names of ports, use the environment: RINGWAY_FILTER is the
filter of all interfaces that it receives by, RINGWAY_NIC_MODE their mode (see `ringway ports
--help`). With RINGWAY_VERBOSE, standard error says why a port is refused. `man ringwayd` lists all
variables.

Programs of netmap use libringway_preload.so, programs of libpcap libringway_pcap.so, which passes
other devices to the system's libpcap. Programs that are linked to libpfring.so find it by
LD_LIBRARY_PATH. The command looks for the libraries beside the ringway executable, then in
../lib/ringway, ../lib, ../lib64 and ../lib/x86_64-linux-gnu (the machine's own) from there,
/usr/local/lib and /usr/lib. It keeps an LD_PRELOAD that is
set already, after the libraries, and puts AddressSanitizer's library before all for a program that
needs it. Programs with the setuid bit or with file capabilities ignore LD_PRELOAD, and statically
linked programs load no libraries: the command refuses both, and says what to do. The exit status is the program's; 127 if there is no such program, 126 if it cannot be run.")]
pub struct Args {
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Becomes the program; returns only if that fails.
pub fn run(args: &Args) -> Result<Infallible> {
    let executable = env::current_exe()
        .map_err(|source| Error::System { what: "finding the ringway executable", source })?;
    let places = places(&executable);
    let library = find(&places, LIBRARY, Path::is_file).ok_or_else(|| missing(&places))?;
    let libraries: Vec<_> =
        [Some(library), find(&places, PCAP, Path::is_file)].into_iter().flatten().collect();
    for library in &libraries {
        loadable(library, [b' ', b':'])?;
    }
    let (program, arguments) = args.command.split_first().expect("clap asks for at least one");
    let executed = elf::find(program, env::var_os("PATH").as_deref());
    let executed = executed.map(|path| elf::interpreted_by(&path).unwrap_or(path));
    let mut first = None;
    if let Some(path) = &executed {
        let program = || program.to_string_lossy().into();
        if elf::is_static(path) {
            return Err(Error::Static { program: program() });
        }
        if let Some(what) = rights::beyond_ours(path) {
            let path = path.display().to_string();
            return Err(Error::MoreRights { program: program(), path, what });
        }
        first = elf::needed(path).into_iter().find(|library| is_sanitizer(library));
    }
    // A sanitizer's library ends the program where another comes before it.
    let libraries: Vec<_> = first.map(PathBuf::from).into_iter().chain(libraries).collect();
    let preload = preload(&libraries, env::var_os("LD_PRELOAD").as_deref());
    let mut command = Command::new(program);
    command.args(arguments).env("LD_PRELOAD", preload);
    if let Some(library) = find(&places, PFRING, Path::is_file) {
        loadable(&library, [b';', b':'])?;
        let before = env::var_os("LD_LIBRARY_PATH");
        command.envs(search(&library, before.as_deref()).map(|path| ("LD_LIBRARY_PATH", path)));
    }
    let source = command.exec();
    Err(Error::Exec { program: program.to_string_lossy().into(), source })
}

/// Whether a library of this name is AddressSanitizer's: GCC's, or Clang's.
fn is_sanitizer(library: &OsStr) -> bool {
    let name = library.as_bytes();
    name.starts_with(b"libasan.so") || name.starts_with(b"libclang_rt.asan")
}

/// The directories where the libraries may be, the best first.
fn places(executable: &Path) -> Vec<PathBuf> {
    let beside = executable.parent();
    let prefix = beside.and_then(Path::parent);
    let within = |lib| prefix.map(|prefix| prefix.join(lib));
    beside
        .map(Path::to_path_buf)
        .into_iter()
        .chain(["lib/ringway", "lib", "lib64", &multiarch()].into_iter().filter_map(within))
        .chain(["/usr/local/lib", "/usr/lib"].map(PathBuf::from))
        .collect()
}

/// Where Debian has this machine's libraries, in `/usr`.
fn multiarch() -> String {
    format!("lib/{}-linux-gnu", env::consts::ARCH)
}

fn find(places: &[PathBuf], library: &str, exists: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    places.iter().map(|place| place.join(library)).find(|path| exists(path))
}

/// Refuses a library at whose path the loader stops too early: at these bytes it splits lists of such paths.
fn loadable(library: &Path, splits: [u8; 2]) -> Result<()> {
    match library.as_os_str().as_bytes().iter().any(|byte| splits.contains(byte)) {
        true => Err(Error::Unloadable { library: library.display().to_string() }),
        false => Ok(()),
    }
}

fn missing(places: &[PathBuf]) -> Error {
    let searched: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    Error::NoPreload { searched: searched.join(", ") }
}

/// The new LD_LIBRARY_PATH, for a library that lies where the loader does not look by itself: its folder, and what
/// was there before.
fn search(library: &Path, before: Option<&OsStr>) -> Option<OsString> {
    let folder = library.parent()?;
    let multiarch = multiarch();
    let known = ["lib", "local/lib", &multiarch, &format!("local/{multiarch}")];
    if known.iter().any(|known| folder == Path::new("/usr").join(known)) {
        return None;
    }
    let before = env::split_paths(before.unwrap_or_default());
    let others = before.filter(|other| other != folder && !other.as_os_str().is_empty());
    env::join_paths(std::iter::once(folder.to_path_buf()).chain(others)).ok()
}

/// The new LD_PRELOAD: the libraries first, what else was there before after them.
fn preload(libraries: &[PathBuf], before: Option<&OsStr>) -> OsString {
    let before = before.unwrap_or_default().as_bytes().split(|byte| *byte == b':');
    let others = before.map(OsStr::from_bytes).filter(|before| {
        !before.is_empty() && !libraries.iter().any(|library| library.as_os_str() == *before)
    });
    let all: Vec<&OsStr> = libraries.iter().map(|path| path.as_os_str()).chain(others).collect();
    all.join(OsStr::new(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_library_wins() {
        let places = places(Path::new("/opt/ringway/bin/ringway"));
        let found = |there: &[&str]| {
            let exists = |path: &Path| there.iter().any(|known| Path::new(known) == path);
            find(&places, LIBRARY, exists)
        };
        let beside = "/opt/ringway/bin/libringway_preload.so";
        let packaged = "/opt/ringway/lib/ringway/libringway_preload.so";
        let installed = "/opt/ringway/lib/libringway_preload.so";
        let of_machine = format!("/opt/ringway/{}/libringway_preload.so", multiarch());
        let system = "/usr/lib/libringway_preload.so";
        assert_eq!(found(&[system, installed, packaged, beside]), Some(beside.into()));
        assert_eq!(found(&[system, installed, packaged]), Some(packaged.into()));
        assert_eq!(found(&[system, &of_machine, installed]), Some(installed.into()));
        assert_eq!(found(&[system, &of_machine]), Some(of_machine.into()));
        assert_eq!(found(&[system]), Some(system.into()));
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn a_missing_library_is_explained() {
        let message = missing(&places(Path::new("/a/b/ringway"))).to_string();
        let searched = format!("/a/lib64, /a/{}, /usr/local/lib, /usr/lib", multiarch());
        let searched = "/a/b, /a/lib/ringway, /a/lib, ".to_string() + &searched;
        assert!(message.contains(&searched), "{message}");
        assert!(message.contains("make build"), "{message}");
    }

    #[test]
    fn a_library_is_found_where_the_loader_does_not_look() {
        let path = |library: &str, before| search(Path::new(library), before);
        assert_eq!(path("/usr/local/lib/libpfring.so", None), None);
        assert_eq!(path(&format!("/usr/{}/libpfring.so", multiarch()), None), None);
        assert_eq!(path("/opt/lib/libpfring.so", None), Some("/opt/lib".into()));
        let before = Some(OsStr::new("/a:/opt/lib:/b"));
        assert_eq!(path("/opt/lib/libpfring.so", before), Some("/opt/lib:/a:/b".into()));
    }

    #[test]
    fn an_earlier_preload_is_kept_once() {
        let libraries = ["/x/libringway_preload.so", "/y/libringway_pcap.so"].map(PathBuf::from);
        let ours = "/x/libringway_preload.so:/y/libringway_pcap.so";
        assert_eq!(preload(&libraries[..1], None), "/x/libringway_preload.so");
        assert_eq!(preload(&libraries, Some(OsStr::new(""))), ours);
        let other = OsStr::new("/y/libfaketime.so");
        assert_eq!(preload(&libraries, Some(other)), format!("{ours}:/y/libfaketime.so").as_str());
        assert_eq!(preload(&libraries, Some(OsStr::new(ours))), ours);
    }
}
