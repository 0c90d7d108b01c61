//! A program of AF_PACKET V4: what moves its packets between its descriptors and the port's rings, without what moves
//! them on from there.

use ringway_region::RingView;
use ringway_tpacket4::stepped::Queues;

use crate::{
    cases::{LENGTH, PACKETS, SLOTS, rings},
    counted,
};

const BATCH: u32 = 64;
const DESCS: usize = 1024;
const KERNEL: u64 = 0x80 << 56;

/// From the port's ring into frames.
pub fn receive() {
    let [_, rx] = rings(0);
    let ring = rx.ring();
    let mut queues = Queues::new(DESCS, DESCS / 2);
    (0..DESCS).for_each(|desc| queues.write(0, desc, [desc as u64, KERNEL]));
    let mut next = 0;
    for turn in 0..(SLOTS + PACKETS) / BATCH {
        arrive(ring);
        let mut moves = || assert!(queues.receive(ring));
        if turn < SLOTS / BATCH {
            moves()
        } else {
            counted(moves)
        }
        // The program hands over again what it has got back.
        for _ in 0..BATCH {
            let [frame, second] = queues.read(0, next);
            assert!(second & KERNEL == 0 && second as u32 == u32::from(LENGTH));
            queues.write(0, next, [frame, KERNEL]);
            next = (next + 1) % DESCS;
        }
    }
}

/// From frames into the port's ring.
pub fn send() {
    let [tx, _] = rings(0);
    let ring = tx.ring();
    let mut queues = Queues::new(DESCS, DESCS / 2);
    let mut next = 0;
    for turn in 0..(SLOTS + PACKETS) / BATCH {
        for _ in 0..BATCH {
            queues.write(1, next, [next as u64, u64::from(LENGTH) | KERNEL]);
            next = (next + 1) % DESCS;
        }
        let head = ring.head();
        let mut moves = || assert!(queues.send(ring, || depart(ring)));
        if turn < SLOTS / BATCH {
            moves()
        } else {
            counted(moves)
        }
        assert_eq!(ring.distance(head, ring.head()), BATCH);
    }
}

/// What the port's other side does: packets for the program.
fn arrive(ring: &RingView) {
    let mut at = ring.tail();
    for _ in 0..BATCH {
        ring.set_slot(at, ring.slot(at).buf_idx, LENGTH, 0);
        at = ring.next(at);
    }
    ring.set_tail(at);
}

/// All that the program has sent is gone.
fn depart(ring: &RingView) {
    ring.set_tail(ring.advance(ring.head(), ring.num_slots() - 1));
}
