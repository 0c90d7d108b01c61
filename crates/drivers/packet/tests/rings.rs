//! Netmap rings over AF_PACKET, from one end of a veth pair to the other.

mod common;

use common::{Port, ROOM, SLOTS, Wire};
use ringway_abi::NS_MOREFRAG;
use ringway_region::Timestamps;
use ringway_testkit::{dropped, frame, skip_without_root, tagged};
use rustix::time::{DynamicClockId, clock_gettime_dynamic};

#[test]
fn frames_of_all_lengths_arrive_as_they_were_sent() {
    if skip_without_root("frames_of_all_lengths_arrive_as_they_were_sent") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let [a, b] = wire.ports();
    let lengths = (14..100).chain((100..=1514).step_by(101)).chain([1514]);
    let frames: Vec<_> = (0..).zip(lengths).map(|(i, length)| frame(i, length)).collect();
    for (from, to) in [(&a, &b), (&b, &a)] {
        frames.iter().for_each(|frame| from.send(frame));
        assert!(to.receive_all(frames.len()) == frames);
        assert_eq!((dropped(&from.tx), dropped(&to.rx)), ([0; 3], [0; 3]));
    }
}

/// More than the ring of blocks holds comes through, block after block.
#[test]
fn the_blocks_come_round() {
    if skip_without_root("the_blocks_come_round") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let [a, b] = wire.ports();
    let mut next = 0;
    for round in 0..200 {
        for i in 0..100 {
            a.send(&frame(round * 100 + i, 1514));
        }
        for got in b.receive_all(100) {
            assert!(got == frame(next, 1514), "frame {next}");
            next += 1;
        }
    }
    assert_eq!(dropped(&b.rx), [0; 3]);
}

#[test]
fn long_frames_take_several_slots() {
    if skip_without_root("long_frames_take_several_slots") {
        return;
    }
    let wire = Wire::new(1, 9000);
    let [a, b] = wire.ports();
    let frames: Vec<_> =
        [ROOM, ROOM + 1, 2 * ROOM, 5000, 9014].map(|length| frame(length as u32, length)).into();
    frames.iter().for_each(|frame| a.send(frame));
    assert!(b.receive_all(frames.len()) == frames);
    // Longer than the interface sends, but for a tag.
    a.send(&frame(1, 9020));
    a.send(&frame(2, 9014));
    assert!(b.receive_all(1) == [frame(2, 9014)]);
    assert_eq!(dropped(&a.tx), [0, 1, 0]);
}

/// S-SYNC-9: a packet with a slot that is longer than its buffer is lost whole.
#[test]
fn s_sync_9_lengths() {
    if skip_without_root("s_sync_9_lengths") {
        return;
    }
    let wire = Wire::new(1, 9000);
    let [a, b] = wire.ports();
    let (long, short) = (frame(1, ROOM), frame(2, 13));
    let (room, more) = (ROOM as u16, NS_MOREFRAG);
    a.fill(&[(&long, room, 0), (&short, 13, 0), (&long, room + 1, 0), (&long, 5000, 0)]);
    a.fill(&[(&long, room, more), (&long, room + 1, more), (&long, 60, 0), (&long, 100, 0)]);
    a.sync_tx();
    assert!(b.receive_all(2) == [long.clone(), long[..100].to_vec()]);
    assert_eq!(dropped(&a.tx), [0, 3, 0]);
    assert_eq!(a.tx.counters().too_short.load(std::sync::atomic::Ordering::Relaxed), 1);
    assert_eq!(a.room(), SLOTS - 1);
}

