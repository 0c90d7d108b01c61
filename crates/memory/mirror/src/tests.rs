use std::sync::{Arc, atomic::Ordering::Relaxed};

use proptest::prelude::*;
use ringway_abi::{Dir, NS_BUF_CHANGED, NS_MOREFRAG, NS_TXMON};
use ringway_kring::{Doorbell, Kring, Offsets};
use ringway_region::{Layout, Region, RingInit, Sizes};

use super::*;

const SLOTS: u32 = 16;

/// A ring of a port, and the rx ring of its monitor, in one region.
struct World {
    region: Arc<Region>,
    ring: Kring,
    monitor: Kring,
    doorbell: Arc<Doorbell>,
}

impl World {
    fn new(slots: u32) -> World {
        let sizes = Sizes::private([1, 1], [SLOTS, SLOTS], 0, 0);
        let region = Arc::new(Region::create(3, Layout::new(&sizes, 0).unwrap()).unwrap());
        let make = |object, num_slots: u32, first: u32| {
            let bufs: Vec<u32> = (first..first + num_slots).collect();
            let init = RingInit { dir: Dir::Rx, ringid: 0, num_slots };
            Kring::create(&region, object, &init, &bufs).unwrap()
        };
        let (ring, monitor) = (make(0, SLOTS, 2), make(1, slots, 100));
        World { ring, monitor, doorbell: Arc::new(Doorbell::new().unwrap()), region }
    }

    fn mirror(&self, mode: MirrorMode) -> Mirrors {
        Mirrors::from_iter([Mirror::new(self.monitor.clone(), self.doorbell.clone(), mode)])
    }

    /// A packet of `len` bytes, each `byte`, into slot `i` of the ring.
    fn put(&self, i: u32, byte: u8, len: u16, flags: u16) {
        let ring = self.ring.ring();
        let index = ring.slot(i).buf_idx;
        ring.buf(index).unwrap().write(0, &vec![byte; len.into()]);
        ring.set_slot(i, index, len, flags);
    }

    /// What the monitor has: first byte, length and flags of each slot.
    fn seen(&self) -> Vec<(u8, u16, u16)> {
        let ring = self.monitor.ring();
        let (mut at, mut seen) = (ring.head(), Vec::new());
        while at != self.monitor.hwtail() {
            let slot = ring.slot(at);
            let first = ring.buf(slot.buf_idx).and_then(|buf| buf.read::<1>(0));
            seen.push((first.unwrap_or([0])[0], slot.len, slot.flags));
            at = ring.next(at);
        }
        seen
    }

    /// The monitor's program gives back `count` slots.
    fn release(&self, count: u32) {
        let ring = self.monitor.ring();
        let head = ring.advance(ring.head(), count);
        ring.set_head(head);
        self.monitor.csb().app.publish(head, head);
    }
}

#[test]
fn s_mon_2_packets_of_tx_rings_are_marked() {
    let w = World::new(SLOTS);
    w.put(0, 7, 60, NS_TXMON | NS_BUF_CHANGED);
    w.mirror(MirrorMode::CopySent).copy(w.ring.ring(), 0, 1);
    w.mirror(MirrorMode::CopyReceived).copy(w.ring.ring(), 0, 1);
    assert_eq!(w.seen(), [(7, 60, NS_TXMON), (7, 60, 0)]);
    assert_eq!(w.ring.ring().slot(0).buf_idx, 2, "a copy takes nothing");
}

#[test]
fn a_tap_takes_only_what_it_is_for() {
    let w = World::new(SLOTS);
    w.put(0, 7, 60, 0);
    w.mirror(MirrorMode::CopySent).swap(w.ring.ring(), 0, 1);
    w.mirror(MirrorMode::SwapSent).copy(w.ring.ring(), 0, 1);
    assert_eq!(w.seen(), []);
}

