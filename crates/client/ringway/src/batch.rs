//! The slots that the program holds, taken one after the other: what sending and receiving have
//! in common.

use ringway_abi::NS_MOREFRAG;
use ringway_region::RingView;

/// Slots between `head` and `tail`, as of the last sync; none if somebody spoiled the cursors.
pub(crate) fn held(ring: &RingView) -> usize {
    ring.held() as usize
}

/// Takes slots from `head` on. On drop `head` and `cur` move past those that were taken.
#[derive(Debug)]
pub(crate) struct Batch<'r> {
    ring: &'r RingView,
    at: u32,
    left: u32,
    taken: u32,
}

impl<'r> Batch<'r> {
    /// Up to `max` of the slots that the program holds.
    pub fn new(ring: &'r RingView, max: usize) -> Batch<'r> {
        Batch { ring, at: ring.head(), left: held(ring).min(max) as u32, taken: 0 }
    }

    pub fn ring(&self) -> &'r RingView {
        self.ring
    }

    /// Index of the next slot.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        self.taken += 1;
        let index = self.at;
        self.at = self.ring.next(index);
        Some(index)
    }

    /// The last `slots` are not taken after all, and come again.
    pub fn take_back(&mut self, slots: u32) {
        let slots = slots.min(self.taken);
        self.taken -= slots;
        self.left += slots;
        self.at = self.ring.advance(self.at, self.ring.num_slots() - slots);
    }

    /// Slots of the packet that begins with the next one, and whether its end is among them.
    #[inline]
    pub fn packet(&self) -> (usize, bool) {
        let mut at = self.at;
        for count in 1..=self.left {
            if self.ring.slot(at).flags & NS_MOREFRAG == 0 {
                return (count as usize, true);
            }
            at = self.ring.next(at);
        }
        (self.left as usize, false)
    }

    pub fn left(&self) -> usize {
        self.left as usize
    }

    /// What was taken is not taken after all.
    pub fn give_up(&mut self) {
        self.taken = 0;
    }
}

impl Drop for Batch<'_> {
    #[inline]
    fn drop(&mut self) {
        let head = self.ring.head().min(self.ring.num_slots() - 1);
        let head = self.ring.advance(head, self.taken);
        self.ring.set_cur(head);
        self.ring.set_head(head);
    }
}
