//! A program of the system daemon, at its usual place, goes on with the next system daemon, and with no private one, though
//! the system daemon has removed its socket.
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

use std::{
    env, fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use ringway::Port;
use ringway_testkit::{Proc, skip_without_root};
use ringway_tests::{
    Home,
    c::{Language::C11, link},
    ends, until,
};
use rustix::process::Signal;

const SOCKET: &str = "/run/ringway/ringwayd.sock";

/// Of the process that is the program of a test.
const PROGRAM: &str = "RINGWAY_TEST_PROGRAM";

const LIMIT: Duration = Duration::from_secs(60);

/// A `/run` of its own, for the processes that enter it.
struct Run {
    holder: Proc,
}

impl Run {
    fn new() -> Run {
        let mut unshare = Command::new("unshare");
        let script = "mount -t tmpfs none /run && echo mounted && exec sleep infinity";
        unshare.args(["--mount", "sh", "-c", script]);
        let holder = Proc::spawn(unshare);
        holder.wait_for("mounted", LIMIT);
        Run { holder }
    }

    /// A program there, which finds its daemon by itself; a private one has a folder of the home's.
    fn command(&self, home: &Home, program: &Path) -> Command {
        let mut enter = home.command("nsenter");
        enter.args(["--mount", "--target", &self.holder.pid().to_string()]).arg(program);
        enter.env_remove("RINGWAY_DIR").env("XDG_RUNTIME_DIR", home.run());
        enter
    }

    fn daemon(&self, home: &Home) -> Proc {
        let config = home.path().join("ringwayd.toml");
        fs::write(&config, "").unwrap();
        let mut daemon = self.command(home, &home.bin().join("ringwayd"));
        daemon.arg("--config").arg(config);
        Proc::spawn(daemon)
    }

    /// Waits until the system daemon listens, or does no more.
    fn wait_for_socket(&self, there: bool) {
        let socket = format!("/proc/{}/root{SOCKET}", self.holder.pid());
        until("the socket", || match fs::exists(&socket) {
            Ok(is) if is == there => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }

    /// Waits until the system daemon has the program's port.
    fn wait_for_port(&self, home: &Home) {
        until("the system daemon has the port", || {
            let mut ports = self.command(home, &home.bin().join("ringway"));
            ports.arg("ports").env("RINGWAY_SOCKET", SOCKET);
            let output = ports.output().unwrap();
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said).into_owned();
            if said.contains("vale0:a") { Ok(()) } else { Err(said) }
        });
    }
}

#[test]
fn a_program_of_the_system_daemon_waits_for_the_next() {
    if skip_without_root("a_program_of_the_system_daemon_waits_for_the_next") {
        return;
    }
    let home = Home::new();
    home.install(&[("ringway", "ringway-cli"), ("libringway_pcap.so", "ringway-pcap")]);
    let program = link(&home, "tests/c/going_on_pcap.c", C11, &["-lpcap"]);
    let run = Run::new();
    let daemon = run.daemon(&home);
    run.wait_for_socket(true);
    let mut program = run.command(&home, &program);
    program.args(["vale0:a", "loop"]).env("RINGWAY_VERBOSE", "1");
    program.env("LD_PRELOAD", home.bin().join("libringway_pcap.so"));
    let program = Proc::spawn(program);
    program.wait_for("ready", LIMIT);
    run.wait_for_port(&home);
    daemon.signal(Signal::TERM);
    assert!(ends(daemon.pid(), LIMIT));
    run.wait_for_socket(false);
    program.wait_for("ringwayd has ended", LIMIT);
    let _next = run.daemon(&home);
    run.wait_for_port(&home);
    program.signal(Signal::TERM);
    let (status, said) = program.wait();
    assert!(status.success() && said.contains("opened again"), "{said}");
    assert!(!said.contains("failed"), "{said}");
    assert_eq!(fs::read_dir(home.run()).unwrap().count(), 0, "no private daemon was started");
}

/// The daemon of a port that was shut is known all the same.
#[test]
fn a_port_that_was_shut_is_opened_at_its_daemon() {
    const NAME: &str = "a_port_that_was_shut_is_opened_at_its_daemon";
    if env::var_os(PROGRAM).is_some() {
        return opens_a_port_that_was_shut();
    }
    if skip_without_root(NAME) {
        return;
    }
    let home = Home::new();
    home.install(&[("ringway", "ringway-cli")]);
    let run = Run::new();
    let daemon = run.daemon(&home);
    run.wait_for_socket(true);
    let mut program = run.command(&home, &env::current_exe().unwrap());
    program.args([NAME, "--exact", "--nocapture"]).env(PROGRAM, "1");
    let program = Proc::spawn(program);
    program.wait_for("shut", LIMIT);
    daemon.signal(Signal::TERM);
    assert!(ends(daemon.pid(), LIMIT));
    program.wait_for("no daemon yet", LIMIT);
    let _next = run.daemon(&home);
    let (status, said) = program.wait();
    assert!(status.success(), "{said}");
}

fn opens_a_port_that_was_shut() {
    let mut port = Port::open("vale0:a").unwrap();
    assert!(port.is_of_system_daemon());
    port.shut();
    let mut reopening = port.reopening(LIMIT);
    println!("shut");
    until("the end of the daemon", || match fs::exists(SOCKET) {
        Ok(false) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    assert!(reopening.attempt().unwrap().is_none(), "a private daemon has no such port");
    println!("no daemon yet");
    let port = loop {
        if let Some(port) = reopening.attempt().unwrap() {
            break port;
        }
        thread::sleep(reopening.due().saturating_duration_since(Instant::now()));
    };
    assert!(port.is_of_system_daemon());
}
