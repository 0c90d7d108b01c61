//! Received packets: out of a port's ring, into the program's frames.

mod stack;
#[cfg(test)]
mod tests;

use ringway::{BoundRing, NS_MOREFRAG, Turns};
use ringway_region::{Buf, RingView, Slot};

use super::Found;
use crate::{
    abi::TP4_PKT_CONT,
    area::{AHEAD, Area},
    desc::{Desc, DescRing},
};

const BAD: u8 = libc::EBADF as u8;

/// The program's descriptors and frames.
pub struct RxQueue {
    pub ring: DescRing,
    area: Area,
    packets: u64,
    dropped: u64,
    /// Of the port's losses, those that the program was told.
    told_lost: u64,
    /// Frames of a packet that takes several.
    frames: Vec<u64>,
    /// Which ring of the port is the first to have frames.
    turns: Turns,
    /// Nothing is written to the frames: the program may have unmapped them.
    pub closed: bool,
}

impl RxQueue {
    pub fn new(ring: DescRing, area: Area, lost: u64) -> RxQueue {
        RxQueue {
            ring,
            area,
            packets: 0,
            dropped: 0,
            told_lost: lost,
            frames: Vec::new(),
            turns: Turns::default(),
            closed: false,
        }
    }

    pub fn take_statistics(&mut self, lost: u64) -> [u64; 2] {
        // Shared memory has the number of lost packets: it may be any.
        let news = lost.saturating_sub(self.told_lost);
        let dropped = std::mem::take(&mut self.dropped).saturating_add(news);
        self.told_lost = lost;
        [std::mem::take(&mut self.packets).saturating_add(dropped), dropped]
    }

    /// Moves packets out of all rings of the port: when frames are few, each ring has some in its
    /// turn.
    pub fn take_all(&mut self, rings: &[BoundRing]) -> Found {
        let (mut found, mut turns) = (Found::Nothing, self.turns);
        turns.each(rings.len(), |at| {
            let of_ring = self.take(rings[at].kring().ring());
            if found != Found::Packets && of_ring != Found::Nothing {
                found = of_ring;
            }
            of_ring == Found::Packets
        });
        self.turns = turns;
        found
    }

    /// Moves packets out of a ring of the port.
    pub fn take(&mut self, ring: &RingView) -> Found {
        let (head, tail, slots) = (ring.head(), ring.tail(), ring.num_slots());
        if head >= slots || tail >= slots || head == tail {
            return Found::Nothing;
        }
        // Before anything is given back: what was handed over before counts as such.
        self.ring.outstanding();
        let (mut at, mut left) = (head, ring.distance(head, tail));
        let mut stopped = Found::Packets;
        loop {
            let plain = self.take_plain(ring, at, left);
            (at, left) = (ring.advance(at, plain), left - plain);
            if left == 0 {
                break;
            }
            match self.take_next(ring, at, left) {
                Ok(taken) => (at, left) = (ring.advance(at, taken), left - taken),
                Err(found) => {
                    stopped = found;
                    break;
                }
            }
        }
        ring.set_cur(at);
        ring.set_head(at);
        if at == head { stopped } else { Found::Packets }
    }

    /// Moves packets as most are, each of one slot, into frames as they should be. Returns how many of the `left` slots, from
    /// `at` on, are done with: up to the first that takes more.
    #[inline]
    fn take_plain(&mut self, ring: &RingView, mut at: u32, left: u32) -> u32 {
        let (payload, offset) = (self.area.payload(), self.area.data_offset());
        let (mut burst, bufs) = (self.ring.burst(), ring.bufs());
        let mut taken = 0;
        while taken < left {
            let slot = ring.plain_slot(at);
            let len = u32::from(slot.len);
            if len.wrapping_sub(1) >= payload || slot.flags & NS_MOREFRAG != 0 {
                break;
            }
            let (Some(source), Some(desc)) = (bufs.get(slot.buf_idx), burst.peek()) else { break };
            let Some(frame) = self.area.free(desc.idx).filter(|_| len <= source.size()) else {
                break;
            };
            if taken + AHEAD < left {
                let ahead = ring.plain_slot(ring.advance(at, AHEAD));
                if let Some(next) = bufs.get(ahead.buf_idx) {
                    next.prefetch();
                }
            }
            frame.copy_from(&source, len as usize);
            burst.give_back(Desc::received(desc.idx, len, offset));
            at = ring.next(at);
            taken += 1;
        }
        drop(burst);
        self.packets += u64::from(taken);
        taken
    }

    /// A packet of any kind, which begins at slot `at`. Returns how many of the `left` slots are done with, or what is
    /// missing: its end, or frames.
    fn take_next(&mut self, ring: &RingView, at: u32, left: u32) -> Result<u32, Found> {
        let slot = ring.slot(at);
        match slot.flags & NS_MOREFRAG == 0 && u32::from(slot.len) <= self.area.payload() {
            true if self.one(ring, &slot) => Ok(1),
            true => Err(Found::NoRoom),
            false => self.several(ring, at, left),
        }
    }

