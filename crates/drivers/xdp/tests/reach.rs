//! A socket that does not reach all buffers of its region: programs may put any into its slots.

mod common;

use std::{collections::BTreeSet, sync::atomic::Ordering::Relaxed};

use common::Wire;
use common::nic::{Nic, REACH, SLOTS, SPARES, region, wait};
use ringway_abi::NS_BUF_CHANGED;
use ringway_testkit::{dropped, frame, skip_without_root, take_frames};

/// Buffers that neither end reaches, from [`REACH`] on: as many as slots, and some.
const BEYOND: u32 = SLOTS + 100;

fn spares(nic: &Nic) -> [u32; 2] {
    [&nic.rings.tx, &nic.rings.rx].map(|kring| kring.owner().spares.load(Relaxed))
}

/// Puts buffers of `stock` into all slots that are the program's, and takes what was there.
fn exchange(nic: &Nic, tx: bool, stock: &mut [u32]) {
    let ring = if tx { nic.rings.tx.ring() } else { nic.rings.rx.ring() };
    let mut at = ring.head();
    while at != ring.tail() {
        let slot = ring.slot(at);
        let place = stock.iter().position(|&buf| buf >= REACH);
        if slot.buf_idx < REACH
            && let Some(place) = place
        {
            let other = std::mem::replace(&mut stock[place], slot.buf_idx);
            ring.set_slot(at, other, slot.len, slot.flags | NS_BUF_CHANGED);
        }
        at = ring.next(at);
    }
}

fn assert_all_there(nic: &Nic, stock: &[u32]) {
    let all: BTreeSet<u32> = nic.buffers().into_iter().chain(stock.iter().copied()).collect();
    let own = (2..2 + 2 * SLOTS).chain(REACH..REACH + BEYOND);
    assert!(all.into_iter().eq(own), "each buffer is in one place");
    assert_eq!(spares(nic), [SPARES; 2]);
}

/// S-MEM-4: buffers are exchanged between all ports of a region, those that a socket does not reach as well. Frames
/// are copied then, in both directions.
#[test]
fn frames_are_sent_from_and_received_into_buffers_out_of_reach() {
    if skip_without_root("frames_are_sent_from_and_received_into_buffers_out_of_reach") {
        return;
    }
    const FRAMES: u32 = 4 * SLOTS;
    let wire = Wire::new();
    let [a, b] = [("a0", &wire.a), ("b0", &wire.b)]
        .map(|(name, netns)| Nic::reaching_some(netns, name, &region(), |_| {}));
    let [mut of_a, mut of_b] = [0, 1].map(|_| (REACH..REACH + BEYOND).collect::<Vec<_>>());
    exchange(&a, true, &mut of_a);
    let (mut sent, mut arrived) = (0, 0);
    while arrived < FRAMES {
        // As many as the kernel has buffers for when as many more wait to be given to it.
        let most = FRAMES.min(arrived + SPARES / 2);
        sent += a.rings.send(sent..most, 60 + arrived as usize);
        b.rings.sync_rx();
        exchange(&b, false, &mut of_b);
        let ring = b.rings.rx.ring();
        if ring.head() == ring.tail() {
            // What waits for a spare buffer goes out when one has been sent.
            match a.rings.tx.hwcur() == a.rings.tx.ring().head() {
                true => wait([&b]),
                false => std::thread::yield_now(),
            }
            continue;
        }
        // What came into a buffer that the program took out is there.
        let mut at = ring.head();
        while at != ring.tail() {
            at = ring.next(at);
            arrived += 1;
        }
        ring.set_head(at);
        ring.set_cur(at);
    }
    b.rings.sync_rx();
    a.rings.finish();
    let beyond = |nic: &Nic| nic.buffers().iter().filter(|&&buf| buf >= REACH).count() as u32;
    assert!(beyond(&a) == SLOTS - 1 && beyond(&b) >= SLOTS - 1, "{} {}", beyond(&a), beyond(&b));
    // By now all of them are out of reach: what comes is looked at.
    for number in 0..3 * SLOTS {
        assert_eq!(a.rings.send(number..number + 1, 60), 1);
        let mut frames = b.rings.receive();
        while frames.is_empty() {
            wait([&b]);
            frames = b.rings.receive();
        }
        assert_eq!(frames, [frame(number, 60)]);
    }
    b.rings.sync_rx();
    a.rings.finish();
    for (nic, stock) in [(&a, &of_a), (&b, &of_b)] {
        assert_eq!((dropped(&nic.rings.tx), dropped(&nic.rings.rx)), ([0; 3], [0; 3]));
        // For b's receive ring the kernel has all.
        assert_eq!(spares(nic), if std::ptr::eq(nic, &a) { [SPARES; 2] } else { [SPARES, 0] });
        let all: BTreeSet<u32> = nic.buffers().into_iter().chain(stock.iter().copied()).collect();
        assert!(all.into_iter().eq((2..2 + 2 * SLOTS).chain(REACH..REACH + BEYOND)));
    }
}

