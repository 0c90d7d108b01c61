//! A `netmap_ring` and its slots in shared memory.

use std::{
    mem::offset_of,
    sync::{
        Arc,
        atomic::{
            AtomicU32, AtomicU64,
            Ordering::{Relaxed, SeqCst},
            compiler_fence,
        },
    },
};

use ringway_abi::{Dir, netmap_ring};

use crate::{
    buf::Buf,
    region::{Bufs, Region},
    shared::{ArrayView, PairView, View},
};

pub use ringway_abi::netmap_slot as Slot;

/// Bytes of a ring in front of its slots.
const HEAD_SIZE: u64 = size_of::<netmap_ring>() as u64;

/// Spare buffers of a ring, at most.
pub const MAX_SPARES: u32 = 128;

/// Everything about a ring that is fixed when it is made.
#[derive(Clone, Copy, Debug)]
pub struct RingInit {
    /// Which way its packets go.
    pub dir: Dir,
    /// Index within the port and direction, host rings after NIC rings.
    pub ringid: u16,
    /// Slots, at least one.
    pub num_slots: u32,
}

/// The head of a `netmap_ring`, as it stands in memory.
#[repr(C)]
struct Head {
    buf_ofs: AtomicU64,
    num_slots: AtomicU32,
    nr_buf_size: AtomicU32,
    /// `ringid`, and `dir` behind it.
    ringid_dir: AtomicU32,
    head: AtomicU32,
    cur: AtomicU32,
    tail: AtomicU32,
    flags: AtomicU32,
    _padding: AtomicU32,
    ts: [AtomicU64; 2],
    offset_mask: AtomicU64,
    _buf_align: AtomicU64,
    data_size: AtomicU32,
    _unused: AtomicU32,
}
crate::shared_struct!(Head {
    buf_ofs,
    num_slots,
    nr_buf_size,
    ringid_dir,
    head,
    cur,
    tail,
    flags,
    _padding,
    ts,
    offset_mask,
    _buf_align,
    data_size,
    _unused
});

const _: () = {
    assert!(offset_of!(Head, buf_ofs) == offset_of!(netmap_ring, buf_ofs));
    assert!(offset_of!(Head, num_slots) == offset_of!(netmap_ring, num_slots));
    assert!(offset_of!(Head, nr_buf_size) == offset_of!(netmap_ring, nr_buf_size));
    assert!(offset_of!(Head, ringid_dir) == offset_of!(netmap_ring, ringid));
    assert!(offset_of!(Head, ringid_dir) + 2 == offset_of!(netmap_ring, dir));
    assert!(offset_of!(Head, head) == offset_of!(netmap_ring, head));
    assert!(offset_of!(Head, cur) == offset_of!(netmap_ring, cur));
    assert!(offset_of!(Head, tail) == offset_of!(netmap_ring, tail));
    assert!(offset_of!(Head, flags) == offset_of!(netmap_ring, flags));
    assert!(offset_of!(Head, ts) == offset_of!(netmap_ring, ts));
    assert!(offset_of!(Head, offset_mask) == offset_of!(netmap_ring, offset_mask));
    assert!(offset_of!(Head, data_size) == offset_of!(netmap_ring, nr_data_size));
};

/// A slot's two words: index, length and flags in the first, `ptr` in the second.
pub type SlotWords = [AtomicU64; 2];

/// A ring of `num_slots` slots. The number of slots and the place are this process's own
/// knowledge; only `head`, `cur`, `tail`, flags and slots are read from memory.
///
/// All accesses are relaxed: the ring is the program's private view (DESIGN: one sync
/// protocol); what crosses processes is ordered by the kring.
#[derive(Clone, Debug)]
pub struct RingView {
    head: View<Head>,
    /// And the shadow words, which are Ringway's own.
    slots: PairView<SlotWords, AtomicU32>,
    /// Behind the shadow words of the slots, where there is room.
    spares: ArrayView<AtomicU32>,
}

impl RingView {
    /// The ring in ring object `object`, with `num_slots` slots; `None` if there is no such
    /// object or the slots do not fit it.
    pub fn new(region: &Arc<Region>, object: u32, num_slots: u32) -> Option<RingView> {
        let fits = (1..=region.layout().max_slots()).contains(&num_slots);
        let at = region.layout().rings.object(object).filter(|_| fits)?;
        let slots = ArrayView::new(region, at + HEAD_SIZE, num_slots)?;
        let shadow_at = region.layout().shadow(object)?;
        let shadow = ArrayView::new(region, shadow_at, num_slots)?;
        let room = (region.layout().max_slots() - num_slots).min(MAX_SPARES);
        let spares = ArrayView::new(region, shadow_at + u64::from(num_slots) * 4, room)?;
        let slots = PairView::new(slots, shadow)?;
        Some(RingView { head: View::new(region, at)?, slots, spares })
    }

