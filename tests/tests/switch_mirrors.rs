//! Mirrors that belong to a switch, between containers: what two of them exchange reaches a third, each frame once, and
//! so it is after their restarts, and the daemon's, and another reading of its configuration.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use ringway::{BridgeInfo, Control, Declared, MirrorTotals, Port, SwitchMirrorInfo};
use ringway_testkit::{Netns, PacketSocket, Proc, VethPair, skip_without_root};
use ringway_tests::{GROUP, Home, ends, inside, isolated_with_system, until};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(60);
const HANGS: Duration = Duration::from_secs(300);

/// The filter: the type is 0x88b5.
const DECLARED: &str = r#"
[[switch]]
name = "vale0"

[[switch.port]]
interface = "c0"

[[switch.port]]
interface = "c1"

[[switch.port]]
interface = "c2"

[[switch.mirror]]
name = "span"
from = ["c0", "c1"]
to = "c2"

[switch.mirror.filter]
expression = "ether proto 0x88b5"
bytecode = "4,40 0 0 12,21 0 1 34997,6 0 0 65535,6 0 0 0"
"#;

/// A type that the mirror shows, and another.
const SHOWN: u16 = 0x88b5;
const OTHER: u16 = 0x88b6;

const LENGTH: usize = 100;

/// The daemon's host, and containers whose interfaces it has as `c0` and so on.
struct World {
    here: Netns,
    containers: [Netns; 3],
    cables: [Option<VethPair>; 3],
    sockets: Vec<PacketSocket>,
    sent: u32,
}

impl World {
    fn new(home: &Home) -> World {
        let (here, containers) = (Netns::quiet("rwh"), [0, 1, 2].map(|_| Netns::quiet("rwc")));
        home.install(&[("ringway", "ringway-cli")]);
        let cables = [None, None, None];
        let mut world = World { here, containers, cables, sockets: Vec::new(), sent: 0 };
        (0..3).for_each(|at| world.start(at));
        world
    }

    /// A container starts, or starts again.
    fn start(&mut self, at: usize) {
        let cable = self.here.veth(&self.containers[at], &format!("c{at}"), "eth0");
        self.cables[at] = Some(cable);
        self.sockets.truncate(at);
        for container in &self.containers[at..=at] {
            self.sockets.push(PacketSocket::of_all(container, "eth0"));
        }
    }

    fn daemon(&self, home: &Home, declared: &str) -> (Proc, Control) {
        let start = |daemon: Command| inside(&self.here, daemon);
        let daemon = home.system_daemon_with(GROUP, 0o660, declared, start);
        let control = Control::connect().unwrap();
        attached(&control);
        (daemon, control)
    }

    /// A command beside the daemon, which succeeds: what it says.
    fn run(&self, home: &Home, program: &str, args: &[&str]) -> String {
        let mut command = home.system_command(home.bin().join(program));
        command.args(args);
        let output = inside(&self.here, command).output().expect("it starts");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(output.status.success(), "{args:?}: {said}");
        said
    }

    fn send(&mut self, from: usize, to: [u8; 6], kind: u16) -> Vec<u8> {
        self.sent += 1;
        let (source, kind, number) = (mac(from), kind.to_be_bytes(), self.sent.to_be_bytes());
        let mut frame = [&to[..], &source, &kind, &number].concat();
        frame.resize(LENGTH, 0);
        self.sockets[from].send(&frame);
        frame
    }

    /// The next frame that a container hears.
    fn hears(&self, at: usize, expected: &[u8]) {
        let heard = self.sockets[at].hear_within(LIMIT).expect("it comes").bytes;
        assert!(heard == expected, "{at} hears {heard:x?} in place of {expected:x?}");
    }

    /// The switch knows where the first two are; the third hears nothing of that.
    fn learn(&mut self, third_hears: bool) {
        for (from, to) in [(0, 1), (1, 0)] {
            let frame = self.send(from, [0xff; 6], OTHER);
            self.hears(to, &frame);
            if third_hears {
                self.hears(2, &frame);
            }
        }
    }

    /// The first two exchange frames: so many of each type, each way. The third hears those of these senders that the
    /// mirror shows.
    fn exchange(&mut self, count: usize, shown: &[usize]) {
        for _ in 0..count {
            for (from, to) in [(0, 1), (1, 0)] {
                let frames = [SHOWN, OTHER].map(|kind| self.send(from, mac(to), kind));
                frames.iter().for_each(|frame| self.hears(to, frame));
                if shown.contains(&from) {
                    self.hears(2, &frames[0]);
                }
            }
        }
    }
}

