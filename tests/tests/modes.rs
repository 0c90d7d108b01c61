//! The modes of an interface, chosen by name, by the environment, or by what there is.

use std::{process::Command, time::Duration};

use ringway::{Control, Error, NicMode, Port};
use ringway_testkit::{Netns, Proc, Snapshot, VethPair, skip_without_root};
use ringway_tests::{Home, ends, frame, inside, isolated, one_at_a_time, receive, until};
use rustix::{io::Errno, process::Signal};

const LIMIT: Duration = Duration::from_secs(30);

/// The modes that a veth pair has.
const MODES: [NicMode; 3] = [NicMode::Copy, NicMode::Generic, NicMode::Packet];

/// Two namespaces, interface `n0` in one and `n1` in the other, with addresses.
fn wire() -> (Netns, Netns, VethPair) {
    let (a, b) = (Netns::quiet("rwm"), Netns::quiet("rwm"));
    let pair = a.veth(&b, "n0", "n1");
    a.run("ip addr add 10.6.0.1/24 dev n0");
    b.run("ip addr add 10.6.0.2/24 dev n1");
    (a, b, pair)
}

fn ping(from: &Netns) -> bool {
    from.try_run("ping -q -c 3 -i 0.01 -W 1 10.6.0.2").status.success()
}

/// What `ringway ports` shows of the port that is open.
fn mode() -> String {
    let ports = Control::connect().unwrap().ports().unwrap();
    ports.into_iter().find_map(|port| port.mode).expect("an interface is open")
}

fn open(netns: &Netns, spec: &str) -> Result<Port, Error> {
    netns.enter(|| Port::open(spec))
}

/// Frames of all lengths both ways; the stack hears nothing meanwhile, and all when the programs have
/// been killed.
#[test]
fn each_mode_by_name() {
    if skip_without_root("each_mode_by_name") {
        return;
    }
    let _turn = one_at_a_time();
    let before = Snapshot::take();
    let home = Home::new();
    let (a, b, pair) = wire();
    for mode in MODES {
        let spec = |interface: &str| format!("netmap:{interface}@mode={mode}");
        for (near, from, far, to) in [(&a, "n0", &b, "n1"), (&b, "n1", &a, "n0")] {
            let state = |netns: &Netns| netns.run("ip -d link show type veth");
            let untouched = [state(&a), state(&b)];
            let receiver = Proc::spawn(inside(far, home.traffic(&["receive", &spec(to), "1"])));
            let sender = Proc::spawn(inside(near, home.traffic(&["send", &spec(from), "1"])));
            receiver.wait_for("going", LIMIT);
            assert!(!ping(&a), "{mode}: the stack has what a program receives");
            for process in [sender, receiver] {
                process.signal(Signal::KILL);
                assert!(ends(process.pid(), LIMIT));
                let (_, output) = process.wait();
                assert!(!output.contains("wrong"), "{output}");
            }
            until("the stack has its interfaces again", || match ping(&a) {
                true => Ok(()),
                false => Err(format!("{mode}: no answer")),
            });
            until("all is as it was", || match [state(&a), state(&b)] {
                now if now == untouched => Ok(()),
                now => Err(now.join("")),
            });
        }
    }
    home.assert_left();
    pair.delete();
    drop((a, b));
    before.assert_clean();
}

