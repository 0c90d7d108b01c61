//! The entries of a portal, from when they are taken until they are consumed.

use crate::entry::{Entries, Entry, Room};

/// Entries that a portal has at most, until it consumes some.
pub const RING: usize = 16;

/// Entries that were taken and are not all consumed. Numbers run on; their places are modulo [`RING`].
#[derive(Default)]
pub(crate) struct Ring {
    pub entries: [Entry; RING],
    /// For each place: which of `holds` it belongs to, if it is not consumed.
    holds_of: [Option<u8>; RING],
    pub is_open: [bool; RING],
    /// Queues that are held, and by how many entries.
    pub holds: [(u32, u8); RING],
    /// How many queues are held.
    pub held: usize,
    /// The oldest that is not consumed, the next to be handed out, the next to be taken.
    pub oldest: usize,
    pub next: usize,
    pub end: usize,
    /// Entries of a round, at most.
    pub limit: usize,
}

// Places are modulo their number, and a hold is a place.
#[allow(clippy::indexing_slicing)]
impl Entries for Ring {
    #[inline]
    fn push(&mut self, entry: Entry) {
        let place = self.end % RING;
        self.entries[place] = entry;
        self.holds_of[place] = None;
        self.is_open[place] = true;
        self.end += 1;
    }
}

#[allow(clippy::indexing_slicing)]
impl Room for Ring {
    #[inline]
    fn room(&self) -> usize {
        let free = RING - (self.end - self.oldest);
        free.min(self.limit.saturating_sub(self.end - self.next))
    }

    fn hold(&mut self, queue: u32, count: usize, is_new: bool) {
        let known = if is_new {
            // Others are left from before it was shut down, and hold nothing: there is no queue 0.
            self.holds.iter_mut().filter(|(held, _)| *held == queue).for_each(|held| held.0 = 0);
            None
        } else {
            self.holds.iter().position(|(held, entries)| *held == queue && *entries > 0)
        };
        let place = known.or_else(|| self.holds.iter().position(|(_, entries)| *entries == 0));
        // There are as many as there are entries.
        let Some(hold) = place else { return };
        self.held += usize::from(self.holds[hold].1 == 0);
        self.holds[hold].0 = queue;
        self.holds[hold].1 += count as u8;
        for place in self.end - count..self.end {
            self.holds_of[place % RING] = Some(hold as u8);
        }
    }
}

#[allow(clippy::indexing_slicing)]
impl Ring {
    pub fn last_mut(&mut self) -> Option<&mut Entry> {
        if self.end > self.oldest { self.entries.get_mut((self.end - 1) % RING) } else { None }
    }

    /// Closes an entry: the queue that nothing holds any more.
    #[inline]
    pub fn close(&mut self, place: usize) -> Option<u32> {
        let is_open = self.is_open.get_mut(place)?;
        // Those that were not handed out yet are not the program's to consume.
        if !*is_open || (place + RING - self.oldest % RING) % RING >= self.next - self.oldest {
            return None;
        }
        *is_open = false;
        while self.oldest < self.next && !self.is_open[self.oldest % RING] {
            self.oldest += 1;
        }
        let hold = &mut self.holds[usize::from(self.holds_of[place].take()?)];
        hold.1 -= 1;
        let is_free = hold.1 == 0;
        self.held -= usize::from(is_free);
        is_free.then_some(hold.0)
    }
}
