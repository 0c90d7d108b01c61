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
    fn second(&self) -> u64 {
        let ends = u64::from(self.error) << 48 | u64::from(self.flags) << 56;
        u64::from(self.len) | u64::from(self.offset) << 32 | ends
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
    /// The next slot to fetch and to give back: counts on.
    at: u32,
    /// Slots up to here were the kernel's when they were last looked at.
    seen: u32,
    /// Slots that were given back, less those that were handed over since: what the program has not seen, if it hands
    /// over as much as it consumes.
    unseen: u32,
    /// Where the program was last told of slots that had come back.
    told: u32,
}

impl DescRing {
    /// The ring in `words`, two a descriptor and a power of two of descriptors, from [position](Self::position)
    /// `at` on.
    pub fn new(words: Words, at: u32) -> DescRing {
        let mask = (words.len() / 2) as u32 - 1;
        DescRing { words, mask, at, seen: at, unseen: 0, told: at }
    }

    /// Descriptors of the ring.
    pub fn len(&self) -> u32 {
        self.mask + 1
    }

    #[inline]
    fn pair(&self, at: u32) -> [&AtomicU64; 2] {
        self.words.pair((at & self.mask) as usize)
    }

    /// The `n`th of the slots that the program has handed over, if there are so many.
    #[inline]
    pub fn peek(&self, n: u32) -> Option<Desc> {
        if n > self.mask {
            return None;
        }
        let [first, second] = self.pair(self.at.wrapping_add(n));
        let second = second.load(Acquire);
        let desc = Desc::of(first.load(Relaxed), second);
        (desc.flags & TP4_DESC_KERNEL != 0).then_some(desc)
    }

    /// Writes `desc` to the next slot, which is the program's then.
    #[inline]
    pub fn give_back(&mut self, desc: Desc) {
        let [first, second] = self.pair(self.at);
        first.store(desc.idx, Relaxed);
        second.store(desc.second() & !(u64::from(TP4_DESC_KERNEL) << 56), Release);
        if self.seen == self.at {
            self.seen = self.seen.wrapping_add(1);
            self.unseen = self.unseen.saturating_sub(1);
        }
        self.at = self.at.wrapping_add(1);
        self.unseen += 1;
    }

    /// Slots that were given back so far: it counts on.
    pub fn position(&self) -> u32 {
        self.at
    }

    /// Slots that the program has handed over and not got back.
    pub fn outstanding(&mut self) -> u32 {
        while self.seen.wrapping_sub(self.at) <= self.mask {
            let [_, second] = self.pair(self.seen);
            if second.load(Acquire) >> 56 & u64::from(TP4_DESC_KERNEL) == 0 {
                break;
            }
            self.seen = self.seen.wrapping_add(1);
            self.unseen = self.unseen.saturating_sub(1);
        }
        self.seen.wrapping_sub(self.at)
    }

    /// Whether there are received packets that the program has not seen. The kernel cannot see what a program has
    /// consumed, only what it hands over: so one that has handed over less than it has got since still has something
    /// to look at, and so has one that was not told of the last.
    pub fn has_received(&mut self) -> bool {
        self.outstanding();
        self.tells(self.unseen > 0)
    }

    /// Whether slots have come back since the program was last told of some, or none is to come back.
    pub fn has_completed(&mut self) -> bool {
        let idle = self.outstanding() == 0;
        self.tells(idle)
    }

    fn tells(&mut self, anyway: bool) -> bool {
        let news = self.told != self.at;
        self.told = self.at;
        anyway || news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hand_over(ring: &DescRing, at: u32, desc: Desc) {
        let [first, second] = ring.pair(at);
        first.store(desc.idx, Relaxed);
        second.store(desc.second() | u64::from(TP4_DESC_KERNEL) << 56, Release);
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
