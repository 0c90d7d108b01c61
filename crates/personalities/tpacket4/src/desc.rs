//! A ring of descriptors, as the kernel's side of it sees it.
//!
//! A descriptor is two words. The flags, and with them the ownership, are in the second: to store that is to hand
//! the slot over, whole. Only the owner of a slot writes it; a program that does otherwise spoils its own slots,
//! and no more.

use std::{
    mem::offset_of,
    sync::atomic::{AtomicU64, Ordering::*},
};

use crate::{
    abi::{TP4_DESC_KERNEL, TP4_PKT_CONT, tpacket4_desc},
    sys::Words,
};

/// The bit of a descriptor's second word by which the slot is the kernel's.
const KERNEL: u64 = (TP4_DESC_KERNEL as u64) << 56;

/// A copy of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Desc {
    pub idx: u64,
    pub len: u32,
    pub offset: u16,
    pub error: u8,
    pub flags: u8,
}

const _: () = {
    assert!(cfg!(target_endian = "little"));
    assert!(offset_of!(tpacket4_desc, len) == 8 && offset_of!(tpacket4_desc, flags) == 15);
};

impl Desc {
    #[inline]
    fn of(idx: u64, second: u64) -> Desc {
        let (len, offset) = (second as u32, (second >> 32) as u16);
        Desc { idx, len, offset, error: (second >> 48) as u8, flags: (second >> 56) as u8 }
    }

    #[inline]
    pub fn second(&self) -> u64 {
        let ends = u64::from(self.error) << 48 | u64::from(self.flags) << 56;
        u64::from(self.len) | u64::from(self.offset) << 32 | ends
    }

    /// A received packet's, as it is given back.
    #[inline]
    pub fn received(idx: u64, len: u32, offset: u32) -> Desc {
        Desc { idx, len, offset: offset as u16, error: 0, flags: 0 }
    }

    /// The same, given back.
    #[inline]
    pub fn returned(self, error: u8) -> Desc {
        Desc { error, flags: self.flags & !TP4_DESC_KERNEL, ..self }
    }

    /// Whether the packet goes on in the next one.
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.flags & TP4_PKT_CONT != 0
    }
}

/// One ring, with the place of the next slot that is to be given back. Descriptors are fetched and given back in one
/// go, so that the kernel's two counters are one here.
pub struct DescRing {
    words: Words,
    mask: u32,
    cursors: Cursors,
    /// Where the program was last told of slots that had come back.
    told: u32,
}

struct Cursors {
    /// The next slot to fetch and to give back: counts on.
    at: u32,
    /// Slots up to here were the kernel's when they were last looked at.
    seen: u32,
    /// Slots that were given back, less those that were handed over since: what the program has not seen, if it hands
    /// over as much as it consumes.
    unseen: u32,
}

impl Cursors {
    /// So many slots more were given back.
    #[inline]
    fn advance(&mut self, slots: u32) {
        // Those that were handed over meanwhile: for each the program has seen one that was given back before.
        let newly = slots.saturating_sub(self.seen.wrapping_sub(self.at));
        self.at = self.at.wrapping_add(slots);
        self.seen = self.seen.wrapping_add(newly);
        self.unseen = (self.unseen + slots - newly).max(u32::from(newly > 0));
    }
}

impl DescRing {
    /// The ring in `words`, two a descriptor and a power of two of descriptors, from [position](Self::position)
    /// `at` on.
    pub fn new(words: Words, at: u32) -> DescRing {
        let mask = (words.len() / 2) as u32 - 1;
        DescRing { words, mask, cursors: Cursors { at, seen: at, unseen: 0 }, told: at }
    }

    /// Descriptors of the ring.
    pub fn len(&self) -> u32 {
        self.mask + 1
    }

    #[inline]
    fn pair(&self, at: u32) -> [&AtomicU64; 2] {
        self.words.pair((at & self.mask) as usize)
    }