/// Who opens an interface first decides on its mode; a mode that cannot be had is an error that says
/// why.
#[test]
fn a_mode_is_what_was_asked_for_or_an_error() {
    if skip_without_root("a_mode_is_what_was_asked_for_or_an_error") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("a_mode_is_what_was_asked_for_or_an_error", |home| {
        let (a, _b, _pair) = wire();
        let refused = open(&a, "netmap:n0@mode=zerocopy").unwrap_err();
        assert_eq!(ringway_errno::errno(refused.cause()), Errno::OPNOTSUPP.raw_os_error());
        assert!(refused.to_string().contains("zerocopy mode was asked for"), "{refused}");
        for asked in MODES {
            let first = open(&a, &format!("netmap:n0/T@mode={asked}")).unwrap();
            assert_eq!(mode(), asked.to_string());
            for other in MODES {
                let opened = open(&a, &format!("netmap:n0/R@mode={other}"));
                assert_eq!(
                    opened.as_ref().err().map(|e| ringway_errno::errno(e.cause())),
                    (other != asked).then_some(Errno::BUSY.raw_os_error())
                );
                if let Err(error) = opened {
                    assert!(
                        error.to_string().contains(&format!("in use in {asked} mode")),
                        "{error}"
                    );
                }
            }
            // Who asks for none takes what there is.
            drop(open(&a, "netmap:n0/R").unwrap());
            drop(first);
        }
        drop(open(&a, "netmap:n0@mode=packet@filter=udp").unwrap());
        // By itself, the best there is.
        let port = open(&a, "netmap:n0").unwrap();
        assert!(mode().starts_with("copy; not zerocopy: "), "{}", mode());
        drop(port);
        home.assert_left();
    });
}

/// Programs that know of no modes have them from the environment.
#[test]
fn the_environment_asks_for_a_mode() {
    if skip_without_root("the_environment_asks_for_a_mode") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("the_environment_asks_for_a_mode", |home| {
        let (a, _b, _pair) = wire();
        let hold = |wanted: &str, spec: &str| {
            let mut command: Command = inside(&a, home.traffic(&["hold", spec]));
            command.env("RINGWAY_NIC_MODE", wanted);
            Proc::spawn(command)
        };
        let holder = hold("packet", "netmap:n0");
        holder.wait_for("open", LIMIT);
        assert_eq!(mode(), "packet");
        holder.kill();
        // What the name says counts for more.
        let holder = hold("packet", "netmap:n0@mode=generic");
        holder.wait_for("open", LIMIT);
        assert_eq!(mode(), "generic");
        holder.kill();
        let (status, output) = hold("fast", "netmap:n0").wait();
        assert!(!status.success() && output.contains("RINGWAY_NIC_MODE"), "{output}");
        home.assert_left();
    });
}

/// Another XDP program in the way is named; who asks for packet mode does not mind it.
#[test]
fn beside_another_xdp_program() {
    if skip_without_root("beside_another_xdp_program") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("beside_another_xdp_program", |home| {
        let (a, b, _pair) = wire();
        // Another daemon's, with all queues left to the stack: nobody has a receive ring.
        let other = Home::new();
        let holder = Proc::spawn(inside(&b, other.traffic(&["hold", "netmap:n1/T"])));
        holder.wait_for("open", LIMIT);
        let refused = open(&b, "netmap:n1").unwrap_err();
        assert_eq!(ringway_errno::errno(refused.cause()), Errno::BUSY.raw_os_error());
        assert!(refused.to_string().contains("a Ringway program (native mode, id "), "{refused}");
        assert!(refused.to_string().contains("of another daemon"), "{refused}");
        let mut to = open(&b, "netmap:n1/R@mode=packet").unwrap();
        let mut from = open(&a, "netmap:n0").unwrap();
        let mut bytes = Vec::new();
        frame::build(&mut bytes, frame::BROADCAST, frame::mac(1, 1), 1, 7);
        from.tx(0).push(&bytes);
        from.tx(0).sync();
        assert_eq!(receive(&mut to), bytes);
        drop((from, to));
        holder.kill();
        other.assert_left();
        home.assert_left();
    });
}

