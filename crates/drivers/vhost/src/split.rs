//! A split virtqueue (Virtual I/O Device, section 2.7), by its device.
//!
//! ```text
//!   descriptors   16 bytes each: address, length, flags, next
//!   available     flags, index, a chain's first descriptor each; used_event behind them
//!   used          flags, index, a chain and the bytes written each; avail_event behind them
//! ```

use std::sync::{
    Arc,
    atomic::{
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        fence,
    },
};

use crate::{
    chain::{DESCRIPTOR, Descriptor, Fault, INDIRECT, MAX_PIECES, NEXT, Taken, Used, Walk, Way},
    memory::GuestMemory,
    queue::{Places, needs_event},
    sys::Part,
};

/// Where the entries of the available and the used ring begin.
const ENTRIES: u32 = 4;
/// Where their index is.
const INDEX: u32 = 2;
/// How many chains ahead descriptors are fetched.
const AHEAD: u16 = 8;
/// The other side does not want to be told.
const SILENT: u16 = 1;

#[derive(Debug)]
pub(crate) struct Split {
    size: u16,
    descriptors: Part,
    available: Part,
    used: Part,
    /// Of the next chain to be taken. It runs on beyond the queue's size.
    next_available: u16,
    /// Of the next chain to be given back.
    next_used: u16,
    /// Up to where the guest has been told.
    told: u16,
    /// What the guest has offered, when that was last looked at.
    offered: u16,
    with_events: bool,
    /// What is offered from this place on is awaited, and not what was offered before and is too little.
    awaited: Option<u16>,
}

impl Split {
    /// A queue of `size`, whose parts are at these places; `next` is the first chain that is to be taken. All that was taken
    /// was given back: where the used ring is elsewhere, that is the place. DPDK's front end says 0 as it connects again.
    pub fn new(
        memory: &Arc<GuestMemory>,
        size: u16,
        places: &Places,
        next: u16,
        with_events: bool,
    ) -> Option<Split> {
        let entries = u32::from(size);
        let part = |at, len, align| Part::new(memory, at, len, align);
        // The event's number is behind the entries; without events there need not be any.
        let event = if with_events { 2 } else { 0 };
        let used = part(places.used, ENTRIES + entries * 8 + event, 4)?;
        let given_back = used.load(INDEX, Relaxed);
        let next = if next == given_back { next } else { given_back };
        Some(Split {
            size,
            descriptors: part(places.descriptors, entries * DESCRIPTOR, 16)?,
            available: part(places.available, ENTRIES + entries * 2 + event, 2)?,
            used,
            next_available: next,
            next_used: next,
            told: next,
            offered: next,
            with_events,
            awaited: None,
        })
    }

    /// Chains that can be taken.
    pub fn available(&mut self) -> Result<u16, Fault> {
        let left = self.offered.wrapping_sub(self.next_available);
        if left > 0 {
            return Ok(left);
        }
        self.offered = self.available.load(INDEX, Acquire);
        let there = self.offered.wrapping_sub(self.next_available);
        if there > self.size { Err(Fault::Index) } else { Ok(there) }
    }

    /// Whether a chain is offered; where more is [awaited](Self::await_more), a further one.
    pub fn is_offered(&mut self) -> Result<bool, Fault> {
        match self.awaited {
            None => self.available().map(|chains| chains > 0),
            Some(at) => Ok(self.available.load(INDEX, Acquire) != at),
        }
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
        while taken.chains.len() < most && taken.work() < enough {
            let there = usize::from(self.available()?).min(most - taken.chains.len());
            if there == 0 {
                break;
            }
            for _ in 0..there {
                if taken.work() >= enough {
                    break;
                }
                let used = self.take_one(Walk::new(memory, way, taken))?;
                taken.end_chain(used);
            }
        }
        Ok(())
    }

    /// Takes a chain, which is there.
    #[inline]
    fn take_one(&mut self, mut walk: Walk<'_, '_>) -> Result<Used, Fault> {
        let entry = |number: u16| ENTRIES + 2 * u32::from(number & (self.size - 1));
        let head = self.available.load(entry(self.next_available), Relaxed);
        let head_ahead =
            self.available.load(entry(self.next_available.wrapping_add(AHEAD)), Relaxed);
        self.descriptors.prefetch(u32::from(head_ahead) * DESCRIPTOR);
        let mut number = head;
        for _ in 0..self.size {
            if number >= self.size {
                return Err(Fault::Descriptor);
            }
            let bytes = self.descriptors.read(u32::from(number) * DESCRIPTOR);
            let descriptor = Descriptor::split(bytes);
            if descriptor.flags & INDIRECT != 0 {
                walk.add_split_table(&descriptor)?;
            } else {
                walk.add(&descriptor)?;
            }
            if descriptor.flags & NEXT == 0 {
                self.next_available = self.next_available.wrapping_add(1);
                return Ok(Used { id: head, descriptors: 1, written: 0 });
            }
            number = descriptor.number;
        }
        Err(Fault::Endless)
    }

    /// The last `chains` that were taken come again.
    pub fn take_back(&mut self, chains: &[Used]) {
        self.next_available = self.next_available.wrapping_sub(chains.len() as u16);
    }

    /// Gives chains back, all at once.
    pub fn give_back(&mut self, chains: &[Used]) {
        for used in chains {
            let entry = u32::from(self.next_used & (self.size - 1));
            let [a, b, c, d] = u32::from(used.id).to_le_bytes();
            let [e, f, g, h] = used.written.to_le_bytes();
            self.used.write(ENTRIES + 8 * entry, [a, b, c, d, e, f, g, h]);
            self.next_used = self.next_used.wrapping_add(1);
        }
        self.used.store(INDEX, self.next_used, Release);
    }

    /// Whether the guest wants to be told of what was given back since this was last asked.
    pub fn take_notice(&mut self) -> bool {
        if self.told == self.next_used {
            return false;
        }
        // The chains are to be seen by a guest that says so right now.
        fence(SeqCst);
        let before = std::mem::replace(&mut self.told, self.next_used);
        if self.with_events {
            let event = self.available.load(ENTRIES + 2 * u32::from(self.size), Relaxed);
            return needs_event(event, self.next_used, before);
        }
        self.available.load(0, Relaxed) & SILENT == 0
    }

    /// Whether the guest is to tell what it offers. The caller looks once more then.
    pub fn listen(&mut self, on: bool) {
        if self.with_events {
            // That of a chain behind those that were taken: told once.
            if on {
                let event = ENTRIES + 8 * u32::from(self.size);
                let from = self.awaited.unwrap_or(self.next_available);
                self.used.store(event, from, Relaxed);
            }
        } else {
            self.used.store(0, if on { 0 } else { SILENT }, Relaxed);
        }
        if on {
            fence(SeqCst);
        }
    }

    /// Where to go on.
    pub fn base(&self) -> u32 {
        self.next_available.into()
    }
}