    /// The slots at the front, for many packets at once.
    #[inline]
    pub fn burst(&mut self) -> Burst<'_> {
        let DescRing { words, mask, cursors, .. } = self;
        Burst { slots: words.pairs(), mask: *mask, at: cursors.at, cursors }
    }

    /// The `n`th of the slots that the program has handed over, if there are so many.
    #[inline]
    pub fn peek(&self, n: u32) -> Option<Desc> {
        if n > self.mask {
            return None;
        }
        let [first, second] = self.pair(self.cursors.at.wrapping_add(n));
        let second = second.load(Acquire);
        let desc = Desc::of(first.load(Relaxed), second);
        (desc.flags & TP4_DESC_KERNEL != 0).then_some(desc)
    }

    /// Writes `desc` to the next slot, which is the program's then.
    #[inline]
    pub fn give_back(&mut self, desc: Desc) {
        let [first, second] = self.pair(self.cursors.at);
        first.store(desc.idx, Relaxed);
        second.store(desc.second() & !KERNEL, Release);
        self.cursors.advance(1);
    }

    /// Slots that were given back so far: it counts on.
    pub fn position(&self) -> u32 {
        self.cursors.at
    }

    /// Slots that the program has handed over and not got back.
    pub fn outstanding(&mut self) -> u32 {
        while self.cursors.seen.wrapping_sub(self.cursors.at) <= self.mask {
            let [_, second] = self.pair(self.cursors.seen);
            if second.load(Acquire) & KERNEL == 0 {
                break;
            }
            self.cursors.seen = self.cursors.seen.wrapping_add(1);
            self.cursors.unseen = self.cursors.unseen.saturating_sub(1);
        }
        self.cursors.seen.wrapping_sub(self.cursors.at)
    }

    /// Whether there are received packets that the program has not seen. The kernel cannot see what a program has
    /// consumed, only what it hands over: so one that has handed over less than it has got since still has something
    /// to look at, and so has one that was not told of the last.
    pub fn has_received(&mut self) -> bool {
        self.outstanding();
        self.tells(self.cursors.unseen > 0)
    }

    /// Whether slots have come back since the program was last told of some, or none is to come back.
    pub fn has_completed(&mut self) -> bool {
        let idle = self.outstanding() == 0;
        self.tells(idle)
    }

    fn tells(&mut self, anyway: bool) -> bool {
        let news = self.told != self.cursors.at;
        self.told = self.cursors.at;
        anyway || news
    }
}

/// A ring whose slots are given back one behind the other, each with the frame that the program has put there. They are
/// counted at its end, all at once.
pub struct Burst<'r> {
    slots: &'r [[AtomicU64; 2]],
    mask: u32,
    at: u32,
    cursors: &'r mut Cursors,
}

impl Burst<'_> {
    #[inline]
    fn slot(&self) -> &[AtomicU64; 2] {
        &self.slots[(self.at & self.mask) as usize]
    }

    /// The next slot that the program has handed over, if there is one.
    #[inline]
    pub fn peek(&self) -> Option<Desc> {
        let [first, second] = self.slot();
        let second = second.load(Acquire);
        (second & KERNEL != 0).then(|| Desc::of(first.load(Relaxed), second))
    }

    /// The frame that the slot `n` behind it names, on either side.
    #[inline]
    pub fn ahead(&self, n: u32) -> u64 {
        self.slots[(self.at.wrapping_add(n) & self.mask) as usize][0].load(Relaxed)
    }

    /// Gives that slot back: the frame's number stays as it is.
    #[inline]
    pub fn give_back(&mut self, desc: Desc) {
        let [_, second] = self.slot();
        second.store(desc.second() & !KERNEL, Release);
        self.at = self.at.wrapping_add(1);
    }
}