fn mac(at: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, at as u8]
}

fn switch(control: &Control) -> BridgeInfo {
    control.switches().unwrap().remove(0)
}

fn mirror(control: &Control, name: &str) -> SwitchMirrorInfo {
    let mut mirrors = switch(control).mirrors.into_iter();
    mirrors.find(|mirror| mirror.name == name).expect("the mirror is there")
}

/// All of so many frames were copied, and none was lost.
fn assert_copied(control: &Control, name: &str, packets: usize) {
    let copied_packets = packets as u64;
    let copied_bytes = copied_packets * LENGTH as u64;
    let expected = MirrorTotals { copied_packets, copied_bytes, ..MirrorTotals::default() };
    assert_eq!(mirror(control, name).totals, expected);
}

/// How the ports are driven, by now.
fn modes(control: &Control) -> Vec<String> {
    let mut ports = switch(control).ports;
    ports.sort_by(|a, b| a.name.cmp(&b.name));
    ports.into_iter().map(|port| port.mode.unwrap_or_default()).collect()
}

fn until_modes(control: &Control, ends: [&str; 3]) {
    until("the ports are driven so", || {
        let modes = modes(control);
        let is_so = modes.iter().zip(ends).all(|(mode, end)| mode.ends_with(end));
        if is_so && modes.len() == 3 { Ok(()) } else { Err(format!("{modes:?}")) }
    });
}

/// All interfaces are there.
fn attached(control: &Control) {
    until("all is attached", || {
        let switches = control.switches().unwrap();
        let ports: Vec<_> = switches.iter().flat_map(|switch| &switch.ports).collect();
        let all = ports.len() == 3 && ports.iter().all(|port| !port.absent);
        if all { Ok(()) } else { Err(format!("{ports:?}")) }
    });
}

fn config(home: &Home) -> PathBuf {
    home.path().join("ringwayd.toml")
}

/// Has the daemon read a configuration with other switches. Returns what it says of it.
fn reload(home: &Home, daemon: &Proc, declared: &str) -> String {
    let text = fs::read_to_string(config(home)).unwrap();
    let keys = text.split("\n[[").next().unwrap();
    fs::write(config(home), format!("{keys}\n{declared}")).unwrap();
    let before = daemon.output().len();
    daemon.signal(Signal::HUP);
    until("the configuration is read", || {
        let said = daemon.output()[before..].to_owned();
        if said.contains("is read again") && said.ends_with('\n') { Ok(said) } else { Err(said) }
    })
}

const MIRRORED: &str = "by the worker: it is mirrored";
const GETS: &str = "by the worker: it gets a mirror's copies";

