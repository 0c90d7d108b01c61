//! Interfaces whose queues are not as many each way, and those with very many.

use std::time::Duration;

use ringway::{Control, NicMode, Port};
use ringway_testkit::{Netns, VethPair, skip_without_root};
use ringway_tests::{frame, isolated, one_at_a_time, packet};

const LIMIT: Duration = Duration::from_secs(30);
const MODES: [NicMode; 3] = [NicMode::Copy, NicMode::Generic, NicMode::Packet];
/// Queues by which one end receives and the other sends.
const MANY: usize = 4;

/// An interface of `inner` with one queue that sends and [`MANY`] that receive; and its other end in `outer`, where it is
/// the other way round.
fn wire(inner: &Netns, name: &str, outer: &Netns, other: &str) -> VethPair {
    let pair = inner.veth_queues(outer, name, other, MANY as u32);
    inner.run(&format!("ethtool -L {name} rx {MANY} tx 1"));
    outer.run(&format!("ethtool -L {other} rx 1 tx {MANY}"));
    pair
}

/// What nothing but a sender's own number tells from others.
fn numbered(number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::build(&mut bytes, frame::BROADCAST, frame::mac(1, 1), 1, number);
    bytes
}

fn send(port: &mut Port, ring: usize, bytes: &[u8]) {
    let mut tx = port.tx(ring);
    assert!(tx.push(bytes));
    tx.sync();
}

/// The next frame, and the place of the ring that it came by.
fn receive(port: &mut Port) -> (usize, Vec<u8>) {
    loop {
        if let Some(ring) = (0..port.rx_rings()).find(|&ring| port.rx(ring).available() > 0) {
            return (ring, packet::receive(port, ring, LIMIT).0);
        }
        assert!(port.wait_rx(Some(LIMIT)).unwrap(), "nothing arrives");
    }
}

/// Each direction has as many rings as queues, in all modes alike; and where there is no ring of a number, a port of
/// one has the first.
#[test]
fn each_direction_has_its_own_queues() {
    if skip_without_root("each_direction_has_its_own_queues") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("each_direction_has_its_own_queues", |home| {
        let (a, b) = (Netns::quiet("rwq"), Netns::quiet("rwq"));
        let _pair = wire(&a, "n0", &b, "n1");
        for mode in MODES {
            let open = |netns: &Netns, name: &str| {
                netns.enter(|| Port::open(&format!("netmap:{name}@mode={mode}")).unwrap())
            };
            let (mut near, mut far) = (open(&a, "n0"), open(&b, "n1"));
            assert_eq!((near.tx_rings(), near.rx_rings()), (1, MANY), "{mode}");
            assert_eq!((far.tx_rings(), far.rx_rings()), (MANY, 1), "{mode}");
            let ports = Control::connect().unwrap().ports().unwrap();
            let rings = |name: &str| ports.iter().find(|port| port.name == name).unwrap().rings;
            assert_eq!((rings("n0"), rings("n1")), ([1, 4], [4, 1]), "{mode}");
            // Where a veth pair has no native program, its frames come by the first queue; and AF_PACKET leaves the queue
            // to the kernel.
            let by_queue = mode == NicMode::Copy;
            for ring in 0..MANY {
                let bytes = numbered(ring as u64);
                send(&mut far, ring, &bytes);
                let (at, arrived) = receive(&mut near);
                assert_eq!(arrived, bytes, "{mode}");
                assert!(!by_queue || at == ring, "{mode}: {ring} to {at}");
            }
            send(&mut near, 0, &numbered(9));
            assert_eq!(receive(&mut far), (0, numbered(9)), "{mode}");
            drop(near);

            let mut third = open(&a, "n0-2");
            assert_eq!((third.tx_index(0), third.rx_index(0)), (Some(0), Some(2)), "{mode}");
            send(&mut third, 0, &numbered(10));
            assert_eq!(receive(&mut far), (0, numbered(10)), "{mode}");
            if by_queue {
                send(&mut far, 2, &numbered(11));
                assert_eq!(receive(&mut third), (0, numbered(11)), "{mode}");
            }
            drop((third, far));
            home.assert_left();
        }
    });
}

