//! What waits in front of a ring that has no room for it.

use std::collections::VecDeque;

use ringway::{NS_MOREFRAG, Slot};

use crate::output::Stock;

/// A slot's packet, or a part of one, that waits for room.
pub struct Waiting {
    pub slot: Slot,
    pub hash: u32,
}

/// Packets in the order that they came, slot by slot.
#[derive(Default)]
pub struct Queue(VecDeque<Waiting>);

impl Queue {
    /// Slots' worth of packets.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn push(&mut self, slot: Slot, hash: u32) {
        self.0.push_back(Waiting { slot, hash });
    }

    /// Slots of the packet at the front.
    pub fn first_packet(&self) -> Option<u32> {
        let last = self.0.iter().position(|waiting| waiting.slot.flags & NS_MOREFRAG == 0);
        // The end may never have come.
        let count = last.map_or(self.0.len(), |last| last + 1);
        (count > 0).then_some(count as u32)
    }

    /// Packets, of which the last may have no end.
    pub fn packets(&self) -> u64 {
        let ends = |waiting: &&Waiting| waiting.slot.flags & NS_MOREFRAG == 0;
        let endless = self.0.back().is_some_and(|last| !ends(&last));
        self.0.iter().filter(ends).count() as u64 + u64::from(endless)
    }

    /// Whether none of the first `slots` slots has more bytes than `room`.
    pub fn fits(&self, slots: u32, room: usize) -> bool {
        self.0.iter().take(slots as usize).all(|waiting| usize::from(waiting.slot.len) <= room)
    }

    /// Takes so many slots off the front.
    pub fn take(&mut self, slots: u32) -> impl Iterator<Item = Waiting> {
        self.0.drain(..slots as usize)
    }

    /// Gives up what waits.
    pub fn abandon(&mut self, stock: &mut Stock) {
        stock.extend(self.0.drain(..).map(|waiting| waiting.slot.buf_idx));
    }
}
