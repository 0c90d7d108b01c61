//! What ports that have left their switches had dropped: kept until it was looked at.

use std::{
    collections::{HashMap, hash_map::Entry},
    mem,
    sync::Arc,
};

use ringway_vale::PortCounters;

/// Names of ports that are kept from one look to the next: what others had dropped is in no log.
const MOST: usize = 1024;

/// A port's full name, and the user that has it, or had.
pub(crate) type PortOfUser = (String, u32);

/// Frames, in the order of `PortDrops::reasons`.
pub(crate) type Drops = [u64; 17];

/// The sums of both.
pub(crate) fn sum(a: &Drops, b: &Drops) -> Drops {
    let mut sum = *a;
    sum.iter_mut().zip(b).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
    sum
}

/// All ports that have left since the last look.
pub(super) struct Ended {
    lives: HashMap<PortOfUser, Lives>,
    /// What a port has dropped.
    drops_of: fn(&PortCounters) -> Drops,
}

/// Those of one name.
struct Lives {
    before: Drops,
    /// Of the last one: the worker may forward what it has sent still.
    last: Arc<PortCounters>,
}

impl Lives {
    fn drops(&self, drops_of: fn(&PortCounters) -> Drops) -> Drops {
        sum(&self.before, &drops_of(&self.last))
    }
}

impl Ended {
    pub fn new(drops_of: fn(&PortCounters) -> Drops) -> Ended {
        Ended { lives: HashMap::new(), drops_of }
    }

    pub fn add(&mut self, name: String, uid: u32, counters: Arc<PortCounters>) {
        let is_full = self.lives.len() >= MOST;
        match self.lives.entry((name, uid)) {
            Entry::Occupied(mut lives) => {
                let before = lives.get().drops(self.drops_of);
                lives.insert(Lives { before, last: counters });
            }
            Entry::Vacant(_) if is_full => {}
            Entry::Vacant(place) => {
                place.insert(Lives { before: Drops::default(), last: counters });
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.lives.is_empty()
    }

    /// What each had dropped in all its time.
    pub fn take(&mut self) -> HashMap<PortOfUser, Drops> {
        let lives = mem::take(&mut self.lives).into_iter();
        lives.map(|(port, lives)| (port, lives.drops(self.drops_of))).collect()
    }
}