#[test]
fn a_packet_waits_for_its_last_slot() {
    if skip_without_root("a_packet_waits_for_its_last_slot") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let [a, b] = wire.ports();
    let whole = frame(7, 300);
    a.fill(&[(&whole[..100], 100, NS_MOREFRAG), (&whole[100..200], 100, NS_MOREFRAG)]);
    a.sync_tx();
    assert_eq!(a.room(), SLOTS - 3);
    a.fill(&[(&whole[200..], 100, 0)]);
    a.sync_tx();
    assert!(b.receive_all(1) == [whole.clone()]);

    // With too many slots it is dropped to its end, whenever that comes.
    for _ in 0..70 {
        a.fill(&[(&[1], 1, NS_MOREFRAG)]);
        a.sync_tx();
    }
    a.fill(&[(&[1], 1, 0), (&whole, 300, 0)]);
    a.sync_tx();
    assert!(b.receive_all(1) == [whole]);
    assert_eq!(dropped(&a.tx), [1, 0, 0]);
    assert_eq!(a.room(), SLOTS - 1);
}

#[test]
fn tags_are_kept() {
    if skip_without_root("tags_are_kept") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let [a, b] = wire.ports();
    // The kernel sends a tag beyond the MTU if it is a customer's.
    let frames = [tagged(&frame(3, 1514), 0x8100, 0x6007), tagged(&frame(3, 1510), 0x88a8, 9)];
    frames.iter().for_each(|frame| a.send(frame));
    assert!(b.receive_all(2) == frames);
}

/// Whoever does not look loses frames, is told how many, and goes on.
#[test]
fn what_the_kernel_drops_is_counted() {
    if skip_without_root("what_the_kernel_drops_is_counted") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let [a, b] = wire.ports();
    let sent = 20_000;
    for i in 0..sent {
        a.send(&frame(i, 1514));
    }
    b.rx_driver.count_drops(&b.rx);
    assert!(dropped(&b.rx)[2] > 0, "they are counted at once");
    let mut arrived = b.receive_all(1);
    while arrived.last() != Some(&frame(sent, 60)) {
        // By now there is room.
        a.send(&frame(sent, 60));
        arrived.extend(b.receive_all(1));
    }
    arrived.retain(|got| got.len() == 1514);
    let [_, _, full] = dropped(&b.rx);
    assert!(full > 0 && arrived.len() as u64 + full == u64::from(sent), "{} {full}", arrived.len());
    // In order; some of the last were still on their way when there was room again.
    let mut sent = (0..sent).map(|i| frame(i, 1514));
    assert!(arrived.iter().all(|got| sent.any(|frame| *got == frame)));
}

/// What waits for a link goes out when it is there.
#[test]
fn nothing_is_lost_while_there_is_no_link() {
    if skip_without_root("nothing_is_lost_while_there_is_no_link") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let [a, b] = wire.ports();
    wire.b.run("ip link set b0 down");
    a.send(&frame(1, 60));
    wire.a.run("ip link set a0 down");
    a.send(&frame(2, 60));
    assert_eq!(a.room(), SLOTS - 3);
    wire.b.run("ip link set b0 up");
    wire.a.run("ip link set a0 up");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while a.room() != SLOTS - 1 {
        assert!(std::time::Instant::now() < deadline, "frames are still waiting");
        a.sync_tx();
        std::thread::yield_now();
    }
    assert!(b.receive_all(2) == [frame(1, 60), frame(2, 60)]);
    // The first error of the socket that was bound while the link was down is over.
    assert_eq!((dropped(&a.tx), dropped(&b.rx)), ([0; 3], [0; 3]));
}

