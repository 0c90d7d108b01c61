//! Interfaces outlive what programs and daemons have made of them, and are as they were: moved to
//! another network namespace, left behind by a daemon, or by whoever was killed (S-LIFE-9).

use std::{
    process::Command,
    time::{Duration, Instant},
};

use ringway::{BridgePortInfo, Control, Error, Interest, NicMode, Port, Prepared, Woken, prepare};
use ringway_testkit::{Netns, NicState, Proc, VethPair, skip_without_root};
use ringway_tests::{
    GROUP, Home, as_nobody, ends,
    frame::{self, Seen},
    inside, isolated, until,
    wire::{await_sent, wire},
};
use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process},
};

const LIMIT: Duration = Duration::from_secs(30);

fn open(netns: &Netns, name: &str) -> Result<Port, Error> {
    netns.enter(|| Port::open(name))
}

/// Sends frames of `flow` from one port to the other.
fn exchange(from: &mut Port, to: &mut Port, flow: u32) {
    const FRAMES: u64 = 300;
    let (src, mut bytes, mut spare) = (frame::mac(flow, 0), Vec::new(), Vec::new());
    for number in 0..FRAMES {
        frame::build(&mut bytes, frame::BROADCAST, src, flow, number);
        assert!(from.tx(0).push(&bytes), "the ring holds them all");
    }
    from.tx(0).sync();
    let mut next = 0;
    while next < FRAMES {
        assert!(to.wait_rx(Some(LIMIT)).unwrap(), "{next} frames of {FRAMES} have arrived");
        for received in to.rx(0).batch(64) {
            match frame::look(&received.to_vec(), &mut spare) {
                Seen::Ours { flow: its, number } if its == flow => {
                    assert_eq!(number, next);
                    next += 1;
                }
                other => assert_eq!(other, Seen::Foreign),
            }
        }
    }
}

/// Moves `n0`, and has it as it was but for the addresses, which the kernel takes off.
fn move_to(from: &Netns, to: &Netns) {
    from.run(&format!("ip link set n0 netns {}", to.name().expect("it has a name")));
    to.run("ip link set n0 up");
}

/// Who has an interface that is moved away gets errors; nothing of ours is left on it, although its
/// programs still have the port; and whoever opens it there, or back here, has it.
#[test]
fn an_interface_is_moved_and_comes_back() {
    if skip_without_root("an_interface_is_moved_and_comes_back") {
        return;
    }
    isolated("an_interface_is_moved_and_comes_back", |home| {
        for mode in ["copy", "generic", "packet"] {
            let (a, b, _pair) = wire();
            let elsewhere = Netns::quiet("rwn");
            let spec = format!("netmap:n0*@mode={mode}");
            let mut peer = open(&b, "netmap:n1").unwrap();
            move_to(&a, &elsewhere);
            let untouched_there = NicState::take(&elsewhere, "n0");
            move_to(&elsewhere, &a);
            let untouched_here = NicState::take(&a, "n0");

            let mut old = open(&a, &spec).unwrap();
            exchange(&mut peer, &mut old, 1);
            move_to(&a, &elsewhere);
            assert!(matches!(old.wait_rx(Some(LIMIT)), Err(Error::NoInterface { .. })));
            assert!(matches!(old.wait_tx(Some(LIMIT)), Err(Error::NoInterface { .. })));
            untouched_there.assert_restored(&elsewhere);
            let links = a.run("ip -br link");
            assert!(!links.contains("rwhost"), "the way to its stack is left: {links}");
            assert_eq!(
                ringway_errno::errno(open(&a, &spec).unwrap_err().cause()),
                Errno::NXIO.raw_os_error()
            );
            let told = Control::connect().unwrap().ports().unwrap();
            assert!(
                told.iter().any(|p| p.mode.as_deref() == Some("its interface has gone")),
                "{told:?}"
            );

            let mut there = open(&elsewhere, &spec).unwrap();
            exchange(&mut peer, &mut there, 2);
            exchange(&mut there, &mut peer, 3);
            // Back, to where the old port still is: it has the same number there.
            move_to(&elsewhere, &a);
            assert!(matches!(there.wait_rx(Some(LIMIT)), Err(Error::NoInterface { .. })));
            untouched_here.assert_restored(&a);
            let mut here = open(&a, &spec).unwrap();
            exchange(&mut peer, &mut here, 4);
            drop(old);
            exchange(&mut here, &mut peer, 5);
            drop(there);
            exchange(&mut peer, &mut here, 6);
            drop(here);
            untouched_here.assert_restored(&a);
        }
        home.assert_left();
    });
}

