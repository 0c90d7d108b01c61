//! Network interfaces, over veth pairs between network namespaces: as ports of programs in
//! Rust and in C, and on a bridge with the stacks of two hosts.

use std::{
    fmt::Display,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use ringway::{Control, NS_MOREFRAG, NicMode, Port, Slot};
use ringway_testkit::{Netns, Proc, Snapshot, VethPair, skip_without_root};
use ringway_tests::{
    Home, Random,
    c::{Language::C11, Library::Preloaded, succeed},
    compile, ends, frame, inside, isolated, one_at_a_time, receive, until,
    wire::await_sent,
};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(30);

/// Two namespaces, interface `n0` in one and `n1` in the other.
fn wire() -> (Netns, Netns, VethPair) {
    let (a, b) = (Netns::quiet("rwn"), Netns::quiet("rwn"));
    let pair = a.veth(&b, "n0", "n1");
    (a, b, pair)
}

fn has_program(netns: &Netns, interface: &str) -> bool {
    netns.run(&format!("ip -d link show {interface}")).contains("prog/xdp")
}

fn assert_no_program(netns: &Netns, interface: &str) {
    until(&format!("{interface} is the stack's again"), || match has_program(netns, interface) {
        false => Ok(()),
        true => Err("an XDP program is attached".into()),
    });
}

/// Frames of all lengths from one process to another; after a SIGKILL of both, the interfaces
/// are as they were.
#[test]
fn ports_and_their_end() {
    if skip_without_root("ports_and_their_end") {
        return;
    }
    let _turn = one_at_a_time();
    let before = Snapshot::take();
    let home = Home::new();
    let (a, b, pair) = wire();
    for _ in 0..3 {
        let receiver = Proc::spawn(inside(&b, home.traffic(&["receive", "netmap:n1", "1"])));
        until("the receiver has its interface", || match has_program(&b, "n1") {
            true => Ok(()),
            false => Err(receiver.output()),
        });
        let sender = Proc::spawn(inside(&a, home.traffic(&["send", "netmap:n0", "1"])));
        sender.wait_for("going", LIMIT);
        receiver.wait_for("going", LIMIT);
        assert!(has_program(&a, "n0") && has_program(&b, "n1"));
        for process in [sender, receiver] {
            process.signal(Signal::KILL);
            assert!(ends(process.pid(), LIMIT));
            let (_, output) = process.wait();
            assert!(!output.contains("wrong"), "{output}");
        }
        assert_no_program(&a, "n0");
        assert_no_program(&b, "n1");
    }
    // The stack has its interfaces back, and they work.
    a.run("ip addr add 10.9.0.1/24 dev n0");
    b.run("ip addr add 10.9.0.2/24 dev n1");
    a.ping("-c 1 -w 30 10.9.0.2");
    home.assert_left();
    pair.delete();
    drop((a, b));
    before.assert_clean();
}

/// A program that has an interface goes on receiving when the daemon has died.
#[test]
fn traffic_outlives_the_daemon() {
    if skip_without_root("traffic_outlives_the_daemon") {
        return;
    }
    let _turn = one_at_a_time();
    let home = Home::new();
    let (a, b, _pair) = wire();
    let receiver = Proc::spawn(inside(&b, home.traffic(&["receive", "netmap:n1", "1"])));
    await_sent(&b, "n1");
    let daemon = home.daemon();
    let pid = rustix::process::Pid::from_raw(daemon as i32).expect("a pid");
    rustix::process::kill_process(pid, Signal::KILL).expect("the daemon runs");
    assert!(ends(daemon, LIMIT));

    // The sender is served by a new daemon, the receiver by none.
    let sender = Proc::spawn(inside(&a, home.traffic(&["send", "netmap:n0", "1"])));
    receiver.wait_for("going", LIMIT);
    for process in [sender, receiver] {
        process.signal(Signal::KILL);
        assert!(ends(process.pid(), LIMIT));
    }
    assert_no_program(&b, "n1");
    home.assert_left();
}

/// An unmodified netmap program on an interface.
#[test]
fn c_programs() {
    if skip_without_root("c_programs") {
        return;
    }
    let _turn = one_at_a_time();
    let home = Home::new();
    let (a, b, _pair) = wire();
    let [sender, receiver] = ["sender", "receiver"].map(|name| {
        let mut command =
            home.command(compile(&home, &format!("tests/c/{name}.c"), C11, Preloaded));
        command.env("LD_PRELOAD", home.library());
        command
    });
    let mut receiver = inside(&b, receiver);
    receiver.args(["-g", "n1", "20000"]);
    let receiver = Proc::spawn(receiver);
    receiver.wait_for("ready", LIMIT);
    let mut sender = inside(&a, sender);
    sender.args(["-l", "1000", "n0", "20000"]);
    succeed(sender);
    let (status, output) = receiver.wait();
    assert!(status.success(), "{output}");
    home.assert_left();
}

/// Two hosts reach each other through a bridge that their interfaces are attached to: ping,
/// and a TCP transfer whose every byte is compared.
#[test]
fn a_bridge_between_hosts() {
    if skip_without_root("a_bridge_between_hosts") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("a_bridge_between_hosts", |home| {
        let before = Snapshot::take();
        let (switch, a, b) = (Netns::quiet("rwn"), Netns::quiet("rwn"), Netns::quiet("rwn"));
        let pairs = [switch.veth(&a, "s0", "h0"), switch.veth(&b, "s1", "h1")];
        for (host, interface, address) in [(&a, "h0", "10.9.0.1"), (&b, "h1", "10.9.0.2")] {
            host.run(&format!("ip addr add {address}/24 dev {interface}"));
        }
        let control = Control::connect().unwrap();
        switch.enter(|| {
            control.switch_attach("valen", "s0", false).unwrap();
            control.switch_attach("valen", "s1", false).unwrap();
        });

        a.ping("-c 3 -i 0.2 -w 30 10.9.0.2");
        transfer(&a, &b, "10.9.0.2:9009".parse().expect("an address"));
        for bridge in control.switches().unwrap() {
            println!("{bridge:?}");
            assert!(bridge.ports.iter().all(|port| port.totals.sent_packets > 10));
        }

        switch.enter(|| {
            control.switch_detach("valen", "s0").unwrap();
            control.switch_detach("valen", "s1").unwrap();
        });
        assert_no_program(&switch, "s0");
        assert_no_program(&switch, "s1");
        drop(control);
        home.assert_left();
        pairs.into_iter().for_each(VethPair::delete);
        drop((switch, a, b));
        before.assert_clean();
    });
}

/// What attaching could have changed of an interface, and did not.
fn state(netns: &Netns) -> String {
    netns.run("ip -d link show type veth; ethtool -k s0; ethtool -k s1")
}

/// Interfaces on a bridge in each mode that they have, asked for by name: with frames of all lengths,
/// tagged ones among them, and TCP as the hosts come, but where the mode cannot do that. The stack
/// hears nothing meanwhile, and all after that.
#[test]
fn a_bridge_in_each_mode() {
    if skip_without_root("a_bridge_in_each_mode") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("a_bridge_in_each_mode", |home| {
        let before = Snapshot::take();
        let (switch, a, b) = (Netns::quiet("rwn"), Netns::quiet("rwn"), Netns::quiet("rwn"));
        let pairs = [switch.veth(&a, "s0", "h0"), switch.veth(&b, "s1", "h1")];
        switch.run("ip link set s0 mtu 9000 && ip link set s1 mtu 9000");
        for (host, name, number) in [(&a, "h0", 1), (&b, "h1", 2)] {
            host.run(&format!(
                "ip link set {name} mtu 9000 && ip addr add 10.9.0.{number}/24 dev {name}"
            ));
        }
        switch.run("ip addr add 10.9.0.3/24 dev s0");
        let stack_hears = || a.try_run("ping -q -c 2 -i 0.1 -W 1 10.9.0.3").status.success();
        let stack_answers = || if stack_hears() { Ok(()) } else { Err("no answer".into()) };
        until("the stack answers", stack_answers);
        let untouched = state(&switch);
        let as_it_was = || match state(&switch) {
            now if now == untouched => Ok(()),
            now => Err(now),
        };
        let control = Control::connect().unwrap();
        let refused =
            switch.enter(|| control.switch_attach("valen", "s0@mode=zerocopy", false)).unwrap_err();
        assert!(refused.to_string().contains("zerocopy mode was asked for"), "{refused}");

        for mode in [NicMode::Copy, NicMode::Generic, NicMode::Packet] {
            println!("{mode}");
            // Frames that are many in one come whole in packet mode, do not come where XDP is native,
            // and are too long for the sockets where it is generic.
            let many = if mode == NicMode::Generic { "off" } else { "on" };
            a.run(&format!("ethtool -K h0 tso {many} gso {many}"));
            b.run(&format!("ethtool -K h1 tso {many} gso {many}"));
            switch.enter(|| {
                for name in ["s0", "s1"] {
                    control.switch_attach("valen", &format!("{name}@mode={mode}"), false).unwrap();
                }
            });
            let ports = &control.switches().unwrap()[0].ports;
            let shown = control.ports().unwrap();
            for (port, shown) in ports.iter().zip(&shown) {
                assert_eq!(port.mode, shown.mode);
                // In packet mode the kernel forwards what it can.
                let name = if mode == NicMode::Packet { "kernel" } else { mode.name() };
                assert!(shown.mode.as_ref().unwrap().starts_with(name), "{shown:?}");
            }
            for size in [1, 1472, 1800, 8972] {
                a.ping(&format!("-c 2 -i 0.05 -w 30 -M do -s {size} 10.9.0.2"));
            }
            transfer(&a, &b, "10.9.0.2:9009".parse().expect("an address"));
            assert!(!stack_hears(), "{mode}");
            let mut program = Port::open("valen:program").unwrap();
            let mut sender = a.enter(|| Port::open("netmap:h0/T")).unwrap();
            for tag in [&[][..], &[0x81, 0, 0x20, 5]] {
                for length in [60, 1514, 2048, 9014] {
                    assert_arrives(&mut sender, &mut program, tag, length);
                }
            }
            drop((program, sender));
            switch.enter(|| {
                control.switch_detach("valen", "s0").unwrap();
                control.switch_detach("valen", "s1").unwrap();
            });
            until("the interfaces are as they were", as_it_was);
            until("the stack answers", stack_answers);
            // The stack as another port.
            let s0 = format!("s0@mode={mode}");
            switch.enter(|| control.switch_attach("valen", &s0, true).unwrap());
            a.ping("-c 2 -i 0.05 -w 30 -M do -s 8972 10.9.0.3");
            transfer(&a, &switch, "10.9.0.3:9009".parse().expect("an address"));
            transfer(&switch, &a, "10.9.0.1:9009".parse().expect("an address"));
            switch.enter(|| control.switch_detach("valen", "s0").unwrap());
            until("the interfaces are as they were", as_it_was);
        }
        // However the daemon ends.
        switch.enter(|| control.switch_attach("valen", "s0@mode=packet", true).unwrap());
        let daemon = rustix::process::Pid::from_raw(home.daemon() as i32).expect("a pid");
        rustix::process::kill_process(daemon, Signal::KILL).expect("the daemon runs");
        until("the interfaces are as they were", as_it_was);
        until("the stack answers", stack_answers);
        drop(control);
        // A socket that is left behind goes with the next daemon.
        let control = Control::connect().unwrap();
        assert!(control.switches().unwrap().is_empty());
        drop(control);
        home.assert_left();
        pairs.into_iter().for_each(VethPair::delete);
        drop((switch, a, b));
        before.assert_clean();
    });
}

/// What a stack of this machine leaves to hardware may be behind every interface that the kernel makes, not
/// behind a veth pair alone: here behind a tunnel over one.
#[test]
fn checksums_are_finished_behind_a_tunnel() {
    if skip_without_root("checksums_are_finished_behind_a_tunnel") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("checksums_are_finished_behind_a_tunnel", |_| {
        let (a, b, pair) = wire();
        for (netns, below, own, other) in [(&a, "n0", 1, 2), (&b, "n1", 2, 1)] {
            netns.run(&format!(
                "ip addr add 10.6.0.{own}/24 dev {below}
                 ip link add tunnel type vxlan id 7 dstport 4789 local 10.6.0.{own} remote 10.6.0.{other}
                 ip addr add 10.9.0.{own}/24 dev tunnel; ip link set tunnel up
                 ethtool -K tunnel tso off gso off"
            ));
        }
        let control = Control::connect().unwrap();
        for mode in [NicMode::Generic, NicMode::Packet] {
            let tunnel = format!("tunnel@mode={mode}");
            a.enter(|| control.switch_attach("valen", &tunnel, true).unwrap());
            transfer(&a, &b, "10.9.0.2:9009".parse().expect("an address"));
            transfer(&b, &a, "10.9.0.1:9009".parse().expect("an address"));
            a.enter(|| control.switch_detach("valen", "tunnel").unwrap());
        }
        drop(control);
        pair.delete();
    });
}

/// A frame from an interface to a program on the bridge, whose buffers hold more.
fn assert_arrives(from: &mut Port, to: &mut Port, tag: &[u8], length: usize) {
    let mut bytes = Vec::new();
    frame::build(&mut bytes, frame::BROADCAST, frame::mac(1, 1), 1, 7);
    bytes.resize(length, 0x55);
    bytes.splice(12..12, tag.iter().copied());
    let pieces = bytes.chunks(1792);
    let count = pieces.len() as u32;
    let mut tx = from.tx(0);
    let mut slots = tx.slots();
    for (i, piece) in (0..).zip(pieces) {
        slots.write(i, 0, piece);
        let flags = if i + 1 < count { NS_MOREFRAG } else { 0 };
        slots.set(i, Slot { len: piece.len() as u16, flags, ..slots.get(i) });
    }
    slots.advance(count);
    tx.sync();
    // A host that has heard nothing of another for long asks all for its address.
    let ours = std::iter::repeat_with(|| receive(to)).find(|frame| frame[6..12] == bytes[6..12]);
    let arrived = ours.expect("an iterator without end");
    assert!(arrived == bytes, "{length} bytes tagged {tag:x?}: {} arrived", arrived.len());
}

/// An attached interface stays attached, and with it its namespace, though `ip netns` has deleted
/// that; until it goes with the other end of its cable, or is detached from anywhere.
#[test]
fn an_attached_interface_and_its_namespace() {
    if skip_without_root("an_attached_interface_and_its_namespace") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("an_attached_interface_and_its_namespace", |home| {
        let before = Snapshot::take();
        for by_detaching in [false, true] {
            let (a, b, pair) = wire();
            // It goes when the namespace goes.
            let barrier = a.veth(&b, "w0", "w1");
            let has = |name: &str| b.run("ip -br link").contains(name);
            let control = Control::connect().unwrap();
            a.enter(|| control.switch_attach("valen", "n0", true).unwrap());
            drop(control);
            let daemon = home.daemon();
            // By its name `ip` does not find the end that is there any more.
            std::mem::forget(pair);
            std::mem::forget(barrier);
            drop(a);
            assert!(Control::connect().unwrap().switches().unwrap()[0].ports.len() == 2);
            assert_eq!(home.daemon(), daemon);
            assert!(has("w1") && has("n1"));
            match by_detaching {
                false => drop(b.run("ip link del n1")),
                true => Control::connect().unwrap().switch_detach("valen", "n0").unwrap(),
            }
            home.assert_left();
            until("the namespace has gone", || match has("w1") || has("n1") {
                false => Ok(()),
                true => Err("its interfaces are there".into()),
            });
        }
        before.assert_clean();
    });
}

/// Sends some megabytes from a server in `b` to a client in `a`, and compares them.
fn transfer(a: &Netns, b: &Netns, address: SocketAddr) {
    /// The first packet is sent twice more in this time.
    const CONNECTS: Duration = Duration::from_secs(5);
    let failed = |what: &str, error: &dyn Display| -> ! {
        panic!("{what}: {error}\nclient:\n{}\nserver:\n{}", all_counters(a), all_counters(b))
    };
    let mut sent = vec![0; 8 << 20];
    Random::new(7).fill(&mut sent);
    let listener = b.enter(|| TcpListener::bind(address)).expect("the address is ours");
    let stream = a.enter(|| TcpStream::connect_timeout(&address, CONNECTS));
    let mut stream = stream.unwrap_or_else(|e| failed("cannot connect", &e));
    let (mut peer, _) = listener.accept().expect("there is a connection");
    peer.set_write_timeout(Some(LIMIT)).expect("not zero");
    stream.set_read_timeout(Some(LIMIT)).expect("not zero");
    let mut received = Vec::new();
    let [written, read] = std::thread::scope(|scope| {
        let sent = &sent;
        let writer = scope.spawn(move || peer.write_all(sent));
        let read = stream.read_to_end(&mut received).map(drop);
        // Then the writer fails, too, if it waits.
        drop(stream);
        [writer.join().expect("it does not panic"), read]
    });
    read.unwrap_or_else(|e| failed("the client does not get all", &e));
    written.unwrap_or_else(|e| failed("the server cannot send all", &e));
    assert!(received == sent, "{} bytes arrived of {}, or others", received.len(), sent.len());
}

/// What interfaces and the protocols of a host have counted, and whom it knows.
fn all_counters(netns: &Netns) -> String {
    netns.run("ip -s link; ip neigh; cat /proc/net/snmp /proc/net/netstat")
}

/// Where nothing connects, a test fails soon, and shows what there is to know.
#[test]
fn a_transfer_that_cannot_begin_says_what_is_known() {
    if skip_without_root("a_transfer_that_cannot_begin_says_what_is_known") {
        return;
    }
    let (a, b, _pair) = wire();
    a.run("ip addr add 10.9.0.1/24 dev n0; ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:77 dev n0");
    b.run("ip addr add 10.9.0.2/24 dev n1");
    let address = "10.9.0.2:9009".parse().expect("an address");
    let failed = catch_unwind(AssertUnwindSafe(|| transfer(&a, &b, address)));
    let said = failed.expect_err("nobody answers");
    let said = said.downcast_ref::<String>().expect("a panic with words");
    for known in ["cannot connect", "n0", "n1", "02:00:00:00:00:77", "InCsumErrors"] {
        assert!(said.contains(known), "{known}: {said}");
    }
}
