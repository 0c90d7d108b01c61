use proptest::prelude::*;
use ringway::NS_MOREFRAG;
use ringway_abi::Dir;
use ringway_doc::fairness::BusyPipe;
use ringway_region::Slot;

use super::*;
use crate::stepped::Queues;
use crate::testing::{DESCS, SLOTS, World, any_descs, hand_over};

/// What received packets leave behind: the program's descriptors and frames, where the port's ring stands, and what
/// was counted.
#[derive(PartialEq)]
struct Left {
    descs: Vec<[u64; 2]>,
    frames: Vec<u8>,
    ring: [u32; 2],
    counted: [u64; 2],
    position: u32,
    received: bool,
    found: Vec<bool>,
}

/// The slots of a port's ring; most hold a packet that a frame holds.
fn any_slots() -> impl Strategy<Value = Vec<Slot>> {
    let len = prop_oneof![8 => 1..1793u16, 2 => Just(0), 2 => 1793..2049u16, 1 => any::<u16>()];
    let more = prop_oneof![4 => Just(0), 1 => Just(NS_MOREFRAG)];
    let buf_idx =
        prop_oneof![12 => 2..2 + SLOTS, 1 => 0..2u32, 1 => Just(2 + SLOTS), 1 => Just(u32::MAX)];
    let slot =
        (len, more, buf_idx).prop_map(|(len, flags, buf_idx)| Slot { buf_idx, len, flags, ptr: 0 });
    proptest::collection::vec(slot, 0..SLOTS as usize)
}

/// Takes the packets in two turns, by `take`: the program hands over the descriptors behind the `first` ones in between.
fn receive(
    slots: &[Slot],
    descs: &[Desc],
    first: usize,
    start: u32,
    take: impl Fn(&mut RxQueue, &RingView) -> Found,
) -> Left {
    let mut world = World::new(Dir::Rx, 2048);
    let ring = world.ring();
    ring.set_head(start);
    ring.set_tail(ring.advance(start, slots.len() as u32));
    for (n, slot) in (0..).zip(slots) {
        ring.set_slot(ring.advance(start, n), slot.buf_idx, slot.len, slot.flags);
    }
    let (before, behind) = descs.split_at(first.min(descs.len()));
    let mut found = Vec::new();
    for (at, descs) in [(0, before), (before.len(), behind)] {
        hand_over(&world.queues.words[0], at, descs);
        found.push(take(&mut world.queues.rx, &ring) == Found::Packets);
    }
    let rx = &mut world.queues.rx;
    Left {
        ring: [ring.head(), ring.cur()],
        counted: rx.take_statistics(0),
        position: rx.ring.position(),
        received: rx.ring.has_received(),
        descs: world.descs(0),
        frames: world.frames(),
        found,
    }
}

/// Packet by packet.
fn take_slowly(queue: &mut RxQueue, ring: &RingView) -> Found {
    let (head, tail) = (ring.head(), ring.tail());
    if head == tail {
        return Found::Nothing;
    }
    queue.ring.outstanding();
    let mut at = head;
    while at != tail {
        let Ok(taken) = queue.take_next(ring, at, ring.distance(at, tail)) else { break };
        at = ring.advance(at, taken);
    }
    ring.set_cur(at);
    ring.set_head(at);
    if at == head { Found::Nothing } else { Found::Packets }
}

proptest! {
    /// Packets of one slot are received in a loop of their own: what comes of them, and of those between them, is what
    /// it would be one by one.
    #[test]
    fn plain_packets_are_received_as_any(
        slots in any_slots(), descs in any_descs(), first in 0..=DESCS as usize, start in 0..SLOTS,
    ) {
        let fast = receive(&slots, &descs, first, start, RxQueue::take);
        let slow = receive(&slots, &descs, first, start, take_slowly);
        prop_assert!(fast == slow);
    }
}

/// While the program gives few frames, each ring of a port has some in its turn.
#[test]
fn rings_share_the_frames() {
    let (mut busy, port) = BusyPipe::new("vfair", 3, |name| ringway_doc::open(name).unwrap());
    let mut queues = Queues::new(DESCS as usize, 8);
    let mut desc = 0;
    while !busy.is_over() {
        for idx in 0..3 {
            hand_over(
                &queues.words[0],
                (desc + idx) % DESCS as usize,
                &[Desc::received(idx as u64, 0, 0)],
            );
        }
        port.binding().sync(Dir::Rx);
        assert!(queues.rx.take_all(port.binding().rings(Dir::Rx)) == Found::Packets);
        for _ in 0..3 {
            let [_, word] = queues.read(0, desc);
            busy.count(word as u32 as usize);
            desc = (desc + 1) % DESCS as usize;
        }
        busy.fill();
    }
    busy.assert_fair("AF_PACKET V4");
}