    /// Writes a fresh ring: all of S-NIFP-4 but the buffers of its slots.
    pub fn init(&self, object: u32, init: &RingInit) {
        let layout = self.region().layout();
        let Some(at) = layout.rings.object(object) else { return };
        if let Some(all) = View::<[AtomicU64; HEAD_SIZE as usize / 8]>::new(self.region(), at) {
            all.iter().for_each(|word| word.store(0, Relaxed));
        }
        let Head { buf_ofs, num_slots, nr_buf_size, ringid_dir, tail, data_size, .. } = &*self.head;
        buf_ofs.store((layout.bufs.offset + u64::from(layout.headroom)).wrapping_sub(at), Relaxed);
        num_slots.store(self.num_slots(), Relaxed);
        // Programs find buffers by it, so it is the distance between two, headroom
        // included: the last bytes of a buffer are the next one's headroom.
        nr_buf_size.store(layout.bufs.size, Relaxed);
        data_size.store(layout.data_size(), Relaxed);
        let [a, b] = init.ringid.to_ne_bytes();
        let [c, d] = init.dir.abi().to_ne_bytes();
        ringid_dir.store(u32::from_ne_bytes([a, b, c, d]), Relaxed);
        let last = match init.dir {
            Dir::Tx => self.num_slots() - 1,
            Dir::Rx => 0,
        };
        tail.store(last, Relaxed);
    }

    /// Slots of the ring: this process's own knowledge.
    #[inline]
    pub fn num_slots(&self) -> u32 {
        self.slots.len()
    }

    /// The region that the ring is in.
    #[inline]
    pub fn region(&self) -> &Arc<Region> {
        self.head.region()
    }

    /// Index after `i`. As for the next three, `i` may be any number, as it was read from memory:
    /// then so is the result.
    #[inline]
    pub fn next(&self, i: u32) -> u32 {
        let next = i.wrapping_add(1);
        if next >= self.num_slots() { 0 } else { next }
    }

    /// Index before `i`.
    #[inline]
    pub fn prev(&self, i: u32) -> u32 {
        if i == 0 { self.num_slots() - 1 } else { i - 1 }
    }

