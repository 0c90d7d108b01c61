//! USDPAA's headers, and that its library has what they declare.

use std::{
    fs::{self, read_dir},
    path::Path,
    process::Command,
};

use ringway_tests::{
    Home,
    c::{Language::*, link, project, succeed},
};

#[test]
fn headers_have_the_layout_of_the_reference() {
    let home = Home::new();
    home.install(&[("libusdpaa.so", "ringway-usdpaa")]);
    for name in ["usdpaa_values", "usdpaa_layout", "usdpaa_functions", "usdpaa_compat"] {
        let source = format!("tests/c/{name}.c");
        let program = link(&home, &source, C11, &["-lusdpaa", "-lpthread"]);
        succeed(Command::new(program));
    }
}

#[test]
fn functions_are_found_by_programs_in_cpp() {
    let home = Home::new();
    home.install(&[("libusdpaa.so", "ringway-usdpaa")]);
    let program = link(&home, "tests/c/usdpaa_cpp.c", Cpp17, &["-lusdpaa", "-lpthread"]);
    succeed(Command::new(program));
}

/// The headers of a folder within `include/usdpaa`, as programs name them.
fn headers(folder: &str) -> Vec<String> {
    let entries = read_dir(project().join("include/usdpaa").join(folder)).unwrap().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.ends_with(".h")).map(|name| format!("{folder}{name}")).collect()
}

/// Compiles a source with these flags, and everything that a compiler has to complain about.
fn check(source: &Path, flags: &[&str]) {
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]).args(flags);
    for include in ["include", "include/usdpaa"] {
        cc.arg("-I").arg(project().join(include));
    }
    let output = cc.arg(source).output().expect("cc starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{cc:?}\n{said}");
}

/// Programs include headers in any order, with the folder's name or without.
#[test]
fn each_header_stands_alone() {
    let home = Home::new();
    let all = ["", "internal/", "flib/"].map(headers).concat();
    assert!(all.len() > 15, "{all:?}");
    for header in &all {
        let names = [(header.clone(), "-std=c99"), (format!("usdpaa/{header}"), "-std=gnu11")];
        for (name, standard) in names {
            let source = home.path().join("alone.c");
            fs::write(&source, format!("#include <{name}>\nint one;\n")).unwrap();
            check(&source, &[standard, "-pedantic"]);
        }
    }
}

#[test]
fn programs_may_be_in_any_c_since_1999() {
    for program in ["examples/c/usdpaa_hello.c", "examples/c/usdpaa_reflector.c"] {
        for standard in ["-std=c99", "-std=gnu99", "-std=c11", "-std=gnu11"] {
            let source = project().join(program);
            check(&source, &[standard]);
            check(&source, &[standard, "-include", "usdpaa/little_endian.h"]);
        }
    }
}
