//! What users have set up to stay outlives the daemon: a switch with what is on it, persistent ports, and
//! their settings are there again with the next daemon, however the first one ended. Programs are told, and
//! open their ports again; what needs no daemon goes on.

use std::{
    fs,
    io::ErrorKind,
    net::UdpSocket,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use ringway::{
    BridgePortInfo, Cause, Control, Filter, FloodLimit, Forwarding, Lossless, Multicast,
    MulticastRouter, Port, PortSettings, RateLimit, SourceAddresses, Vlan,
};
use ringway_testkit::{Netns, Proc, VethPair, install, skip_without_root};
use ringway_tests::{GROUP, Home, NOBODY, as_nobody, ends, inside, isolated_with_system, until};
use rustix::process::Signal;
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(120);
/// Longer than all goes on.
const HANGS: Duration = Duration::from_secs(300);
/// From the start of the next daemon on, frames cross again: a second is the promise, on a machine that is
/// not busy with other tests.
const BACK: Duration = Duration::from_secs(10);
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];

/// The daemon's host with `a0` and `b0`, and two others at the ends of these cables.
struct World {
    here: Netns,
    a: Netns,
    b: Netns,
    cables: [Option<VethPair>; 2],
}

impl World {
    fn new(home: &Home) -> World {
        let [here, a, b] = ["rwh", "rwa", "rwb"].map(Netns::quiet);
        let cables = [here.veth(&a, "a0", "a1"), here.veth(&b, "b0", "b1")].map(Some);
        for (netns, interface, number) in [(&a, "a1", 1), (&b, "b1", 2)] {
            netns.run(&format!("ip addr add 10.9.0.{number}/24 dev {interface}"));
        }
        home.install(&[("ringway", "ringway-cli")]);
        symlink("ringway", home.bin().join("vale-ctl")).unwrap();
        World { here, a, b, cables }
    }

    fn daemon(&self, home: &Home, more: &str) -> Proc {
        home.system_daemon_with(GROUP, 0o660, more, |daemon| inside(&self.here, daemon))
    }

    /// A command of root's, beside the daemon, which succeeds.
    fn run(&self, home: &Home, program: &str, args: &[&str]) -> String {
        self.output(home, program, args).unwrap_or_else(|said| panic!("{program} {args:?}: {said}"))
    }

    fn output(&self, home: &Home, program: &str, args: &[&str]) -> Result<String, String> {
        let mut command = home.system_command(home.bin().join(program));
        command.args(args);
        let output = inside(&self.here, command).output().expect("it starts");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        if output.status.success() { Ok(said) } else { Err(said) }
    }

    /// Attached interfaces that frames cross, all on `vale0`.
    fn assert_crossed(&self) -> Duration {
        let receiver = self.b.enter(|| UdpSocket::bind("10.9.0.2:7")).unwrap();
        receiver.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let sender = self.a.enter(|| UdpSocket::bind("10.9.0.1:0")).unwrap();
        let begin = Instant::now();
        loop {
            // Refused as long as nobody has answered to who has that address.
            let _ = sender.send_to(b"to the other side", "10.9.0.2:7");
            match receiver.recv(&mut [0; 64]) {
                Ok(_) => return begin.elapsed(),
                Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock, "{e}"),
            }
            assert!(begin.elapsed() < BACK, "nothing crosses the switch");
        }
    }
}

fn state_file(home: &Home) -> PathBuf {
    home.system_socket().with_extension("state")
}

fn end(daemon: Proc, signal: Signal) -> String {
    daemon.signal(signal);
    assert!(ends(daemon.pid(), LIMIT), "{signal:?} does not end it");
    daemon.wait().1
}

/// The ports of the switches, as users see them.
fn shown(control: &Control) -> Vec<(String, (Forwarding, Multicast), Vec<BridgePortInfo>)> {
    let switches = control.switches().unwrap();
    let mut shown: Vec<_> = switches
        .into_iter()
        .map(|mut switch| {
            switch.ports.sort_by(|a, b| a.name.cmp(&b.name));
            (switch.name, (switch.forwarding, switch.multicast), switch.ports)
        })
        .collect();
    shown.sort_by(|a, b| a.0.cmp(&b.0));
    shown
}

