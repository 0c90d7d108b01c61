//! USDPAA's headers, and that its library has what they declare.

use std::process::Command;

use ringway_tests::{
    Home,
    c::{Language::*, link, succeed},
};

#[test]
fn headers_have_the_layout_of_the_reference() {
    let home = Home::new();
    home.install(&[("libusdpaa.so", "ringway-usdpaa")]);
    for name in ["usdpaa_values", "usdpaa_layout", "usdpaa_functions"] {
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
