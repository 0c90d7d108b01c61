//! Netmap rings over AF_XDP: order, buffers, and what survives.

mod common;

use std::ops::Range;

use common::Wire;
use common::nic::{Nic, Rings, SLOTS, first_buffer, nics, region, wait};
use ringway_abi::{Dir, NS_BUF_CHANGED};
use ringway_testkit::{dropped, frame, skip_without_root};

/// In flight at once: below the 256 entries of veth's own ring, so that nothing is dropped.
const WINDOW: u32 = 64;

/// Carries frames of these numbers from `from` to `to`, each checked.
fn carry(from: &Rings, to: &Rings, to_nic: &Nic, numbers: Range<u32>) {
    let (mut sent, mut arrived) = (numbers.start, numbers.start);
    while arrived < numbers.end {
        sent += from.send(sent..numbers.end.min(arrived + WINDOW), 60);
        let frames = to.receive();
        if frames.is_empty() {
            wait([to_nic]);
        }
        for bytes in frames {
            assert_eq!(bytes, frame(arrived, 60));
            arrived += 1;
        }
    }
    to.sync_rx();
}

fn assert_permutation(buffers: Vec<u32>, nics: u32) {
    let mut buffers = buffers;
    buffers.sort_unstable();
    assert!(buffers.into_iter().eq(2..2 + 2 * nics * SLOTS));
}

#[test]
fn frames_arrive_in_order_both_ways_and_every_buffer_stays() {
    if skip_without_root("frames_arrive_in_order_both_ways_and_every_buffer_stays") {
        return;
    }
    const FRAMES: u32 = 200_000;
    let wire = Wire::new();
    let nics = nics(&wire);
    let [a, b] = &nics;
    let (mut sent, mut arrived) = ([0; 2], [0; 2]);
    let length = |number| 14 + (number % 1501) as usize;
    while arrived != [FRAMES; 2] {
        let mut quiet = true;
        for (from, to) in [(0, 1), (1, 0)] {
            let limit = FRAMES.min(arrived[to] + WINDOW);
            while sent[from] < limit {
                let number = sent[from];
                if nics[from].rings.send(number..number + 1, length(number)) == 0 {
                    break;
                }
                sent[from] += 1;
            }
            for bytes in nics[to].rings.receive() {
                assert_eq!(bytes, frame(arrived[to], length(arrived[to])));
                arrived[to] += 1;
                quiet = false;
            }
        }
        if quiet && arrived != [FRAMES; 2] {
            wait([a, b]);
        }
    }
    for nic in &nics {
        nic.rings.sync_rx();
        nic.rings.finish();
        assert_permutation(nic.buffers(), 1);
        for kring in [&nic.rings.tx, &nic.rings.rx] {
            let counters = kring.counters();
            assert_eq!(counters.packets.load(std::sync::atomic::Ordering::Relaxed), 200_000);
            assert_eq!(dropped(kring), [0; 3]);
        }
    }
}

/// Two NICs in one region: received buffers are sent on by exchanging indices.
#[test]
fn buffers_move_between_the_nics_of_a_region() {
    if skip_without_root("buffers_move_between_the_nics_of_a_region") {
        return;
    }
    const FRAMES: u32 = 20_000;
    let (left, right) = (Wire::new(), Wire::new());
    let (source, sink) =
        (Nic::new(&left.a, "a0", &region(), 0), Nic::new(&right.b, "b0", &region(), 0));
    let shared = region();
    let inner = Nic::new(&left.b, "b0", &shared, 0);
    let outer = Nic::new(&right.a, "a0", &shared, 1);

    let (mut sent, mut arrived) = (0, 0);
    while arrived < FRAMES {
        sent += source.rings.send(sent..FRAMES.min(arrived + WINDOW), 900);
        let forwarded = forward(&inner.rings, &outer.rings);
        let frames = sink.rings.receive();
        if frames.is_empty() && forwarded == 0 {
            wait([&inner, &sink]);
        }
        for bytes in frames {
            assert_eq!(bytes, frame(arrived, 900));
            arrived += 1;
        }
    }
    sink.rings.sync_rx();
    outer.rings.finish();
    inner.rings.sync_rx();
    let all = [inner.buffers(), outer.buffers()].concat();
    assert!(!all[SLOTS as usize..2 * SLOTS as usize].is_sorted(), "buffers have moved");
    assert_permutation(all, 2);
}

