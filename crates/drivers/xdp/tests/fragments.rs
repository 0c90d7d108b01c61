//! Packets of several slots on the rings of NICs (S-FLAGS, NS_MOREFRAG): whole or not at all.

mod common;

use std::sync::atomic::Ordering::Relaxed;

use common::Wire;
use common::nic::{Nic, Rings, SLOTS, first_buffer, nics, region, wait};
use ringway_abi::{Dir, NS_MOREFRAG};
use ringway_testkit::{dropped, frame, skip_without_root};
use ringway_xdp::MAX_FRAGS;

/// The longest frame for an MTU of 9000.
const JUMBO: usize = 9014;

/// What a buffer holds.
const BUFFER: usize = 1792;

fn jumbo_wire() -> Wire {
    let wire = Wire::new();
    wire.set_mtu(9000);
    wire
}

/// The next `count` packets that arrive.
fn take(nic: &Nic, count: usize) -> Vec<Vec<u8>> {
    let mut frames = nic.rings.receive();
    while frames.len() < count {
        wait([nic]);
        frames.extend(nic.rings.receive());
    }
    nic.rings.sync_rx();
    frames
}

fn packets(rings: &Rings) -> [u64; 2] {
    [&rings.tx, &rings.rx].map(|kring| kring.counters().packets.load(Relaxed))
}

/// Of any number of slots that the kernel takes, wherever in the ring they begin.
#[test]
fn a_packet_of_many_slots_leaves_in_one() {
    if skip_without_root("a_packet_of_many_slots_leaves_in_one") {
        return;
    }
    let wire = jumbo_wire();
    let [a, b] = nics(&wire);
    let mut number = 0;
    // Several times round the ring.
    for _ in 0..4 {
        for slots in 1..=MAX_FRAGS as usize {
            let bytes = frame(number, 500 * slots - 7);
            a.rings.stage(&bytes, 500);
            a.rings.sync_tx();
            assert_eq!(take(&b, 1), [bytes], "{slots} slots");
            number += 1;
        }
    }
    a.rings.finish();
    assert_eq!((dropped(&a.rings.tx), dropped(&b.rings.rx)), ([0; 3], [0; 3]));
    assert_eq!((packets(&a.rings)[0], packets(&b.rings)[1]), (number.into(), number.into()));
}

#[test]
fn a_packet_of_too_many_slots_is_dropped_whole() {
    if skip_without_root("a_packet_of_too_many_slots_is_dropped_whole") {
        return;
    }
    let wire = jumbo_wire();
    let [a, b] = nics(&wire);
    let mut drops = 0;
    for slots in [MAX_FRAGS + 1, 2 * MAX_FRAGS, 2 * MAX_FRAGS + 1, 64, 100] {
        a.rings.stage(&frame(0, 60), 60);
        a.rings.stage(&frame(1, 60 * slots as usize), 60);
        a.rings.stage(&frame(2, 100), 50);
        a.rings.sync_tx();
        assert_eq!(take(&b, 2), [frame(0, 60), frame(2, 100)], "{slots} slots");
        drops += 1;
        assert_eq!(dropped(&a.rings.tx), [0, drops, 0]);
        a.rings.finish();
    }
    // The same in several syncs, the last slot alone in one.
    let ring = a.rings.tx.ring();
    for _ in 0..30 {
        a.rings.put(&[(ring.slot(ring.head()).buf_idx, 60, NS_MOREFRAG)]);
    }
    a.rings.put(&[(ring.slot(ring.head()).buf_idx, 60, 0)]);
    assert_eq!((dropped(&a.rings.tx), a.rings.room()), ([0, drops + 1, 0], SLOTS - 1));
    a.rings.stage(&frame(3, 60), 60);
    a.rings.sync_tx();
    assert_eq!(take(&b, 1), [frame(3, 60)]);
}

#[test]
fn a_packet_with_a_slot_that_holds_nothing_is_dropped_whole() {
    if skip_without_root("a_packet_with_a_slot_that_holds_nothing_is_dropped_whole") {
        return;
    }
    let wire = jumbo_wire();
    let [a, b] = nics(&wire);
    let good = first_buffer(0, Dir::Tx);
    let total = a.region.layout().bufs.total;
    let more = NS_MOREFRAG;
    let bad: [&[_]; 4] = [
        &[(good, 60, more), (total, 60, 0)],
        &[(0, 60, more), (good, 60, more), (good, 60, 0)],
        // The kernel wants an Ethernet header in the first.
        &[(good, 13, more), (good, 60, 0)],
        &[(good, 0, more), (good, 60, 0)],
    ];
    for (drops, slots) in (1..).zip(bad) {
        a.rings.put(slots);
        assert_eq!(dropped(&a.rings.tx), [drops, 0, 0]);
    }
    assert_eq!(a.rings.room(), SLOTS - 1, "all are completed");
    // Others may be empty.
    let bytes = frame(1, 60);
    let (first, rest) = bytes.split_at(20);
    let ring = a.rings.tx.ring();
    ring.buf(good).unwrap().write(0, first);
    ring.buf(good + 1).unwrap().write(0, rest);
    a.rings.put(&[(good, 20, more), (good, 0, more), (good + 1, 40, more), (good, 0, 0)]);
    assert_eq!(take(&b, 1), [bytes]);
    a.rings.finish();
    assert_eq!(dropped(&a.rings.tx), [4, 0, 0]);
}

