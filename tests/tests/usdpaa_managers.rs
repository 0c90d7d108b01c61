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
fn queues() {
    passes("usdpaa_queues");
}
