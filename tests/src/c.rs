//! C programs, built against this project's headers as a user would.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use ringway_testkit::{Proc, bpf_object};

use crate::{Home, ends};

/// More flags for the compiler, separated by blanks: a sanitizer's.
const MORE_FLAGS: &str = "RINGWAY_TEST_CFLAGS";
/// Longer than any of the programs takes; then it hangs.
const LIMIT: Duration = Duration::from_secs(300);

/// A compiler, as strict as it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C11,
    Cpp17,
}

/// How a program comes to use the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Built without knowing of it, run with `LD_PRELOAD`.
    Preloaded,
    /// Linked before libc.
    Linked,
    /// Linked to libnetmap.so alone, which brings the library along.
    Libnetmap,
    /// libnetmap.a linked in, and then the library.
    Archive,
}

/// The project's folder.
pub fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate is in the project")
}

/// Builds `source`, a path within the project, into a program in `home`; panics with what the
/// compiler says.
pub fn compile(home: &Home, source: &str, language: Language, library: Library) -> PathBuf {
    let libraries: &[&str] = match library {
        Library::Preloaded => &[],
        Library::Linked => &["-lringway_netmap"],
        Library::Libnetmap => &["-lnetmap"],
        Library::Archive => &["-l:libnetmap.a", "-lringway_netmap"],
    };
    link(home, source, language, libraries)
}

/// The same, with arguments for the linker, which finds libraries in the home.
pub fn link(home: &Home, source: &str, language: Language, libraries: &[&str]) -> PathBuf {
    let source = project().join(source);
    let name = source.file_stem().expect("a source has a name").to_string_lossy();
    let with = libraries.concat().replace('/', "-");
    let program = home.path().join(format!("{name}-{language:?}{with}"));
    let mut compiler = match language {
        Language::C11 => Command::new("cc"),
        Language::Cpp17 => Command::new("c++"),
    };
    match language {
        Language::C11 => compiler.arg("-std=c11"),
        Language::Cpp17 => compiler.args(["-std=c++17", "-x", "c++"]),
    };
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
    let more = env::var(MORE_FLAGS).unwrap_or_default();
    compiler.args(more.split_whitespace()).arg("-I");
    compiler.arg(project().join("include")).arg(&source).arg("-o").arg(&program);
    let bin = home.bin();
    // Also where the program itself calls nothing of it.
    compiler.args(["-x", "none", "-Wl,--no-as-needed", "-L"]).arg(&bin).args(libraries);
    compiler.args(loads_from(&bin));
    let output = compiler.output().unwrap_or_else(|e| panic!("cannot start {compiler:?}: {e}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler:?}: {}\n{said}", output.status);
    program
}

/// What has the linker make a program that loads its libraries from a folder, whatever LD_LIBRARY_PATH
/// says: cargo names the folder there that holds all that was built, with a daemon.
pub fn loads_from(folder: &Path) -> [String; 2] {
    ["-Wl,--disable-new-dtags".into(), format!("-Wl,-rpath,{}", folder.display())]
}

/// Compiles `source`, a path, perhaps within the project, for BPF into an object in `home`.
pub fn compile_bpf(home: &Home, source: &Path) -> PathBuf {
    bpf_object(home.path(), &project().join(source))
}

/// Runs a program and returns what it printed; panics unless it succeeds and no line of it
/// begins with "not ok".
pub fn succeed(command: Command) -> String {
    let what = format!("{command:?}");
    let process = Proc::spawn(command);
    if !ends(process.pid(), LIMIT) {
        panic!("{what} hangs; so far it printed:\n{}", process.output());
    }
    let (status, output) = process.wait();
    let bad: Vec<&str> = output.lines().filter(|line| line.starts_with("not ok")).collect();
    assert!(
        status.success() && bad.is_empty(),
        "{what}: {status}\n{}\nall it printed:\n{output}",
        bad.join("\n")
    );
    output
}