/// It goes out when its last slot has come, and what is behind it does not overtake.
#[test]
fn an_unfinished_packet_waits() {
    if skip_without_root("an_unfinished_packet_waits") {
        return;
    }
    let wire = jumbo_wire();
    let [a, b] = nics(&wire);
    let ring = a.rings.tx.ring();
    let mut sent = 0;
    // The last time its slots lie on both ends of the ring.
    for start in [0, 100, SLOTS - 2] {
        while ring.head() != start {
            a.rings.send(sent..sent + 1, 60);
            sent += 1;
            take(&b, 1);
        }
        a.rings.finish();
        let bytes = frame(7, 1000);
        let [x, y, z] = [0, 1, 2].map(|i| ring.slot(ring.advance(start, i)).buf_idx);
        for (buf, part) in [x, y, z].into_iter().zip(bytes.chunks(400)) {
            ring.buf(buf).unwrap().write(0, part);
        }
        a.rings.put(&[(x, 400, NS_MOREFRAG)]);
        a.rings.sync_tx();
        a.rings.put(&[(y, 400, NS_MOREFRAG)]);
        assert_eq!(a.rings.room(), SLOTS - 3, "they are not sent");
        a.rings.put(&[(z, 200, 0)]);
        a.rings.stage(&frame(8, 60), 60);
        a.rings.sync_tx();
        assert_eq!(take(&b, 2), [bytes, frame(8, 60)], "from {start}");
    }
    a.rings.finish();
    assert_eq!(dropped(&a.rings.tx), [0; 3]);
}

/// Jumbo frames from one NIC to another, all round both rings, with others between them.
#[test]
fn long_frames_arrive_whole_and_in_order() {
    if skip_without_root("long_frames_arrive_whole_and_in_order") {
        return;
    }
    const FRAMES: u32 = 20_000;
    let wire = jumbo_wire();
    let [a, b] = nics(&wire);
    let length = |n: u32| [JUMBO, 60, BUFFER, BUFFER + 1, 4000, 14, 2 * BUFFER][n as usize % 7];
    let (mut sent, mut arrived) = (0, 0);
    while arrived < FRAMES {
        // No more than the receiver's ring holds.
        while sent < FRAMES.min(arrived + 30) && a.rings.room() >= 6 {
            a.rings.stage(&frame(sent, length(sent)), BUFFER);
            sent += 1;
        }
        a.rings.sync_tx();
        let frames = b.rings.receive();
        if frames.is_empty() {
            wait([&b]);
        }
        for bytes in frames {
            assert!(bytes == frame(arrived, length(arrived)), "frame {arrived}");
            arrived += 1;
        }
    }
    b.rings.sync_rx();
    a.rings.finish();
    assert_eq!((dropped(&a.rings.tx), dropped(&b.rings.rx)), ([0; 3], [0; 3]));
    let mut buffers = b.buffers();
    buffers.sort_unstable();
    assert!(buffers.into_iter().eq(2..2 + 2 * SLOTS), "every buffer is in one slot");
}

/// A ring with too few slots left gets nothing of a packet, rather than half of it.
#[test]
fn a_packet_that_finds_too_few_slots_is_lost_whole() {
    if skip_without_root("a_packet_that_finds_too_few_slots_is_lost_whole") {
        return;
    }
    let wire = jumbo_wire();
    let [a, b] = nics(&wire);
    let ring = b.rings.rx.ring();
    // All but three slots are in the hands of the program, which keeps them.
    for number in 0..SLOTS - 4 {
        a.rings.send(number..number + 1, 60);
        while ring.distance(ring.head(), ring.tail()) <= number {
            wait([&b]);
            b.rings.sync_rx();
        }
    }
    a.rings.stage(&frame(1000, JUMBO), BUFFER);
    a.rings.stage(&frame(1001, 3 * BUFFER), BUFFER);
    a.rings.sync_tx();
    a.rings.finish();
    let frames = take(&b, SLOTS as usize - 3);
    assert_eq!(frames.last(), Some(&frame(1001, 3 * BUFFER)));
    let lost = b.rings.rx_driver.lost();
    assert_eq!((lost.too_long, lost.ring_full), (0, 1));
    a.rings.stage(&frame(1002, JUMBO), BUFFER);
    a.rings.sync_tx();
    assert_eq!(take(&b, 1), [frame(1002, JUMBO)]);
}

/// In generic mode, too, where the stack makes one piece of a frame first. lo gives back what is
/// sent on it.
#[test]
fn long_frames_travel_in_generic_mode() {
    if skip_without_root("long_frames_travel_in_generic_mode") {
        return;
    }
    let wire = Wire::new();
    let nic = Nic::new(&wire.a, "lo", &region(), 0);
    for number in 0..100 {
        nic.rings.stage(&frame(number, JUMBO), BUFFER);
        nic.rings.sync_tx();
        assert_eq!(take(&nic, 1), [frame(number, JUMBO)]);
    }
    nic.rings.finish();
    assert_eq!((dropped(&nic.rings.tx), dropped(&nic.rings.rx)), ([0; 3], [0; 3]));
}
