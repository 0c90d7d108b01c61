//! AF_PACKET V4 for C programs, on a real daemon: the modes of the proposal's sample. Its rules are checked by
//! `conformance/tpacket4`.

use std::{path::Path, process::Command};

use ringway_testkit::{Netns, skip_without_root};
use ringway_tests::{
    GROUP, Home, as_nobody,
    c::{Language::*, Library, Library::*, succeed},
    compile, inside,
};

/// How the modes wait, and packets each way, a multiple of the program's batch. A program that waits by looking takes
/// the CPU from those that it waits for, where there are few.
const HOW: [[&str; 2]; 2] = [["poll", "6400"], ["spin", "640"]];

/// Runs a program of `tests/c` with those arguments, preloaded and linked; `launch` starts the built program.
fn both_ways(home: &Home, name: &str, runs: &[&[&str]], launch: impl Fn(&Path) -> Command) {
    for library in [Preloaded, Linked] {
        one_way(home, name, library, runs, &launch);
    }
}

fn one_way(
    home: &Home,
    name: &str,
    library: Library,
    runs: &[&[&str]],
    launch: &impl Fn(&Path) -> Command,
) {
    let program = compile(home, &format!("tests/c/{name}.c"), C11, library);
    for args in runs {
        let mut command = launch(&program);
        command.args(*args);
        if library == Preloaded {
            command.env("LD_PRELOAD", home.library());
        }
        succeed(command);
    }
}

#[test]
fn layout() {
    let home = Home::new();
    for language in [C11, Cpp17] {
        succeed(Command::new(compile(&home, "tests/c/tpacket4_layout.c", language, Preloaded)));
    }
}

#[test]
fn modes_on_a_switch() {
    let home = Home::new();
    let runs = HOW.map(|[how, packets]| ["vale4:a", "vale4:b", how, packets]);
    both_ways(&home, "tpacket4_modes", &runs.each_ref().map(|run| &run[..]), |program| {
        home.command(program)
    });
    home.assert_left();
}

#[test]
fn modes_on_a_pipe() {
    let home = Home::new();
    let runs = HOW.map(|[how, packets]| ["v4{1", "v4}1", how, packets]);
    both_ways(&home, "tpacket4_modes", &runs.each_ref().map(|run| &run[..]), |program| {
        home.command(program)
    });
    home.assert_left();
}

/// The two ends of a veth pair, by the kernel's own indices.
#[test]
fn modes_on_interfaces() {
    if skip_without_root("modes_on_interfaces") {
        return;
    }
    let home = Home::new();
    let netns = Netns::quiet("rwv");
    let _pair = netns.veth(&netns, "n0", "n1");
    both_ways(&home, "tpacket4_modes", &[&["n0", "n1", "poll", "640"]], |program| {
        inside(&netns, home.command(program))
    });
    home.assert_left();
}

/// As the proposal's benchmark forwards between two processes: 1 packet under way and 64, in copy mode and in
/// zero-copy mode.
#[test]
fn benchmark_between_processes() {
    if skip_without_root("benchmark_between_processes") {
        return;
    }
    let home = Home::new();
    let netns = Netns::quiet("rwv");
    let _pair = netns.veth(&netns, "vm1", "vm2");
    let runs: [&[&str]; 4] =
        [&["1", "100"], &["64", "6400"], &["1", "100", "0"], &["64", "6400", "0"]];
    one_way(&home, "tpacket4_bench", Preloaded, &runs, &|program| {
        inside(&netns, home.command(program))
    });
    home.assert_left();
}

/// An ordinary user in the group of a system daemon, who may have no packet sockets.
#[test]
fn ordinary_user() {
    if skip_without_root("ordinary_user") {
        return;
    }
    let home = Home::new();
    let _daemon = home.system_daemon(GROUP, 0o660);
    both_ways(&home, "tpacket4_modes", &[&["vale4:a", "vale4:b", "poll", "6400"]], |program| {
        as_nobody(home.system_command(program))
    });
}
