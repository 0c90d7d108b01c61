//! VLAN tags are kept: those in a frame, and those that a stack leaves beside it, as for hardware that
//! puts them in.

use std::{collections::BTreeSet, time::Duration};

use ringway::{Control, NicMode, Port, PortSettings, Vlan};
use ringway_testkit::{
    Heard, Netns, PacketSocket, Proc, VethPair, frame, skip_without_root, tagged,
};
use ringway_tests::{inside, isolated, packet::send, receive};

const LIMIT: Duration = Duration::from_secs(30);
const CUSTOMER: u16 = 0x8100;
const PROVIDER: u16 = 0x88a8;

/// The modes of a veth pair in which no tag is lost.
const MODES: [NicMode; 2] = [NicMode::Copy, NicMode::Packet];

/// Two quiet hosts, `n0` in one and `n1` in the other, with long frames.
fn wire(queues: u32) -> (Netns, Netns, VethPair) {
    let (a, b) = (Netns::quiet("rwv"), Netns::quiet("rwv"));
    let pair = a.veth_queues(&b, "n0", "n1", queues);
    a.run("ip link set n0 mtu 9000");
    b.run("ip link set n1 mtu 9000");
    (a, b, pair)
}

fn open(netns: &Netns, spec: &str) -> Port {
    netns.enter(|| Port::open(spec)).unwrap_or_else(|e| panic!("{e}"))
}

fn beside(value: u16, bytes: &[u8]) -> Heard {
    Heard { tag: Some((CUSTOMER, value)), bytes: bytes.to_vec() }
}

/// Of all lengths, one in another, and with timestamps; and back to a stack that gets them once.
#[test]
fn programs_have_tags() {
    if skip_without_root("programs_have_tags") {
        return;
    }
    isolated("programs_have_tags", |home| {
        let (a, b, _pair) = wire(1);
        let stack = PacketSocket::new(&a, "n0");
        for mode in MODES {
            for timestamps in ["", "@timestamps=software", "@timestamps=hardware"] {
                let mut port = open(&b, &format!("netmap:n1@mode={mode}{timestamps}"));
                for length in [60, 1514, 1788, 1789, 1792, 9014] {
                    let bytes = frame(1, length);
                    stack.send(&bytes);
                    assert!(receive(&mut port) == bytes, "{mode}, {length} bytes");
                    for kind in [CUSTOMER, PROVIDER] {
                        let _tagging = a.tag("n0", kind, 0x2005);
                        stack.send(&bytes);
                        let expected = tagged(&bytes, kind, 0x2005);
                        assert!(receive(&mut port) == expected, "{mode}, {length} bytes");
                    }
                }
                let inner = tagged(&frame(2, 100), CUSTOMER, 6);
                let tagging = a.tag("n0", PROVIDER, 7);
                stack.send(&inner);
                assert_eq!(receive(&mut port), tagged(&inner, PROVIDER, 7));
                drop(tagging);
                send(&mut port, &inner);
                assert_eq!(stack.hear(), beside(6, &frame(2, 100)));
                // Longer than the MTU by the tag.
                send(&mut port, &tagged(&frame(3, 9014), CUSTOMER, 6));
                assert!(stack.hear() == beside(6, &frame(3, 9014)));
            }
        }
        // There the kernel tells nobody of tags beside frames.
        let mut port = open(&b, "netmap:n1@mode=generic");
        stack.send(&tagged(&frame(4, 60), CUSTOMER, 6));
        assert_eq!(receive(&mut port), tagged(&frame(4, 60), CUSTOMER, 6));
        drop(port);
        home.assert_left();
    });
}

/// Filters see the tag. What does not match, or is for another queue, is the stack's, as it came.
#[test]
fn filters_see_tags_and_the_stack_has_its_frames() {
    if skip_without_root("filters_see_tags_and_the_stack_has_its_frames") {
        return;
    }
    isolated("filters_see_tags_and_the_stack_has_its_frames", |home| {
        let (a, b, _pair) = wire(1);
        let (far, near) = (PacketSocket::new(&a, "n0"), PacketSocket::new(&b, "n1"));
        let bytes = frame(1, 60);
        let send = |value| {
            let _tagging = a.tag("n0", CUSTOMER, value);
            far.send(&bytes);
        };
        for timestamps in ["", "@timestamps=software"] {
            let mut port = open(&b, &format!("netmap:n1@filter=vlan 5@mode=copy{timestamps}"));
            send(5);
            assert_eq!(receive(&mut port), tagged(&bytes, CUSTOMER, 5));
            send(6);
            assert_eq!(near.hear(), beside(6, &bytes));
            drop(port);
        }
        home.assert_left();
    });
}

