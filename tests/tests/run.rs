//! `ringway run`, and programs into which it can load nothing: what it says of them.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use ringway_testkit::{install, skip_without_root};
use ringway_tests::{
    Home, as_nobody,
    c::{Language::C11, Library::Preloaded, link, project},
    compile, give_capability,
};

fn home() -> Home {
    let home = Home::new();
    home.install(&[("ringway", "ringway-cli")]);
    home
}

/// `ringway run -- PROGRAM`.
fn run(home: &Home, program: &Path) -> Command {
    let mut command = home.command(home.bin().join("ringway"));
    command.args(["run", "--"]).arg(program);
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

const HELLO: &str = "12 bytes: hello, ring\n";

/// The loader ignores LD_PRELOAD in a program that gets rights by being executed, and in no other.
#[test]
fn a_program_that_gets_rights_is_refused() {
    if skip_without_root("a_program_that_gets_rights_is_refused") {
        return;
    }
    let home = home();
    home.give_to_nobody();
    let ways = [
        ("", Some(0o755)),
        ("a set-user-ID bit", Some(0o4755)),
        ("a set-group-ID bit", Some(0o2755)),
        ("file capabilities", None),
    ];
    for (what, bits) in ways {
        let program = home.path().join(what.replace(' ', "-") + "hello");
        fs::rename(compile(&home, "examples/c/hello.c", C11, Preloaded), &program).unwrap();
        match bits {
            Some(bits) => mode(&program, bits),
            None => give_capability(&program),
        }
        let output = as_nobody(run(&home, &program)).output().unwrap();
        let text = said(&output);
        if what.is_empty() {
            assert_eq!((output.status.code(), &*text), (Some(0), HELLO));
            continue;
        }
        assert_eq!(output.status.code(), Some(126), "{what}: {text}");
        for part in [what, &program.display().to_string(), "run a copy", "libringway_netmap.so"] {
            assert!(text.contains(part), "{what}: {text}");
        }
        // The remedy.
        let copy = home.path().join("copy");
        let _ = fs::remove_file(&copy);
        install([&program], &copy);
        let text = said(&as_nobody(run(&home, &copy)).output().unwrap());
        assert_eq!(text, HELLO, "{what}");
    }
    home.assert_left();
}

fn mode(program: &Path, mode: u32) {
    fs::set_permissions(program, Permissions::from_mode(mode)).unwrap();
}

/// Its library comes first, as it demands.
#[test]
fn a_program_with_address_sanitizer_runs() {
    let home = home();
    let program = link(&home, "examples/c/hello.c", C11, &["-fsanitize=address"]);
    let output = run(&home, &program).output().unwrap();
    assert_eq!(said(&output), HELLO);
    home.assert_left();
}

/// libnetmap's archive needs what takes libc's place, which a statically linked program has not.
#[test]
fn a_static_link_of_libnetmap_fails() {
    let home = home();
    home.install(&[("libnetmap.a", "ringway-libnetmap")]);
    for how in ["-static", "-static-pie"] {
        let mut compiler = Command::new("cc");
        compiler.arg(how).arg("-I").arg(project().join("include"));
        compiler.arg(project().join("tests/c/libnetmap_ports.c")).arg("-L").arg(home.bin());
        compiler.args(["-l:libnetmap.a", "-o"]).arg(home.path().join("static"));
        let output = compiler.output().unwrap();
        let text = said(&output);
        assert!(!output.status.success(), "{how}: {text}");
        let needed = "libnetmap_is_linked_dynamically_with_lringway_netmap";
        assert!(text.contains(needed), "{how}: {text}");
    }
}
