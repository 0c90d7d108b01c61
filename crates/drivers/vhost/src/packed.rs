//! A packed virtqueue (Virtual I/O Device, section 2.8), by its device.
//!
//! ```text
//!   descriptors   16 bytes each: address, length, buffer id, flags
//!   driver area   whether, and from where on, the guest wants to be told
//!   device area   whether, and from where on, the device wants to be told
//! ```
//!
//! Both sides go round the one ring. Two bits of the flags say whose a descriptor is: the guest sets them to
//! its wrap counter and the other way, the device makes them alike.

use std::sync::{
    Arc,
    atomic::{
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        fence,
    },
};

use crate::{
    chain::{
        DESCRIPTOR, Descriptor, Fault, INDIRECT, MAX_PIECES, NEXT, Taken, Used, WRITE, Walk, Way,
    },
    memory::GuestMemory,
    queue::Places,
    resume,
    sys::Part,
};

/// The descriptor is available, if this is as the wrap counter,
const AVAILABLE: u16 = 1 << 7;
/// and this is not; it is used, if both are.
const USED: u16 = 1 << 15;
/// Where a descriptor's flags are.
const FLAGS: u32 = 14;

/// How many descriptors ahead they are fetched.
const AHEAD: u16 = 16;

/// Bytes of an event structure: a place, and flags.
const EVENT: u32 = 4;
const EVENT_ON: u16 = 0;
const EVENT_OFF: u16 = 1;
/// From the place on.
const EVENT_AT: u16 = 2;

/// A place in the ring, and whether one has gone round it an even number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cursor {
    index: u16,
    wrap: bool,
}

impl Cursor {
    fn from_base(base: u16) -> Cursor {
        Cursor { index: base & 0x7fff, wrap: base >> 15 != 0 }
    }

    fn base(self) -> u16 {
        self.index | u16::from(self.wrap) << 15
    }

    fn advance(&mut self, by: u16, size: u16) {
        self.index += by;
        if self.index >= size {
            self.index -= size;
            self.wrap = !self.wrap;
        }
    }

    fn retreat(&mut self, by: u16, size: u16) {
        if self.index < by {
            self.index += size;
            self.wrap = !self.wrap;
        }
        self.index -= by;
    }
}

/// Where a queue begins.
const START: Cursor = Cursor { index: 0, wrap: true };

/// Where a queue goes on by its descriptors, if that is another place than its beginning, and sure.
fn place_in(descriptors: &Part, size: u16) -> Option<Cursor> {
    let flags: Vec<_> = (0..u32::from(size))
        .map(|number| descriptors.load(number * DESCRIPTOR + FLAGS, Acquire))
        .collect();
    let rounds: Vec<_> =
        flags.iter().map(|flags| [AVAILABLE, USED].map(|bit| flags & bit != 0)).collect();
    let is_chained = flags.iter().any(|flags| flags & NEXT != 0);
    if is_chained || resume::is_place(&rounds, START.index.into(), START.wrap) {
        return None;
    }
    resume::find(&rounds).map(|(index, wrap)| Cursor { index: index as u16, wrap })
}

/// Where to give back, by the upper half of a base. A front end that knows no such number leaves zeros there, and means that all
/// that was taken was given back. The place 0 on a round that is not the first looks the same: it is meant where chains can be
/// out from there on, which is on one round with the place where to take.
fn used_of(base: u32, next_available: Cursor) -> Cursor {
    match Cursor::from_base((base >> 16) as u16) {
        Cursor { index: 0, wrap: false } if next_available.wrap => next_available,
        given => given,
    }
}

#[derive(Debug)]
pub(crate) struct Packed {
    size: u16,
    descriptors: Part,
    driver: Part,
    device: Part,
    next_available: Cursor,
    next_used: Cursor,
    /// Up to where the guest has been told.
    told: Cursor,
    with_events: bool,
    /// What is offered from this place on is awaited, and not what was offered before and is too little.
    awaited: Option<Cursor>,
}

impl Packed {
    /// A queue of `size`, whose parts are at these places. `base`: where to take, and above it where to give back.
    /// `whole_chains`: each is one descriptor, so that the queue itself tells where it goes on if it is not at its beginning.
    pub fn new(
        memory: &Arc<GuestMemory>,
        size: u16,
        places: &Places,
        base: u32,
        with_events: bool,
        whole_chains: bool,
    ) -> Option<Packed> {
        let part = |at, len, align| Part::new(memory, at, len, align);
        let descriptors = part(places.descriptors, u32::from(size) * DESCRIPTOR, 16)?;
        let mut next_available = Cursor::from_base(base as u16);
        let mut next_used = used_of(base, next_available);
        if whole_chains
            && next_available == START
            && let Some(place) = place_in(&descriptors, size)
        {
            (next_available, next_used) = (place, place);
        }
        if next_available.index >= size || next_used.index >= size {
            return None;
        }
        Some(Packed {
            size,
            descriptors,
            driver: part(places.available, EVENT, 4)?,
            device: part(places.used, EVENT, 4)?,
            next_available,
            next_used,
            told: next_used,
            with_events,
            awaited: None,
        })
    }

    fn is_available(&self, at: Cursor) -> bool {
        let flags = self.descriptors.load(u32::from(at.index) * DESCRIPTOR + FLAGS, Acquire);
        let [available, used] = [AVAILABLE, USED].map(|bit| flags & bit != 0);
        available == at.wrap && used != at.wrap
    }

    /// Whether a chain is offered; where more is [awaited](Self::await_more), a further one.
    pub fn is_offered(&self) -> bool {
        self.is_available(self.awaited.unwrap_or(self.next_available))
    }

