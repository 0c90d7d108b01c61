//! The commands that move frames outlive their daemon: their ports are opened again, what was in a ring is read
//! first, and one account goes over both.

use std::{fs, process::Command, thread, time::Duration};

use ringway::{Control, Port};
use ringway_testkit::{PacketSocket, Proc, check_json_line, skip_without_root};
use ringway_tests::{
    GROUP, Home, NOBODY, as_nobody, capture, ends, inside, isolated_for, isolated_with_system,
    packet::numbered, resources::wait_asleep, until, wire::wire,
};
use rustix::{
    process::{Pid, Signal, Uid, kill_process},
    thread::set_thread_res_uid,
};
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
    /// Where they come out; a command that keeps them has none.
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

/// The first program that opens a port starts it.
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

    /// Takes what others have got, and tells how much that was: monitors see it then.
    fn drain(&mut self, case: &Case) -> u64 {
        let mut taken = 0;
        for name in case.others {
            let mut rx = self.get(name).rx(0);
            rx.sync();
            taken += rx.batch(usize::MAX).map(drop).count() as u64;
            rx.sync();
        }
        taken
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
            // It has enough, and has ended.
            None => Ok(()),
            now => Err(format!("{now:?}")),
        });
        if case.others.contains(&port) {
            // The switch counts before others see what it has delivered.
            let mut taken = 0;
            until("all is taken that was delivered", || {
                taken += self.drain(case);
                (taken == FRAMES).then_some(()).ok_or(format!("{taken}"))
            });
        }
    }
}

/// All that the command has told, by its type.
fn told(output: &str, kind: &str) -> Vec<Value> {
    let lines = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let lines: Vec<Value> = lines.filter(|line| line["type"] == kind).collect();
    lines.iter().for_each(|line| check_json_line(line).unwrap());
    lines
}

/// Whether the command has opened each of its ports of switches twice. A pipe may be opened late, and goes on.
fn are_open_again(output: &str) -> bool {
    let opens = told(output, "open");
    let ports = || opens.iter().map(|line| &line["port"]).filter(|port| is_of_switch(port));
    ports().next().is_some() && ports().all(|port| ports().filter(|it| *it == port).count() == 2)
}

