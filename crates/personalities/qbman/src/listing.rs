//! Queues that have come to have frames are put on their work queues, those of one channel at once.

use crate::{
    Manager,
    channel::{Channel, Wake},
};

/// Few, as it is filled with zeroes for every batch, those of one frame among them.
const ROWS: usize = 8;

/// Queues that count as listed, and are put on their work queues by [`finish`](Listing::finish): without their locks, and
/// before anything else is waited for.
pub(crate) struct Listing {
    rows: [Row; ROWS],
    count: usize,
    wake: Wake,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Row {
    pub queue: u32,
    pub channel: u16,
    pub work_queue: u16,
}

impl Listing {
    pub fn new() -> Listing {
        Listing { rows: [Row::default(); ROWS], count: 0, wake: Wake::default() }
    }

    /// Whether there is nothing to be put.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    pub fn add(&mut self, manager: &Manager, row: Row) {
        if self.count == ROWS {
            self.put(manager);
        }
        if let Some(place) = self.rows.get_mut(self.count) {
            *place = row;
            self.count += 1;
        }
    }

    /// Somebody to be woken in the end.
    pub fn wake(&mut self, wake: Wake) {
        self.wake.and(wake);
    }

    /// Puts those that were added.
    pub fn put(&mut self, manager: &Manager) {
        let mut rows = self.rows.get_mut(..self.count).unwrap_or_default();
        self.count = 0;
        while let Some(Row { channel, .. }) = rows.first().copied() {
            // Those of the same channel come first, in their order.
            let mut same = 0;
            for place in 0..rows.len() {
                if rows.get(place).is_some_and(|row| row.channel == channel) {
                    rows.get_mut(same..=place).unwrap_or_default().rotate_right(1);
                    same += 1;
                }
            }
            let (own, others) = rows.split_at_mut(same);
            if let Ok(channel) = manager.channel(channel) {
                self.wake.and(Channel::push(channel, own));
            }
            rows = others;
        }
    }

    /// Puts them, and wakes those that wait.
    #[inline]
    pub fn finish(mut self, manager: &Manager) {
        if self.count > 0 {
            self.put(manager);
        }
        self.wake.and(manager.groups.news());
        self.wake.now();
    }
}
