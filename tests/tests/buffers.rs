//! Buffers of other sizes on network interfaces, over veth pairs.

use std::time::Duration;

use ringway::{Control, Error, NicMode, Port, PortInfo};
use ringway_testkit::{Netns, Proc, VethPair, skip_without_root};
use ringway_tests::{
    c::{Language::C11, Library::Preloaded},
    compile, inside, isolated,
    packet::{numbered, receive, send},
    until,
};
use rustix::io::Errno;

const LIMIT: Duration = Duration::from_secs(30);

/// The modes that a veth pair has.
const MODES: [NicMode; 3] = [NicMode::Copy, NicMode::Generic, NicMode::Packet];

/// Bytes of the longest frame for each MTU, and how buffers of 4096 bytes hold it.
const FRAMES: [(u32, &[usize]); 3] =
    [(1500, &[1514]), (3000, &[3014]), (9000, &[3840, 3840, 1334])];

/// Two namespaces, interface `n0` in one and `n1` in the other, with addresses and that MTU.
fn wire(mtu: u32) -> (Netns, Netns, VethPair) {
    let (a, b) = (Netns::quiet("rwf"), Netns::quiet("rwf"));
    let pair = a.veth(&b, "n0", "n1");
    a.run(&format!("ip link set n0 mtu {mtu} && ip addr add 10.5.0.1/24 dev n0"));
    b.run(&format!("ip link set n1 mtu {mtu} && ip addr add 10.5.0.2/24 dev n1"));
    (a, b, pair)
}

fn open(netns: &Netns, spec: &str) -> Result<Port, Error> {
    netns.enter(|| Port::open(spec))
}

fn info(name: &str) -> PortInfo {
    let ports = Control::connect().unwrap().ports().unwrap();
    ports.into_iter().find(|port| port.name == name).expect("it is open")
}

/// In every mode, with every MTU, both ways: one slot as far as a buffer goes, then several.
#[test]
fn buffers_of_a_page() {
    if skip_without_root("buffers_of_a_page") {
        return;
    }
    isolated("buffers_of_a_page", |home| {
        for (mtu, slots) in FRAMES {
            let (a, b, _pair) = wire(mtu);
            for mode in MODES {
                let spec = |name: &str| format!("netmap:{name}@buffers=4096@mode={mode}");
                let mut near = open(&a, &spec("n0")).unwrap();
                let mut far = open(&b, &spec("n1")).unwrap();
                assert_eq!((near.max_frame(), far.max_frame()), (3840, 3840));
                assert!(near.shares_region_with(&far) && near.mem_id() != 1, "one region, not 1");
                assert_eq!((info("n0").buf_size, info("n0").mem_id), (4096, near.mem_id()));
                assert_eq!(info("n0").mode.as_deref(), Some(mode.name()));
                let bytes = numbered(mtu as usize + 14);
                for (from, to) in [(0, 1), (1, 0)] {
                    let ports = [&mut near, &mut far];
                    send(ports[from], &bytes);
                    let (received, parts) = receive(ports[to], 0, LIMIT);
                    assert_eq!(parts, slots, "{mode}, MTU {mtu}");
                    assert!(received == bytes, "{mode}, MTU {mtu}: other bytes");
                    // One that fills a buffer to its end, where the wire takes it.
                    if mtu > 3840 {
                        let full = numbered(3840);
                        send(ports[from], &full);
                        assert_eq!(receive(ports[to], 0, LIMIT), (full, vec![3840]));
                    }
                }
                for stats in [near.stats(), far.stats()] {
                    let lost = [stats.bad_slot, stats.too_short, stats.too_long, stats.ring_full];
                    assert_eq!(lost, [0; 4], "{mode}, MTU {mtu}: {stats:?}");
                }
            }
        }
        home.assert_left();
    });
}

/// Interfaces with buffers of one size share a region; one that is open has those that it has.
#[test]
fn one_size_at_a_time() {
    if skip_without_root("one_size_at_a_time") {
        return;
    }
    isolated("one_size_at_a_time", |home| {
        let (a, b, _pair) = wire(1500);
        let plain = open(&a, "netmap:n0").unwrap();
        let large = open(&b, "netmap:n1@buffers=4096").unwrap();
        assert_eq!((plain.mem_id(), plain.max_frame()), (1, 1792));
        assert!(!plain.shares_region_with(&large));
        let refused = open(&a, "netmap:n0/R@buffers=4096").unwrap_err();
        assert_eq!(ringway_errno::errno(refused.cause()), Errno::BUSY.raw_os_error());
        assert!(refused.to_string().contains("buffers have 2048 bytes, not 4096"), "{refused}");
        // Who asks for nothing takes what there is, as does who asks for that.
        drop(open(&a, "netmap:n0@buffers=2048").unwrap());
        let second = b.enter(|| Port::options().buffer_size(4096).open("netmap:n1")).unwrap();
        assert!(second.shares_region_with(&open(&b, "netmap:n1").unwrap()));
        drop((plain, large, second));
        // The default is not another region.
        assert_eq!(open(&a, "netmap:n0@buffers=2048").unwrap().mem_id(), 1);
        home.assert_left();
    });
}

