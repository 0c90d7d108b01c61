//! What ports that have left their switches had dropped: kept until it was looked at.

use std::{
    collections::{HashMap, hash_map::Entry},
    mem,
    sync::Arc,
};

use ringway_vale::PortCounters;

use crate::switch_config::shown_totals;

/// Names of ports that are kept from one look to the next: what others had dropped is in no log.
const MOST: usize = 1024;

/// A port's full name, and the user that has it, or had.
pub(crate) type PortOfUser = (String, u32);

/// Frames, in the order of `PortDrops::reasons`.
pub(crate) type Drops = [u64; 17];

/// What a port has dropped.
pub(crate) fn drops_of(counters: &PortCounters) -> Drops {
    shown_totals(counters.totals()).drops.reasons().map(|(_, frames)| frames)
}

/// The sums of both.
pub(crate) fn sum(a: &Drops, b: &Drops) -> Drops {
    let mut sum = *a;
    sum.iter_mut().zip(b).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
    sum
}

/// All ports that have left since the last look.
#[derive(Default)]
pub(super) struct Ended(HashMap<PortOfUser, Lives>);

/// Those of one name.
struct Lives {
    before: Drops,
    /// Of the last one: the worker may forward what it has sent still.
    last: Arc<PortCounters>,
}

impl Lives {
    fn drops(&self) -> Drops {
        sum(&self.before, &drops_of(&self.last))
    }
}

impl Ended {
    pub fn add(&mut self, name: String, uid: u32, counters: Arc<PortCounters>) {
        let is_full = self.0.len() >= MOST;
        match self.0.entry((name, uid)) {
            Entry::Occupied(mut lives) => {
                let before = lives.get().drops();
                lives.insert(Lives { before, last: counters });
            }
            Entry::Vacant(_) if is_full => {}
            Entry::Vacant(place) => {
                place.insert(Lives { before: Drops::default(), last: counters });
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What each had dropped in all its time.
    pub fn take(&mut self) -> HashMap<PortOfUser, Drops> {
        mem::take(&mut self.0).into_iter().map(|(port, lives)| (port, lives.drops())).collect()
    }
}
