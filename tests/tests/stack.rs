//! The host's stack behind ports: real programs talk through persistent ports, and through an
//! interface whose host rings a program forwards.

use std::time::Duration;

use ringway::{Control, Port, PortShape};
use ringway_testkit::{Netns, PacketSocket, Proc, Snapshot, VethPair, frame, skip_without_root};
use ringway_tests::{
    Home, Random, assert_connected, beside_others, ends, inside, isolated, one_at_a_time,
    packet::send, receive, until,
};
use rustix::process::{Pid, Signal, kill_process};

const LIMIT: Duration = Duration::from_secs(30);

fn addressed(netns: &Netns, interface: &str, address: &str) {
    netns.run(&format!("ip addr add {address}/24 dev {interface} && ip link set {interface} up"));
}

fn has_interface(netns: &Netns, name: &str) -> bool {
    netns.run("ip -br link").lines().any(|line| line.starts_with(&format!("{name}@")))
}

/// The stacks of two hosts on a bridge, by persistent ports.
#[test]
fn stacks_on_a_bridge() {
    if skip_without_root("stacks_on_a_bridge") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("stacks_on_a_bridge", |home| {
        let before = Snapshot::take();
        let (a, b) = (Netns::quiet("rws"), Netns::quiet("rws"));
        let control = Control::connect().unwrap();
        for (netns, address) in [(&a, "10.7.0.1"), (&b, "10.7.0.2")] {
            netns.enter(|| {
                let name = format!("p{}", &address[address.len() - 1..]);
                control.interface_new(&name, PortShape::default()).unwrap();
                control.switch_attach("vales", &name, true).unwrap();
                addressed(netns, &name, address);
            });
        }
        assert_connected(&a, &b, "10.7.0.2");
        for (netns, name) in [(&a, "p1"), (&b, "p2")] {
            netns.enter(|| {
                control.switch_detach("vales", name).unwrap();
                assert!(has_interface(netns, name), "detached, and still there");
                control.interface_delete(name).unwrap();
                assert!(!has_interface(netns, name));
            });
        }
        drop(control);
        home.assert_left();
        drop((a, b));
        before.assert_clean();
    });
}

/// A program between the host rings of two persistent ports.
#[test]
fn a_program_between_stacks() {
    if skip_without_root("a_program_between_stacks") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("a_program_between_stacks", |home| {
        let before = Snapshot::take();
        let (a, b) = (Netns::quiet("rws"), Netns::quiet("rws"));
        let control = Control::connect().unwrap();
        a.enter(|| control.interface_new("p1", PortShape::default()).unwrap());
        b.enter(|| control.interface_new("p2", PortShape::default()).unwrap());
        addressed(&a, "p1", "10.7.0.1");
        addressed(&b, "p2", "10.7.0.2");
        // Each port by itself: what the stack sends goes to a pipe of a common parent.
        let joins = [(&a, "netmap:p1^", "mid{1"), (&b, "netmap:p2^", "mid}1")].map(
            |(netns, stack, pipe)| {
                let join = Proc::spawn(inside(netns, home.traffic(&["join", stack, pipe])));
                join.wait_for("joined", LIMIT);
                join
            },
        );
        assert_connected(&a, &b, "10.7.0.2");
        joins.into_iter().for_each(Proc::kill);
        // The rings have gone with their programs, and come again.
        until("the host rings are free", || {
            let join = Proc::spawn(inside(&a, home.traffic(&["hold", "netmap:p1^/x"])));
            join.wait_for("o", LIMIT);
            if join.output().contains("open") { Ok(()) } else { Err(join.output()) }
        });
        a.enter(|| {
            until("p1 is nobody's", || control.interface_delete("p1").map_err(|e| e.to_string()));
        });
        b.enter(|| control.interface_delete("p2").unwrap());
        drop(control);
        home.assert_left();
        drop((a, b));
        before.assert_clean();
    });
}

