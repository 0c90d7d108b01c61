//! The bytes of each ring of a port, as the worker counts them.

mod common;

use common::{BROADCAST, Client, barrier, header, mac};
use ringway_abi::NS_MOREFRAG;
use ringway_kring::Kring;
use ringway_vale::{Bridge, Lossless, PortConfig};

fn bytes(rings: &[Kring]) -> Vec<u64> {
    rings.iter().map(|ring| ring.csb().service.bytes()).collect()
}

fn frame(length: usize) -> Vec<u8> {
    let mut frame = vec![0; length];
    frame[..14].copy_from_slice(&header(BROADCAST, mac(1)));
    frame
}

#[test]
fn each_ring_counts_its_own() {
    let bridge = Bridge::start("vale-bytes").unwrap();
    let sender = Client::new([2, 1], [64, 64], 0);
    let receiver = Client::new([1, 1], [64, 64], 0);
    for client in [&sender, &receiver] {
        client.attach(&bridge);
    }
    for (ring, length) in [(0, 60), (1, 1000), (1, 500)] {
        sender.fill(ring, &frame(length), length as u16, 0, None);
    }
    // One of three slots, the first of which has less than the others.
    for (length, flags) in [(100, NS_MOREFRAG), (2048, NS_MOREFRAG), (7, 0)] {
        sender.fill(0, &frame(100)[..length.min(100) as usize], length, flags, None);
    }
    for ring in 0..2 {
        sender.tx_sync(ring);
        sender.drained(ring);
    }
    barrier(&bridge);
    assert_eq!(bytes(&sender.tx), [60 + 2155, 1500]);
    assert_eq!(bytes(&sender.rx), [0]);
    assert_eq!(bytes(&receiver.rx), [60 + 2155 + 1500]);
}

/// What waits for a lossless port is counted when it goes, and once.
#[test]
fn what_waits_is_counted_once() {
    let bridge = Bridge::start("vale-bytes").unwrap();
    let sender = Client::new([1, 1], [64, 64], 0);
    let receiver = Client::new([1, 1], [64, 16], 0);
    sender.attach(&bridge);
    let lossless = Some(Lossless { patience_ms: 60_000 });
    receiver.attach_as(&bridge, PortConfig { lossless, ..PortConfig::default() });
    for _ in 0..40 {
        sender.fill(0, &frame(60), 60, 0, None);
    }
    sender.tx_sync(0);
    let mut taken = 0;
    while taken < 40 {
        taken += receiver.receive(0, usize::MAX).len();
        barrier(&bridge);
    }
    sender.drained(0);
    barrier(&bridge);
    assert_eq!((bytes(&sender.tx), bytes(&receiver.rx)), (vec![2400], vec![2400]));
}

/// A packet that a burst leaves for the next is counted with that.
#[test]
fn a_packet_between_two_bursts_is_counted_once() {
    let bridge = Bridge::start("vale-bytes").unwrap();
    let clients = [(); 2].map(|()| Client::new([1, 1], [512, 512], 0));
    for client in &clients {
        client.attach(&bridge);
    }
    let [sender, receiver] = &clients;
    for _ in 0..127 {
        sender.fill(0, &frame(60), 60, 0, None);
    }
    for (length, flags) in [(500, NS_MOREFRAG), (400, NS_MOREFRAG), (30, 0)] {
        sender.fill(0, &frame(500)[..length], length as u16, flags, None);
    }
    sender.tx_sync(0);
    sender.drained(0);
    barrier(&bridge);
    let all = 127 * 60 + 930;
    assert_eq!((bytes(&sender.tx), bytes(&receiver.rx)), (vec![all], vec![all]));
}

/// The headers of ports that have them are for the switch alone: rings and ports count what would be on a wire.
#[test]
fn headers_for_the_switch_are_not_counted() {
    for (sends, receives) in [(12, 12), (12, 0), (0, 12), (10, 12)] {
        let bridge = Bridge::start("vale-bytes").unwrap();
        let sender = Client::new([1, 1], [64, 64], 0);
        let receiver = Client::new([1, 1], [64, 64], 0);
        let [from, to] = [(&sender, sends), (&receiver, receives)].map(|(client, header_len)| {
            client.attach_as(&bridge, PortConfig { header_len, ..PortConfig::default() })
        });
        let header = vec![0; sends.into()];
        for length in [60, 100] {
            let packet = [header.as_slice(), &frame(length)].concat();
            sender.fill(0, &packet, packet.len() as u16, 0, None);
        }
        // One of two slots.
        let packet = [header.as_slice(), &frame(100)].concat();
        sender.fill(0, &packet, packet.len() as u16, NS_MOREFRAG, None);
        sender.fill(0, &[0; 40], 40, 0, None);
        sender.tx_sync(0);
        sender.drained(0);
        barrier(&bridge);
        let what = format!("from {sends} to {receives}");
        assert_eq!((bytes(&sender.tx), bytes(&receiver.rx)), (vec![300], vec![300]), "{what}");
        let [from, to] = [from, to].map(|(_, counters)| counters.totals());
        assert_eq!((from.sent_bytes, to.received_bytes), (300, 300), "{what}");
    }
}
