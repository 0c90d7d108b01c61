//! The C programs of `tests/c`, built with the project's headers, on a real daemon: preloaded
//! and linked, with both generations of the API, in C and in C++, with a private and with a
//! system daemon, as root and as somebody else.

use std::{path::Path, process::Command, time::Duration};

use ringway::{Control, Lossless, Port, PortSettings};
use ringway_testkit::{Proc, is_root, skip_without_root};
use ringway_tests::{
    GROUP, Home, as_nobody, c::Language, c::Language::*, c::Library, c::Library::*, c::succeed,
    compile, isolated,
};
use rustix::process::Signal;

/// Where a frame of `tests/c/frame.h` has its number.
const SEQUENCE: usize = 14;

/// Programs that check a part of the interface, and the arguments that they are run with.
const PROGRAMS: [(&str, &[&[&str]]); 21] = [
    ("layout", &[&[]]),
    ("macros", &[&[]]),
    ("module_parameters", &[&[]]),
    ("nm_open_api", &[&["valec1"]]),
    ("vale_sync", &[&["valec11", "14"], &["valec11", "15"]]),
    ("wait_corners", &[&["valec10", "14"], &["valec10", "15"]]),
    ("csb_kloop", &[&["valec9", "14"], &["valec9", "15"]]),
    ("null_cycles", &[&["64", "100000"]]),
    ("refused_calls", &[&["refused{1"]]),
    ("handler", &[&["handler{1"]]),
    ("few_descriptors", &[&["valec14"]]),
    ("cancelled", &[&["valec15"]]),
    ("little_memory", &[&["valec16"]]),
    ("late_monitor", &[&["late{1"]]),
    ("cancelled_send", &[&["valec18:a"]]),
    ("thread_end", &[&["end{1"]]),
    ("fork_mapping", &[&["valec19:a"]]),
    ("fork_waiting", &[&["valec20:a"]]),
    ("fork_sockets", &[&["valec23:a"]]),
    ("closed_numbers", &[&["valec21"], &["valec22", "100"]]),
    ("errno_kept", &[&["errno{1"], &["valec17:a"]]),
];

/// Builds a program of `tests/c`, and runs it in all its ways; `command` starts the built
/// program with the environment of its daemon.
fn check(home: &Home, name: &str, how: (Language, Library), command: impl Fn(&Path) -> Command) {
    let (language, library) = how;
    let program = compile(home, &format!("tests/c/{name}.c"), language, library);
    let (_, runs) = PROGRAMS.iter().find(|(known, _)| *known == name).expect("in the list");
    for args in *runs {
        let mut command = command(&program);
        command.args(*args);
        if library == Preloaded {
            command.env("LD_PRELOAD", home.library());
        }
        succeed(command);
    }
}

/// Preloaded and linked, with a private daemon.
fn both_ways(name: &str, languages: &[Language]) {
    let home = Home::new();
    for &language in languages {
        for library in [Preloaded, Linked] {
            check(&home, name, (language, library), |program| home.command(program));
        }
    }
    home.assert_left();
}

#[test]
fn layout() {
    both_ways("layout", &[C11, Cpp17]);
}

#[test]
fn macros() {
    both_ways("macros", &[C11, Cpp17]);
}

#[test]
fn module_parameters() {
    both_ways("module_parameters", &[C11]);
}

#[test]
fn nm_open_api() {
    both_ways("nm_open_api", &[C11, Cpp17]);
}

#[test]
fn vale_sync() {
    both_ways("vale_sync", &[C11]);
}

/// A program that sends without a pause need not wait for the switch each time, and loses nothing.
#[test]
fn vale_stream() {
    const SYNCS: &str = "20000";
    isolated("vale_stream", |home| {
        let control = Control::connect().unwrap();
        let mut to = Port::open("valec12:to").unwrap();
        let lossless = Some(Some(Lossless { patience_ms: 30_000 }));
        control
            .switch_port("valec12:to", PortSettings { lossless, ..PortSettings::default() })
            .unwrap();
        for library in [Preloaded, Linked] {
            let program = compile(home, "tests/c/vale_stream.c", C11, library);
            let command = |port: &str| {
                let mut command = home.command(&program);
                command.args([port, SYNCS]);
                if library == Preloaded {
                    command.env("LD_PRELOAD", home.library());
                }
                command
            };
            succeed(command("valec13:alone"));
            let mut command = command("valec12:from");
            command.arg("lossless");
            let mut sender = Proc::spawn(command);
            let (mut received, mut sent) = (0, None);
            while sent.is_none_or(|sent| received < sent) {
                let is_over = !sender.is_running();
                let mut ring = to.rx(0);
                for frame in ring.batch(usize::MAX) {
                    let sequence = frame.read(SEQUENCE).map(u32::from_ne_bytes);
                    assert_eq!(sequence, Some(received), "{library:?}");
                    received += 1;
                }
                ring.sync();
                if !to.wait_rx(Some(Duration::from_millis(100))).unwrap() {
                    let output = sender.output();
                    let number = output.lines().find_map(|line| line.strip_prefix("sent "));
                    sent = number.map(|number| number.parse().unwrap());
                    let is_all = sent == Some(received);
                    assert!(is_all || !is_over, "{library:?}: {received}: {output}");
                }
            }
            let (status, output) = sender.wait();
            assert!(status.success(), "{output}");
            assert_eq!(Some(received), sent);
        }
    });
}

