//! netmap's tools, as their scripts know them.

use std::process::{Command, Output};

mod bridge;
mod dedup;
mod lb;
mod nmreplay;
mod pktgen;
mod tlem;
mod valectl;

/// Status, standard output and standard error of a command that ends by itself.
fn run(mut command: Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// The text with an `N` for every run of digits.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' if shape.ends_with('N') => (),
            '0'..='9' => shape.push('N'),
            other => shape.push(other),
        }
    }
    shape
}
