//! The commands that move frames outlive their daemon: their ports are opened again, what was in a ring is read
//! first, and one account goes over both.

use std::{fs, process::Command, time::Duration};

use ringway::{Control, Port};
use ringway_testkit::{Proc, skip_without_root};
use ringway_tests::{
    GROUP, Home, capture, ends, isolated_for, isolated_with_system, packet::numbered, until,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(120);
/// Longer than all goes on.
const HANGS: Duration = Duration::from_secs(500);
/// Until a frame is sent again.
const AGAIN: Duration = Duration::from_millis(5);
/// Frames that a command takes before the end of the daemon, and after it.
const FRAMES: u64 = 10;

/// A command, and the ports of the test around it.
struct Case {
    args: &'static [&'static str],
    /// Where frames for it are sent; a command that sends by itself has none.
    from: Option<&'static str>,
    /// Where they come out; one that keeps them has none.
    to: Option<&'static str>,
    /// Ports that are there besides.
    others: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        args: &["recv", "vale0:c", "--count", "20"],
        from: Some("vale0:t"),
        to: None,
        others: &[],
    },
    Case {
        args: &["capture", "vale0:c", "-w", "taken.pcapng", "--count", "20"],
        from: Some("vale0:t"),
        to: None,
        others: &[],
    },
    Case {
        args: &["capture", "vale0:m/r", "quiet}1", "-w", "seen.pcapng", "--count", "20"],
        from: Some("vale0:t"),
        to: None,
        others: &["vale0:m", "quiet{1"],
    },
    Case {
        args: &["replay", "vale0:c", "frames.pcap", "--loop", "0", "--rate", "500pps"],
        from: None,
        to: Some("vale0:t"),
        others: &[],
    },
    Case {
        args: &["gen", "vale0:c", "--rate", "500pps"],
        from: None,
        to: Some("vale0:t"),
        others: &[],
    },
    Case {
        args: &["bridge", "vale0:c", "p{1"],
        from: Some("vale0:t"),
        to: Some("p}1"),
        others: &[],
    },
    Case {
        args: &["bridge", "p{1", "vale0:c"],
        from: Some("p}1"),
        to: Some("vale0:t"),
        others: &[],
    },
    Case {
        args: &["shape", "vale0:c", "vale1:c", "--delay", "5ms"],
        from: Some("vale0:t"),
        to: Some("vale1:t"),
        others: &[],
    },
    Case {
        args: &["lb", "vale0:c", "--to", "1", "--name", "out", "--queue", "64"],
        from: Some("vale0:t"),
        to: Some("out}0"),
        others: &[],
    },
    Case {
        args: &["lb", "p{1", "--to", "vale0:c", "vale1:c", "--copy"],
        from: Some("p}1"),
        to: Some("vale1:t"),
        others: &["vale0:t"],
    },
    Case {
        args: &["pong", "vale0:c", "--all"],
        from: Some("vale0:t"),
        to: Some("vale0:t"),
        others: &[],
    },
    Case {
        args: &["switch", "mirror", "vale0", "m", "--to", "vale1:c"],
        from: Some("vale0:t"),
        to: Some("vale1:t"),
        others: &["vale0:m"],
    },
];

/// The daemon of a case, from one to the next.
trait Daemons {
    fn start(&mut self);
    fn kill(&mut self);
}

struct System<'h>(&'h Home, Option<Proc>);

impl Daemons for System<'_> {
    fn start(&mut self) {
        self.1 = Some(self.0.system_daemon(GROUP, 0o660));
    }

    fn kill(&mut self) {
        self.1.take().expect("it runs").kill();
    }
}

/// The first who opens a port starts it.
struct Private<'h>(&'h Home);

impl Daemons for Private<'_> {
    fn start(&mut self) {}

    fn kill(&mut self) {
        let pid = self.0.daemon();
        kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
        assert!(ends(pid, LIMIT), "{pid} stays");
    }
}

/// Ports of the test, by their names.
struct Ports(Vec<(String, Port)>);

impl Ports {
    fn open(case: &Case) -> Ports {
        let mut names: Vec<&str> = case.others.to_vec();
        names.extend(case.from.into_iter().chain(case.to));
        names.sort();
        names.dedup();
        Ports(names.iter().map(|name| (name.to_string(), Port::open(name).unwrap())).collect())
    }

    fn get(&mut self, name: &str) -> &mut Port {
        &mut self.0.iter_mut().find(|(known, _)| known == name).expect("it was opened").1
    }

    /// Those of switches are opened anew; pipes go on.
    fn reopen(self) -> Ports {
        let reopen = |(name, port): (String, Port)| match name.starts_with("vale") {
            true => (name, port.reopen(LIMIT).unwrap()),
            false => (name, port),
        };
        Ports(self.0.into_iter().map(reopen).collect())
    }

