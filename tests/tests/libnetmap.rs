//! libnetmap for C programs, on a real daemon: as a shared library and as an archive, in C and
//! in C++.

use ringway_tests::{
    Home,
    c::{Language, Language::*, Library, Library::*, link, succeed},
    compile,
};

const PACKAGE: &str = "ringway-libnetmap";

fn home() -> Home {
    let home = Home::new();
    home.install(&[("libnetmap.so", PACKAGE), ("libnetmap.a", PACKAGE)]);
    home
}

/// Builds a program of `tests/c`, and runs it.
fn check(name: &str, how: (Language, Library), args: &[&str]) {
    let home = home();
    let program = compile(&home, &format!("tests/c/{name}.c"), how.0, how.1);
    let mut command = home.command(program);
    command.args(args);
    succeed(command);
    home.assert_left();
}

#[test]
fn layout() {
    check("libnetmap_layout", (C11, Libnetmap), &[]);
    check("libnetmap_layout", (Cpp17, Archive), &[]);
}

#[test]
fn names() {
    check("libnetmap_names", (C11, Libnetmap), &["valeL1"]);
    check("libnetmap_names", (Cpp17, Archive), &["valeL1"]);
}

#[test]
fn ports() {
    check("libnetmap_ports", (C11, Libnetmap), &["valeL2"]);
    check("libnetmap_ports", (Cpp17, Archive), &["valeL2"]);
}

/// The loader's order decides who serves the `poll` and `ioctl` of the library, and of the program
/// itself: in each of these ways it is Ringway before libc.
#[test]
fn ways_to_link() {
    let home = home();
    let ways: [(&[&str], bool); 5] = [
        (&["-lnetmap", "-lringway_netmap"], false),
        (&["-lringway_netmap", "-lnetmap"], false),
        (&["-Wl,--as-needed", "-lnetmap"], false),
        (&["-lnetmap", "-Wl,-z,lazy"], false),
        (&["-l:libnetmap.a"], true),
    ];
    for (libraries, preloaded) in ways {
        let program = link(&home, "tests/c/libnetmap_ports.c", C11, libraries);
        let mut command = home.command(program);
        command.arg("valeL3");
        if preloaded {
            command.env("LD_PRELOAD", home.library());
        }
        succeed(command);
    }
    home.assert_left();
}