    /// The next frame that the program has given for packets. What it names that is none goes back. `None`: there is
    /// none.
    #[inline]
    fn next_frame(&mut self) -> Option<u64> {
        for _ in 0..self.ring.len() {
            let desc = self.ring.peek(0)?;
            if self.area.has_frame(desc.idx) {
                return Some(desc.idx);
            }
            self.ring.give_back(desc.returned(BAD));
        }
        None
    }

    /// A packet of one slot, which a frame holds. False: there is no frame for it.
    #[inline]
    fn one(&mut self, ring: &RingView, slot: &Slot) -> bool {
        let Some(source) = ring.buf(slot.buf_idx).filter(|_| slot.len != 0) else { return true };
        self.put(&source, u32::from(slot.len).min(source.size()))
    }

    /// The first `len` bytes of a packet, which a frame holds. False: there is no frame for it.
    #[inline]
    fn put(&mut self, source: &Buf<'_>, len: u32) -> bool {
        let Some(idx) = self.next_frame() else { return false };
        if let Some(frame) = self.area.free(idx) {
            frame.copy_from(source, len as usize);
        }
        self.packets += 1;
        self.ring.give_back(Desc::received(idx, len, self.area.data_offset()));
        true
    }

    /// A packet of several slots, or longer than a frame, which begins at slot `at`. Returns how many of the `left`
    /// slots are done with, or what is missing: its end, or frames.
    #[cold]
    fn several(&mut self, ring: &RingView, at: u32, left: u32) -> Result<u32, Found> {
        let goes_on = |n: &u32| ring.slot(ring.advance(at, *n)).flags & NS_MOREFRAG != 0;
        let slots = (0..left).take_while(goes_on).count() as u32 + 1;
        if slots > left {
            // A ring that is full of a packet without an end will not have one.
            return if left + 1 >= ring.num_slots() { Ok(left) } else { Err(Found::Nothing) };
        }
        if self.next_frame().is_none() {
            return Err(Found::NoRoom);
        }
        let parts = (0..slots).map(|n| ring.slot(ring.advance(at, n)));
        let len: u32 = parts.clone().map(|slot| u32::from(slot.len)).sum();
        if self.reserve(len) {
            let parts = parts.map(|slot| (ring.buf(slot.buf_idx), u32::from(slot.len)));
            self.fill(parts, len);
            self.packets += 1;
        } else {
            self.dropped += 1;
        }
        Ok(slots)
    }

    /// Finds frames for `len` bytes. False: the program has not given enough.
    fn reserve(&mut self, len: u32) -> bool {
        let Some(needed) = (len.max(1) - 1).checked_div(self.area.payload()) else { return false };
        self.frames.clear();
        let mut bad = 0;
        while self.frames.len() <= needed as usize {
            let Some(desc) = self.ring.peek(self.frames.len() as u32 + bad) else { return false };
            match self.area.has_frame(desc.idx) {
                true => self.frames.push(desc.idx),
                false => bad += 1,
            }
        }
        // Those that name no frame go first: the packet's are behind one another.
        let found = self.frames.len() as u32 + bad;
        let all = (0..found).filter_map(|n| self.ring.peek(n));
        let bad: Vec<Desc> = all.filter(|desc| !self.area.has_frame(desc.idx)).collect();
        bad.iter().for_each(|desc| self.ring.give_back(desc.returned(BAD)));
        true
    }

    /// Copies the parts of a packet, each with its length, into the frames that were found for it.
    fn fill<'b>(&mut self, parts: impl Iterator<Item = (Option<Buf<'b>>, u32)>, len: u32) {
        let (area, payload) = (&self.area, self.area.payload());
        let mut done = 0;
        for (part, length) in parts {
            let mut from = 0;
            while from < length {
                let (frame, at) = (done / payload, done % payload);
                let count = (length - from).min(payload - at);
                let source = part.as_ref().and_then(|part| part.part(from, count));
                let to = self.frames.get(frame as usize).and_then(|idx| area.free(*idx));
                if let (Some(source), Some(to)) = (source, to.and_then(|to| to.part(at, count))) {
                    to.copy_from(&source, count as usize);
                }
                (from, done) = (from + count, done + count);
            }
        }
        let mut left = len;
        for at in 0..self.frames.len() {
            let (idx, count) = (self.frames[at], left.min(payload));
            left -= count;
            let desc = Desc::received(idx, count, self.area.data_offset());
            let flags = if left > 0 { TP4_PKT_CONT } else { 0 };
            self.ring.give_back(Desc { flags, ..desc });
        }
    }
}