/// AF_XDP takes powers of two from 2048 up to a page: others are for packet mode, or refused.
#[test]
fn other_sizes() {
    if skip_without_root("other_sizes") {
        return;
    }
    isolated("other_sizes", |home| {
        let (a, b, _pair) = wire(9000);
        let bytes = numbered(9014);
        for (size, slots) in [(3072, &[2816, 2816, 2816, 566][..]), (16384, &[9014]), (512, &[])] {
            let spec = |name: &str| format!("netmap:{name}@buffers={size}");
            let mut near = open(&a, &spec("n0")).unwrap();
            let mut far = open(&b, &spec("n1")).unwrap();
            let mode = info("n1").mode.unwrap();
            let reason = format!(
                "packet; not zerocopy or copy or generic: AF_XDP takes no buffers of {size}"
            );
            assert!(mode.starts_with(&reason), "{mode}");
            send(&mut near, &bytes);
            let (received, parts) = receive(&mut far, 0, LIMIT);
            assert!(received == bytes, "{size}");
            match slots {
                [] => assert!(parts.len() == 36 && parts[..35].iter().all(|part| *part == 256)),
                slots => assert_eq!(parts, slots),
            }
        }
        let word = "AF_XDP takes no buffers of 3072 bytes";
        for spec in ["n0@mode=copy@buffers=3072", "n0^@buffers=3072", "n0*@buffers=3072"] {
            let refused = open(&a, &format!("netmap:{spec}")).unwrap_err();
            assert_eq!(
                ringway_errno::errno(refused.cause()),
                Errno::OPNOTSUPP.raw_os_error(),
                "{spec}: {refused}"
            );
            assert!(refused.to_string().contains(word), "{spec}: {refused}");
            assert!(refused.to_string().contains("@buffers=4096"), "{spec}: {refused}");
        }
        for size in ["0", "100", "3000", "131072", "4294967295"] {
            let refused = open(&a, &format!("netmap:n0@buffers={size}")).unwrap_err();
            assert_eq!(
                ringway_errno::errno(refused.cause()),
                Errno::INVAL.raw_os_error(),
                "{refused}"
            );
            assert!(refused.to_string().contains("powers of two from 2048"), "{refused}");
        }
        home.assert_left();
    });
}

/// What the stack sends comes up in one slot, and what goes to it arrives.
#[test]
fn with_host_rings() {
    if skip_without_root("with_host_rings") {
        return;
    }
    isolated("with_host_rings", |home| {
        home.install(&[("ringway", "ringway-cli")]);
        for mode in MODES {
            let (a, b, _pair) = wire(3000);
            let name = format!("netmap:n1@buffers=4096@mode={mode}");
            let mut bridge = home.command(home.bin().join("ringway"));
            bridge.args(["bridge", &name]);
            let bridge = Proc::spawn(inside(&b, bridge));
            bridge.wait_for("bridging without copying", LIMIT);
            assert_eq!(info("n1").buf_size, 4096);
            // Frames of 3014 bytes, both ways.
            until("the stack answers", || {
                let answered = a.try_ping("-c 3 -i 0.05 -w 10 -M do -s 2972 10.5.0.2");
                answered.map_err(|said| said + &bridge.output())
            });
            bridge.kill();
        }
        home.assert_left();
    });
}

/// A bridge of interfaces takes frames of any length from ports with any buffers.
#[test]
fn through_a_bridge() {
    if skip_without_root("through_a_bridge") {
        return;
    }
    isolated("through_a_bridge", |home| {
        let (switch, a, b) = (Netns::quiet("rwf"), Netns::quiet("rwf"), Netns::quiet("rwf"));
        let _pairs = [switch.veth(&a, "s0", "n0"), switch.veth(&b, "s1", "n1")];
        let control = Control::connect().unwrap();
        for (mtu, slots) in FRAMES {
            for (netns, names) in [(&switch, &["s0", "s1"][..]), (&a, &["n0"]), (&b, &["n1"])] {
                for name in names {
                    netns.run(&format!("ip link set {name} mtu {mtu}"));
                }
            }
            switch.enter(|| {
                control.switch_attach("valef", "s0", false).unwrap();
                control.switch_attach("valef", "s1", false).unwrap();
            });
            let mut near = open(&a, "netmap:n0").unwrap();
            let mut far = open(&b, "netmap:n1@buffers=4096").unwrap();
            let bytes = numbered(mtu as usize + 14);
            send(&mut near, &bytes);
            let (received, parts) = receive(&mut far, 0, LIMIT);
            assert!(received == bytes && parts == slots, "MTU {mtu}: {parts:?}");
            send(&mut far, &bytes);
            assert!(receive(&mut near, 0, LIMIT).0 == bytes, "MTU {mtu}");
            drop((near, far));
            switch.enter(|| {
                control.switch_detach("valef", "s0").unwrap();
                control.switch_detach("valef", "s1").unwrap();
            });
        }
        drop(control);
        home.assert_left();
    });
}

/// A netmap program gets them by memory of its own, by a region's id, and from the environment.
#[test]
fn in_c() {
    if skip_without_root("in_c") {
        return;
    }
    isolated("in_c", |home| {
        let (a, b, _pair) = wire(3000);
        let program = compile(home, "tests/c/buffers.c", C11, Preloaded);
        let run = |how: &str, variable: &str, peer: &mut Port| {
            let mut command = home.command(&program);
            command.args([how, "n1"]).env("LD_PRELOAD", home.library());
            command.env("RINGWAY_NIC_BUFFERS", variable);
            let program = Proc::spawn(inside(&b, command));
            program.wait_for("ready", LIMIT);
            send(peer, &numbered(3014));
            let (status, output) = program.wait();
            assert!(status.success() && !output.contains("not ok"), "{how}: {output}");
        };
        let mut peer = open(&a, "netmap:n0@buffers=4096").unwrap();
        run("memory", "", &mut peer);
        run("environment", "4096", &mut peer);
        run(&peer.mem_id().to_string(), "", &mut peer);
        drop(peer);
        home.assert_left();
    });
}