/// An interface that is moved away from a bridge has left it, with the stack behind it, and takes
/// nothing along.
#[test]
fn an_attached_interface_is_moved() {
    if skip_without_root("an_attached_interface_is_moved") {
        return;
    }
    isolated("an_attached_interface_is_moved", |home| {
        for mode in ["copy", "generic", "packet"] {
            let (a, b, _pair) = wire();
            let elsewhere = Netns::quiet("rwn");
            move_to(&a, &elsewhere);
            let untouched = NicState::take(&elsewhere, "n0");
            move_to(&elsewhere, &a);
            let control = Control::connect().unwrap();
            let attached = format!("n0@mode={mode}");
            a.enter(|| control.switch_attach("vale0", &attached, true)).unwrap();
            let keeper = Port::open("vale0:x").unwrap();
            move_to(&a, &elsewhere);
            until("the ports have left the bridge, and the place waits", || {
                let ports = control.switches().unwrap().remove(0).ports;
                let is_waited_for = |port: &BridgePortInfo| {
                    port.name == "vale0:n0"
                        && port.mode.as_ref().is_some_and(|mode| mode.starts_with("not back yet"))
                };
                match &ports[..] {
                    [port, absent] if port.name == "vale0:x" && is_waited_for(absent) => Ok(()),
                    others => Err(format!("{others:?}")),
                }
            });
            untouched.assert_restored(&elsewhere);
            assert!(!a.run("ip -br link").contains("rwhost"));
            // It can join again from where it is now.
            elsewhere.enter(|| control.switch_attach("vale0", &attached, false)).unwrap();
            let mut peer = open(&b, "netmap:n1").unwrap();
            let mut port = Port::open("vale0:y").unwrap();
            exchange(&mut peer, &mut port, 1);
            elsewhere.enter(|| control.switch_detach("vale0", "n0")).unwrap();
            drop((keeper, port, peer, control));
            untouched.assert_restored(&elsewhere);
        }
        home.assert_left();
    });
}

/// A host with `n0` and a system daemon in it, and another with `n1`.
struct World {
    home: Home,
    a: Netns,
    b: Netns,
    _pair: VethPair,
}

impl World {
    fn new() -> World {
        let (a, b, _pair) = wire();
        World { home: Home::new(), a, b, _pair }
    }

    fn daemon(&self) -> Proc {
        let users = "nic_users = ['65534']\n";
        self.home.system_daemon_with(GROUP, 0o660, users, |daemon| inside(&self.a, daemon))
    }

    /// The program `traffic` as a client of the system daemon.
    fn traffic(&self, args: &[&str]) -> Command {
        let mut command = self.home.system_command(self.home.bin().join("traffic"));
        command.args(args);
        command
    }

    /// The same, of root and beside the daemon.
    fn client(&self, args: &[&str]) -> Proc {
        Proc::spawn(inside(&self.a, self.traffic(args)))
    }

    /// Sends to `n0`, as a client of a private daemon.
    fn sender(&self, flow: &str) -> Proc {
        Proc::spawn(inside(&self.b, self.home.traffic(&["send", "netmap:n1", flow])))
    }
}

fn end(process: Proc, signal: Signal) {
    process.signal(signal);
    assert!(ends(process.pid(), LIMIT), "{signal:?} does not end it");
}

/// The rings of root's program go on when the daemon has ended, and the next daemon says who has the
/// interface, in packet mode too; when the program has ended, it is as before.
#[test]
fn a_program_outlives_its_daemon_and_the_next_one_names_it() {
    if skip_without_root("a_program_outlives_its_daemon_and_the_next_one_names_it") {
        return;
    }
    for (signal, port, mode) in [
        (Signal::TERM, "netmap:n0", "native"),
        (Signal::KILL, "netmap:n0", "native"),
        (Signal::KILL, "netmap:n0@mode=packet", "packet"),
    ] {
        let world = World::new();
        let before = NicState::take(&world.a, "n0");
        let daemon = world.daemon();
        let receiver = world.client(&["receive", port, "1"]);
        await_sent(&world.a, "n0");
        end(daemon, signal);
        let sender = world.sender("1");
        receiver.wait_for("going", LIMIT);

        let daemon = world.daemon();
        for port in [port, "netmap:n0", "netmap:n0*"] {
            let (status, said) = world.client(&["hold", port]).wait();
            assert!(!status.success() && said.contains("error 16"), "{said}");
            assert!(said.contains(&format!("n0: a Ringway program ({mode} mode, id ")), "{said}");
            assert!(said.contains("of a client that outlived its daemon"), "{said}");
            // It has more privileges than the daemon, which cannot see what it holds.
            let remedy = said.split('`').nth(1).expect("a command").replace("sudo ", "");
            // What ends while it looks is an error to it.
            let found = world.a.try_run(&remedy).stdout;
            let found = String::from_utf8_lossy(&found).into_owned();
            assert_eq!(found.split('/').nth(2), Some(&receiver.pid().to_string()[..]), "{found}");
        }
        end(receiver, Signal::KILL);
        end(sender, Signal::KILL);
        before.assert_restored(&world.a);
        let receiver = world.client(&["receive", port, "1"]);
        let sender = world.sender("1");
        receiver.wait_for("going", LIMIT);
        for process in [receiver, sender, daemon] {
            end(process, Signal::TERM);
        }
        before.assert_restored(&world.a);
    }
}