/// What an interface on a switch receives by any queue goes out by the one queue of another.
#[test]
fn a_switch_sends_by_the_queues_that_there_are() {
    if skip_without_root("a_switch_sends_by_the_queues_that_there_are") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("a_switch_sends_by_the_queues_that_there_are", |home| {
        let [switch, a, b] = [(); 3].map(|()| Netns::quiet("rwq"));
        let _pairs = [wire(&switch, "s0", &a, "h0"), wire(&switch, "s1", &b, "h1")];
        let control = Control::connect().unwrap();
        let open = |netns: &Netns, name: &str| {
            netns.enter(|| Port::open(&format!("netmap:{name}")).unwrap())
        };
        let (mut from, mut to) = (open(&a, "h0@mode=copy"), open(&b, "h1@mode=copy"));
        for mode in MODES {
            switch.enter(|| {
                for name in ["s0", "s1"] {
                    control.switch_attach("valeq", &format!("{name}@mode={mode}"), false).unwrap();
                }
            });
            let ports = control.ports().unwrap();
            let attached = ports.iter().filter(|port| port.name.starts_with("valeq:"));
            assert!(attached.clone().all(|port| port.rings == [1, 4]), "{ports:?}");
            assert_eq!(attached.count(), 2);
            for ring in 0..MANY {
                let bytes = numbered(ring as u64);
                send(&mut from, ring, &bytes);
                assert_eq!(receive(&mut to), (0, bytes), "{mode}, ring {ring}");
            }
            switch.enter(|| {
                for name in ["s0", "s1"] {
                    control.switch_detach("valeq", name).unwrap();
                }
            });
        }
        drop((from, to, control));
        home.assert_left();
    });
}

/// Cards have as many queues as the machine has processors. A port has all of them, or one.
#[test]
fn a_card_may_have_very_many_queues() {
    if skip_without_root("a_card_may_have_very_many_queues") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("a_card_may_have_very_many_queues", |home| {
        const QUEUES: usize = 70;
        let (a, b) = (Netns::quiet("rwq"), Netns::quiet("rwq"));
        let _pair = a.veth_queues(&b, "n0", "n1", QUEUES as u32);
        a.run(&format!("ethtool -L n0 rx {QUEUES} tx {QUEUES}"));
        b.run(&format!("ethtool -L n1 rx {QUEUES} tx {QUEUES}"));
        let open = |netns: &Netns, spec: &str| netns.enter(|| Port::open(spec).unwrap());
        let last = QUEUES - 1;
        let mut far = open(&b, "netmap:n1@mode=copy");
        assert_eq!((far.tx_rings(), far.rx_rings()), (QUEUES, QUEUES));
        for mode in MODES {
            let mut near = open(&a, &format!("netmap:n0-{last}@mode={mode}"));
            assert_eq!(near.rx_index(0), Some(last as u16), "{mode}");
            send(&mut near, 0, &numbered(1));
            assert_eq!(receive(&mut far).1, numbered(1), "{mode}");
            if mode == NicMode::Copy {
                send(&mut far, last, &numbered(2));
                assert_eq!(receive(&mut near), (0, numbered(2)));
            }
        }
        let control = Control::connect().unwrap();
        a.enter(|| control.switch_attach("valeq", "n0@mode=copy", false).unwrap());
        let mut program = Port::open("valeq:program").unwrap();
        send(&mut far, last, &numbered(3));
        assert_eq!(receive(&mut program), (0, numbered(3)));
        a.enter(|| control.switch_detach("valeq", "n0").unwrap());
        drop((program, far, control));
        home.assert_left();
    });
}

/// Of a card with more queues than programs in the kernel know a port has one, and it is not touched for more than that.
#[test]
fn a_card_may_have_too_many_queues() {
    if skip_without_root("a_card_may_have_too_many_queues") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("a_card_may_have_too_many_queues", |home| {
        let (a, b) = (Netns::quiet("rwq"), Netns::quiet("rwq"));
        let _pair = a.veth_queues(&b, "n0", "n1", 240);
        a.run("ethtool -L n0 rx 240 tx 240");
        for mode in MODES {
            let open = |what: &str| a.enter(|| Port::open(&format!("netmap:n0{what}@mode={mode}")));
            let error = open("").unwrap_err().to_string();
            assert!(error.contains("`ethtool -L n0 combined 224`"), "{mode}: {error}");
            let port = open("-223").unwrap();
            assert_eq!((port.tx_index(0), port.rx_index(0)), (Some(223), Some(223)), "{mode}");
        }
        let control = Control::connect().unwrap();
        let error = a.enter(|| control.switch_attach("valeq", "n0@mode=copy", false)).unwrap_err();
        assert!(error.to_string().contains("`ethtool -L n0 combined 224`"), "{error}");
        drop(control);
        home.assert_left();
    });
}