/// The same without what is counted and numbered.
fn settings(control: &Control) -> Vec<String> {
    let port = |port: BridgePortInfo| {
        let BridgePortInfo { name, vlan, sources, lossless, max_addresses, mode, .. } = port;
        let router = port.multicast_router;
        let storms = (port.storm, port.storm_broadcast, port.storm_multicast, port.storm_unknown);
        let limits = (port.filter_in, port.filter_out, max_addresses, port.rate, storms, router);
        format!("{name} {vlan:?} {sources:?} {lossless:?} {limits:?} {mode:?}")
    };
    let lines = shown(control).into_iter().flat_map(|(name, forwarding, ports)| {
        let ports = ports.into_iter().map(port);
        std::iter::once(format!("{name} {forwarding:?}")).chain(ports)
    });
    lines.collect()
}

fn owners(control: &Control) -> Vec<(String, u32)> {
    let mut owners: Vec<_> =
        control.ports().unwrap().into_iter().map(|port| (port.name, port.uid)).collect();
    owners.sort();
    owners
}

fn back(control: &Control) {
    until("all is back", || {
        let lines = settings(control);
        match lines.iter().any(|line| line.contains("not back yet")) {
            false => Ok(()),
            true => Err(lines.join("\n")),
        }
    });
}

/// Killed, or stopped for an upgrade: the next daemon, another file perhaps, has all that was set up.
#[test]
fn what_was_set_up_is_there_again() {
    if skip_without_root("what_was_set_up_is_there_again") {
        return;
    }
    isolated_with_system("what_was_set_up_is_there_again", HANGS, |home| {
        let world = World::new(home);
        let more = "nic_users = ['65534']\nswitches_per_user = 2\n";
        let daemon = world.daemon(home, more);
        world.run(home, "ringway", &["switch", "new", "vale0"]);
        world.run(home, "ringway", &["switch", "attach", "vale0", "a0@mode=generic", "b0"]);
        world.run(home, "vale-ctl", &["-n", "p0"]);
        world.run(home, "ringway", &["switch", "attach", "vale0", "p0"]);
        world.run(home, "ringway", &["switch", "new", "--one-address", "vale1"]);
        // Another user's.
        let theirs = |args: &[&str]| {
            let mut command = home.system_command(home.bin().join("ringway"));
            command.args(args);
            let (status, said) = Proc::spawn(inside(&world.here, as_nobody(command))).wait();
            assert!(status.success(), "{said}");
        };
        theirs(&["switch", "new", "vale2"]);

        let control = Control::connect().unwrap();
        let change = |name: &str, settings| control.switch_port(name, settings).unwrap();
        for name in ["vale0:a0", "vale0:b0"] {
            let vlan = Some(Vlan::Access(7));
            let rate = Some(Some(RateLimit::new(1_000_000_000)));
            let storm = Some(Some(100_000));
            let max_addresses = Some(Some(9));
            let filter = Some(Some(Filter::new("ip or arp or ip6 or vlan").unwrap().into()));
            let (filter_in, filter_out) = (filter.clone(), filter);
            let settings = PortSettings {
                vlan,
                filter_in,
                filter_out,
                rate,
                storm,
                storm_broadcast: Some(Some(FloodLimit {
                    burst_frames: 50_000,
                    ..FloodLimit::new(40_000)
                })),
                storm_multicast: Some(Some(FloodLimit::new(60_000))),
                storm_unknown: Some(Some(FloodLimit::new(70_000))),
                max_addresses,
                ..PortSettings::default()
            };
            change(name, settings);
        }
        let only = Some(SourceAddresses::Only(vec![MAC]));
        let lossless = Some(Some(Lossless { patience_ms: 77 }));
        let multicast_router = Some(MulticastRouter::Always);
        change(
            "vale0:p0",
            PortSettings { sources: only, lossless, multicast_router, ..PortSettings::default() },
        );
        let program = Port::open("vale1:a").unwrap();
        let vlan = Some(Vlan::Trunk { allowed: [3, 4].into(), native: Some(4) });
        change("vale1:a", PortSettings { vlan, ..PortSettings::default() });
        let addresses = vec![(MAC, "a".into())];
        let table = Forwarding::Static { addresses, flood_unknown: false };
        control.switch_forward("vale1", table).unwrap();
        control.switch_multicast("vale0", Multicast::Querier).unwrap();
        control.switch_address_add("vale0", [2, 0, 0, 0, 0, 9], 7, "b0").unwrap();
        let statics = |control: &Control| {
            let mut all = control.switch_addresses("vale0").unwrap();
            all.retain(|address| address.age_seconds.is_none());
            all
        };
        let statics_before = statics(&control);
        assert!(matches!(&statics_before[..], [it] if !it.absent && it.port == "vale0:b0"));
        world.assert_crossed();
        let (settings_before, owners_before) = (settings(&control), owners(&control));
        let theirs_before = fs::metadata(state_file(home)).unwrap();
        assert_eq!((theirs_before.mode() & 0o777, theirs_before.uid()), (0o600, 0));

        // A pipe of two programs goes on all the time.
        let mut pipe = [Port::open("between{1").unwrap(), Port::open("between}1").unwrap()];
        let exchange = move |from: usize| {
            let [one, other] = &mut pipe;
            let (from, to) = if from == 0 { (one, other) } else { (other, one) };
            let mut tx = from.tx(0);
            assert!(tx.push(&[0x55; 60]), "the pipe is full");
            tx.sync();
            let begin = Instant::now();
            loop {
                let mut rx = to.rx(0);
                rx.sync();
                if rx.batch(64).count() > 0 {
                    break;
                }
                assert!(begin.elapsed() < BACK, "the pipe stands still");
            }
        };
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let traffic = thread::spawn(move || {
            let (mut exchange, mut count) = (exchange, 0u64);
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                exchange((count % 2) as usize);
                count += 1;
            }
            count
        });

        let device = || world.here.run("cat /sys/class/net/p0/address /sys/class/net/p0/mtu");
        let (mut daemon, mut program) = (Some(daemon), program);
        for signal in [Signal::KILL, Signal::TERM, Signal::KILL] {
            if signal == Signal::TERM {
                // A daemon that is stopped looks at what is set by then.
                world.here.run("ip link set p0 address 02:00:00:00:00:07 mtu 1400");
            }
            let device_before = device();
            end(daemon.take().expect("it runs"), signal);
            // An upgrade: another file in its place.
            let binary = home.bin().join("ringwayd");
            let upgrade = home.bin().join("ringwayd.new");
            install([&binary], &upgrade);
            fs::rename(&upgrade, &binary).unwrap();
            let begin = Instant::now();
            daemon = Some(world.daemon(home, more));
            world.assert_crossed();
            println!("after {signal:?}, frames cross {:?} after the start", begin.elapsed());

            // The program is told, and opens its port again, which is as it was.
            let told = loop {
                match program.wait_rx(Some(Duration::from_millis(100))) {
                    Ok(_) => {}
                    Err(error) => break error,
                }
            };
            assert_eq!(told.cause(), Cause::Gone, "{told}");
            program = program.reopen(BACK).unwrap();
            let control = Control::connect().unwrap();
            back(&control);
            assert_eq!(settings(&control), settings_before);
            assert_eq!(statics(&control), statics_before);
            let owners: Vec<_> = owners(&control);
            assert_eq!(
                owners,
                owners_before
                    .iter()
                    .filter(|(name, _)| !name.starts_with("between"))
                    .cloned()
                    .collect::<Vec<_>>()
            );
            assert_eq!(device(), device_before);
            // The keeper's, and no one else's.
            let mut delete = home.system_command(home.bin().join("ringway"));
            delete.args(["switch", "delete", "vale0"]);
            let (_, said) = Proc::spawn(as_nobody(delete)).wait();
            assert!(said.contains("made by user 0"), "{said}");
        }
        drop(stop);
        assert!(traffic.join().expect("the pipe went on") > 0);

        // What is deleted does not come back.
        drop(program);
        theirs(&["switch", "delete", "vale2"]);
        world.run(home, "ringway", &["switch", "delete", "vale0"]);
        world.run(home, "ringway", &["switch", "delete", "vale1"]);
        world.run(home, "vale-ctl", &["-r", "p0"]);
        assert!(!state_file(home).exists(), "{:?}", fs::read_to_string(state_file(home)));
        end(daemon.take().expect("it runs"), Signal::KILL);
        let daemon = world.daemon(home, more);
        assert!(Control::connect().unwrap().switches().unwrap().is_empty());
        end(daemon, Signal::TERM);
        assert!(!world.here.try_run("ip link show p0").status.success());
    });
}

