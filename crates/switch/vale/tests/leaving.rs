//! A port that goes: what it has sent is on its way (S-VALE-5, S-LIFE-6).

mod common;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use common::{BROADCAST, Client, bytes, header, listen, mac};
use ringway_vale::{Bridge, Clock, Forwarding, PortConfig, RingPort, SteppedBridge};

/// More than the worker takes of a ring in one turn.
const FRAMES: usize = 700;

/// A program that sends and ends at once: all of it arrives, and whoever waits for it is woken.
#[test]
fn what_was_sent_is_forwarded() {
    let bridge = Bridge::start("vale-leaving").unwrap();
    let receiver = Client::new([1, 1], [16, 2048], 0);
    receiver.attach(&bridge);
    for round in 0..50 {
        let sender = Client::new([2, 1], [1024, 16], 0);
        let (index, counters) = sender.attach(&bridge);
        receiver.rx_bell.drain();
        receiver.rx[0].csb().app.arm();
        let frame = header(BROADCAST, mac(round));
        for ring in [0, 1] {
            (0..FRAMES).for_each(|_| sender.fill(ring, &frame, frame.len() as u16, 0, None));
        }
        [0, 1].into_iter().for_each(|ring| sender.tx_sync(ring));
        bridge.detach(index);
        assert_eq!(counters.totals().sent_packets, 2 * FRAMES as u64);
        listen(&receiver.rx_bell);
        let arrived = bytes(receiver.receive(0, usize::MAX));
        assert_eq!(arrived.len(), 2 * FRAMES, "round {round}");
        assert!(arrived.iter().all(|bytes| bytes[..] == frame));
    }
}

/// A port takes the place of another: what that has sent is forwarded, and its counters and what
/// was learned of it are the new one's.
#[test]
fn a_port_in_the_place_of_another() {
    let bridge = Bridge::start("vale-place").unwrap();
    let port = || Client::new([1, 1], [1024, 2048], 0);
    let (other, old, new) = (port(), port(), port());
    other.attach(&bridge);
    let (index, counters) = old.attach(&bridge);
    let (flood, answer) = (header(BROADCAST, mac(1)), header(mac(1), mac(2)));
    (0..FRAMES).for_each(|_| old.fill(0, &flood, flood.len() as u16, 0, None));
    old.tx_sync(0);
    let vacant = RingPort::new(Vec::new(), Vec::new(), old.worker.clone(), Default::default());
    assert!(bridge.replace(index, Box::new(vacant)));
    assert_eq!(bytes(other.receive(0, usize::MAX)).len(), FRAMES);
    // Nobody is there meanwhile.
    other.send(&answer);
    other.drained(0);
    let renewed = new.with_bell_of(&old);
    assert!(bridge.replace(index, Box::new(renewed.port())));
    other.send(&answer);
    other.drained(0);
    assert_eq!(bytes(renewed.receive(0, usize::MAX)), [answer.to_vec()]);
    assert_eq!(bytes(old.receive(0, usize::MAX)).len(), 0);
    renewed.send(&flood);
    renewed.drained(0);
    bridge.count();
    assert_eq!(counters.totals().sent_packets, FRAMES as u64 + 1);
    assert!(!bridge.replace(index + 1, Box::new(renewed.port())));
}

/// What a port that goes has sent is forwarded, or counted, also where there is more of it than is forwarded in time.
#[test]
fn what_is_left_when_patience_ends_is_counted() {
    const MANY: u64 = 4000;
    let millis = Arc::new(AtomicU64::new(0));
    let hand = millis.clone();
    let clock = Clock::new(move || hand.load(Relaxed));
    let mut bridge = SteppedBridge::new(&Forwarding::default(), clock).unwrap();
    let sender = Client::new([1, 1], [4096, 8], 0);
    let receiver = Client::new([1, 1], [8, 4096], 0);
    let [from, to] = [&sender, &receiver]
        .map(|client| bridge.attach(Box::new(client.port()), PortConfig::default()).unwrap());
    let frame = [&header(BROADCAST, mac(1))[..], &[0; 1400]].concat();
    (0..MANY).for_each(|_| sender.fill(0, &frame, frame.len() as u16, 0, None));
    sender.tx_sync(0);
    let counters = bridge.counters(from).unwrap();
    let draining = bridge.detach(from).unwrap();
    assert!(draining.is_going_on());
    millis.store(3000, Relaxed);
    bridge.flush_idle();
    bridge.round();
    assert!(!draining.is_going_on());
    bridge.flush_idle();
    let received = receiver.receive(0, usize::MAX).len() as u64;
    assert!((1..MANY).contains(&received), "{received}");
    let totals = counters.totals();
    assert_eq!((totals.sent_packets, totals.drops.no_destination), (MANY, MANY - received));
    assert_eq!(bridge.totals(to).unwrap().drops, Default::default());
}