#[test]
fn a_declared_mirror_shows_each_frame_once() {
    if skip_without_root("a_declared_mirror_shows_each_frame_once") {
        return;
    }
    isolated_with_system("a_declared_mirror_shows_each_frame_once", HANGS, |home| {
        let mut world = World::new(home);
        let (daemon, control) = world.daemon(home, DECLARED);
        until_modes(&control, [MIRRORED, MIRRORED, GETS]);
        world.learn(false);
        world.exchange(50, &[0, 1]);
        assert_copied(&control, "span", 100);
        let said = world.run(home, "ringway", &["ports"]);
        assert_eq!(said.matches(MIRRORED).count(), 2, "{said}");
        let said = world.run(home, "ringway", &["switch", "list"]);
        assert!(said.contains("mirror span to c2"), "{said}");
        let said = world.run(home, "ringway", &["switch", "save", "vale0"]);
        assert!(
            said.contains("[[switch.mirror]]\nname = \"span\"\nfrom = [\"c0\", \"c1\"]"),
            "{said}"
        );

        // What the third sends is forwarded, and not shown to it; it gets nothing but copies.
        let frame = world.send(2, mac(0), SHOWN);
        world.hears(0, &frame);
        world.exchange(1, &[0, 1]);
        assert_copied(&control, "span", 102);

        // Without the port for its copies the mirror waits, and the kernel forwards.
        world.cables[2] = None;
        until_modes(&control, ["kernel", "kernel", ""]);
        assert_eq!(mirror(&control, "span").absent, ["vale0:c2"]);
        world.exchange(5, &[]);
        world.start(2);
        attached(&control);
        until_modes(&control, [MIRRORED, MIRRORED, GETS]);
        world.exchange(5, &[0, 1]);
        assert_copied(&control, "span", 112);

        // A source that comes back is shown again.
        world.cables[0] = None;
        until("it has gone", || match &mirror(&control, "span").absent[..] {
            [port] if port == "vale0:c0" => Ok(()),
            other => Err(format!("{other:?}")),
        });
        let [c1, c2] = [world.sockets.remove(1), world.sockets.remove(1)];
        world.sockets.clear();
        world.start(0);
        world.sockets.extend([c1, c2]);
        attached(&control);
        until_modes(&control, [MIRRORED, MIRRORED, GETS]);
        world.learn(false);
        world.exchange(5, &[0, 1]);
        assert_copied(&control, "span", 122);

        // Another reading changes what differs, and the ports stay.
        let places = |control: &Control| -> Vec<_> {
            switch(control).ports.into_iter().map(|port| (port.name, port.index)).collect()
        };
        let before = places(&control);
        let only = DECLARED.replace("to = \"c2\"", "to = \"c2\"\ndirection = \"sent\"");
        let only = only.replace("[\"c0\", \"c1\"]", "[\"c1\"]");
        let said = reload(home, &daemon, &only);
        assert!(said.contains("change the mirrors of vale0"), "{said}");
        assert!(!said.contains("takes part"), "{said}");
        assert_eq!(places(&control), before);
        until_modes(&control, ["kernel", MIRRORED, GETS]);
        world.exchange(5, &[1]);
        assert_copied(&control, "span", 5);

        // What is done by hand is told apart, and set back.
        world.run(home, "ringway", &["switch", "mirror", "del", "vale0", "span"]);
        assert_eq!(switch(&control).declared, Declared::Changed);
        until_modes(&control, ["kernel"; 3]);
        let path = config(home);
        let said = world.run(home, "ringwayd", &["--check", path.to_str().unwrap()]);
        assert!(said.contains("would change: change the mirrors of vale0"), "{said}");
        reload(home, &daemon, &only);
        assert_eq!(switch(&control).declared, Declared::Yes);
        world.exchange(5, &[1]);
        let none = only.split("[[switch.mirror]]").next().unwrap();
        reload(home, &daemon, none);
        assert!(switch(&control).mirrors.is_empty());
        world.learn(true);
        daemon.signal(Signal::TERM);
        assert!(ends(daemon.pid(), LIMIT));
    });
}

/// By a command, and to a program's port, which is there after the daemon was killed.
#[test]
fn a_mirror_set_by_hand_outlives_its_daemon() {
    if skip_without_root("a_mirror_set_by_hand_outlives_its_daemon") {
        return;
    }
    isolated_with_system("a_mirror_set_by_hand_outlives_its_daemon", HANGS, |home| {
        let mut world = World::new(home);
        let none = DECLARED.split("[[switch.mirror]]").next().unwrap();
        let (mut daemon, mut control) = world.daemon(home, none);
        let add = ["switch", "mirror", "add", "vale0", "names", "--all", "--to", "probe"];
        let filter = ["--direction", "sent", "--filter", "ether proto 0x88b5"];
        world.run(home, "ringway", &[&add[..], &filter].concat());
        for _ in 0..2 {
            assert_eq!(mirror(&control, "names").absent, ["vale0:probe"]);
            let said = world.run(home, "ringway", &["switch", "mirror", "show", "vale0"]);
            assert!(said.contains("not there: probe") && said.contains("; by hand"), "{said}");
            until_modes(&control, ["kernel"; 3]);
            world.learn(true);
            let mut probe = Port::open("vale0:probe").unwrap();
            until("it mirrors", || match modes(&control) {
                modes if modes.iter().filter(|mode| mode.ends_with(MIRRORED)).count() == 3 => {
                    Ok(())
                }
                modes => Err(format!("{modes:?}")),
            });
            let count = 20;
            let mut expected = Vec::new();
            for _ in 0..count {
                for (from, to) in [(0, 1), (1, 0)] {
                    let frames = [SHOWN, OTHER].map(|kind| world.send(from, mac(to), kind));
                    frames.iter().for_each(|frame| world.hears(to, frame));
                    expected.extend(frames.into_iter().next());
                }
            }
            let mut heard = Vec::new();
            while heard.len() < expected.len() {
                assert!(probe.wait_rx(Some(LIMIT)).unwrap(), "{} are heard", heard.len());
                heard.extend(probe.rx(0).batch(usize::MAX).map(|frame| frame.to_vec()));
            }
            assert!(heard == expected);
            assert_copied(&control, "names", expected.len());
            daemon.signal(Signal::KILL);
            assert!(ends(daemon.pid(), LIMIT), "it ends");
            drop(probe);
            (daemon, control) = world.daemon(home, none);
        }
        daemon.signal(Signal::TERM);
        assert!(ends(daemon.pid(), LIMIT));
    });
}