fn is_of_switch(port: &Value) -> bool {
    port.as_str().is_some_and(|name| name.starts_with("vale"))
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
    until("it is open", || match told(&command.output(), "open").len() {
        0 if !command.is_running() => panic!("it has ended: {}", command.output()),
        0 => Err(command.output()),
        _ => Ok(()),
    });
    match case.to {
        Some(_) => ports.cross(case, 100),
        None => ports.feed(case, kept_at.as_deref().unwrap()),
    }
    daemons.kill();
    daemons.start();
    ports = ports.reopen();
    until("all its ports of switches are open again", || match are_open_again(&command.output()) {
        true => Ok(()),
        false if !command.is_running() => panic!("it has ended: {}", command.output()),
        false => Err(command.output()),
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

/// A command that is a client of the system daemon.
fn start(home: &Home, args: &[&str]) -> Proc {
    let mut command = home.system_command(home.bin().join("ringway"));
    command.args(args).arg("--json");
    Proc::spawn(command)
}

fn summary(command: Proc) -> Value {
    command.signal(Signal::INT);
    assert!(ends(command.pid(), LIMIT), "it does not end: {}", command.output());
    let (status, output) = command.wait();
    assert!(status.success(), "{status}: {output}");
    let mut summary = told(&output, "summary").pop().expect("there is one");
    summary["lost_where"] = told(&output, "drops").pop().expect("it tells them");
    summary
}

/// What a daemon has not taken out of a ring is counted.
#[test]
fn what_was_in_a_ring_is_counted() {
    const SLOTS: u64 = 1024;
    if skip_without_root("what_was_in_a_ring_is_counted") {
        return;
    }
    isolated_with_system("what_was_in_a_ring_is_counted", HANGS, |home| {
        prepare(home);
        let mut daemons = System(home, None);
        daemons.start();
        let far = Port::open("vale0:t").unwrap();
        let generator = start(home, &["gen", "vale0:c", "--count", "1T"]);
        until("it sends", || match told(&generator.output(), "rate").pop() {
            Some(_) => Ok(()),
            None => Err(generator.output()),
        });
        // Nobody takes what it sends any more.
        daemons.1.as_ref().expect("it runs").stop();
        wait_asleep(generator.pid());
        daemons.kill();
        daemons.start();
        let _far = far.reopen(LIMIT).unwrap();
        until("it is open again", || match told(&generator.output(), "open").len() {
            2 => Ok(()),
            _ => Err(generator.output()),
        });
        let summary = summary(generator);
        let left = summary["lost_where"]["daemon_ended"].as_u64().unwrap();
        assert!((SLOTS / 2..SLOTS).contains(&left), "{summary}");
        assert!(summary["drops"].as_u64().unwrap() >= left, "{summary}");
        daemons.kill();
    });
}

/// Pings that a daemon's end has swallowed are lost, and no more than these.
#[test]
fn pings_go_on() {
    if skip_without_root("pings_go_on") {
        return;
    }
    isolated_with_system("pings_go_on", HANGS, |home| {
        prepare(home);
        let mut daemons = System(home, None);
        daemons.start();
        let pong = start(home, &["pong", "vale0:a"]);
        let ping = start(home, &["ping", "vale0:b", "--rate", "200pps", "--timeout", "200ms"]);
        let answered = |after: usize| {
            until("pings are answered", || {
                let output = ping.output();
                let lines = output.lines().filter_map(|line| serde_json::from_str(line).ok());
                let lines: Vec<Value> = lines.collect();
                let mut opens = lines.iter().enumerate().filter(|(_, line)| line["type"] == "open");
                let Some((at, _)) = opens.nth(after) else { return Err(output) };
                let answers = |line: &Value| line["pps"].as_f64().is_some_and(|pps| pps > 0.0);
                lines[at..].iter().any(answers).then_some(()).ok_or(output)
            });
        };
        answered(0);
        daemons.kill();
        daemons.start();
        answered(1);
        let all = summary(ping);
        let count = |name: &str| all[name].as_u64().unwrap();
        assert_eq!(count("sent"), count("answered") + count("lost") + count("waiting"), "{all}");
        assert!(count("lost") > 0, "the daemon was away: {all}");
        summary(pong);

        // There may be less room in the buffers of the next.
        let args =
            ["ping", "vale0:b@1", "--rate", "200pps", "--size", "1514", "--timeout", "200ms"];
        let ping = start(home, &args);
        until("it is open", || match told(&ping.output(), "open").len() {
            1 => Ok(()),
            _ => Err(ping.output()),
        });
        daemons.kill();
        let small = "[global_region]\nbuf_size = 1024\n";
        let _small = home.system_daemon_with(GROUP, 0o660, small, |daemon| daemon);
        assert!(ends(ping.pid(), LIMIT), "it goes on with what fits no buffer: {}", ping.output());
        let (status, output) = ping.wait();
        assert!(!status.success() && output.contains("send shorter ones"), "{output}");
    });
}

/// A user without rights has an interface's socket, and not its links: the socket is let go, so that the next daemon can
/// have the interface.
#[test]
fn interfaces_of_users_are_opened_again() {
    if skip_without_root("interfaces_of_users_are_opened_again") {
        return;
    }
    isolated_with_system("interfaces_of_users_are_opened_again", HANGS, |home| {
        prepare(home);
        let (here, there, _cable) = wire();
        let more = format!("nic_users = ['{NOBODY}']\n");
        let daemon = || home.system_daemon_with(GROUP, 0o660, &more, |run| inside(&here, run));
        let sender = PacketSocket::new(&there, "n1");
        for mode in ["copy", "packet"] {
            let first = daemon();
            let mut command = home.system_command(home.bin().join("ringway"));
            command.args(["recv", &format!("netmap:n0@mode={mode}"), "--json", "--print"]);
            let command = Proc::spawn(inside(&here, as_nobody(command)));
            let come = |length: usize| {
                until("frames come", || {
                    sender.send(&numbered(length));
                    match command.output().contains(&format!("\"length\":{length},")) {
                        true => Ok(()),
                        false => Err(command.output()),
                    }
                });
            };
            come(101);
            first.kill();
            let second = daemon();
            come(102);
            assert!(
                command.output().contains("ringwayd has ended"),
                "{mode}: {}",
                command.output()
            );
            command.signal(Signal::INT);
            let (status, output) = command.wait();
            assert!(status.success(), "{mode}: {status}: {output}");
            second.kill();
        }
    });
}

/// Another user has another private daemon, so a program that has given up its rights is told at once why it cannot go on.
#[test]
fn rights_that_were_given_up_are_told() {
    if skip_without_root("rights_that_were_given_up_are_told") {
        return;
    }
    isolated_for("rights_that_were_given_up_are_told", HANGS, |home| {
        let port = Port::open("vale0:a").unwrap();
        let daemon = home.daemon();
        kill_process(Pid::from_raw(daemon as i32).expect("it is not 0"), Signal::KILL).unwrap();
        assert!(ends(daemon, LIMIT));
        // The thread alone is of another user from then on.
        let thread = thread::spawn(move || {
            let uid = Uid::from_raw(NOBODY);
            set_thread_res_uid(uid, uid, uid).expect("root may");
            port.reopen(HANGS).map(drop).unwrap_err().to_string()
        });
        let told = thread.join().expect("it does not panic");
        let expected = format!("vale0:a: the program has given up its rights (uid {NOBODY})");
        assert!(told.starts_with(&expected) && told.contains("tcpdump: -Z root"), "{told}");
        // The next daemon clears away what the killed daemon has left.
        drop(Port::open("vale0:a").unwrap());
    });
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