#[test]
fn vale_sync_without_daemon() {
    let home = Home::new();
    let program = compile(&home, "tests/c/vale_sync.c", C11, Linked);
    let daemon = home.system_daemon(rustix::process::getgid().as_raw(), 0o600);
    let mut command = home.command(&program);
    command.args(["valec11", "14"]).arg(daemon.pid().to_string());
    command.env("RINGWAY_SOCKET", home.system_socket()).env_remove("RINGWAY_DIR");
    succeed(command);
}

#[test]
fn wait_corners() {
    both_ways("wait_corners", &[C11]);
}

#[test]
fn csb_kloop() {
    both_ways("csb_kloop", &[C11]);
}

#[test]
fn null_cycles() {
    both_ways("null_cycles", &[C11]);
}

/// What is known of descriptors changes when a call has succeeded, and not before.
#[test]
fn refused_calls() {
    both_ways("refused_calls", &[C11]);
}

/// What POSIX lets a handler of a signal call is safe there.
#[test]
fn handler() {
    both_ways("handler", &[C11]);
}

/// A program at its limit of descriptors is told so, and harms neither the daemon nor itself.
#[test]
fn few_descriptors() {
    both_ways("few_descriptors", &[C11]);
}

/// A program that may not map a port is told so.
#[test]
fn little_memory() {
    both_ways("little_memory", &[C11]);
}

/// A program that lacks descriptors for a monitor's rings feeds it when it has some.
#[test]
fn late_monitor() {
    both_ways("late_monitor", &[C11]);
}

/// Standard error says what is wrong with a request, and what to do.
#[test]
fn malformed_requests() {
    let home = Home::new();
    let program = compile(&home, "tests/c/malformed_requests.c", C11, Preloaded);
    let mut command = home.command(program);
    command.env("LD_PRELOAD", home.library()).env("RINGWAY_VERBOSE", "1");
    let said = succeed(command);
    for words in [
        "version 11 of netmap's API; build it with headers of version 14 or 15",
        "version 16 of netmap's API; build it with headers of version 14 or 15",
        "request 1 has a body of 56 bytes; put its address into nr_body",
        "request 999 is not known, or has no body; leave nr_body 0",
        "no option of type 77; leave it out",
        "it begins within a page; align it to 4096 bytes",
        "give its size in nro_info.nr_memsize",
        "not all of it is there to be written; map it first",
        "valeMalformed:a, CSB mode: the rings have to be the program's alone; register them with NR_EXCLUSIVE",
        "align csb_atok and csb_ktoa to that",
        "not all entries are there to be written; map memory",
    ] {
        assert!(said.contains(words), "no {words:?} in {said}");
    }
    home.assert_left();
}

/// A program may fork while it has ports open: in the middle of what other threads do, and in a handler.
#[test]
fn fork_mapping() {
    both_ways("fork_mapping", &[C11]);
}

/// A child has nothing of what its parent's threads wait for.
#[test]
fn fork_waiting() {
    both_ways("fork_waiting", &[C11]);
}

/// A child of fork has no lock of a socket that a thread of its parent's has held.
#[test]
fn fork_sockets() {
    both_ways("fork_sockets", &[C11]);
}

/// The numbers that the library has for a port are closed by nothing but the library, and it closes no others.
#[test]
fn closed_numbers() {
    both_ways("closed_numbers", &[C11]);
}

/// Threads that wait can be cancelled.
#[test]
fn cancelled() {
    both_ways("cancelled", &[C11]);
}

/// So can threads that send a question about a port.
#[test]
fn cancelled_send() {
    both_ways("cancelled_send", &[C11]);
}

/// Calls that succeed leave errno as it was.
#[test]
fn errno_kept() {
    both_ways("errno_kept", &[C11]);
}

/// Threads fork and use ports to their very end.
#[test]
fn thread_end() {
    both_ways("thread_end", &[C11]);
}