fn forward(from: &Rings, to: &Rings) -> u32 {
    from.sync_rx();
    to.sync_tx();
    let (rx, tx) = (from.rx.ring(), to.tx.ring());
    let (mut i, mut o, mut n) = (rx.head(), tx.head(), 0);
    while i != rx.tail() && o != tx.tail() {
        let (received, free) = (rx.slot(i), tx.slot(o));
        tx.set_slot(o, received.buf_idx, received.len, NS_BUF_CHANGED);
        rx.set_slot(i, free.buf_idx, 0, NS_BUF_CHANGED);
        (i, o, n) = (rx.next(i), tx.next(o), n + 1);
    }
    rx.set_head(i);
    rx.set_cur(i);
    tx.set_head(o);
    tx.set_cur(o);
    from.sync_rx();
    to.sync_tx();
    n
}

/// A kernel that uses its buffers from the last to the first: every frame comes in another slot's.
#[test]
fn every_buffer_stays_in_one_slot_whatever_order_the_kernel_uses_them_in() {
    if skip_without_root("every_buffer_stays_in_one_slot_whatever_order_the_kernel_uses_them_in") {
        return;
    }
    let wire = Wire::new();
    let [a, b] = nics(&wire);
    b.reverse_fill(SLOTS - 1);
    for number in 0..1000 {
        carry(&a.rings, &b.rings, &b, number..number + 1);
        assert_permutation(b.buffers(), 1);
    }
    let start = first_buffer(0, Dir::Rx);
    assert_ne!(b.buffers()[SLOTS as usize..], (start..start + SLOTS).collect::<Vec<_>>());
    assert_eq!(dropped(&b.rings.rx), [0; 3]);
}

/// As after the descriptors were passed on: both hold the same rings, and take turns.
#[test]
fn two_processes_take_turns_on_the_same_rings() {
    if skip_without_root("two_processes_take_turns_on_the_same_rings") {
        return;
    }
    let wire = Wire::new();
    let [a, b] = nics(&wire);
    let (other_a, other_b) = (a.open_again(), b.open_again());
    for turn in 0..100 {
        let numbers = turn * 137..(turn + 1) * 137;
        let from = if turn % 2 == 0 { &a.rings } else { &other_a };
        let to = if turn % 3 == 0 { &b.rings } else { &other_b };
        carry(from, to, &b, numbers);
    }
    other_a.finish();
    for nic in [a, b] {
        assert_permutation(nic.buffers(), 1);
    }
}