/// However the daemon ends, its interfaces go with it.
#[test]
fn persistent_ports_go_with_the_daemon() {
    if skip_without_root("persistent_ports_go_with_the_daemon") {
        return;
    }
    let _turn = one_at_a_time();
    let before = Snapshot::take();
    isolated("persistent_ports_go_with_the_daemon", |home| {
        let netns = Netns::quiet("rws");
        let control = Control::connect().unwrap();
        netns.enter(|| {
            control.interface_new("p1", PortShape::default()).unwrap();
            control.interface_new("p2", PortShape::default()).unwrap();
            control.switch_attach("vales", "p1", true).unwrap();
        });
        addressed(&netns, "p2", "10.7.0.2");
        let holder = Proc::spawn(inside(&netns, home.traffic(&["hold", "netmap:p2*"])));
        holder.wait_for("open", LIMIT);
        assert!(has_interface(&netns, "p1") && has_interface(&netns, "p2"));
        kill(home.daemon());
        until("the interfaces have gone", || {
            match has_interface(&netns, "p1") || has_interface(&netns, "p2") {
                false => Ok(()),
                true => Err(netns.run("ip -br link")),
            }
        });
        // A socket that is left behind is not in the way of the next daemon.
        drop(control);
        let control = Control::connect().unwrap();
        netns.enter(|| {
            control.interface_new("p1", PortShape::default()).unwrap();
            control.interface_delete("p1").unwrap();
        });
    });
    before.assert_clean();
}

/// Two hosts, `n0` in the one and `n1` in the other.
fn wired_hosts() -> (Netns, Netns, VethPair) {
    let (a, b) = (Netns::quiet("rws"), Netns::quiet("rws"));
    let pair = a.veth(&b, "n0", "n1");
    addressed(&a, "n0", "10.7.0.1");
    addressed(&b, "n1", "10.7.0.2");
    (a, b, pair)
}

/// What a program could have changed of an interface.
fn state(netns: &Netns, interface: &str) -> String {
    netns.run(&format!("ip -d link show {interface}; ethtool -k {interface}; ip -br link"))
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).expect("a pid"), Signal::KILL).expect("it runs");
    assert!(ends(pid, LIMIT));
}

/// A program between an interface and its own host's stack, which is killed; and the daemon before.
#[test]
fn a_program_between_a_nic_and_its_stack() {
    if skip_without_root("a_program_between_a_nic_and_its_stack") {
        return;
    }
    let _turn = one_at_a_time();
    let before = Snapshot::take();
    let home = Home::new();
    let (a, b, pair) = wired_hosts();
    let untouched = state(&a, "n0");
    for daemon_first in [false, true] {
        let join = Proc::spawn(inside(&a, home.traffic(&["join", "netmap:n0", "netmap:n0^"])));
        join.wait_for("joined", LIMIT);
        assert_connected(&a, &b, "10.7.0.2");
        if daemon_first {
            kill(home.daemon());
            a.ping("-c 3 -i 0.05 -w 30 10.7.0.2");
        }
        kill(join.pid());
        until("all is as it was", || match state(&a, "n0") {
            now if now == untouched => Ok(()),
            now => Err(now),
        });
        a.ping("-c 1 -w 30 10.7.0.2");
        if !daemon_first {
            home.assert_left();
        }
    }
    pair.delete();
    drop((a, b, home));
    before.assert_clean();
}

/// S-HOST-2: the stack is cut off while a program has the tx rings, and not by one that receives
/// only, or has the host rings alone.
#[test]
fn s_host_2_what_is_diverted() {
    if skip_without_root("s_host_2_what_is_diverted") {
        return;
    }
    let _turn = beside_others();
    let home = Home::new();
    let (a, b, _pair) = wired_hosts();
    // So that both know each other's address.
    a.ping("-c 1 -w 30 10.7.0.2");
    let sent_by_a = || -> u64 {
        b.run("cat /sys/class/net/n1/statistics/rx_packets").trim().parse().expect("a number")
    };
    for (port, cut) in [
        ("netmap:n0", true),
        ("netmap:n0/T", true),
        ("netmap:n0/R", false),
        ("netmap:n0^", false),
        ("netmap:n0*", true),
    ] {
        let holder = Proc::spawn(inside(&a, home.traffic(&["hold", port])));
        holder.wait_for("open", LIMIT);
        let before = sent_by_a();
        let _ = a.try_run("ping -q -c 3 -i 0.01 -W 1 10.7.0.2");
        assert_eq!(sent_by_a() == before, cut, "{port}");
        kill(holder.pid());
        home.assert_left();
    }
}