#[test]
fn s_mon_5_buffers_are_swapped() {
    let w = World::new(SLOTS);
    w.put(0, 7, 60, 0);
    w.mirror(MirrorMode::SwapReceived).swap(w.ring.ring(), 0, 1);
    assert_eq!(w.seen(), [(7, 60, 0)]);
    let (ours, theirs) = (w.ring.ring().slot(0), w.monitor.ring().slot(0));
    assert_eq!((ours.buf_idx, theirs.buf_idx), (100, 2));
    assert_eq!(ours.flags, NS_BUF_CHANGED);
}

#[test]
fn s_mon_6_the_oldest_are_skipped() {
    let w = World::new(4);
    let mut mirrors = w.mirror(MirrorMode::CopyReceived);
    (0..6).for_each(|i| w.put(i, i as u8, 60, 0));
    mirrors.copy(w.ring.ring(), 0, 6);
    assert_eq!(w.seen(), [(3, 60, 0), (4, 60, 0), (5, 60, 0)]);
    mirrors.copy(w.ring.ring(), 0, 6);
    assert_eq!(w.seen().len(), 3, "a full ring takes nothing");
    w.release(1);
    mirrors.copy(w.ring.ring(), 0, 6);
    assert_eq!(w.seen(), [(4, 60, 0), (5, 60, 0), (5, 60, 0)]);
    let missed = w.monitor.counters().ring_full.load(Relaxed);
    assert_eq!(missed, 3 + 6 + 5, "what is missed is counted");
}

#[test]
fn s_mon_6_packets_are_skipped_whole() {
    let w = World::new(4);
    [NS_MOREFRAG, NS_MOREFRAG, 0, 0].into_iter().zip(0..).for_each(|(f, i)| w.put(i, 9, 60, f));
    w.put(3, 8, 60, 0);
    w.mirror(MirrorMode::CopyReceived).copy(w.ring.ring(), 0, 4);
    assert_eq!(w.seen(), [(8, 60, 0)]);
}

#[test]
fn a_longer_packet_than_the_buffer_is_cut() {
    let w = World::new(SLOTS);
    let size = w.region.layout().data_size() as u16;
    w.ring.ring().set_slot(0, 2, u16::MAX, 0);
    w.mirror(MirrorMode::CopyReceived).copy(w.ring.ring(), 0, 1);
    assert_eq!(w.seen()[0].1, size);
}

#[test]
fn s_off_5_packets_begin_at_their_offsets() {
    let w = World::new(SLOTS);
    let (ring, monitor) = (w.ring.ring(), w.monitor.ring());
    let most = |max, gap| Offsets { mask: 0xff, max, gap };
    let offsets = [most(100, 0), most(1000, 0)];
    for (at, offset) in [(0, 32), (1, 0xf00 | 200)] {
        ring.set_slot_words(at, [ring.slot_words(at)[0], offset]);
        ring.buf(ring.slot(at).buf_idx).unwrap().write(offset.min(100) as usize, &[9; 60]);
        ring.set_slot(at, ring.slot(at).buf_idx, 60, 0);
    }
    monitor.set_slot_words(0, [monitor.slot_words(0)[0], 64]);
    monitor.set_slot_words(1, [monitor.slot_words(1)[0], 8]);
    let mirror = Mirror::new(w.monitor.clone(), w.doorbell.clone(), MirrorMode::CopyReceived)
        .with_offsets(offsets);
    Mirrors::from_iter([mirror]).copy(ring, 0, 2);
    let read = |i: u32, at| monitor.buf(monitor.slot(i).buf_idx).unwrap().read::<60>(at);
    assert_eq!([read(0, 64), read(1, 8)], [Some([9; 60]); 2]);
    assert_eq!([monitor.slot(0).ptr, monitor.slot(1).ptr], [64, 8]);
    let offsets = [most(100, 0), most(1000, 40)];
    let mirror = Mirror::new(w.monitor.clone(), w.doorbell.clone(), MirrorMode::CopyReceived)
        .with_offsets(offsets);
    Mirrors::from_iter([mirror]).copy(ring, 0, 1);
    assert_eq!(monitor.slot(2).len, 40, "what is behind is another slot's");
}