/// The same in packet mode. There a socket at the interface hears all of it, so what the stack has is seen behind it:
/// at a bridge.
#[test]
fn filters_of_packet_mode_see_tags_and_leave_them() {
    if skip_without_root("filters_of_packet_mode_see_tags_and_leave_them") {
        return;
    }
    isolated("filters_of_packet_mode_see_tags_and_leave_them", |home| {
        let (a, b, _pair) = wire(1);
        b.run(
            "ip link add m0 type veth peer name m1 && ip link add br0 type bridge &&
             for name in n1 m0; do ip link set $name master br0; done &&
             for name in m0 m1 br0; do ip link set $name up; done",
        );
        let (far, behind) = (PacketSocket::new(&a, "n0"), PacketSocket::new(&b, "m1"));
        let bytes = frame(1, 60);
        let send = |kind, value| {
            let _tagging = a.tag("n0", kind, value);
            far.send(&bytes);
        };
        let mut port = open(&b, "netmap:n1@filter=vlan 5@mode=packet@timestamps=software");
        for _ in 0..3 {
            send(CUSTOMER, 5);
            assert_eq!(receive(&mut port), tagged(&bytes, CUSTOMER, 5));
            send(CUSTOMER, 6);
            assert_eq!(behind.hear(), beside(6, &bytes));
            far.send(&bytes);
            assert_eq!(behind.hear(), Heard { tag: None, bytes: bytes.clone() });
            send(PROVIDER, 6);
            assert_eq!(behind.hear(), Heard { tag: Some((PROVIDER, 6)), bytes: bytes.clone() });
        }
        drop(port);
        home.assert_left();
    });
}

/// A program has one of two queues, and the stack the other.
#[test]
fn a_single_queue() {
    if skip_without_root("a_single_queue") {
        return;
    }
    isolated("a_single_queue", |home| {
        let (a, b, _pair) = wire(2);
        let (far, near) = (PacketSocket::new(&a, "n0"), PacketSocket::new(&b, "n1"));
        let mut port = open(&b, "netmap:n1~1@mode=copy");
        let _tagging = a.tag("n0", CUSTOMER, 9);
        let (mut led, mut left) = (0, 0);
        for number in 0..1000 {
            let bytes = flow(number);
            far.send(&bytes);
            loop {
                if port.rx(0).available() > 0 {
                    assert_eq!(receive(&mut port), tagged(&bytes, CUSTOMER, 9));
                    led += 1;
                } else if let Some(heard) = near.try_hear() {
                    assert_eq!(heard, beside(9, &bytes));
                    left += 1;
                } else {
                    port.wait_rx(Some(Duration::from_millis(1))).unwrap();
                    continue;
                }
                break;
            }
            if led >= 3 && left >= 3 {
                break;
            }
        }
        assert!(led >= 3 && left >= 3, "{led} were led to the program, {left} left to the stack");
        drop(port);
        home.assert_left();
    });
}