/// Whatever is in the file, the daemon starts, and says what it could not use.
#[test]
fn a_broken_file_keeps_no_daemon_from_starting() {
    if skip_without_root("a_broken_file_keeps_no_daemon_from_starting") {
        return;
    }
    let home = Home::new();
    let world = World::new(&home);
    let start = |text: &str| {
        fs::create_dir_all(state_file(&home).parent().unwrap()).unwrap();
        fs::write(state_file(&home), text).unwrap();
        fs::set_permissions(state_file(&home), fs::Permissions::from_mode(0o600)).unwrap();
        world.daemon(&home, "max_bridges = 4\n")
    };
    let bad = state_file(&home).with_extension("state.bad");
    for text in [r#"{"version": 1, "lasting": "#, r#"{"version": 99}"#, "\u{0}\u{1}\u{2}"] {
        let daemon = start(text);
        world.run(&home, "ringway", &["switch", "new", "vale5"]);
        assert_eq!(fs::read_to_string(&bad).unwrap(), text);
        fs::remove_file(&bad).unwrap();
        let said = end(daemon, Signal::TERM);
        for word in ["ringwayd.state", "it is kept as", "ringway switch new"] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }

    // What is well formed, and nobody could have asked for.
    let switch = |name: &str| json!({"name": name, "keeper": 0});
    let switches = |list: &[Value]| json!({"switches": list});
    let many: Vec<_> = (0..6).map(|n| switch(&format!("vale{n}"))).collect();
    let vlan = json!({"name": "vale0:a", "uid": 0, "vlan": {"access": 5000}});
    let set = json!({"name": "vale0", "keeper": 0, "settings": [vlan]});
    let attached = |name: &str| json!({"name": name, "uid": NOBODY, "netns": {"cookie": 4}});
    let twice = json!({"attached": [attached("vale0:a0"), attached("vale0:a0")]});
    let shape = json!({"tx_slots": 0, "rx_slots": 0, "tx_rings": 0, "rx_rings": 0, "mem_id": 0});
    let port = json!({"name": "vale\u{1b}[2J", "uid": 0, "shape": shape});
    for (lasting, word) in [
        (switches(&[switch("../../etc")]), "a switch is named"),
        (switches(&[switch("limbo 1")]), "a switch is named"),
        (switches(&[switch("vale0"), switch("vale0")]), "there is such a switch"),
        (switches(&many), "the most that this daemon runs"),
        (switches(&[set]), "there is no VLAN 5000"),
        (json!({"attached": [attached("a0")]}), "not the name of a port of a switch"),
        (twice, "attached already"),
        (json!({"ports": [port]}), "printable characters alone"),
    ] {
        let daemon = start(&json!({"version": 1, "lasting": lasting}).to_string());
        world.run(&home, "ringway", &["switch", "list"]);
        let said = end(daemon, Signal::TERM);
        assert!(said.contains(word), "{word}: {said}");
        assert!(!said.contains("BUG"), "{said}");
        let _ = fs::remove_file(state_file(&home));
    }
}