#[test]
fn who_sleeps_is_woken() {
    let w = World::new(SLOTS);
    let mut mirrors = w.mirror(MirrorMode::CopyReceived);
    w.put(0, 1, 60, 0);
    w.monitor.csb().app.arm();
    mirrors.copy(w.ring.ring(), 0, 1);
    mirrors.wake(false);
    assert!(!w.doorbell.drain(), "little has come");
    mirrors.wake(true);
    assert!(w.doorbell.drain());
    w.monitor.csb().app.arm();
    mirrors.copy(w.ring.ring(), 0, 4);
    mirrors.wake(false);
    assert!(w.doorbell.drain(), "much has come");
}

/// A ring that is not the one that was meant is not fed; nor is one that another process feeds.
#[test]
fn only_the_ring_that_was_meant() {
    let w = World::new(SLOTS);
    let mirror =
        Mirror::new(w.monitor.clone(), w.doorbell.clone(), MirrorMode::CopyReceived).shared(5);
    let mut mirrors = Mirrors::from_iter([mirror]);
    mirrors.copy(w.ring.ring(), 0, 1);
    assert_eq!(w.seen().len(), 0);
    w.monitor.set_feed_id(5);
    mirrors.copy(w.ring.ring(), 0, 1);
    assert_eq!(w.seen().len(), 1);
    let guard = w.monitor.try_feed(5);
    mirrors.copy(w.ring.ring(), 0, 1);
    assert_eq!(w.seen().len(), 1);
    drop(guard);
    w.monitor.set_feed_id(6);
    mirrors.copy(w.ring.ring(), 0, 1);
    assert_eq!(w.seen().len(), 1);
}

/// They are counted by the next turn, or at the end, unless the ring has gone by then.
#[test]
fn what_passes_while_another_party_feeds_is_counted() {
    let w = World::new(SLOTS);
    w.monitor.set_feed_id(5);
    let mirrors = || {
        let mirror = Mirror::new(w.monitor.clone(), w.doorbell.clone(), MirrorMode::CopyReceived);
        Mirrors::from_iter([mirror.shared(5)])
    };
    let counted = || w.monitor.counters().ring_full.load(Relaxed);
    let pass_by = |mirrors: &mut Mirrors| {
        let turn = w.monitor.try_feed(5);
        assert!(turn.is_mine());
        mirrors.copy(w.ring.ring(), 0, 3);
        mirrors.show(&[0; 60], &[Shown { len: 60, flags: 0, time: 0 }]);
    };
    let mut fed = mirrors();
    pass_by(&mut fed);
    assert_eq!((w.seen().len(), counted()), (0, 0));
    fed.copy(w.ring.ring(), 0, 1);
    fed.copy(w.ring.ring(), 0, 1);
    assert_eq!((w.seen().len(), counted()), (2, 4));
    pass_by(&mut fed);
    drop(fed);
    assert_eq!(counted(), 8);
    let mut gone = mirrors();
    pass_by(&mut gone);
    w.monitor.set_feed_id(6);
    drop(gone);
    assert_eq!(counted(), 8, "these are another ring's");
}

proptest! {
    /// Whatever stands in the rings, and whatever is fed and released: of the buffers that were
    /// there, none is twice in the slots, and none is missing.
    #[test]
    fn swaps_lose_nothing(
        steps in proptest::collection::vec((0..SLOTS, 0..SLOTS, 0u32..8), 1..60),
        spoiled in proptest::option::of((0..SLOTS, any::<u32>())),
    ) {
        let w = World::new(8);
        let mut all: Vec<u32> = (2..2 + SLOTS).chain(100..108).collect();
        if let Some((i, index)) = spoiled.filter(|(_, index)| *index < 2 || *index > 10_000) {
            w.ring.ring().set_slot(i, index, 60, 0);
            all[i as usize] = index;
        }
        let mut mirrors = w.mirror(MirrorMode::SwapReceived);
        for (from, to, release) in steps {
            mirrors.swap(w.ring.ring(), from, to);
            w.release(release.min(w.seen().len() as u32));
        }
        let slots = |ring: &Kring| {
            let view = ring.ring().clone();
            (0..view.num_slots()).map(move |i| view.slot(i).buf_idx).collect::<Vec<_>>()
        };
        let mut now = [slots(&w.ring), slots(&w.monitor)].concat();
        now.sort();
        all.sort();
        prop_assert_eq!(now, all);
    }
}

