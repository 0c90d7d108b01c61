//! The MTU of an interface changes while programs and bridges have it: what fits the new one is not
//! lost, and what is too long for somebody is counted and told (S-REG-9, S-REG-10).

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

use ringway::{Control, Interest, Port};
use ringway_abi::NS_MOREFRAG;
use ringway_testkit::{Netns, PacketSocket, Proc, skip_without_root};
use ringway_tests::{
    inside, isolated, until,
    wire::{sockets, wire},
};

const LIMIT: Duration = Duration::from_secs(30);

/// Frames each way at an MTU.
const FRAMES: u8 = 32;

/// Bytes of a long write: fewer frames than a ring has slots.
const BYTES: usize = 200_000;

fn open(netns: &Netns, name: &str) -> Port {
    netns.enter(|| Port::open(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn set_mtu(hosts: [&Netns; 2], mtu: u32) {
    for (netns, interface) in hosts.into_iter().zip(["n0", "n1"]) {
        netns.run(&format!("ip link set {interface} mtu {mtu}"));
    }
}

/// What `ringway ports` shows of `n0`: its MTU, and its mode with what there is to say about it.
fn shown() -> (u32, String) {
    let ports = Control::connect().unwrap().ports().unwrap();
    let port = ports.into_iter().find(|port| port.name.ends_with("n0")).expect("it is in use");
    (port.mtu.expect("an interface has one"), port.mode.expect("an interface has one"))
}

/// A frame of which every byte says which one it is, and where.
fn frame(number: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0xff; 12];
    bytes.extend([0x88, 0xb5]);
    bytes.extend((14..length).map(|at| (at as u8).wrapping_mul(31) ^ number));
    bytes
}

/// Sends a frame in as many slots as it takes.
fn send(port: &mut Port, bytes: &[u8]) {
    let room = port.max_frame();
    let mut tx = port.tx(0);
    let mut slots = tx.slots();
    let pieces = bytes.chunks(room);
    let last = pieces.len() - 1;
    for (n, piece) in (0..).zip(pieces) {
        slots.write(n, 0, piece);
        let mut slot = slots.get(n);
        slot.len = piece.len() as u16;
        slot.flags = if n as usize == last { 0 } else { NS_MOREFRAG };
        slots.set(n, slot);
    }
    slots.advance(last as u32 + 1);
    tx.sync();
}

/// The next frame, and how many slots it had.
fn receive(port: &mut Port) -> (Vec<u8>, usize) {
    let (mut bytes, mut slots) = (Vec::new(), 0);
    loop {
        assert!(port.wait_rx(Some(LIMIT)).unwrap(), "nothing comes after {} bytes", bytes.len());
        for slot in port.rx(0).batch(1) {
            bytes.extend(slot.to_vec());
            slots += 1;
            if !slot.more_fragments() {
                return (bytes, slots);
            }
        }
    }
}

/// Programs at both ends of a cable: frames of any MTU that is set meanwhile come whole, in as many
/// buffers as they need.
#[test]
fn programs_get_frames_of_a_new_mtu() {
    if skip_without_root("programs_get_frames_of_a_new_mtu") {
        return;
    }
    isolated("programs_get_frames_of_a_new_mtu", |_| {
        for mode in ["copy", "generic", "packet"] {
            let (a, b, _pair) = wire();
            let mut here = open(&a, &format!("netmap:n0@mode={mode}"));
            let mut there = open(&b, &format!("netmap:n1@mode={mode}"));
            for mtu in [1500, 3000, 9000, 1500, 1700, 4000] {
                set_mtu([&a, &b], mtu);
                // The daemon has seen it when it answers.
                let mtus =
                    Control::connect().unwrap().ports().unwrap().into_iter().map(|it| it.mtu);
                assert_eq!(mtus.collect::<Vec<_>>(), [Some(mtu); 2]);
                let length = mtu as usize + 14;
                for (from, to) in [[0, 1], [1, 0]].map(|[from, to]| (from, to)) {
                    let ports = [&mut here, &mut there];
                    for number in 0..FRAMES {
                        send(ports[from], &frame(number, length));
                    }
                    for number in 0..FRAMES {
                        let (got, slots) = receive(ports[to]);
                        assert!(got == frame(number, length), "{mode}, {mtu}: frame {number}");
                        assert_eq!(slots, length.div_ceil(ports[to].max_frame()), "{mode}, {mtu}");
                    }
                }
                let (told, said) = shown();
                assert_eq!(told, mtu);
                assert!(!said.contains("lost"), "{said}");
            }
            for port in [here, there] {
                let stats = port.stats();
                assert_eq!((stats.too_long, stats.ring_full, stats.bad_slot), (0, 0, 0), "{mode}");
            }
        }
    });
}

/// The other end may have a smaller MTU: what it does not take is too long, and what is lost without a link is not.
#[test]
fn frames_beyond_the_mtu_of_the_other_end_are_too_long() {
    if skip_without_root("frames_beyond_the_mtu_of_the_other_end_are_too_long") {
        return;
    }
    isolated("frames_beyond_the_mtu_of_the_other_end_are_too_long", |_| {
        for mode in ["copy", "generic"] {
            let (a, b, _pair) = wire();
            let mut port = open(&a, &format!("netmap:n0@mode={mode}"));
            b.run("ip link set n1 mtu 1000");
            let losses = |port: &Port| {
                let stats = port.stats();
                (stats.too_long, stats.ring_full)
            };
            for (number, length) in (0..).zip([1200, 60, 1200, 1018, 1019, 300]) {
                send(&mut port, &frame(number, length));
            }
            assert_eq!(losses(&port), (3, 0), "{mode}");
            b.run("ip link set n1 down");
            // The kernel tells the daemon after a while.
            until("it is known that there is no link", || {
                send(&mut port, &frame(0, 1200));
                match losses(&port) {
                    (_, 1) => Ok(()),
                    other => Err(format!("{mode}: {other:?}")),
                }
            });
        }
    });
}

/// A frame that is longer than the interface sends is lost for the same reason in each mode, and is counted once,
/// however long it is, and also where the other end would take it.
#[test]
fn what_is_longer_than_the_mtu_is_counted_once() {
    if skip_without_root("what_is_longer_than_the_mtu_is_counted_once") {
        return;
    }
    /// What a packet has in front of its payload, its length, and whether it is sent.
    const CASES: [(&[u8], usize, bool); 9] = [
        (&[0x88, 0xb5], 60, true),
        (&[0x88, 0xb5], 1514, true),
        (&[0x81, 0x00], 1518, true),
        (&[0x88, 0xb5], 1519, false),
        (&[0x81, 0x00], 1519, false),
        (&[0x88, 0xb5], 1600, false),
        (&[0x88, 0xb5], 1793, false),
        (&[0x88, 0xb5], 9000, false),
        (&[0x88, 0xb5], 65_535, false),
    ];
    isolated("what_is_longer_than_the_mtu_is_counted_once", |_| {
        for mode in ["copy", "generic", "packet"] {
            let (a, b, _pair) = wire();
            b.run("ip link set n1 mtu 9000");
            let mut here = open(&a, &format!("netmap:n0@mode={mode}"));
            let mut there = open(&b, &format!("netmap:n1@mode={mode}"));
            let mut expected = [0; 2];
            for (number, (kind, length, is_sent)) in (0..).zip(CASES) {
                let mut bytes = frame(number, length);
                bytes[12..14].copy_from_slice(kind);
                let last = frame(number, 60);
                for bytes in [&bytes, &last] {
                    send(&mut here, bytes);
                }
                let frames = if is_sent { vec![bytes, last] } else { vec![last] };
                for expected in &frames {
                    assert!(receive(&mut there).0 == *expected, "{mode}: {length} bytes");
                }
                expected[0] += frames.len() as u64;
                expected[1] += u64::from(!is_sent);
                let stats = here.stats();
                let counted = [stats.tx_packets, stats.too_long];
                assert_eq!(
                    (counted, stats.bad_slot + stats.ring_full),
                    (expected, 0),
                    "{mode}: {length} bytes"
                );
            }
            let dropped = a.run("cat /sys/class/net/n0/statistics/tx_dropped");
            assert_eq!(dropped.trim(), "0", "{mode}");
        }
    });
}

/// What the kernel copies comes in as many buffers as it takes, more than a frame to be sent may have: it is not
/// said to be lost.
#[test]
fn frames_longer_than_can_be_sent_arrive() {
    if skip_without_root("frames_longer_than_can_be_sent_arrive") {
        return;
    }
    isolated("frames_longer_than_can_be_sent_arrive", |_| {
        for mode in ["copy", "generic"] {
            let (a, b, _pair) = wire();
            let mut port = open(&a, &format!("netmap:n0@mode={mode}"));
            set_mtu([&a, &b], 65_000);
            let (told, said) = shown();
            assert!(told == 65_000 && !said.contains("lost"), "{mode}: {said}");
            let long = frame(1, 60_000);
            PacketSocket::new(&b, "n1").send(&long);
            let (got, slots) = receive(&mut port);
            assert!(got == long && slots > 18, "{mode}: {} bytes in {slots} slots", got.len());
        }
    });
}

/// What a stack makes of a long write is one frame until it leaves: in packet mode it comes in
/// pieces of the MTU that there is now.
#[test]
fn segments_are_of_the_new_mtu() {
    if skip_without_root("segments_are_of_the_new_mtu") {
        return;
    }
    isolated("segments_are_of_the_new_mtu", |home| {
        let (a, b, _pair) = wire();
        let join = ["join", "netmap:n0@mode=packet", "netmap:n0^"];
        let join = Proc::spawn(inside(&a, home.traffic(&join)));
        join.wait_for("joined", LIMIT);
        // The host rings take what fits a buffer.
        let mut monitor = open(&a, "netmap:n0/r");
        for mtu in [1500, 1000, 1700] {
            set_mtu([&a, &b], mtu);
            let listener = a.enter(|| TcpListener::bind("10.9.0.1:7007")).expect("our address");
            let mut stream = b.enter(|| TcpStream::connect("10.9.0.1:7007")).expect("it listens");
            let sender = thread::spawn(move || stream.write_all(&[7; BYTES]));
            let (mut stream, _) = listener.accept().expect("somebody has connected");
            stream.set_read_timeout(Some(LIMIT)).expect("not zero");
            let mut got = Vec::new();
            stream.read_to_end(&mut got).expect("all arrives");
            assert!(got == [7; BYTES], "{} bytes", got.len());
            sender.join().expect("it does not panic").expect("all is taken");
            let mut longest = 0;
            while monitor.poll(Interest::Rx) {
                for slot in monitor.rx(0).batch(64) {
                    longest = longest.max(slot.len());
                }
            }
            assert_eq!(longest, mtu as usize + 14);
        }
        join.kill();
    });
}

/// A program between an interface and its stack: what the stack sends, and gets, is as long as the
/// new MTU allows, up to a buffer; what is longer is counted, and told.
#[test]
fn host_rings_follow() {
    if skip_without_root("host_rings_follow") {
        return;
    }
    isolated("host_rings_follow", |home| {
        for mode in ["copy", "generic", "packet"] {
            let (a, b, _pair) = wire();
            let join = ["join", &format!("netmap:n0@mode={mode}"), "netmap:n0^"];
            let join = Proc::spawn(inside(&a, home.traffic(&join)));
            join.wait_for("joined", LIMIT);
            // There and back again, in one frame each.
            let ping = |bytes| a.try_ping(&format!("-c 3 -i 0.02 -w 30 -M do -s {bytes} 10.9.0.2"));
            for mtu in [1500, 1778, 1400, 1600] {
                set_mtu([&a, &b], mtu);
                ping(mtu - 28).unwrap_or_else(|said| panic!("{mode}, {mtu}: {said}"));
                let (told, said) = shown();
                assert!(told == mtu && !said.contains("lost"), "{told} {said}");
            }
            join.kill();
        }
        // What the stack sends is longer than a buffer, and a slot is a packet there (S-HOST-4).
        let (a, b, _pair) = wire();
        let [stack, _] = sockets(&a, &b);
        let mut port = open(&a, "netmap:n0*");
        set_mtu([&a, &b], 3000);
        for length in [1700, 2500, 2500, 1701] {
            assert_eq!(stack.send(&vec![7; length]).expect("the stack takes it"), length);
        }
        let host = port.rx_rings() - 1;
        let mut lengths = Vec::new();
        while lengths.len() < 2 {
            assert!(port.wait_rx(Some(LIMIT)).unwrap(), "{lengths:?}");
            lengths.extend(port.rx(host).batch(64).map(|slot| slot.len()));
        }
        // Behind the headers of Ethernet, IP and UDP.
        assert_eq!(lengths, [42 + 1700, 42 + 1701]);
        assert_eq!(port.stats().too_long, 2);
        let (mtu, said) = shown();
        assert_eq!(mtu, 3000);
        assert!(said.contains("more than 1792 bytes are lost on its host rings"), "{said}");
    });
}

/// An interface on a bridge, and the stack behind it, send and receive what the new MTU allows, and
/// drop what it does not.
#[test]
fn a_bridge_follows() {
    if skip_without_root("a_bridge_follows") {
        return;
    }
    isolated("a_bridge_follows", |_| {
        for mode in ["copy", "generic", "packet"] {
            let (a, b, _pair) = wire();
            let control = Control::connect().unwrap();
            let attached = format!("n0@mode={mode}");
            a.enter(|| control.switch_attach("vale0", &attached, true)).unwrap();
            for mtu in [1500, 3000, 9000, 1500, 1700, 4000] {
                set_mtu([&a, &b], mtu);
                // The daemon has seen it when it answers.
                assert_eq!(shown().0, mtu);
                let ping = format!("-c 3 -i 0.02 -w 30 -M do -s {} 10.9.0.2", mtu - 28);
                a.try_ping(&ping).unwrap_or_else(|said| panic!("{mode}, {mtu}: {said}"));
            }
            // A program on the bridge sends what is too long for the interface.
            set_mtu([&a, &b], 1500);
            assert_eq!(shown().0, 1500);
            let mut program = open(&a, "vale0:p");
            send(&mut program, &frame(1, 1700));
            send(&mut program, &frame(2, 60));
            let drops = || {
                let ports = control.switches().unwrap().remove(0).ports;
                let nic = ports.into_iter().find(|port| port.name == "vale0:n0");
                nic.expect("it is there").totals.drops.too_long
            };
            until("the frame is dropped", || match drops() {
                1 => Ok(()),
                n => Err(format!("{n} are")),
            });
            a.enter(|| control.switch_detach("vale0", "n0")).unwrap();
        }
    });
}