/// A program that has outlived its daemon, and sleeps until it receives something, is woken and told
/// when its interface goes. That of another interface is nothing to it.
#[test]
fn who_has_outlived_the_daemon_learns_that_the_interface_has_gone() {
    if skip_without_root("who_has_outlived_the_daemon_learns_that_the_interface_has_gone") {
        return;
    }
    isolated("who_has_outlived_the_daemon_learns_that_the_interface_has_gone", |home| {
        let modes = ["copy", "generic", "packet"];
        for (mode, moved) in modes.into_iter().flat_map(|mode| [(mode, false), (mode, true)]) {
            let (a, b, _pair) = wire();
            let elsewhere = Netns::quiet("rwn");
            let mut port = open(&a, &format!("netmap:n0@mode={mode}")).unwrap();
            let mut peer = open(&b, "netmap:n1@mode=packet").unwrap();
            let daemon = home.daemon();
            kill_process(Pid::from_raw(daemon as i32).expect("a pid"), Signal::KILL).unwrap();
            assert!(ends(daemon, LIMIT));
            a.run("ip link add other0 type veth peer name other1 && ip link del other0");
            exchange(&mut peer, &mut port, 1);
            let told = std::thread::scope(|scope| {
                let told = scope.spawn(|| {
                    loop {
                        match port.wait_rx(Some(LIMIT)) {
                            // What its stack has to say comes from the peer as well.
                            Ok(true) => port.rx(0).batch(64).for_each(drop),
                            told => return told,
                        }
                    }
                });
                match moved {
                    true => move_to(&a, &elsewhere),
                    false => drop(a.run("ip link del n0")),
                }
                told.join().expect("it waits")
            });
            assert!(matches!(told, Err(Error::NoInterface { .. })), "{mode}: {told:?}");
        }
        // What a killed daemon leaves behind, the next one replaces.
        drop(Port::open("valef:x").unwrap());
        home.assert_left();
    });
}

/// An ordinary user's program, whose traffic stops with the daemon, is woken and told so; under the
/// next daemon it opens its port again.
#[test]
fn an_ordinary_program_learns_that_its_daemon_has_ended() {
    if skip_without_root("an_ordinary_program_learns_that_its_daemon_has_ended") {
        return;
    }
    let world = World::new();
    let before = NicState::take(&world.a, "n0");
    let theirs = |args: &[&str]| Proc::spawn(inside(&world.a, as_nobody(world.traffic(args))));
    for signal in [Signal::TERM, Signal::KILL] {
        let daemon = world.daemon();
        let receiver = theirs(&["receive", "netmap:n0", "1"]);
        let sender = world.sender("1");
        receiver.wait_for("going", LIMIT);
        end(sender, Signal::KILL);
        // It sleeps now, or will when it has taken what is left.
        end(daemon, signal);
        let (status, said) = receiver.wait();
        assert!(!status.success() && said.contains("ringwayd has ended"), "{said}");
        assert!(said.contains("open the port again"), "{said}");
        before.assert_restored(&world.a);

        let daemon = world.daemon();
        let again = theirs(&["receive", "netmap:n0", "2"]);
        let sender = world.sender("2");
        again.wait_for("going", LIMIT);
        for process in [sender, again, daemon] {
            end(process, Signal::TERM);
        }
        before.assert_restored(&world.a);
    }
}

/// A program that only sends, and never waits, is told too.
#[test]
fn an_ordinary_sender_that_never_waits_learns_that_its_daemon_has_ended() {
    if skip_without_root("an_ordinary_sender_that_never_waits_learns_that_its_daemon_has_ended") {
        return;
    }
    let world = World::new();
    for mode in ["copy", "packet"] {
        let daemon = world.daemon();
        let port = format!("netmap:n0@mode={mode}");
        let sender = inside(&world.a, as_nobody(world.traffic(&["push", &port, "1"])));
        let sender = Proc::spawn(sender);
        sender.wait_for("going", LIMIT);
        end(daemon, Signal::KILL);
        assert!(ends(sender.pid(), LIMIT), "{mode}: it sends on; {}", sender.output());
        let (status, said) = sender.wait();
        assert!(!status.success() && said.contains("ringwayd has ended"), "{mode}: {said}");
    }
}