/// When there is room again what could not be written is, although nothing changes.
#[test]
fn a_file_that_could_not_be_written_is_written_later() {
    if skip_without_root("a_file_that_could_not_be_written_is_written_later") {
        return;
    }
    let home = Home::new();
    let world = World::new(&home);
    let daemon = world.daemon(&home, "");
    // It has looked for a file when it answers.
    world.run(&home, "ringway", &["switch", "list"]);
    fs::create_dir(state_file(&home)).unwrap();
    world.run(&home, "ringway", &["switch", "new", "vale5"]);
    until("it is said", || {
        let said = daemon.output();
        if said.contains("what is set up now is lost") { Ok(()) } else { Err(said) }
    });
    fs::remove_dir(state_file(&home)).unwrap();
    until("it is written", || {
        let text = fs::read_to_string(state_file(&home)).unwrap_or_default();
        if text.contains("vale5") { Ok(()) } else { Err(text) }
    });
    end(daemon, Signal::TERM);
}

/// Interfaces that are not there, or that their user may not use any more, keep their places; one that
/// appears is attached, and one that does not can be given up.
#[test]
fn what_cannot_be_had_is_waited_for() {
    if skip_without_root("what_cannot_be_had_is_waited_for") {
        return;
    }
    isolated_with_system("what_cannot_be_had_is_waited_for", HANGS, |home| {
        let mut world = World::new(home);
        let daemon = world.daemon(home, "");
        world.run(home, "ringway", &["switch", "attach", "vale0", "a0", "b0"]);
        world.assert_crossed();
        end(daemon, Signal::KILL);
        world.cables[0] = None;

        let daemon = world.daemon(home, "");
        let control = Control::connect().unwrap();
        until("the other one is back", || {
            let lines = settings(&control);
            match lines.iter().any(|l| l.starts_with("vale0:b0 ") && !l.contains("not back yet")) {
                true => Ok(()),
                false => Err(lines.join("\n")),
            }
        });
        let list = world.run(home, "ringway", &["switch", "list"]);
        assert!(list.contains("vale0:a0 (not back yet: a0: "), "{list}");
        // Its place is its own.
        let refused = Port::open("vale0:a0").unwrap_err();
        assert!(refused.to_string().contains("is to come back there"), "{refused}");
        until("the operator is told", || {
            let said = daemon.output();
            match said.contains("vale0:a0 of user 0 is not back yet") {
                true => Ok(()),
                false => Err(said),
            }
        });
        // And the next daemon waits for it, too.
        end(daemon, Signal::TERM);
        let daemon = world.daemon(home, "");

        world.cables[0] = Some(world.here.veth(&world.a, "a0", "a1"));
        world.a.run("ip addr add 10.9.0.1/24 dev a1");
        let control = Control::connect().unwrap();
        back(&control);
        world.assert_crossed();

        end(daemon, Signal::KILL);
        world.cables[0] = None;
        let daemon = world.daemon(home, "");
        world.run(home, "ringway", &["switch", "detach", "vale0", "a0"]);
        let list = world.run(home, "ringway", &["switch", "list"]);
        assert!(!list.contains("a0"), "{list}");
        world.run(home, "ringway", &["switch", "delete", "vale0"]);
        assert!(!state_file(home).exists());
        end(daemon, Signal::TERM);
    });
}