#[test]
fn a_child_goes_on_after_a_fork_and_the_parent_after_it() {
    if skip_without_root("a_child_goes_on_after_a_fork_and_the_parent_after_it") {
        return;
    }
    let wire = Wire::new();
    let [a, b] = nics(&wire);
    carry(&a.rings, &b.rings, &b, 0..1000);
    // SAFETY: the child runs code that takes no lock which another thread of the parent could hold
    // (glibc looks after malloc's), and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let work = || carry(&a.rings, &b.rings, &b, 1000..2000);
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err();
        // SAFETY: ends the child at once, without the parent's destructors.
        unsafe { libc::_exit(failed.into()) };
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: waits for a child of ours; `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    carry(&a.rings, &b.rings, &b, 2000..3000);
    a.rings.finish();
    for nic in [a, b] {
        assert_permutation(nic.buffers(), 1);
    }
}

#[test]
fn frames_wait_for_a_link_that_is_down() {
    if skip_without_root("frames_wait_for_a_link_that_is_down") {
        return;
    }
    let wire = Wire::new();
    let [a, b] = nics(&wire);
    carry(&a.rings, &b.rings, &b, 0..300);
    a.rings.finish();
    wire.a.run("ip link set a0 down");
    assert_eq!(a.rings.send(300..400, 60), 100);
    a.rings.sync_tx();
    assert_eq!(a.rings.room(), SLOTS - 1 - 100);
    assert_eq!(a.rings.send(400..1000, 60), SLOTS - 1 - 100);
    assert_eq!(a.rings.room(), 0);

    wire.a.run("ip link set a0 up");
    let mut arrived = 300;
    while arrived < 300 + SLOTS - 1 {
        a.rings.sync_tx();
        let frames = b.rings.receive();
        if frames.is_empty() {
            wait([&b]);
        }
        for bytes in frames {
            assert_eq!(bytes, frame(arrived, 60));
            arrived += 1;
        }
    }
    b.rings.sync_rx();
    a.rings.finish();
    assert_eq!(dropped(&a.rings.tx), [0; 3]);
    carry(&a.rings, &b.rings, &b, 2000..3000);
}

#[test]
fn slots_that_hold_no_frame_are_dropped_and_counted() {
    if skip_without_root("slots_that_hold_no_frame_are_dropped_and_counted") {
        return;
    }
    let wire = Wire::new();
    let [a, b] = nics(&wire);
    let put = |slots: &[(u32, u16, u16)]| a.rings.put(slots);
    let total = a.region.layout().bufs.total;
    put(&[(0, 60, 0), (1, 60, 0), (total, 60, 0), (u32::MAX, 60, 0), (2, 13, 0), (2, 0, 0)]);
    assert_eq!(dropped(&a.rings.tx), [4, 0, 0]);
    assert_eq!(a.rings.tx.counters().too_short.load(std::sync::atomic::Ordering::Relaxed), 2);
    assert_eq!(a.rings.room(), SLOTS - 1, "all are completed");
    // Longer than the MTU allows: the kernel's to drop, and the next one still goes.
    put(&[(2, 1600, 0)]);
    put(&[(2, 60, 0)]);
    wait([&b]);
    let lengths: Vec<_> = b.rings.receive().iter().map(Vec::len).collect();
    assert_eq!((lengths, dropped(&a.rings.tx)), (vec![60], [4, 0, 1]));
}

/// The far end lets frames lie, but the kernel drops one at once: its completion overtakes.
#[test]
fn slots_come_back_in_order_whatever_order_they_complete_in() {
    if skip_without_root("slots_come_back_in_order_whatever_order_they_complete_in") {
        return;
    }
    let wire = Wire::new();
    wire.hold_frames_at_b(200);
    let [a, b] = nics(&wire);
    assert_eq!(a.rings.send(0..10, 60), 10);
    assert_eq!(a.rings.send(10..11, 1600), 1);
    assert_eq!(a.rings.send(11..20, 60), 9);
    assert!(a.rings.room() < SLOTS - 1 - 10, "some of the first ten are on their way");
    let mut frames = Vec::new();
    while frames.len() < 19 {
        wait([&b]);
        frames.extend(b.rings.receive());
    }
    assert!(frames.into_iter().eq((0..20).filter(|&n| n != 10).map(|n| frame(n, 60))));
    a.rings.finish();
    assert_eq!(dropped(&a.rings.tx), [0, 0, 1]);
}

/// A program writes anything into any of its slots, the kernel's included. Once it has mended them,
/// both rings are as good as new.
#[test]
fn scribbled_slots_cost_no_buffer_for_good() {
    if skip_without_root("scribbled_slots_cost_no_buffer_for_good") {
        return;
    }
    let wire = Wire::new();
    let [a, b] = nics(&wire);
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let (tx, rx) = (a.rings.tx.ring(), a.rings.rx.ring());
    let mut number = 0;
    for _ in 0..2000 {
        for ring in [tx, rx] {
            for _ in 0..8 {
                let i = random() as u32 % SLOTS;
                let word = random();
                // Half of the indices name a buffer.
                let buf = (word as u32) % (2 * a.region.layout().bufs.total);
                ring.set_slot(i, buf, (word >> 32) as u16 % 4096, (word >> 48) as u16);
            }
        }
        let n = random() as u32 % 32;
        let head = tx.advance(tx.head(), n.min(a.rings.room()));
        tx.set_head(head);
        tx.set_cur(head);
        a.rings.sync_tx();
        b.rings.receive();
        number += b.rings.send(number..number + n, 60);
        a.rings.receive();
    }
    b.rings.finish();

    // Mended: the tx ring at once, for nothing is on its way; rx slots as they come round.
    b.rings.receive();
    // Ends a packet that may have been left open.
    a.rings.put(&[(0, 0, 0)]);
    a.rings.finish();
    for i in 0..SLOTS {
        tx.set_slot(i, first_buffer(0, Dir::Tx) + i, 60, 0);
    }

    for _ in 0..2 * SLOTS {
        a.rings.sync_rx();
        let (head, tail) = (rx.head(), rx.tail());
        if head == tail {
            b.rings.send(0..1, 60);
            wait([&a]);
            continue;
        }
        rx.set_slot(head, first_buffer(0, Dir::Rx) + head, 0, NS_BUF_CHANGED);
        rx.set_head(rx.next(head));
        rx.set_cur(rx.next(head));
    }
    while !a.rings.receive().is_empty() {}
    a.rings.sync_rx();
    b.rings.finish();

    // Every slot but one can be filled: no buffer of the kernel's has gone.
    let mut sent = 0;
    let head = rx.head();
    while rx.distance(head, rx.tail()) < SLOTS - 1 {
        sent += b.rings.send(sent..(SLOTS - 1).min(rx.distance(head, rx.tail()) + WINDOW), 60);
        wait([&a]);
        a.rings.sync_rx();
    }
    for (number, bytes) in (0..).zip(a.rings.receive()) {
        assert_eq!(bytes, frame(number, 60));
    }
    a.rings.sync_rx();
    carry(&a.rings, &b.rings, &b, 0..2000);
    carry(&b.rings, &a.rings, &a, 0..2000);
    a.rings.finish();
    assert_permutation(a.buffers(), 1);
}