impl Drop for Burst<'_> {
    #[inline]
    fn drop(&mut self) {
        self.cursors.advance(self.at.wrapping_sub(self.cursors.at));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hand_over(ring: &DescRing, at: u32, desc: Desc) {
        let [first, second] = ring.pair(at);
        first.store(desc.idx, Relaxed);
        second.store(desc.second() | u64::from(TP4_DESC_KERNEL) << 56, Release);
    }

    /// A ring's counts, slot by slot, and what the program has handed over.
    struct Model {
        at: u32,
        seen: u32,
        unseen: u32,
        handed: u32,
    }

    impl Model {
        fn give_back(&mut self) {
            if self.seen == self.at {
                self.see();
            }
            self.at = self.at.wrapping_add(1);
            self.unseen += 1;
        }

        fn see(&mut self) {
            self.seen = self.seen.wrapping_add(1);
            self.unseen = self.unseen.saturating_sub(1);
        }

        fn look(&mut self) {
            while self.seen != self.handed {
                self.see();
            }
        }

        /// The slot that the program hands over next, if one is the program's.
        fn hand_over(&mut self, len: u32) -> Option<u32> {
            let next = self.handed;
            if next.wrapping_sub(self.at) == len {
                return None;
            }
            self.handed = next.wrapping_add(1);
            Some(next)
        }
    }

    /// What happens to a ring.
    #[derive(Clone, Debug)]
    enum Event {
        HandOver,
        GiveBack,
        Look,
        /// Slots that are given back, and in between others that are handed over (`true`).
        Burst(Vec<bool>),
    }

    fn any_event() -> impl Strategy<Value = Event> {
        prop_oneof![
            4 => Just(Event::HandOver),
            2 => Just(Event::GiveBack),
            1 => Just(Event::Look),
            2 => proptest::collection::vec(any::<bool>(), 0..24).prop_map(Event::Burst),
        ]
    }

    proptest! {
        /// Also where the counts begin anew.
        #[test]
        fn a_burst_counts_as_one_by_one(
            start in prop_oneof![Just(0u32), any::<u32>(), u32::MAX - 20..=u32::MAX],
            events in proptest::collection::vec(any_event(), 0..60),
        ) {
            let mut ring = DescRing::new(Words::private(16), start);
            let mut model = Model { at: start, seen: start, unseen: 0, handed: start };
            for event in events {
                match event {
                    Event::HandOver => if let Some(at) = model.hand_over(8) {
                        hand_over(&ring, at, ANY);
                    }
                    Event::GiveBack => if let Some(desc) = ring.peek(0) {
                        ring.give_back(desc.returned(0));
                        model.give_back();
                    }
                    Event::Look => {
                        model.look();
                        prop_assert_eq!(ring.outstanding(), model.seen.wrapping_sub(model.at));
                    }
                    Event::Burst(events) => {
                        let mut burst = ring.burst();
                        for hands_over in events {
                            if !hands_over {
                                let desc = burst.peek();
                                prop_assert_eq!(desc.is_some(), model.handed != model.at);
                                let Some(desc) = desc else { continue };
                                burst.give_back(desc.returned(0));
                                model.give_back();
                            } else if let Some(at) = model.hand_over(8) {
                                let [first, second] = &burst.slots[at as usize % 8];
                                first.store(ANY.idx, Relaxed);
                                second.store(ANY.second() | KERNEL, Release);
                            }
                        }
                    }
                }
                let Cursors { at, seen, unseen } = ring.cursors;
                prop_assert_eq!([at, seen, unseen], [model.at, model.seen, model.unseen]);
            }
        }
    }

    const ANY: Desc = Desc { idx: 7, len: 60, offset: 320, error: 0, flags: TP4_PKT_CONT };

    #[test]
    fn a_descriptor_is_what_the_abi_says() {
        let memory = Words::private(8);
        let mut ring = DescRing::new(memory, 0);
        hand_over(&ring, 0, ANY);
        let got = ring.peek(0).unwrap();
        assert_eq!(got, Desc { flags: TP4_DESC_KERNEL | TP4_PKT_CONT, ..ANY });
        assert!(ring.peek(1).is_none() && ring.peek(4).is_none());
        ring.give_back(got.returned(9));
        let bytes: Vec<u8> =
            ring.pair(0).into_iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
        assert_eq!(bytes, [7, 0, 0, 0, 0, 0, 0, 0, 60, 0, 0, 0, 64, 1, 9, TP4_PKT_CONT]);
    }

    #[test]
    fn a_ring_goes_round() {
        let mut ring = DescRing::new(Words::private(8), 0);
        for round in 0..10 {
            for n in 0..3u32 {
                hand_over(&ring, round * 3 + n, Desc { idx: n.into(), ..ANY });
            }
            for n in 0..3u32 {
                let desc = ring.peek(0).unwrap();
                assert_eq!(desc.idx, u64::from(n));
                ring.give_back(desc.returned(0));
            }
            assert!(ring.peek(0).is_none());
        }
    }

    #[test]
    fn what_was_received_is_told_until_the_program_has_given_back_as_much() {
        let mut ring = DescRing::new(Words::private(16), 0);
        assert!(!ring.has_received());
        (0..4).for_each(|at| hand_over(&ring, at, ANY));
        assert!(!ring.has_received());
        ring.give_back(ANY);
        assert!(ring.has_received() && ring.has_received());
        hand_over(&ring, 4, ANY);
        assert!(!ring.has_received());
        // Given back in the same moment as another came.
        ring.give_back(ANY);
        hand_over(&ring, 5, ANY);
        assert!(ring.has_received() && !ring.has_received());
    }

    #[test]
    fn a_transmit_ring_has_completed_when_nothing_is_to_come_back() {
        let mut ring = DescRing::new(Words::private(16), 0);
        assert!(ring.has_completed());
        (0..2).for_each(|at| hand_over(&ring, at, ANY));
        assert!(!ring.has_completed());
        ring.give_back(ANY);
        assert!(ring.has_completed() && !ring.has_completed());
        ring.give_back(ANY);
        assert!(ring.has_completed() && ring.has_completed());
    }
}