/// The programs of README.md, in C and in Rust.
#[test]
fn first() {
    let home = Home::new();
    for library in [Preloaded, Linked] {
        let mut first = home.command(compile(&home, "examples/c/first.c", C11, library));
        if library == Preloaded {
            first.env("LD_PRELOAD", home.library());
        }
        assert_eq!(succeed(first), "20 bytes: hello\n");
    }
    assert_eq!(succeed(home.command(env!("CARGO_BIN_EXE_first"))), "19 bytes: hello\n");
    home.assert_left();
}

/// The first program of a newcomer.
#[test]
fn hello() {
    let home = Home::new();
    for library in [Preloaded, Linked] {
        let mut hello = home.command(compile(&home, "examples/c/hello.c", C11, library));
        if library == Preloaded {
            hello.env("LD_PRELOAD", home.library());
        }
        assert_eq!(succeed(hello), "12 bytes: hello, ring\n");
    }
    home.assert_left();
}

/// A debugger keeps a program that starts the private daemon.
#[test]
fn the_daemon_is_no_thread_of_a_traced_program() {
    let home = Home::new();
    let tracer = compile(&home, "tests/c/tracer.c", C11, Preloaded);
    let mut command = home.command(tracer);
    command.arg(compile(&home, "examples/c/hello.c", C11, Linked));
    assert!(succeed(command).contains("12 bytes: hello, ring"));
    home.assert_left();
}

/// A program that is executed finds what it has inherited, though it knows the daemon's socket by
/// another name than the daemon.
#[test]
fn inherited_descriptors() {
    let home = Home::new();
    let daemon = home.system_daemon(rustix::process::getgid().as_raw(), 0o600);
    let link = home.path().join("link.sock");
    std::os::unix::fs::symlink(home.system_socket(), &link).unwrap();
    for library in [Preloaded, Linked] {
        let program = compile(&home, "tests/c/inherit.c", C11, library);
        for socket in [&home.system_socket(), &link] {
            let mut command = home.system_command(&program);
            command.arg("valec12:a").env("RINGWAY_SOCKET", socket);
            if library == Preloaded {
                command.env("LD_PRELOAD", home.library());
            }
            succeed(command);
        }
    }
    drop(daemon);
}

/// Two processes, one pipe or one bridge between them: all frames arrive in order.
#[test]
fn sender_and_receiver() {
    let home = Home::new();
    for library in [Preloaded, Linked] {
        let [sender, receiver] = ["sender", "receiver"]
            .map(|name| compile(&home, &format!("tests/c/{name}.c"), C11, library));
        let command = |program: &Path, args: &[&str]| {
            let mut command = home.command(program);
            command.args(args);
            if library == Preloaded {
                command.env("LD_PRELOAD", home.library());
            }
            command
        };
        // A pipe loses nothing; a bridge may, when its receiver is late.
        for (to, from, gaps) in [("c{1", "c}1", false), ("valec7:s", "valec7:r", true)] {
            let flags: &[&str] = if gaps { &["-g"] } else { &[] };
            let receiving = Proc::spawn(command(&receiver, &[flags, &[from, "200000"]].concat()));
            receiving.wait_for("ready", Duration::from_secs(20));
            succeed(command(&sender, &["-l", "1514", to, "200000"]));
            let (status, output) = receiving.wait();
            assert!(status.success(), "receiver of {from}: {output}");
        }
    }
    home.assert_left();
}

/// The whole interface through a system daemon, for whoever is in its group.
#[test]
fn system_daemon() {
    let home = Home::new();
    let socket = home.system_socket();
    let group = if is_root() { GROUP } else { rustix::process::getgid().as_raw() };
    let mut daemon = home.system_daemon(group, 0o660);
    let mut users: Vec<fn(Command) -> Command> = vec![|command| command];
    if is_root() {
        users.push(as_nobody);
    }
    for user in users {
        for (name, _) in PROGRAMS {
            check(&home, name, (C11, Linked), |program| user(home.system_command(program)));
        }
    }
    assert!(daemon.is_running(), "{}", daemon.output());
    assert!(home.daemons().is_empty(), "a private daemon was started beside the system's");
    daemon.signal(Signal::TERM);
    let (status, output) = daemon.wait();
    assert!(status.success(), "{status}: {output}");
    assert!(!socket.exists(), "the daemon left its socket behind");
}

/// An ordinary user, a daemon of the user's own, preloaded.
#[test]
fn ordinary_user() {
    if skip_without_root("ordinary_user") {
        return;
    }
    let home = Home::new();
    home.give_to_nobody();
    for (name, _) in PROGRAMS {
        check(&home, name, (C11, Preloaded), |program| as_nobody(home.command(program)));
    }
    home.assert_left();
}