    /// Frames come through the command, or from it.
    fn cross(&mut self, case: &Case, length: usize) {
        let (frame, to) = (numbered(length), case.to.expect("frames come out"));
        until(&format!("frames cross {:?}", case.args), || {
            if let Some(from) = case.from {
                self.get(from).tx(0).push(&frame);
                self.get(from).tx(0).sync();
            }
            self.drain(case);
            let to = self.get(to);
            if !to.wait_rx(Some(AGAIN)).map_err(|error| error.to_string())? {
                return Err("nothing came".into());
            }
            let mut rx = to.rx(0);
            // What is turned around has other addresses.
            let of_this_time = |bytes: Vec<u8>| {
                case.from.is_none() || bytes.len() == length && bytes[14..] == frame[14..]
            };
            match rx.batch(usize::MAX).map(|slot| slot.to_vec()).any(of_this_time) {
                true => Ok(()),
                false => Err("others came".into()),
            }
        });
    }

    /// Takes what others have got: monitors see it then.
    fn drain(&mut self, case: &Case) {
        for name in case.others {
            let mut rx = self.get(name).rx(0);
            rx.sync();
            rx.batch(usize::MAX).for_each(drop);
            rx.sync();
        }
    }

    /// A command that keeps what comes gets so many.
    fn feed(&mut self, case: &Case, port: &str) {
        let control = Control::connect().unwrap();
        let received = || {
            let switches = control.switches().unwrap();
            let mut ports = switches.into_iter().flat_map(|switch| switch.ports);
            ports.find(|found| found.name == port).map(|port| port.totals.received_packets)
        };
        let before = until("the command has its port", || received().ok_or("none".into()));
        let from = self.get(case.from.expect("frames are for it"));
        (0..FRAMES).for_each(|_| assert!(from.tx(0).push(&numbered(80))));
        from.tx(0).sync();
        until("the switch has delivered", || match received() {
            Some(now) if now == before + FRAMES => Ok(()),
            now => Err(format!("{now:?}")),
        });
        self.drain(case);
    }
}

/// All that the command has told, by its type.
fn told(output: &str, kind: &str) -> Vec<Value> {
    let lines = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["type"] == kind).collect()
}

fn run(home: &Home, case: &Case, daemons: &mut dyn Daemons) {
    println!("{:?}", case.args);
    daemons.start();
    let mut ports = Ports::open(case);
    let mut command = Command::new(home.bin().join("ringway"));
    command.args(case.args).arg("--json").current_dir(home.path());
    let mut command = Proc::spawn(command);
    let kept_at = case.args.iter().find_map(|arg| arg.strip_prefix("vale0:"));
    let kept_at = kept_at.map(|port| format!("vale0:{}", port.trim_end_matches("/r")));
    let opened = |command: &Proc| told(&command.output(), "open").len();
    let first = until("it is open", || match opened(&command) {
        0 if !command.is_running() => panic!("it has ended: {}", command.output()),
        0 => Err(command.output()),
        count => Ok(count),
    });
    match case.to {
        Some(_) => ports.cross(case, 100),
        None => ports.feed(case, kept_at.as_deref().unwrap()),
    }
    daemons.kill();
    daemons.start();
    ports = ports.reopen();
    until("it is open again", || match opened(&command) {
        count if count > first => Ok(()),
        _ if !command.is_running() => panic!("it has ended: {}", command.output()),
        _ => Err(command.output()),
    });
    match case.to {
        Some(_) => {
            ports.cross(case, 110);
            command.signal(Signal::INT);
        }
        None => ports.feed(case, kept_at.as_deref().unwrap()),
    }
    assert!(ends(command.pid(), LIMIT), "{:?} does not end: {}", case.args, command.output());
    let (status, output) = command.wait();
    assert!(status.success(), "{:?}: {status}: {output}", case.args);
    assert!(output.contains("ringwayd has ended"), "{:?}: {output}", case.args);
    if case.to.is_none() {
        let summary = told(&output, "summary").pop().expect("there is one");
        assert_eq!(summary["packets"], 2 * FRAMES, "{:?}: {output}", case.args);
        assert_eq!(summary["drops"], 0, "{:?}: {output}", case.args);
    }
    if let Some(at) = case.args.iter().position(|arg| *arg == "-w") {
        let mut reader = Command::new(home.bin().join("ringway"));
        let file = format!("file:{}", case.args[at + 1]);
        reader.args(["recv", &file, "--json"]).current_dir(home.path());
        let (_, output) = Proc::spawn(reader).wait();
        let summary = told(&output, "summary").pop().expect("there is one");
        assert_eq!(summary["packets"], 2 * FRAMES, "the file of {:?}: {output}", case.args);
    }
    drop(ports);
}

fn prepare(home: &Home) {
    home.install(&[("ringway", "ringway-cli")]);
    fs::write(home.path().join("frames.pcap"), capture::file(&[numbered(90), numbered(91)]))
        .unwrap();
}

#[test]
fn commands_outlive_a_system_daemon() {
    if skip_without_root("commands_outlive_a_system_daemon") {
        return;
    }
    isolated_with_system("commands_outlive_a_system_daemon", HANGS, |home| {
        prepare(home);
        for case in CASES {
            let mut daemons = System(home, None);
            run(home, case, &mut daemons);
            daemons.kill();
        }
    });
}

#[test]
fn commands_outlive_a_private_daemon() {
    isolated_for("commands_outlive_a_private_daemon", HANGS, |home| {
        prepare(home);
        for case in CASES {
            run(home, case, &mut Private(home));
            home.assert_left();
        }
    });
}