/// The kernel may use buffers in another order than it got them: each comes back to the slot that it was lent for.
#[test]
fn buffers_out_of_reach_stay_where_frames_come_in_another_order() {
    if skip_without_root("buffers_out_of_reach_stay_where_frames_come_in_another_order") {
        return;
    }
    let wire = Wire::new();
    let a = Nic::new(&wire.a, "a0", &region(), 0);
    let mut stock: Vec<u32> = (REACH..REACH + BEYOND).collect();
    let b = Nic::reaching_some(&wire.b, "b0", &region(), |rx| {
        for at in (0..SLOTS).step_by(2) {
            let (ring, other) = (rx.ring(), stock.pop().unwrap());
            stock.insert(0, ring.slot(at).buf_idx);
            ring.set_slot(at, other, 0, 0);
        }
    });
    // Every other slot takes a spare one, and the next finds none.
    const POSTED: u32 = 2 * SPARES;
    assert_eq!(spares(&b), [SPARES, 0]);
    b.reverse_fill(POSTED);
    for round in 0..3 {
        let first = round * POSTED;
        assert_eq!(a.rings.send(first..first + POSTED, 60), POSTED);
        let mut frames = Vec::new();
        while frames.len() < POSTED as usize {
            wait([&b]);
            b.rings.sync_rx();
            frames.extend(take_frames(&b.rings.rx));
        }
        let expected: Vec<_> = (first..first + POSTED).map(|number| frame(number, 60)).collect();
        assert_eq!(frames, expected, "round {round}");
        a.rings.finish();
        b.rings.sync_rx();
    }
    let all: BTreeSet<u32> = b.buffers().into_iter().chain(stock.iter().copied()).collect();
    assert!(all.into_iter().eq((2..2 + 2 * SLOTS).chain(REACH..REACH + BEYOND)));
    assert_eq!(dropped(&b.rings.rx), [0; 3]);
}

/// A packet of several slots goes out whole, or waits for spare buffers; one that cannot be sent keeps none.
#[test]
fn packets_of_several_slots_wait_for_spare_buffers() {
    if skip_without_root("packets_of_several_slots_wait_for_spare_buffers") {
        return;
    }
    let wire = Wire::new();
    wire.set_mtu(9000);
    let a = Nic::reaching_some(&wire.a, "a0", &region(), |_| {});
    let b = Nic::new(&wire.b, "b0", &region(), 0);
    let mut stock: Vec<u32> = (REACH..REACH + BEYOND).collect();
    exchange(&a, true, &mut stock);
    let ring = a.rings.tx.ring();
    // Two slots of it are good, and it is lost all the same.
    let bufs = [0, 1, 2].map(|i| ring.slot(ring.advance(ring.head(), i)).buf_idx);
    let more = ringway_abi::NS_MOREFRAG;
    a.rings.put(&[(bufs[0], 1000, more), (bufs[1], 1000, more), (bufs[2], 2000, 0)]);
    assert_eq!((dropped(&a.rings.tx), spares(&a)), ([0, 1, 0], [SPARES; 2]));
    const PACKETS: u32 = 5;
    for number in 0..PACKETS {
        a.rings.stage(&frame(number, 5 * 1000), 1000);
    }
    let mut frames = Vec::new();
    while frames.len() < PACKETS as usize {
        a.rings.sync_tx();
        frames.extend(b.rings.receive());
    }
    let expected: Vec<_> = (0..PACKETS).map(|number| frame(number, 5000)).collect();
    assert_eq!(frames, expected);
    b.rings.sync_rx();
    a.rings.finish();
    assert_all_there(&a, &stock);
}