/// A frame that the other end is never going to take does not keep those behind it.
#[test]
fn what_the_other_end_does_not_take_is_lost() {
    if skip_without_root("what_the_other_end_does_not_take_is_lost") {
        return;
    }
    let wire = Wire::new(1, 1500);
    wire.b.run("ip link set b0 mtu 900");
    let [a, b] = wire.ports();
    a.send(&frame(0, 1500));
    assert_eq!(a.room(), SLOTS - 2, "it is waited for");
    for i in 0..50 {
        a.send(&frame(i, 1500 - i as usize));
        a.send(&frame(100 + i, 900));
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while a.room() != SLOTS - 1 {
        assert!(std::time::Instant::now() < deadline, "frames are still waiting");
        a.sync_tx();
        std::thread::yield_now();
    }
    assert!(b.receive_all(50) == (0..50).map(|i| frame(100 + i, 900)).collect::<Vec<_>>());
    let lost = [&a.tx.counters().too_long, &a.tx.counters().ring_full]
        .map(|count| count.load(std::sync::atomic::Ordering::Relaxed));
    assert_eq!(lost, [51, 0]);
}

/// A sync makes a system call for every 64 packets.
#[test]
fn packets_leave_64_at_once() {
    if skip_without_root("packets_leave_64_at_once") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let [a, b] = wire.ports();
    let bytes = frame(1, 60);
    let kicks = || a.tx.counters().kicks.load(std::sync::atomic::Ordering::Relaxed);
    for (count, expected) in [(1, 1), (64, 2), (65, 4), (200, 8)] {
        a.fill(&vec![(&bytes[..], 60, 0); count]);
        a.sync_tx();
        assert_eq!(kicks(), expected, "{count}");
        assert_eq!(b.receive_all(count).len(), count);
    }
}

/// Each frame is received by one of the queues' sockets, and by one only.
#[test]
fn queues_share_the_frames() {
    if skip_without_root("queues_share_the_frames") {
        return;
    }
    let wire = Wire::new(4, 1500);
    let sender = Port::new(&wire.a, "a0", 0, 4);
    let receivers: Vec<_> = (0..4).map(|queue| Port::new(&wire.b, "b0", queue, 4)).collect();
    for i in 0..200 {
        sender.send(&frame(i, 60));
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let mut frames = Vec::new();
    while frames.len() < 200 {
        assert!(std::time::Instant::now() < deadline, "only {} arrive", frames.len());
        receivers.iter().for_each(|receiver| frames.extend(receiver.receive()));
    }
    frames.sort();
    frames.dedup();
    assert_eq!(frames.len(), 200);
}

/// When a frame has come stands in front of it, in nanoseconds of CLOCK_TAI; of an interface without such hardware,
/// not when the hardware says.
#[test]
fn frames_have_their_times() {
    if skip_without_root("frames_have_their_times") {
        return;
    }
    let now = || {
        let now = clock_gettime_dynamic(DynamicClockId::Tai).unwrap();
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    for kind in [Timestamps::Software, Timestamps::Hardware] {
        let wire = Wire::new(1, 9000);
        let [a, b] = wire.ports();
        let b = b.with_timestamps(Some(kind));
        let ring = b.rx.ring();
        let before = now();
        (0..5).for_each(|i| a.send(&frame(i, if i == 3 { 5000 } else { 60 })));
        let first = ring.head();
        assert_eq!(b.receive_all(5).len(), 5);
        let after = now();
        // That of several slots has it in front of its first.
        let times = [0, 1, 2, 3, 6].map(|i| {
            let slot = ring.slot(ring.advance(first, i));
            ring.timestamp(slot.buf_idx).unwrap()
        });
        match kind {
            Timestamps::Software => {
                assert!(times.is_sorted() && (before..=after).contains(&times[0]));
                assert!(times[4] <= after, "{times:?}");
            }
            Timestamps::Hardware => assert_eq!(times, [0; 5]),
        }
    }
}

/// What the stack sends is not heard, but by the other end.
#[test]
fn only_the_wire_is_heard() {
    if skip_without_root("only_the_wire_is_heard") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let [a, b] = wire.ports();
    wire.b.run("ip addr add 10.8.0.1/24 dev b0");
    let _ = wire.b.try_run("ping -q -c 1 -W 1 10.8.0.2");
    assert!(!a.receive_all(1).is_empty());
    a.send(&frame(1, 60));
    assert!(b.receive_all(1) == [frame(1, 60)]);
}