/// The times of a monitor's slots.
fn times(w: &World) -> Vec<u64> {
    let ring = w.monitor.ring();
    let tail = w.monitor.hwtail();
    std::iter::successors(Some(ring.head()), |at| Some(ring.next(*at)))
        .take_while(|at| *at != tail)
        .map(|at| ring.slot(at).ptr)
        .collect()
}

/// Each packet has a time of its own, and a packet of several slots has one.
#[test]
fn packets_come_with_their_times() {
    for mode in [MirrorMode::CopySent, MirrorMode::SwapReceived] {
        let w = World::new(SLOTS);
        (0..3).for_each(|i| w.put(i, 7, 60, 0));
        let mut mirrors = w.mirror(mode);
        for i in 0..3 {
            mirrors.copy(w.ring.ring(), i, i + 1);
            mirrors.swap(w.ring.ring(), i, i + 1);
        }
        let times = times(&w);
        assert!(times[0] > 0 && times.is_sorted(), "{mode:?}: {times:?}");
    }
    let w = World::new(SLOTS);
    w.put(0, 7, 60, NS_MOREFRAG);
    w.put(1, 7, 60, 0);
    w.mirror(MirrorMode::CopySent).copy(w.ring.ring(), 0, 2);
    let slots = [NS_MOREFRAG, 0].map(|flags| Shown { len: 60, flags, time: 0 });
    w.mirror(MirrorMode::CopySent).show(&[0; 120], &slots);
    let times = times(&w);
    assert!(times[0] == times[1] && times[2] == times[3] && times[0] < times[2], "{times:?}");
}

/// What the mirrored ring says of a packet is handed on, but for 0, by which it says that it does
/// not know.
#[test]
fn times_of_the_mirrored_ring_are_handed_on() {
    let w = World::new(SLOTS);
    w.put(0, 7, 60, 0);
    w.put(1, 7, 60, 0);
    w.ring.ring().set_slot_ptr(0, 5);
    let mirror = Mirror::new(w.monitor.clone(), w.doorbell.clone(), MirrorMode::CopySent);
    let mut mirrors = Mirrors::from_iter([mirror.with_times(TimeSource::Slot)]);
    mirrors.copy(w.ring.ring(), 0, 2);
    let times = times(&w);
    assert!(times[0] == 5 && times[1] > 5, "{times:?}");
}

/// Where no packet ends among the slots that find no room, all are missed, and no more.
#[test]
fn missed_slots_of_a_packet_without_an_end_are_counted() {
    let w = World::new(SLOTS);
    let slots = vec![Shown { len: 60, flags: NS_MOREFRAG, time: 0 }; SLOTS as usize + 3];
    w.mirror(MirrorMode::CopySent).show(&vec![0; 60 * slots.len()], &slots);
    assert_eq!(w.monitor.counters().ring_full.load(Relaxed), u64::from(SLOTS) + 3);
}

/// So is that which comes with the bytes of a packet, for all of its slots.
#[test]
fn times_of_shown_packets_are_handed_on() {
    let w = World::new(SLOTS);
    let slots = [(NS_MOREFRAG, 5), (0, 5), (0, 0), (0, 7)];
    let slots = slots.map(|(flags, time)| Shown { len: 60, flags, time });
    w.mirror(MirrorMode::CopySent).show(&[0; 240], &slots);
    let times = times(&w);
    assert!(times[..2] == [5, 5] && times[2] > 7 && times[3] == 7, "{times:?}");
}
