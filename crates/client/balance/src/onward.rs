//! Which packets in an output's ring have not been passed on to the next group yet.

use ringway::{NS_MOREFRAG, Slots};

use crate::parcel::Parcel;

/// For each slot of the ring that holds a packet, or a part of one, that has not been passed on: its hash.
pub struct Onward(Vec<Option<u32>>);

/// The slots that a consumer has given back: those from `first` on before `end`, and whether those are all of the ring.
#[derive(Clone, Copy)]
pub struct Returned {
    pub first: u32,
    pub end: u32,
    pub all: bool,
}

impl Onward {
    /// Of a ring with so many slots, which is empty.
    pub fn new(slots: u32) -> Onward {
        Onward(vec![None; slots as usize])
    }

    /// The slot at this place of the ring has a packet with this hash, or a part of one.
    #[inline]
    pub fn put(&mut self, place: u32, hash: u32) {
        self.0[place as usize] = Some(hash);
    }

    fn hash(&self, place: u32) -> Option<u32> {
        self.0[place as usize]
    }

    /// Returned slots whose packets have not been passed on.
    pub fn count(&self, slots: &Slots<'_>, returned: Returned) -> u32 {
        let places = (returned.first..returned.end).map(|n| slots.place(n));
        places.filter(|place| self.hash(*place).is_some()).count() as u32
    }

    /// Passes these on, packet by packet; returns the first slot that stays, and how many slots were passed on.
    pub fn pass_on(
        &mut self,
        slots: &mut Slots<'_>,
        returned: Returned,
        mut pass_on: impl FnMut(&mut Slots<'_>, Parcel),
    ) -> (u32, u32) {
        let Returned { first: mut at, end, all } = returned;
        let mut passed = 0;
        while at < end {
            let Some(hash) = self.hash(slots.place(at)) else {
                at += 1;
                continue;
            };
            let parcel = Parcel::find(slots, at, slots.get(at), end, hash);
            let last = at + parcel.count - 1;
            if slots.get(last).flags & NS_MOREFRAG != 0 && !all {
                // The rest of it is still the consumer's.
                break;
            }
            pass_on(slots, parcel);
            (at..=last).for_each(|n| self.0[slots.place(n) as usize] = None);
            at += parcel.count;
            passed += parcel.count;
        }
        (at, passed)
    }
}
