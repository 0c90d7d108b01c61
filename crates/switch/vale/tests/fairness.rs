//! A receiver that is slower than those who send to it gets from each of them its share, whether what it
//! has no room for is lost or waits.

mod common;

use common::{Client, bytes, header, mac};
use ringway_vale::{Clock, Forwarding, Lossless, PortConfig, SteppedBridge};

const ROUNDS: usize = 1000;
/// Frames that the receiver takes in a round: fewer than a sender has ready.
const TAKEN: usize = 3;
/// The receiver's address.
const TO: u8 = 99;

/// Frames that it got from each sender, which is a ring of a port. Between the places of the ports there are
/// so many of ports that send nothing.
fn received(ports: usize, rings: usize, idle: usize, config: PortConfig) -> Vec<usize> {
    let forwarding = Forwarding::Static { addresses: vec![(mac(TO), 0)], flood_unknown: false };
    let mut bridge = SteppedBridge::new(&forwarding, Clock::new(|| 0)).unwrap();
    let receiver = Client::new([1, 1], [16, 16], 0);
    bridge.attach(Box::new(receiver.port()), config).unwrap();
    let mut attach = |client: Client| {
        bridge.attach(Box::new(client.port()), PortConfig::default()).unwrap();
        client
    };
    let mut idlers = Vec::new();
    let mut senders = Vec::new();
    for _ in 0..ports {
        senders.push(attach(Client::new([rings as u32, 1], [64, 16], 0)));
        idlers.extend((0..idle).map(|_| attach(Client::new([1, 1], [16, 16], 0))));
    }
    let mut counts = vec![0; ports * rings];
    for _ in 0..ROUNDS {
        for (port, client) in senders.iter().enumerate() {
            for ring in 0..rings {
                let view = client.tx[ring].ring();
                while view.head() != view.tail() {
                    let from = (port * rings + ring) as u8;
                    client.fill(ring, &header(mac(TO), mac(from)), 14, 0, None);
                }
                client.tx_sync(ring);
            }
        }
        bridge.round();
        bridge.flush_idle();
        for frame in bytes(receiver.receive(0, TAKEN)) {
            counts[usize::from(frame[11])] += 1;
        }
    }
    counts
}

#[test]
fn a_slow_receiver_gets_from_each_sender_its_share() {
    let lossless = PortConfig { lossless: Some(Lossless::default()), ..PortConfig::default() };
    for config in [PortConfig::default(), lossless] {
        for (ports, rings, idle) in [(2, 1, 0), (7, 1, 0), (3, 1, 2), (1, 4, 0), (3, 4, 0)] {
            let counts = received(ports, rings, idle, config.clone());
            let all: usize = counts.iter().sum();
            assert!(all > ROUNDS * TAKEN - 100, "{counts:?}");
            let share = all / counts.len();
            let fair = |count: &usize| (share * 2 / 3..=share * 3 / 2).contains(count);
            assert!(
                counts.iter().all(fair),
                "{ports} ports of {rings} rings, {idle} idle between them, {config:?}: {counts:?}"
            );
        }
    }
}