/// An interface on a bridge together with the stack behind it (S-VALE-16).
#[test]
fn a_nic_and_its_stack_on_a_bridge() {
    if skip_without_root("a_nic_and_its_stack_on_a_bridge") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("a_nic_and_its_stack_on_a_bridge", |home| {
        let before = Snapshot::take();
        let (a, b, pair) = wired_hosts();
        let untouched = state(&a, "n0");
        let control = Control::connect().unwrap();
        a.enter(|| control.switch_attach("valen", "n0", true).unwrap());
        assert_connected(&a, &b, "10.7.0.2");
        let names: Vec<_> =
            control.switches().unwrap()[0].ports.iter().map(|port| port.name.clone()).collect();
        assert_eq!(names, ["valen:n0", "valen:n0^"]);
        a.enter(|| control.switch_detach("valen", "n0").unwrap());
        until("all is as it was", || match state(&a, "n0") {
            now if now == untouched => Ok(()),
            now => Err(now),
        });
        a.ping("-c 1 -w 30 10.7.0.2");
        drop(control);
        home.assert_left();
        pair.delete();
        drop((a, b));
        before.assert_clean();
    });
}

/// Where XDP is generic, all that the stack receives passes it, what programs send included.
#[test]
fn an_interface_without_native_xdp() {
    if skip_without_root("an_interface_without_native_xdp") {
        return;
    }
    let _turn = beside_others();
    let home = Home::new();
    let (a, b, _pair) = wired_hosts();
    a.run("ip addr flush dev n0 && ip link add m0 link n0 type macvlan mode bridge");
    addressed(&a, "m0", "10.7.0.1");
    // What a stack leaves to hardware is done for it at the other end of a veth pair alone.
    b.run("ethtool -K n1 tx off > /dev/null");
    let join = Proc::spawn(inside(&a, home.traffic(&["join", "netmap:m0", "netmap:m0^"])));
    join.wait_for("joined", LIMIT);
    assert!(a.run("ip link show m0").contains("xdpgeneric"));
    assert_connected(&a, &b, "10.7.0.2");
    join.kill();
    home.assert_left();
}

/// There, what stands in front of a frame for the stack is a secret: a neighbour on the wire sends nothing
/// past the program, be there host rings or none.
#[test]
fn a_neighbour_sends_nothing_past_the_program() {
    if skip_without_root("a_neighbour_sends_nothing_past_the_program") {
        return;
    }
    let _turn = beside_others();
    isolated("a_neighbour_sends_nothing_past_the_program", |home| {
        let (a, b, _pair) = wired_hosts();
        let (neighbour, stack) = (PacketSocket::new(&b, "n1"), PacketSocket::new(&a, "n0"));
        let open = |spec: &str| {
            until(spec, || a.enter(|| Port::open(spec)).map_err(|error| error.to_string()))
        };
        let mut random = [0; 16];
        Random::seeded().fill(&mut random);
        // The first is one that once was good for all.
        let marks = [*b"yawgniR\0!kcatsot", random, [0; 16]];
        let forge = |nic: &mut Port| {
            for mark in marks {
                let forged = [&mark[..], &frame(1, 60)].concat();
                neighbour.send(&forged);
                assert_eq!(receive(nic), forged);
            }
        };
        // As the program is loaded, and as it is made anew.
        for spec in ["netmap:n0@mode=generic", "netmap:n0@mode=generic@filter=not ip"] {
            let mut nic = open(spec);
            assert!(a.run("ip link show n0").contains("xdpgeneric"));
            forge(&mut nic);
            for number in [2, 3] {
                let mut host = open("netmap:n0^");
                forge(&mut nic);
                send(&mut host, &frame(number, 60));
                assert_eq!(stack.hear().bytes, frame(number, 60));
            }
            forge(&mut nic);
        }
        assert_eq!(stack.try_hear(), None);
        home.assert_left();
    });
}

/// The same by AF_PACKET: with the stacks' offloads as they come, the sockets' listening place before
/// the one where the stack is kept away, and what goes to the stack passing both.
#[test]
fn an_interface_in_packet_mode() {
    if skip_without_root("an_interface_in_packet_mode") {
        return;
    }
    let _turn = beside_others();
    let home = Home::new();
    let (a, b, _pair) = wired_hosts();
    let untouched = state(&a, "n0");
    let ports = ["netmap:n0@mode=packet", "netmap:n0^"];
    let join = Proc::spawn(inside(&a, home.traffic(&["join", ports[0], ports[1]])));
    join.wait_for("joined", LIMIT);
    assert_connected(&a, &b, "10.7.0.2");
    join.kill();
    until("the stack has its interface again", || a.try_ping("-c 1 -w 1 10.7.0.2"));
    assert_eq!(state(&a, "n0"), untouched);
    home.assert_left();
}
