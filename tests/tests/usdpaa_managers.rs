//! Programs of USDPAA's queue and buffer managers, function group by function group.

use std::process::Command;

use ringway_tests::{
    Home,
    c::{Language::*, link, succeed},
};

fn home() -> Home {
    let home = Home::new();
    home.install(&[("libusdpaa.so", "ringway-usdpaa")]);
    home
}

fn passes(name: &str) {
    let home = home();
    let source = format!("tests/c/{name}.c");
    let program = link(&home, &source, C11, &["-lusdpaa", "-lpthread"]);
    println!("{}", succeed(Command::new(program)));
}

#[test]
fn headers_have_the_layout_of_the_reference() {
    for name in ["usdpaa_values", "usdpaa_layout", "usdpaa_functions"] {
        passes(name);
    }
}

#[test]
fn queues() {
    passes("usdpaa_queues");
}