    /// Slots from `from` up to `to`.
    #[inline]
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        let distance = to.wrapping_sub(from);
        if to >= from { distance } else { distance.wrapping_add(self.num_slots()) }
    }

    /// Index `by` slots after `i`, for `by <= num_slots`.
    #[inline]
    pub fn advance(&self, i: u32, by: u32) -> u32 {
        let at = i.wrapping_add(by);
        if at >= self.num_slots() { at - self.num_slots() } else { at }
    }

    /// `head` as it stands in memory: any number.
    #[inline]
    pub fn head(&self) -> u32 {
        self.head.head.load(Relaxed)
    }

    /// `cur` as it stands in memory: any number.
    #[inline]
    pub fn cur(&self) -> u32 {
        self.head.cur.load(Relaxed)
    }

    /// `tail` as it stands in memory: any number.
    #[inline]
    pub fn tail(&self) -> u32 {
        self.head.tail.load(Relaxed)
    }

    /// `flags` (`NR_*`) as they stand in memory.
    #[inline]
    pub fn flags(&self) -> u32 {
        self.head.flags.load(Relaxed)
    }

    /// Stores `head`.
    #[inline]
    pub fn set_head(&self, v: u32) {
        self.head.head.store(v, Relaxed);
    }

    /// Stores `cur`.
    #[inline]
    pub fn set_cur(&self, v: u32) {
        self.head.cur.store(v, Relaxed);
    }

    /// Stores `tail`.
    #[inline]
    pub fn set_tail(&self, v: u32) {
        self.head.tail.store(v, Relaxed);
    }

    /// The bits of a slot's `ptr` that hold the offset of its data (S-OFF-3).
    pub fn set_offset_mask(&self, mask: u64) {
        self.head.offset_mask.store(mask, Relaxed);
    }

    /// Stamps the ring with the time of the last receive.
    pub fn set_ts(&self, seconds: i64, micros: i64) {
        self.head.ts[0].store(seconds as u64, Relaxed);
        self.head.ts[1].store(micros as u64, Relaxed);
    }

    /// Slot `i` as the two words it is stored in: index, length and flags in the first,
    /// `ptr` in the second.
    #[inline]
    pub fn slot_words(&self, i: u32) -> [u64; 2] {
        let [a, b] = self.slots.first(i);
        [a.load(Relaxed), b.load(Relaxed)]
    }

    /// Stores the two words of slot `i`.
    #[inline]
    pub fn set_slot_words(&self, i: u32, words: [u64; 2]) {
        let [a, b] = self.slots.first(i);
        a.store(words[0], Relaxed);
        b.store(words[1], Relaxed);
    }

    /// The words of slot `i`, where they are.
    #[inline]
    pub fn words(&self, i: u32) -> &SlotWords {
        self.slots.first(i)
    }

    /// The words of the slots from `from` up to `to`, each with those of the same slot of another ring: for a loop over
    /// many. None where `from` is behind `to`, or where not both rings have these slots.
    #[inline]
    pub fn zip<'v>(
        &'v self,
        other: &'v RingView,
        from: u32,
        to: u32,
    ) -> impl Iterator<Item = (&'v SlotWords, &'v SlotWords)> {
        self.slots.zip_first(&other.slots, from, to)
    }

    /// Slots between `head` and `tail`; none if somebody spoiled the cursors.
    #[inline]
    pub fn held(&self) -> u32 {
        let (head, tail, n) = (self.head(), self.tail(), self.num_slots());
        if head < n && tail < n { self.distance(head, tail) } else { 0 }
    }

    /// A copy of slot `i`.
    #[inline]
    pub fn slot(&self, i: u32) -> Slot {
        Slot { ptr: self.slots.first(i)[1].load(Relaxed), ..self.plain_slot(i) }
    }

    /// A copy of slot `i` without its `ptr`, which reads 0: one load.
    #[inline]
    pub fn plain_slot(&self, i: u32) -> Slot {
        let word = self.slots.first(i)[0].load(Relaxed);
        Slot { buf_idx: word as u32, len: (word >> 32) as u16, flags: (word >> 48) as u16, ptr: 0 }
    }

    /// Stores index, length and flags of slot `i`, and leaves its `ptr`. A slot that says so
    /// already is not written: its cache line may be shared with another core.
    #[inline]
    pub fn set_slot(&self, i: u32, buf_idx: u32, len: u16, flags: u16) {
        let word = u64::from(buf_idx) | u64::from(len) << 32 | u64::from(flags) << 48;
        let first = &self.slots.first(i)[0];
        if first.load(Relaxed) != word {
            first.store(word, Relaxed);
        }
    }

    /// Stores two slots that exchange their buffers: `slot` in slot `i` here, `others` in slot `j` of `other`. A process
    /// that is killed in between leaves slot `i` with no buffer, and never two slots with the same.
    #[inline]
    pub fn exchange(&self, i: u32, slot: &Slot, other: &RingView, j: u32, others: &Slot) {
        self.set_slot(i, 0, 0, 0);
        compiler_fence(SeqCst);
        other.set_slot(j, others.buf_idx, others.len, others.flags);
        compiler_fence(SeqCst);
        self.set_slot(i, slot.buf_idx, slot.len, slot.flags);
    }

    /// Stores the `ptr` of slot `i`.
    #[inline]
    pub fn set_slot_ptr(&self, i: u32, ptr: u64) {
        self.slots.first(i)[1].store(ptr, Relaxed);
    }

    /// The shadow word of slot `i`: a place for the driver to note what it lent to the kernel, out
    /// of the way of the program's slots.
    #[inline]
    pub fn shadow(&self, i: u32) -> &AtomicU32 {
        self.slots.second(i)
    }

    /// Words for indices of spare buffers, which are in no slot: up to [`MAX_SPARES`], or none where the ring fills its
    /// object.
    pub fn spares(&self) -> impl Iterator<Item = &AtomicU32> {
        self.spares.iter()
    }

    /// The `i`th of them.
    pub fn spare(&self, i: u32) -> Option<&AtomicU32> {
        self.spares.get(i)
    }

    /// The buffer with the given index, if it is one of the region's.
    #[inline]
    pub fn buf(&self, index: u32) -> Option<Buf<'_>> {
        self.region().buf(index)
    }

    /// All buffers of the region.
    #[inline]
    pub fn bufs(&self) -> Bufs<'_> {
        self.region().bufs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Sizes};

    const SLOTS: u32 = 8;

    fn ring() -> RingView {
        let sizes = Sizes::private([1, 1], [SLOTS; 2], 0, 0);
        let region = Arc::new(Region::create(1, Layout::new(&sizes, 0).unwrap()).unwrap());
        RingView::new(&region, 0, SLOTS).unwrap()
    }

    /// Numbers that stand in memory may be any: nothing panics, also where overflow is looked for.
    #[test]
    fn any_number_can_be_reckoned_with() {
        let ring = ring();
        let numbers = [0, 1, SLOTS - 1, SLOTS, SLOTS + 1, u32::MAX - SLOTS, u32::MAX - 1, u32::MAX];
        for a in numbers {
            let slots = [ring.next(a), ring.prev(a)];
            for b in numbers {
                let (distance, at) = (ring.distance(a, b), ring.advance(a, b));
                if a < SLOTS && b < SLOTS {
                    assert_eq!(distance, (b + SLOTS - a) % SLOTS);
                    assert_eq!(at, (a + b) % SLOTS);
                    assert_eq!(slots, [(a + 1) % SLOTS, (a + SLOTS - 1) % SLOTS]);
                }
            }
        }
    }

    #[test]
    fn held_slots_are_those_from_head_to_tail() {
        let ring = ring();
        for (head, tail) in
            (0..SLOTS + 2).flat_map(|head| (0..SLOTS + 2).map(move |tail| (head, tail)))
        {
            ring.set_head(head);
            ring.set_tail(tail);
            let are_slots = head < SLOTS && tail < SLOTS;
            let steps = (0..SLOTS).find(|by| (head + by) % SLOTS == tail).filter(|_| are_slots);
            assert_eq!(ring.held(), steps.unwrap_or(0), "{head} to {tail}");
        }
    }

    /// Against indices: none but those that both rings have.
    #[test]
    fn slots_of_two_rings_are_walked_in_pairs() {
        let ring = ring();
        let shorter = RingView::new(ring.region(), 1, SLOTS - 2).unwrap();
        (0..SLOTS).for_each(|i| ring.set_slot(i, i + 1, 0, 0));
        (0..SLOTS - 2).for_each(|i| shorter.set_slot(i, i + 101, 0, 0));
        assert_eq!(ring.words(3)[0].load(Relaxed), 4);
        for (from, to) in (0..SLOTS + 2).flat_map(|from| (0..SLOTS + 2).map(move |to| (from, to))) {
            let indices = if to <= SLOTS - 2 { from..to } else { 0..0 };
            let expected: Vec<_> = indices.map(|i| [i + 1, i + 101].map(u64::from)).collect();
            let first = |words: &SlotWords| words[0].load(Relaxed);
            let pairs = ring.zip(&shorter, from, to).map(|(a, b)| [first(a), first(b)]);
            assert_eq!(pairs.collect::<Vec<_>>(), expected, "{from} to {to}");
            let pairs = shorter.zip(&ring, from, to).map(|(a, b)| [first(b), first(a)]);
            assert_eq!(pairs.collect::<Vec<_>>(), expected, "{from} to {to}");
        }
    }

    /// As many as are left of the ring object's shadow words, but for a limit.
    #[test]
    fn spares_stand_behind_the_shadow_words() {
        let region = ring().region().clone();
        let (layout, most) = (region.layout(), region.layout().max_slots());
        let first = region.mapping().base().addr().get() as u64 + layout.shadow(1).unwrap();
        for (slots, count) in
            [(8, 128), (most - 128, 128), (most - 127, 127), (most - 1, 1), (most, 0)]
        {
            let ring = RingView::new(&region, 1, slots).unwrap();
            let found = ring.spares().map(|word| std::ptr::from_ref(word).addr() as u64);
            let expected = (slots..slots + count).map(|i| first + 4 * u64::from(i));
            assert!(found.eq(expected), "{slots}");
            for i in 0..count + 2 {
                let (by_number, in_order) = (ring.spare(i), ring.spares().nth(i as usize));
                let places = [by_number, in_order].map(|word| word.map(std::ptr::from_ref));
                assert_eq!(places[0], places[1], "{slots}: {i}");
            }
        }
    }

    /// Where its parts are, and nothing out of the shared memory.
    #[test]
    fn a_ring_is_shown_by_its_addresses() {
        let ring = ring();
        let head = std::ptr::from_ref(&*ring.head);
        let (slots, shadow) =
            (std::ptr::from_ref(ring.words(0)), std::ptr::from_ref(ring.shadow(0)));
        let spares = std::ptr::from_ref(ring.spare(0).unwrap());
        let shown = format!("{ring:?}");
        let expected = format!(
            "RingView {{ head: {head:p}, slots: {slots:p} + {SLOTS}, {shadow:p}, spares: {spares:p} + {MAX_SPARES} }}"
        );
        assert_eq!(shown, expected);
    }
}
