//! A program of the system daemon, at its usual place, goes on with the next system daemon, and with no private one, though
//! the system daemon has removed its socket.

use std::{fs, path::Path, process::Command, time::Duration};

use ringway_testkit::{Proc, skip_without_root};
use ringway_tests::{
    Home,
    c::{Language::C11, link},
    ends, until,
};
use rustix::process::Signal;

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

    /// Waits until the system daemon has the program's port.
    fn wait_for_port(&self, home: &Home) {
        until("the system daemon has the port", || {
            let mut ports = self.command(home, &home.bin().join("ringway"));
            ports.arg("ports").env("RINGWAY_SOCKET", "/run/ringway/ringwayd.sock");
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
    let socket = format!("/proc/{}/root/run/ringway/ringwayd.sock", run.holder.pid());
    let is_there = |there: bool| {
        until("the socket", || match fs::exists(&socket) {
            Ok(is) if is == there => Ok(()),
            other => Err(format!("{other:?}")),
        });
    };
    is_there(true);
    let mut program = run.command(&home, &program);
    program.args(["vale0:a", "loop"]).env("RINGWAY_VERBOSE", "1");
    program.env("LD_PRELOAD", home.bin().join("libringway_pcap.so"));
    let program = Proc::spawn(program);
    program.wait_for("ready", LIMIT);
    run.wait_for_port(&home);
    daemon.signal(Signal::TERM);
    assert!(ends(daemon.pid(), LIMIT));
    is_there(false);
    program.wait_for("ringwayd has ended", LIMIT);
    let _next = run.daemon(&home);
    run.wait_for_port(&home);
    program.signal(Signal::TERM);
    let (status, said) = program.wait();
    assert!(status.success() && said.contains("opened again"), "{said}");
    assert!(!said.contains("failed"), "{said}");
    assert_eq!(fs::read_dir(home.run()).unwrap().count(), 0, "no private daemon was started");
}
