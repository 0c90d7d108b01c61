//! Programs in C, under the preload library as any unmodified program would run.

use std::env;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command};

use crate::roles::{self, Role, Seat};

/// Builds `source`, a path within the project, in `folder`.
pub fn build(folder: &Path, source: &str) -> io::Result<PathBuf> {
    build_with(folder, source, &[])
}

/// The same, with these libraries of the project's.
pub fn build_with(folder: &Path, source: &str, libraries: &[&str]) -> io::Result<PathBuf> {
    let project = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let source = project.join(source);
    let program = folder.join(source.file_stem().unwrap_or_default());
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O2", "-I"]).arg(project.join("include"));
    cc.arg("-o").arg(&program).arg(source);
    if let Some(built) = env::current_exe()?.parent().filter(|_| !libraries.is_empty()) {
        cc.arg("-L").arg(built).args(libraries).arg(format!("-Wl,-rpath,{}", built.display()));
    }
    match cc.status() {
        Ok(status) if status.success() => Ok(program),
        Ok(status) => Err(io::Error::other(format!("{cc:?}: {status}"))),
        Err(error) => Err(io::Error::new(error.kind(), format!("cannot run cc: {error}"))),
    }
}

/// A program that runs. It is killed when this is dropped.
pub struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
    shown: String,
}

/// Starts a program under the preload library, with the private daemon in the folder `daemon`.
pub fn start(seat: Seat, daemon: &Path, program: &Path, arguments: &[&str]) -> io::Result<Running> {
    let preload = format!("LD_PRELOAD={}", library()?.display());
    let program = program.to_string_lossy();
    start_as(seat, daemon, &[&["exec", "env", &preload, &program], arguments].concat())
}

/// Runs a program to its end as it is; returns what it printed.
pub fn run_alone(
    seat: Seat,
    daemon: &Path,
    program: &Path,
    arguments: &[&str],
) -> io::Result<String> {
    let program = program.to_string_lossy();
    start_as(seat, daemon, &[&["exec", "--", &program], arguments].concat())?.finish()
}

fn start_as(seat: Seat, daemon: &Path, arguments: &[&str]) -> io::Result<Running> {
    let mut command = roles::command(seat, arguments)?;
    let mut child = command.env("RINGWAY_DIR", daemon).spawn()?;
    let output = BufReader::new(child.stdout.take().expect("stdout is piped"));
    Ok(Running { child, output, shown: format!("{command:?}") })
}

/// What is preloaded for it.
pub fn library_of(through: Through) -> io::Result<Option<PathBuf>> {
    Ok(match through {
        Through::Preload => Some(library()?),
        Through::Pcap => Some(built("libringway_pcap.so")?),
        Through::Linked | Through::Nothing => None,
    })
}

/// The preload library.
fn library() -> io::Result<PathBuf> {
    built("libringway_preload.so")
}

fn built(name: &str) -> io::Result<PathBuf> {
    let library = env::current_exe()?.with_file_name(name);
    match library.exists() {
        true => Ok(library),
        false => {
            let missing = format!("{} is missing; build it with `make build`", library.display());
            Err(io::Error::other(missing))
        }
    }
}

/// How a program comes by Ringway's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    Preload,
    /// It is a program of libpcap, under the library that takes that one's place.
    Pcap,
    /// It is linked with the library.
    Linked,
    /// It has none of them.
    Nothing,
}

/// One of the benchmark's own programs in C (bench/c), built.
pub fn own(folder: &Path, name: &str, through: Through, libraries: &[&str]) -> io::Result<PathBuf> {
    build_through(folder, &format!("bench/c/{name}.c"), through, libraries)
}

/// Builds `source`, a path within the project, in `folder`.
pub fn build_through(
    folder: &Path,
    source: &str,
    through: Through,
    libraries: &[&str],
) -> io::Result<PathBuf> {
    let mut flags = vec!["-Wall", "-lpthread"];
    flags.extend(libraries);
    let places;
    if through == Through::Linked {
        // It is one file, by two names.
        symlink(library()?, folder.join("libringway_netmap.so"))?;
        places = [format!("-L{}", folder.display()), format!("-Wl,-rpath,{}", folder.display())];
        flags.extend(places.iter().map(String::as_str));
        flags.extend(["-Wl,--no-as-needed", "-lringway_netmap"]);
    }
    build_with(folder, source, &flags)
}

/// Starts a program that is a role (bench/c/role.h). It settles on its CPU itself, when all is open.
pub fn role(
    seat: Seat,
    daemon: &Path,
    program: &Path,
    through: Through,
    arguments: &[&str],
) -> io::Result<Role> {
    let cpu = seat.cpu.map_or("-".to_owned(), |cpu| cpu.to_string());
    let program = program.to_string_lossy();
    let preload;
    let mut command = vec!["exec", "--"];
    if let Some(library) = library_of(through)? {
        preload = format!("LD_PRELOAD={}", library.display());
        command.extend(["env", &preload]);
    }
    command.extend([&*program, &cpu]);
    command.extend(arguments);
    Role::start(Seat { cpu: None, ..seat }, daemon, &command)
}

/// Runs a program to its end; returns what it printed.
pub fn run(seat: Seat, daemon: &Path, program: &Path, arguments: &[&str]) -> io::Result<String> {
    start(seat, daemon, program, arguments)?.finish()
}

impl Running {
    /// Waits until the program says that it is ready, in a line of its own.
    pub fn until_ready(&mut self) -> io::Result<()> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        match line.trim_end() {
            "ready" => Ok(()),
            other => Err(io::Error::other(format!("{}: {other:?}, and not ready", self.shown))),
        }
    }

    /// Waits until it ends; returns what it has printed since.
    pub fn finish(mut self) -> io::Result<String> {
        let mut output = String::new();
        self.output.read_to_string(&mut output)?;
        match self.child.wait()? {
            status if status.success() => Ok(output),
            status => Err(io::Error::other(format!("{}: {status}", self.shown))),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail when it has ended by itself: that is the aim.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number behind `word` in what a program has printed.
pub fn number_behind(word: &str, output: &str) -> io::Result<f64> {
    let mut words = output.split_whitespace().skip_while(|found| *found != word);
    words.nth(1).and_then(|number| number.parse().ok()).ok_or_else(|| {
        io::Error::other(format!("no {word} in what the program printed: {output:?}"))
    })
}