/// Daemons that were killed while they set things up again cost nothing. One entry that has ended several
/// daemons keeps its place, and is left, with a word of it, until it is set up by hand.
#[test]
fn one_entry_that_ends_daemons_leaves_the_others() {
    if skip_without_root("one_entry_that_ends_daemons_leaves_the_others") {
        return;
    }
    isolated_with_system("one_entry_that_ends_daemons_leaves_the_others", HANGS, |home| {
        let world = World::new(home);
        let daemon = world.daemon(home, "");
        world.run(home, "ringway", &["switch", "attach", "vale0", "a0", "b0"]);
        end(daemon, Signal::KILL);
        let say = |more: Value| {
            let text = fs::read_to_string(state_file(home)).unwrap();
            let mut state: Value = serde_json::from_str(&text).unwrap();
            let more = more.as_object().unwrap().clone();
            state.as_object_mut().unwrap().extend(more);
            fs::write(state_file(home), state.to_string()).unwrap();
        };
        // As three killed daemons leave it, and a fourth.
        for killed in [json!({"attempts": 3}), json!({"attempts": 4, "trying": "vale0:a0"})] {
            say(killed);
            let daemon = world.daemon(home, "");
            back(&Control::connect().unwrap());
            let said = end(daemon, Signal::KILL);
            assert!(said.contains("one entry after the other"), "{said}");
        }
        // An entry that three have ended over.
        say(json!({"attempts": 4, "trying": "vale0:a0", "ended_over": {"vale0:a0": 2}}));
        for _ in 0..2 {
            let daemon = world.daemon(home, "");
            let control = Control::connect().unwrap();
            until("the other one is back", || {
                let lines = settings(&control);
                let is_back =
                    |it: &&String| it.starts_with("vale0:b0 ") && !it.contains("not back");
                if lines.iter().any(|it| is_back(&it)) { Ok(()) } else { Err(lines.join("\n")) }
            });
            let list = world.run(home, "ringway", &["switch", "list"]);
            let left = "vale0:a0 (not back yet: 3 daemons have ended while they set it up)";
            assert!(list.contains(left), "{list}");
            let said = end(daemon, Signal::KILL);
            assert!(said.contains("vale0:a0: not set up again: 3 daemons have ended"), "{said}");
        }
        let daemon = world.daemon(home, "");
        world.run(home, "ringway", &["switch", "attach", "vale0", "a0"]);
        back(&Control::connect().unwrap());
        end(daemon, Signal::KILL);
        let daemon = world.daemon(home, "");
        back(&Control::connect().unwrap());
        let said = end(daemon, Signal::TERM);
        assert!(!said.contains("not set up again"), "{said}");
        let folder = state_file(home).parent().unwrap().to_owned();
        let aside = fs::read_dir(folder).unwrap().flatten().map(|file| file.file_name());
        let aside: Vec<_> = aside.filter(|name| name.to_string_lossy().contains(".bad")).collect();
        assert!(aside.is_empty(), "{aside:?}");
    });
}

