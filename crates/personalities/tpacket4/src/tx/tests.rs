use std::{cell::RefCell, io::stderr, os::fd::AsFd};

use proptest::prelude::*;
use ringway_abi::Dir;

use super::*;
use crate::{
    abi::TP4_PKT_CONT,
    stepped::Queues,
    testing::{DESCS, SLOTS, World, any_descs, hand_over},
};

/// What sent packets leave behind: the program's descriptors, what the port got in each slot (its length, its flags,
/// its bytes), and whether all went.
#[derive(PartialEq)]
struct Left {
    descs: Vec<[u64; 2]>,
    sent: Vec<(u16, u16, Vec<u8>)>,
    all: bool,
    completed: bool,
}

/// Sends by `fill` into a ring with buffers of `size` bytes and `room` slots, of which the port makes as many again
/// `turns` times.
fn send(
    descs: &[Desc],
    size: u32,
    start: u32,
    [room, turns]: [u32; 2],
    fill: impl Fn(&mut TxQueue, &RingView, &dyn Fn()) -> bool,
) -> Left {
    let mut world = World::new(Dir::Tx, size);
    let (ring, region) = (world.ring(), world.region.clone());
    ring.set_head(start);
    ring.set_tail(ring.advance(start, room));
    hand_over(&world.queues.words[1], 0, descs);
    let (done, left) = (RefCell::new((start, Vec::new())), RefCell::new(turns));
    let sync = || {
        let (at, sent) = &mut *done.borrow_mut();
        while *at != ring.head() {
            let slot = ring.slot(*at);
            let mut bytes = vec![0; slot.len.into()];
            region.buf(slot.buf_idx).unwrap().copy_to(slot.len.into(), &mut bytes);
            sent.push((slot.len, slot.flags, bytes));
            *at = ring.next(*at);
        }
        let mut left = left.borrow_mut();
        if *left > 0 {
            *left -= 1;
            ring.set_tail(ring.advance(*at, room));
        }
    };
    let all = fill(&mut world.queues.tx, &ring, &sync);
    let completed = world.queues.tx.ring.has_completed();
    Left { descs: world.descs(1), sent: done.take().1, all, completed }
}

/// Packet by packet.
fn fill_slowly(queue: &mut TxQueue, ring: &RingView, sync: &dyn Fn()) -> bool {
    loop {
        let (head, tail) = (ring.head(), ring.tail());
        let mut at = head;
        let all = loop {
            match queue.step(ring, at, ring.distance(at, tail)) {
                Step::Taken(taken) => at = ring.advance(at, taken),
                Step::NoPacket => break true,
                Step::NoRoom => break false,
            }
        };
        ring.set_cur(at);
        ring.set_head(at);
        sync();
        if all || (at == head && ring.tail() == tail) {
            return all;
        }
    }
}

proptest! {
    /// Packets of one descriptor are sent in a loop of their own: what comes of them, and of those between them, is what
    /// it would be one by one.
    #[test]
    fn plain_packets_are_sent_as_any(
        descs in any_descs(), size in prop_oneof![Just(2048u32), Just(512)], start in 0..SLOTS,
        room in 0..SLOTS, turns in 0..4u32,
    ) {
        let fill = |queue: &mut TxQueue, ring: &RingView, sync: &dyn Fn()| queue.fill(ring, sync);
        let fast = send(&descs, size, start, [room, turns], fill);
        let slow = send(&descs, size, start, [room, turns], fill_slowly);
        prop_assert!(fast == slow);
    }
}

/// The port takes all at once, and the program hands over again what has come back: the call ends, after as many packets as
/// the ring has descriptors, and one.
#[test]
fn a_program_that_hands_over_as_fast_does_not_hold_the_call() {
    let mut world = World::new(Dir::Tx, 2048);
    let ring = world.ring();
    let good = |_| Desc { idx: 0, len: 60, offset: 0, error: 0, flags: 0 };
    let descs: Vec<Desc> = (0..DESCS).map(good).collect();
    let Queues { tx, words: [_, words], .. } = &mut world.queues;
    hand_over(words, 0, &descs);
    let all = tx.fill(&ring, || {
        hand_over(words, 0, &descs);
        ring.set_tail(ring.prev(ring.head()));
    });
    assert_eq!((all, tx.ring.position()), (false, DESCS + 1));
}

/// With `PACKET_LOSS`, what is not good comes back as what was sent, on a port and in copy mode.
#[test]
fn bad_packets_of_lossy_sockets_come_back_without_an_error() {
    let desc = |idx, flags| Desc { idx, len: 60, offset: 0, error: 0, flags };
    let bad = |flags| desc(u64::MAX, flags);
    let endless = vec![desc(0, TP4_PKT_CONT); DESCS as usize];
    for (list, error) in
        [(vec![bad(0)], BAD), (vec![desc(0, TP4_PKT_CONT), bad(0)], BAD), (endless, TOO_LONG)]
    {
        for (loss, is_port) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut world = World::new(Dir::Tx, 2048);
            let ring = world.ring();
            ring.set_tail(SLOTS - 1);
            let Queues { tx, words: [_, words], .. } = &mut world.queues;
            tx.loss = loss;
            hand_over(words, 0, &list);
            // Nothing is sent: any descriptor is a socket.
            let all = if is_port { tx.fill(&ring, || {}) } else { tx.send(stderr().as_fd()) };
            assert!(all);
            let expected = if loss { 0 } else { error };
            let left = &world.descs(1)[..list.len()];
            let returned: Vec<_> =
                list.iter().map(|desc| [desc.idx, desc.returned(expected).second()]).collect();
            assert_eq!(left, returned, "loss: {loss}, port: {is_port}");
        }
    }
}