/// An interface in packet mode that goes down, and comes up again, does not keep awake who waits for it.
#[test]
fn an_interface_that_goes_down_is_waited_for_asleep() {
    if skip_without_root("an_interface_that_goes_down_is_waited_for_asleep") {
        return;
    }
    isolated("an_interface_that_goes_down_is_waited_for_asleep", |home| {
        let (a, _b, _pair) = wire();
        let mut port = open(&a, "netmap:n0@mode=packet").unwrap();
        for state in ["down", "up"] {
            a.run(&format!("ip link set n0 {state}"));
            until("it sleeps", || {
                let woken = match prepare(&mut port.waiter(Interest::Rx)) {
                    Prepared::Armed(armed) => armed.sleep(Some(Instant::now())).unwrap(),
                    Prepared::Ready => Woken::Notified,
                };
                port.rx(0).batch(64).for_each(drop);
                match woken {
                    Woken::TimedOut => Ok(()),
                    woken => Err(format!("{state}: {woken:?}")),
                }
            });
        }
        drop(port);
        home.assert_left();
    });
}

/// What a program can have of an interface.
fn uses() -> Vec<String> {
    let modes = [NicMode::Copy, NicMode::Generic, NicMode::Packet].map(NicMode::name);
    let of_modes = |rings: &'static str| modes.map(|mode| format!("netmap:n0{rings}@mode={mode}"));
    let filtered = "netmap:n0@filter=udp port 53".into();
    let one_queue = "netmap:n0~1".into();
    let parts = [of_modes("").to_vec(), of_modes("*").to_vec(), vec![filtered, one_queue]];
    parts.concat()
}

/// Whatever a program has of an interface, and however it or its daemon ends, the interface is as it
/// was: closed, or killed in one way or the other.
#[test]
fn after_any_end_the_interface_is_as_it_was() {
    if skip_without_root("after_any_end_the_interface_is_as_it_was") {
        return;
    }
    let (a, b) = (Netns::quiet("rwn"), Netns::quiet("rwn"));
    let _pair = a.veth_queues(&b, "n0", "n1", 2);
    a.run("ip addr add 10.9.0.1/24 dev n0 && tc qdisc add dev n0 clsact");
    let [near, far] = [(&a, "n0"), (&b, "n1")].map(|(netns, name)| NicState::take(netns, name));
    let restored = || {
        near.assert_restored(&a);
        far.assert_restored(&b);
    };
    for port in uses() {
        println!("{port}");
        let home = Home::new();
        let client = |what| Proc::spawn(inside(&a, home.traffic(&[what, &port])));
        let in_use = || {
            let client = client("hold");
            client.wait_for("open", LIMIT);
            assert_ne!(
                near,
                NicState::take(&a, "n0"),
                "{port}: it is in use, and nothing shows it"
            );
            client
        };
        let (status, output) = client("close").wait();
        assert!(status.success(), "{output}");
        restored();
        for signal in [Signal::TERM, Signal::KILL] {
            end(in_use(), signal);
            restored();
        }
        for signal in [Signal::TERM, Signal::KILL] {
            let client = in_use();
            let daemon = home.daemon();
            kill_process(Pid::from_raw(daemon as i32).expect("a pid"), signal).expect("it runs");
            assert!(ends(daemon, LIMIT));
            end(client, Signal::KILL);
            restored();
        }
    }
}

/// The same for an interface on a bridge, with its stack and without.
#[test]
fn after_any_end_of_a_bridge_the_interface_is_as_it_was() {
    if skip_without_root("after_any_end_of_a_bridge_the_interface_is_as_it_was") {
        return;
    }
    isolated("after_any_end_of_a_bridge_the_interface_is_as_it_was", |home| {
        let (a, _b, _pair) = wire();
        let before = NicState::take(&a, "n0");
        let ping = || a.ping("-c 1 -w 30 10.9.0.2");
        let modes = ["copy", "generic", "packet"];
        for (mode, host) in modes.into_iter().flat_map(|mode| [(mode, false), (mode, true)]) {
            for signal in [None, Some(Signal::KILL), Some(Signal::TERM)] {
                let control = Control::connect().unwrap();
                let attached = format!("n0@mode={mode}");
                a.enter(|| control.switch_attach("vale0", &attached, host)).unwrap();
                let diff = before.diff(&NicState::take(&a, "n0"));
                assert!(diff.contains("promiscuity 1"), "{diff}");
                assert_eq!(diff.contains("prog/xdp"), mode != "packet", "{diff}");
                match signal {
                    None => a.enter(|| control.switch_detach("vale0", "n0")).unwrap(),
                    Some(signal) => {
                        let pid = home.daemon();
                        let daemon = Pid::from_raw(pid as i32).expect("a pid");
                        kill_process(daemon, signal).expect("it runs");
                        assert!(ends(pid, LIMIT));
                    }
                }
                drop(control);
                before.assert_restored(&a);
                ping();
            }
        }
    });
}
