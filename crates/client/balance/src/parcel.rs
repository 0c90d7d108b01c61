//! A packet in the slots of a ring.

use ringway::{NS_MOREFRAG, Slot, Slots};

/// `count` slots, from the `at`th on.
#[derive(Clone, Copy)]
pub struct Parcel {
    pub at: u32,
    pub count: u32,
    pub hash: u32,
}

impl Parcel {
    /// The packet that begins at slot `at`, which is `first`, of those before `end`.
    #[inline]
    pub fn find(slots: &Slots<'_>, at: u32, first: Slot, end: u32, hash: u32) -> Parcel {
        let count = match first.flags & NS_MOREFRAG {
            0 => 1,
            _ => Parcel::count(slots, at, end),
        };
        Parcel { at, count, hash }
    }

    #[cold]
    fn count(slots: &Slots<'_>, at: u32, end: u32) -> u32 {
        let mut next = at;
        while next + 1 < end && slots.get(next).flags & NS_MOREFRAG != 0 {
            next += 1;
        }
        next + 1 - at
    }

    /// Of a packet of several slots: the bytes in those after the first.
    #[inline]
    pub fn bytes_behind_first(&self, slots: &Slots<'_>) -> u64 {
        (1..self.count).map(|n| u64::from(slots.get(self.at + n).len)).sum()
    }

    pub fn bytes(&self, slots: &Slots<'_>) -> u64 {
        u64::from(slots.get(self.at).len) + self.bytes_behind_first(slots)
    }
}