    /// All that is offered has been taken, and was too little.
    pub fn await_more(&mut self) {
        self.awaited = Some(self.next_available);
    }

    /// Takes chains until there are none, or [`Taken`] has `most`, or much [work](Taken::work).
    pub fn take<'m>(
        &mut self,
        memory: &'m GuestMemory,
        way: Way,
        taken: &mut Taken<'m>,
        most: usize,
    ) -> Result<(), Fault> {
        self.awaited = None;
        let enough = taken.work() + MAX_PIECES;
        while taken.chains.len() < most && taken.work() < enough && self.is_offered() {
            let used = self.take_one(Walk::new(memory, way, taken))?;
            taken.end_chain(used);
        }
        Ok(())
    }

    /// Takes a chain, which is there.
    #[inline]
    fn take_one(&mut self, mut walk: Walk<'_, '_>) -> Result<Used, Fault> {
        let mut at = self.next_available;
        let ahead = u32::from(if at.index + AHEAD < self.size { at.index + AHEAD } else { 0 });
        self.descriptors.prefetch(ahead * DESCRIPTOR);
        for count in 1..=self.size {
            let descriptor =
                Descriptor::packed(self.descriptors.read(u32::from(at.index) * DESCRIPTOR));
            if descriptor.flags & INDIRECT != 0 {
                walk.add_packed_table(&descriptor)?;
            } else {
                walk.add(&descriptor)?;
            }
            at.advance(1, self.size);
            // The last one has the chain's number.
            if descriptor.flags & NEXT == 0 {
                self.next_available = at;
                return Ok(Used { id: descriptor.number, descriptors: count, written: 0 });
            }
        }
        Err(Fault::Endless)
    }

    /// The last chains that were taken come again.
    pub fn take_back(&mut self, chains: &[Used]) {
        chains.iter().for_each(|used| self.next_available.retreat(used.descriptors, self.size));
    }

    /// Gives chains back, all at once: the guest looks at the first of them first, whose flags are stored last.
    pub fn give_back(&mut self, chains: &[Used]) {
        let mut first = None;
        for used in chains {
            let at = u32::from(self.next_used.index) * DESCRIPTOR;
            let [a, b, c, d] = used.written.to_le_bytes();
            let [e, f] = used.id.to_le_bytes();
            self.descriptors.write(at + 8, [a, b, c, d, e, f]);
            let owner = if self.next_used.wrap { AVAILABLE | USED } else { 0 };
            let flags = owner | if used.written > 0 { WRITE } else { 0 };
            match first {
                None => first = Some((at, flags)),
                Some(_) => self.descriptors.store(at + FLAGS, flags, Release),
            }
            self.next_used.advance(used.descriptors, self.size);
        }
        if let Some((at, flags)) = first {
            self.descriptors.store(at + FLAGS, flags, Release);
        }
    }

    /// Whether the guest wants to be told of what was given back since this was last asked.
    pub fn take_notice(&mut self) -> bool {
        let before = std::mem::replace(&mut self.told, self.next_used);
        if before == self.next_used {
            return false;
        }
        // The chains are to be seen by a guest that says so right now.
        fence(SeqCst);
        match self.driver.load(2, Relaxed) {
            EVENT_OFF => false,
            EVENT_AT if self.with_events => {
                let event = Cursor::from_base(self.driver.load(0, Relaxed));
                self.passed(event, before)
            }
            _ => true,
        }
    }

    /// Whether `event` was passed on the way from `before` to where chains are given back now.
    fn passed(&self, event: Cursor, before: Cursor) -> bool {
        // Places along two rounds, from the beginning of the round that `before` is in.
        let along = |at: Cursor, laps: u32| u32::from(at.index) + laps * u32::from(self.size);
        let from = along(before, 0);
        let laps = |at: Cursor| u32::from(at.wrap != before.wrap);
        let event = along(event, laps(event));
        let mut to = along(self.next_used, laps(self.next_used));
        // A round, and more, in one go.
        if to <= from {
            to += 2 * u32::from(self.size);
        }
        (from..to).contains(&event)
    }

    /// Whether the guest is to tell what it offers. The caller looks once more then.
    pub fn listen(&mut self, on: bool) {
        if on && self.with_events {
            let from = self.awaited.unwrap_or(self.next_available);
            self.device.store(0, from.base(), Relaxed);
            // The guest reads the place behind the flags.
            fence(Release);
            self.device.store(2, EVENT_AT, Relaxed);
        } else {
            self.device.store(2, if on { EVENT_ON } else { EVENT_OFF }, Relaxed);
        }
        if on {
            fence(SeqCst);
        }
    }

    /// Where to go on.
    pub fn base(&self) -> u32 {
        u32::from(self.next_available.base()) | u32::from(self.next_used.base()) << 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chains that were out when a queue was stopped, from the first place of a round on, are given back there.
    #[test]
    fn zeros_above_are_a_place_where_they_can_be_one() {
        let cursor = |index, wrap| Cursor { index, wrap };
        for (base, expected) in [
            (0x0000_0005, cursor(0, false)),
            (0x0000_0000, cursor(0, false)),
            (0x0000_8000, cursor(0, true)),
            (0x0000_8005, cursor(5, true)),
            (0x8000_8005, cursor(0, true)),
            (0x8003_0005, cursor(3, true)),
            (0x0003_0005, cursor(3, false)),
        ] {
            assert_eq!(used_of(base, Cursor::from_base(base as u16)), expected, "{base:x}");
        }
    }
}