/// UDP between two ports that follow from the number: which queue they take is the kernel's choice.
fn flow(number: u32) -> Vec<u8> {
    let mut bytes = frame(number, 60);
    bytes[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    bytes[24..34].copy_from_slice(&[0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes[34..38].copy_from_slice(&number.wrapping_mul(0x9e37_79b9).to_be_bytes());
    bytes
}

/// `ringway bridge` stands between an interface and its stack: what either sends the other has, with
/// one tag.
#[test]
fn through_host_rings() {
    if skip_without_root("through_host_rings") {
        return;
    }
    isolated("through_host_rings", |home| {
        home.install(&[("ringway", "ringway-cli")]);
        let (a, b, _pair) = wire(1);
        for netns in [&a, &b] {
            netns.run("for i in /sys/class/net/n*; do ip link set ${i##*/} mtu 1500; done");
        }
        for mode in [NicMode::Copy, NicMode::Generic] {
            let mut command = home.command(home.bin().join("ringway"));
            command.args(["bridge", &format!("netmap:n1@mode={mode}")]);
            let bridge = Proc::spawn(inside(&b, command));
            bridge.wait_for("bridging", LIMIT);
            let (far, near) = (PacketSocket::new(&a, "n0"), PacketSocket::new(&b, "n1"));
            for length in [60, 1514] {
                let bytes = frame(1, length);
                far.send(&tagged(&bytes, CUSTOMER, 5));
                assert_eq!(near.hear(), beside(5, &bytes), "{mode}");
                near.send(&tagged(&bytes, CUSTOMER, 6));
                assert_eq!(far.hear(), beside(6, &bytes), "{mode}");
                if mode == NicMode::Copy {
                    let _tagging = a.tag("n0", CUSTOMER, 7);
                    far.send(&bytes);
                    assert_eq!(near.hear(), beside(7, &bytes));
                }
                let _tagging = b.tag("n1", CUSTOMER, 8);
                near.send(&bytes);
                assert_eq!(far.hear(), beside(8, &bytes), "{mode}");
            }
            bridge.kill();
        }
        home.assert_left();
    });
}

/// Filters of host rings see what the stack leaves to hardware, too.
#[test]
fn filters_of_host_rings_see_tags() {
    if skip_without_root("filters_of_host_rings_see_tags") {
        return;
    }
    isolated("filters_of_host_rings_see_tags", |home| {
        let (a, b, _pair) = wire(1);
        let (far, near) = (PacketSocket::new(&a, "n0"), PacketSocket::new(&b, "n1"));
        let mut port = open(&b, "netmap:n1^@filter=vlan 5 and ether proto 0x88b5");
        let bytes = frame(1, 60);
        for kind in [CUSTOMER, PROVIDER] {
            for value in [5, 6] {
                let _tagging = b.tag("n1", kind, value);
                near.send(&bytes);
                match value {
                    5 => assert_eq!(receive(&mut port), tagged(&bytes, kind, value)),
                    _ => {
                        let tag = Some((kind, value));
                        assert_eq!(far.hear(), Heard { tag, bytes: bytes.clone() });
                    }
                }
            }
            near.send(&tagged(&bytes, kind, 5));
            assert_eq!(receive(&mut port), tagged(&bytes, kind, 5));
            near.send(&bytes);
            assert_eq!(far.hear(), Heard { tag: None, bytes: bytes.clone() });
        }
        drop(port);
        home.assert_left();
    });
}

/// An interface on a switch is a trunk port, and the stack at its far end leaves the tags to hardware.
#[test]
fn a_trunk_port() {
    if skip_without_root("a_trunk_port") {
        return;
    }
    isolated("a_trunk_port", |home| {
        let (a, b, _pair) = wire(1);
        let far = PacketSocket::new(&a, "n0");
        let control = Control::connect().unwrap();
        let set = |port: &str, vlan| {
            let settings = PortSettings { vlan: Some(vlan), ..PortSettings::default() };
            control.switch_port(port, settings).unwrap();
        };
        for mode in MODES {
            b.enter(|| control.switch_attach("valet", &format!("n1@mode={mode}"), false)).unwrap();
            set("valet:n1", Vlan::Trunk { allowed: BTreeSet::from([10, 20]), native: None });
            let mut ports = [10, 20].map(|vid| {
                let port = open(&b, &format!("valet:p{vid}"));
                set(&format!("valet:p{vid}"), Vlan::Access(vid));
                (vid, port)
            });
            for length in [60, 1514, 9014] {
                for (vid, port) in &mut ports {
                    for other in [*vid, 30, 30 - *vid, *vid] {
                        let _tagging = a.tag("n0", CUSTOMER, other);
                        far.send(&frame(other.into(), length));
                    }
                    let expected = frame(u32::from(*vid), length);
                    // None of the other VLAN in between.
                    assert!([receive(port), receive(port)] == [expected.clone(), expected]);
                    send(port, &frame(7, length));
                    assert!(far.hear() == beside(*vid, &frame(7, length)), "{mode}");
                }
                let [(ten, first), (twenty, second)] = &mut ports;
                assert!(receive(second) == frame(u32::from(*twenty), length));
                assert!(receive(first) == frame(u32::from(*ten), length));
            }
            drop(ports);
            control.switch_detach("valet", "n1").unwrap();
        }
        drop(control);
        home.assert_left();
    });
}