/// Another project's XDP program passes frames on: packet mode gets them, by itself, and on a switch.
#[test]
fn beside_the_xdp_program_of_another_project() {
    if skip_without_root("beside_the_xdp_program_of_another_project") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("beside_the_xdp_program_of_another_project", |home| {
        let (a, b, _pair) = wire();
        let object = concat!(env!("CARGO_TARGET_TMPDIR"), "/foreign_modes.bpf.o");
        let source = "__attribute__((section(\"xdp\"))) int foreign(void *frame) { return 2; }";
        b.run(&format!("echo '{source}' | clang -O2 -target bpf -x c -c - -o {object}"));
        b.run(&format!("ip link set dev n1 xdpdrv obj {object} sec xdp"));
        let mut from = open(&a, "netmap:n0").unwrap();
        let mut bytes = Vec::new();
        frame::build(&mut bytes, frame::BROADCAST, frame::mac(1, 1), 1, 7);
        let mode_of = |name: &str| {
            let ports = Control::connect().unwrap().ports().unwrap();
            let port = ports.into_iter().find(|port| port.name == name).unwrap();
            port.mode.unwrap()
        };
        let why = "another XDP program (native mode, id ";
        for spec in ["netmap:n1", "netmap:n1@filter=ip or not ip"] {
            let mut to = open(&b, spec).unwrap();
            assert!(mode_of("n1").starts_with("packet"), "{spec}: {}", mode_of("n1"));
            from.tx(0).push(&bytes);
            from.tx(0).sync();
            assert_eq!(receive(&mut to), bytes, "{spec}");
        }
        drop(from);
        let control = Control::connect().unwrap();
        b.enter(|| control.switch_attach("vale0", "n1", false).unwrap());
        let mode = mode_of("vale0:n1");
        assert!(mode.starts_with("packet") && mode.contains(why), "{mode}");
        control.switch_delete("vale0").unwrap();
        drop(control);
        home.assert_left();
    });
}

/// Where no XDP program can be attached, an interface opens by itself in packet mode, and says why:
/// here because there is one on an interface above it.
#[test]
fn an_interface_without_xdp() {
    if skip_without_root("an_interface_without_xdp") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("an_interface_without_xdp", |home| {
        let (a, b, _pair) = wire();
        b.run("ip link add m1 link n1 type macvlan mode bridge && ip link set m1 up");
        let above = open(&b, "netmap:m1/T").unwrap();
        let mut to = open(&b, "netmap:n1").unwrap();
        let ports = Control::connect().unwrap().ports().unwrap();
        let port = ports.iter().find(|port| port.name == "n1").unwrap();
        let mode = port.mode.as_deref().unwrap();
        println!("{mode}");
        assert!(mode.starts_with("packet; not zerocopy or copy: no XDP program"), "{mode}");
        assert!(mode.contains("; not generic: no XDP program"), "{mode}");
        let mut from = open(&a, "netmap:n0").unwrap();
        let mut bytes = Vec::new();
        frame::build(&mut bytes, frame::BROADCAST, frame::mac(1, 1), 1, 9);
        from.tx(0).push(&bytes);
        from.tx(0).sync();
        assert_eq!(receive(&mut to), bytes);
        drop(to);
        // On a switch the kernel forwards for it, which takes no XDP.
        let control = Control::connect().unwrap();
        b.enter(|| control.switch_attach("valem", "n1", false).unwrap());
        let attached = control.switches().unwrap()[0].ports[0].mode.clone();
        assert_eq!(attached.as_deref(), Some("kernel"));
        let mut to = Port::open("valem:program").unwrap();
        from.tx(0).push(&bytes);
        from.tx(0).sync();
        assert_eq!(receive(&mut to), bytes);
        b.enter(|| control.switch_detach("valem", "n1").unwrap());
        drop((from, to, above, control));
        home.assert_left();
    });
}

/// The reasons are those of the first opener, whatever queue it has opened.
#[test]
fn why_it_is_no_better_mode_is_told_by_all_queues() {
    if skip_without_root("why_it_is_no_better_mode_is_told_by_all_queues") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("why_it_is_no_better_mode_is_told_by_all_queues", |home| {
        let (a, b) = (Netns::quiet("rwm"), Netns::quiet("rwm"));
        let _pair = a.veth_queues(&b, "n0", "n1", 2);
        let last = open(&a, "netmap:n0-1").unwrap();
        assert!(mode().starts_with("copy; not zerocopy: "), "{}", mode());
        let first = open(&a, "netmap:n0-0").unwrap();
        assert!(mode().starts_with("copy; not zerocopy: "), "{}", mode());
        drop((last, first));
        home.assert_left();
    });
}