/// Questions and ports of another user leave to its own users what a switch of programs waits with.
#[test]
fn a_switch_of_programs_waits_for_its_users() {
    if skip_without_root("a_switch_of_programs_waits_for_its_users") {
        return;
    }
    isolated_with_system("a_switch_of_programs_waits_for_its_users", HANGS, |home| {
        let daemon = home.system_daemon(GROUP, 0o660);
        let hold = || {
            let program = Proc::spawn(as_nobody(home.system_traffic(&["hold", "vale0:a"])));
            program.wait_for("open", LIMIT);
            program
        };
        let program = hold();
        let vlan = Some(Vlan::Access(10));
        let chosen = PortSettings { vlan, ..PortSettings::default() };
        Control::connect().unwrap().switch_port("vale0:a", chosen).unwrap();
        end(daemon, Signal::KILL);
        program.kill();

        let daemon = home.system_daemon(GROUP, 0o660);
        let control = Control::connect().unwrap();
        control.port_config("vale0:zz").unwrap();
        drop(Port::open("vale0:zz").unwrap());
        until("the switch has gone", || match shown(&control) {
            switches if switches.is_empty() => Ok(()),
            switches => Err(format!("{switches:?}")),
        });
        let program = hold();
        let (_, _, ports) = shown(&control).remove(0);
        assert_eq!(ports[0].vlan, Vlan::Access(10));
        program.kill();
        end(daemon, Signal::TERM);
    });
}

/// What a user attached who may not use interfaces any more is not attached for that user.
#[test]
fn rights_are_those_of_the_new_configuration() {
    if skip_without_root("rights_are_those_of_the_new_configuration") {
        return;
    }
    let home = Home::new();
    let world = World::new(&home);
    let daemon = world.daemon(&home, "nic_users = ['65534']\n");
    let mut attach = home.system_command(home.bin().join("ringway"));
    attach.args(["switch", "attach", "vale0", "a0"]);
    let (status, said) = Proc::spawn(inside(&world.here, as_nobody(attach))).wait();
    assert!(status.success(), "{said}");
    assert!(fs::read_to_string(state_file(&home)).unwrap().contains(&format!("\"uid\":{NOBODY}")));
    end(daemon, Signal::KILL);
    let daemon = world.daemon(&home, "");
    until("the interface is refused", || {
        let list = world.run(&home, "ringway", &["switch", "list"]);
        if list.contains("does not grant you network interfaces") { Ok(()) } else { Err(list) }
    });
    end(daemon, Signal::TERM);
    assert_unused(&world, Path::new(&state_file(&home)));
}

fn assert_unused(world: &World, state: &Path) {
    let link = world.here.run("ip -d link show a0");
    assert!(!link.contains("xdp"), "{link}");
    assert!(state.exists());
}
