//! What a port may cost the others in one turn, and when it goes (trust rules 5 and 6).

mod common;

use common::{BROADCAST, Client, bytes, header, mac};
use ringway_kring::Outcome;
use ringway_ring::WorkerServed;
use ringway_vale::{Clock, Draining, Forwarding, PortConfig, SteppedBridge};

/// Frames of so many bytes.
const LENGTH: usize = 1500;
const RECEIVERS: u8 = 16;

/// Bytes that a port may have the worker copy in its turn, with something for what is counted besides.
const TURN: usize = 2 << 20;

struct World {
    bridge: SteppedBridge,
    receivers: Vec<Client>,
}

impl World {
    /// A switch with receivers for `slots` frames each.
    fn new(slots: u32) -> World {
        let mut bridge = SteppedBridge::new(&Forwarding::Flood, Clock::new(|| 0)).unwrap();
        let receivers: Vec<_> =
            (0..RECEIVERS).map(|_| Client::new([1, 1], [16, slots], 0)).collect();
        for client in &receivers {
            attach(&mut bridge, client);
        }
        World { bridge, receivers }
    }

    /// Bytes that all have received and not looked at.
    fn delivered(&self) -> usize {
        let frames = |client: &Client| {
            let rx = &client.rx[0];
            rx.ring().distance(rx.ring().head(), rx.hwtail()) as usize
        };
        self.receivers.iter().map(frames).sum::<usize>() * LENGTH
    }

    /// What each of them has got: the numbers of the frames.
    fn received(&self) -> Vec<Vec<u16>> {
        let number = |frame: Vec<u8>| u16::from_le_bytes([frame[14], frame[15]]);
        let of = |client: &Client| {
            bytes(client.receive(0, usize::MAX)).into_iter().map(number).collect()
        };
        self.receivers.iter().map(of).collect()
    }
}

fn attach(bridge: &mut SteppedBridge, client: &Client) -> u8 {
    bridge.attach(Box::new(client.port()), PortConfig::default()).unwrap()
}

fn frame(number: u16) -> Vec<u8> {
    let mut frame = header(BROADCAST, mac(1)).to_vec();
    frame.extend(number.to_le_bytes());
    frame.resize(LENGTH, 0);
    frame
}

fn send(client: &Client, ring: usize, numbers: std::ops::Range<u16>) {
    for number in numbers {
        client.fill(ring, &frame(number), LENGTH as u16, 0, None);
    }
    client.tx_sync(ring);
}

/// Many rings, many bytes, many receivers: the others have their turn after some of it.
#[test]
fn a_turn_is_bounded_whatever_a_port_sends() {
    let mut world = World::new(1024);
    let sender = Client::new([4, 1], [256, 16], 0);
    attach(&mut world.bridge, &sender);
    for ring in 0..4 {
        send(&sender, ring, ring as u16 * 200..(ring as u16 + 1) * 200);
    }
    let mut before = 0;
    while world.bridge.round() {
        world.bridge.flush_idle();
        let now = world.delivered();
        assert!(now - before <= TURN, "{} bytes in one turn", now - before);
        before = now;
    }
    for mut numbers in world.received() {
        let of_ring = |ring: u16| numbers.iter().filter(move |n| **n / 200 == ring);
        assert!((0..4).all(|ring| of_ring(ring).is_sorted()), "order of a ring");
        numbers.sort();
        assert_eq!(numbers, (0..800).collect::<Vec<_>>());
    }
}

/// A turn ends at a packet whose slot is bad as at any other: what is before it has been sent.
#[test]
fn a_turn_ends_among_packets_that_are_lost() {
    let mut world = World::new(1024);
    let sender = Client::new([1, 1], [256, 16], 0);
    attach(&mut world.bridge, &sender);
    for number in 0..200u16 {
        let frame = frame(number);
        let bad = (number % 2 == 1).then_some(u32::MAX);
        sender.fill(0, &frame, LENGTH as u16, 0, bad);
    }
    sender.tx_sync(0);
    while world.bridge.round() {
        world.bridge.flush_idle();
    }
    for numbers in world.received() {
        assert!(numbers.iter().copied().eq((0..200).step_by(2)), "{numbers:?}");
    }
}

/// The owner of a port that goes is answered when a part of what it has sent is on its way; the rest
/// follows, and others are served meanwhile. What it sends afterwards does not count.
#[test]
fn a_close_is_answered_before_all_is_forwarded() {
    let mut world = World::new(2048);
    let (leaver, bystander) =
        (Client::new([1, 1], [1024, 16], 0), Client::new([1, 1], [16, 2048], 0));
    let place = attach(&mut world.bridge, &leaver);
    attach(&mut world.bridge, &bystander);
    send(&leaver, 0, 0..1000);
    let draining: Draining = world.bridge.detach(place).unwrap();
    world.bridge.flush_idle();
    assert!(world.delivered() <= 8 * TURN, "{} bytes before the answer", world.delivered());
    assert!(draining.is_going_on());
    // Another process that has its memory goes on.
    let ring = leaver.tx[0].ring();
    leaver.tx[0].csb().app.publish(ring.advance(ring.head(), 20), 0);
    send(&bystander, 0, 2000..2001);
    world.bridge.round();
    world.bridge.flush_idle();
    assert!(world.received().iter().all(|numbers| numbers.contains(&2000)), "the other is served");
    assert!(draining.is_going_on());
    while draining.is_going_on() {
        world.bridge.round();
    }
    world.bridge.flush_idle();
    let all = bytes(bystander.receive(0, usize::MAX));
    assert_eq!(all.len(), 1000, "all that it had sent, and nothing else");
    // The place is another's.
    assert_eq!(attach(&mut world.bridge, &leaver), place);
}

/// A receiver releases what it has got, and has no more room than that gives, whatever it claims.
#[test]
fn a_receiver_cannot_claim_room_that_is_not_there() {
    let mut bridge = SteppedBridge::new(&Forwarding::Flood, Clock::new(|| 0)).unwrap();
    let (sender, receiver) = (Client::new([1, 1], [64, 16], 0), Client::new([1, 1], [16, 16], 0));
    attach(&mut bridge, &sender);
    attach(&mut bridge, &receiver);
    let rx = &receiver.rx[0];
    let mut expect = |first: u16, sent: u16, tail: u32| {
        send(&sender, 0, first..first + sent);
        bridge.round();
        bridge.flush_idle();
        assert_eq!(rx.hwtail(), tail, "frames {first} to {}", first + sent);
    };
    expect(0, 3, 3);
    // Ahead of what it has got.
    rx.csb().app.publish(10, 10);
    expect(3, 20, 15);
    assert_eq!(sender.tx[0].sync(&WorkerServed::new(sender.worker.clone())), Outcome::Done);
    // Four are released, then the claim goes back.
    rx.csb().app.publish(4, 4);
    expect(23, 2, 1);
    rx.csb().app.publish(2, 2);
    expect(25, 8, 3);
}
