//! Transmitting: from the interface's channel to a port's ring, and buffers back to where they belong.

use ringway::{BoundRing, NS_MOREFRAG, Port};
use ringway_abi::Dir;
use ringway_qbman::{Entry, Format, Frame, manager};
use ringway_region::Buf;

use super::{
    distribute::Distributor,
    interface::{Counters, Numbers},
    receive::{MOST_PARTS as PARTS, Receiver, SG_ENTRY, World, give_back, held},
};
use crate::{
    memory::{Maps, Part, sg_entry},
    rejected,
};

/// Frames that are taken from the channel in a row.
const BURST: usize = 64;
/// Of context A's upper word: the buffer is released by the interface, and nobody is told.
const NO_CONFIRM: u64 = 0x8000_0000 << 32;

pub struct Transmitter {
    numbers: Numbers,
    entries: [Entry; BURST],
    /// Those that are still to be sent.
    pending: std::ops::Range<usize>,
    /// Buffers to be given back, all of one pool.
    released: Vec<u64>,
    pool: u8,
}

/// A frame's bytes, in order.
struct Parts<'a> {
    parts: [Option<Buf<'a>>; PARTS],
    count: usize,
    length: u32,
}

impl Transmitter {
    pub fn new(numbers: Numbers) -> Transmitter {
        Transmitter {
            numbers,
            entries: [Entry::default(); BURST],
            pending: 0..0,
            released: Vec::with_capacity(BURST),
            pool: 0,
        }
    }

    /// Whether there are frames that have found no room.
    pub fn waits(&self) -> bool {
        !self.pending.is_empty()
    }

    fn refill(&mut self) -> bool {
        if self.pending.is_empty() {
            self.pending = 0..manager().drain(self.numbers.channel, &mut self.entries);
        }
        !self.pending.is_empty()
    }

    /// Sends a burst; returns how many frames were taken.
    pub fn send(&mut self, port: &mut Port, maps: &Maps, counters: &Counters) -> usize {
        let Some(ring) = port.binding().rings(Dir::Tx).first() else { return 0 };
        if !self.refill() {
            return 0;
        }
        let before = self.pending.start;
        let mut room = Room::new(ring, port.max_frame() as u32);
        let (mut sent, mut is_short) = (0, false);
        while let Some(Entry { frame, context_a, .. }) =
            self.entries.get(self.pending.start).copied().filter(|_| self.waits())
        {
            match room.put(maps, &frame) {
                Sent::No => {
                    is_short = true;
                    break;
                }
                Sent::Yes => {
                    sent += 1;
                    let confirms = context_a & NO_CONFIRM == 0;
                    self.complete(maps, &frame, confirms, self.numbers.tx_confirm);
                }
                Sent::Never => {
                    Counters::add(&counters.unsendable, 1);
                    self.complete(maps, &frame, true, self.numbers.tx_error);
                }
            }
            self.pending.start += 1;
        }
        room.publish();
        if is_short {
            room.await_more();
        }
        let _ = ring.sync();
        self.release();
        Counters::add(&counters.transmitted, sent);
        self.pending.start - before
    }

    /// The same for an interface that receives what it sends. Frames that it does not receive are gone.
    pub fn loop_back(
        &mut self,
        receiver: &mut Receiver,
        maps: &Maps,
        distributor: Option<&Distributor>,
        counters: &Counters,
    ) -> usize {
        if !self.refill() {
            return 0;
        }
        let taken = self.pending.len();
        for at in self.pending.clone() {
            let Some(entry) = self.entries.get(at) else { break };
            let (frame, confirms) = (entry.frame, entry.context_a & NO_CONFIRM == 0);
            let Some(parts) = parts(maps, &frame) else {
                Counters::add(&counters.unsendable, 1);
                self.complete(maps, &frame, true, self.numbers.tx_error);
                continue;
            };
            if let Some(distributor) = distributor {
                let world = World { maps, distributor, counters };
                receiver.receive(parts.length, 1, &world, |offset, to| parts.copy_part(offset, to));
            }
            Counters::add(&counters.transmitted, 1);
            self.complete(maps, &frame, confirms, self.numbers.tx_confirm);
        }
        receiver.finish(maps, counters);
        self.pending = 0..0;
        self.release();
        taken
    }

    /// The frame has gone: its buffers go back to their pools, or to the program by the queue `fqid`.
    fn complete(&mut self, maps: &Maps, frame: &Frame, confirms: bool, fqid: u32) {
        if confirms {
            match manager().enqueue(fqid, *frame) {
                Ok(()) => return,
                Err(why) if rejected::tell(*frame, fqid, self.numbers.fman, why) => return,
                // Nobody has set up that queue: then nobody waits for the buffer either.
                Err(_) => {}
            }
        }
        parts_of(maps, frame).for_each(|part| self.let_go(part.pool, part.address));
        self.let_go(frame.pool(), frame.address());
    }

    #[inline]
    fn let_go(&mut self, pool: u8, address: u64) {
        if pool != self.pool || self.released.len() == BURST {
            self.release();
            self.pool = pool;
        }
        self.released.push(address);
    }

    fn release(&mut self) {
        if !self.released.is_empty() {
            give_back(&manager().pools, self.pool, &self.released);
            self.released.clear();
        }
    }
}

enum Sent {
    Yes,
    /// There is no room now.
    No,
    /// It does not fit the ring.
    Never,
}

/// The free slots of a ring, filled one after the other.
struct Room<'r> {
    ring: &'r BoundRing,
    /// Bytes of a slot.
    size: u32,
    at: u32,
    left: u32,
}

impl<'r> Room<'r> {
    fn new(ring: &'r BoundRing, size: u32) -> Room<'r> {
        let view = ring.kring().ring();
        Room { ring, size, at: view.head(), left: held(view) }
    }

    /// What was filled is the ring's with the next sync.
    fn publish(&self) {
        let view = self.ring.kring().ring();
        if self.at < view.num_slots() {
            view.set_cur(self.at);
            view.set_head(self.at);
        }
    }

    /// Has the next wait end only when more slots are free than now, which were too few. Before the next sync: what that
    /// finds is news.
    fn await_more(&self) {
        let view = self.ring.kring().ring();
        view.set_cur(view.tail());
    }

    /// Sees to it that there are so many slots.
    #[inline]
    fn has(&mut self, slots: u32) -> bool {
        if self.left < slots {
            self.publish();
            let _ = self.ring.sync();
            *self = Room::new(self.ring, self.size);
        }
        self.left >= slots
    }

    /// Puts a frame into the next slots.
    #[inline]
    fn put(&mut self, maps: &Maps, frame: &Frame) -> Sent {
        let length = frame.length();
        if length.wrapping_sub(1) >= self.size || !matches!(frame.format(), Format::Contiguous) {
            return self.put_parts(maps, frame);
        }
        let offset = u32::from(frame.offset());
        let bytes = maps.at(frame.address(), offset + length).and_then(|bytes| bytes.skip(offset));
        let Some(bytes) = bytes else { return Sent::Never };
        if !self.has(1) {
            return Sent::No;
        }
        self.fill(length, 0, |to| to.copy_from(&bytes, length as usize))
    }

    /// A frame of several buffers, or for several slots.
    #[cold]
    fn put_parts(&mut self, maps: &Maps, frame: &Frame) -> Sent {
        let Some(parts) = parts(maps, frame) else { return Sent::Never };
        let slots = parts.length.div_ceil(self.size);
        if slots == 0 || slots >= self.ring.kring().ring().num_slots() {
            return Sent::Never;
        }
        if !self.has(slots) {
            return Sent::No;
        }
        for slot in 0..slots {
            let offset = slot * self.size;
            let flags = if slot + 1 < slots { NS_MOREFRAG } else { 0 };
            let length = self.size.min(parts.length - offset);
            if let Sent::Never = self.fill(length, flags, |to| parts.copy_part(offset, to)) {
                return Sent::Never;
            }
        }
        Sent::Yes
    }

    #[inline]
    fn fill(&mut self, length: u32, flags: u16, copy: impl FnOnce(&Buf<'_>)) -> Sent {
        let view = self.ring.kring().ring();
        let slot = view.plain_slot(self.at);
        let Some(to) = view.buf(slot.buf_idx).and_then(|buf| buf.part(0, length)) else {
            return Sent::Never;
        };
        copy(&to);
        view.set_slot(self.at, slot.buf_idx, length as u16, flags);
        self.at = view.next(self.at);
        self.left -= 1;
        Sent::Yes
    }
}

impl Parts<'_> {
    /// Copies the bytes from `offset` on that `to` has room for.
    #[inline]
    fn copy_part(&self, mut offset: u32, to: &Buf<'_>) {
        let mut done = 0;
        for part in self.parts.iter().take(self.count).flatten() {
            let Some(from) = part.skip(offset) else {
                offset -= part.size();
                continue;
            };
            offset = 0;
            let Some(rest) = to.skip(done) else { return };
            rest.copy_from(&from, from.size() as usize);
            done += from.size().min(rest.size());
            if done == to.size() {
                return;
            }
        }
    }
}

/// Where the bytes of a frame are; `None` where these are not in DMA memory, or of another form.
#[inline]
fn parts<'a>(maps: &'a Maps, frame: &Frame) -> Option<Parts<'a>> {
    let length = frame.length();
    let mut found = Parts { parts: [None; PARTS], count: 1, length };
    match frame.format() {
        Format::Contiguous | Format::LongContiguous => {
            let offset = u32::from(frame.offset());
            let bytes = maps.at(frame.address(), offset.checked_add(length)?)?;
            found.parts[0] = Some(bytes.skip(offset)?);
        }
        Format::ScatterGather | Format::LongScatterGather => {
            let table = table(maps, frame)?;
            found.count = table.len();
            let mut sum: u32 = 0;
            for (to, part) in found.parts.iter_mut().zip(&table) {
                let end = part.offset.checked_add(part.length)?;
                *to = Some(maps.at(part.address, end)?.skip(part.offset)?);
                sum = sum.checked_add(part.length)?;
            }
            if sum < length {
                return None;
            }
        }
        Format::Compound | Format::Other => return None,
    }
    Some(found)
}

/// A frame goes nowhere: all its buffers go back to their pools.
#[cold]
pub(super) fn discard(maps: &Maps, frame: &Frame) {
    let pools = &manager().pools;
    parts_of(maps, frame).for_each(|part| give_back(pools, part.pool, &[part.address]));
    give_back(pools, frame.pool(), &[frame.address()]);
}

/// What the table of a frame lists, if it has one.
#[inline]
fn parts_of(maps: &Maps, frame: &Frame) -> impl Iterator<Item = Part> + use<> {
    let has_table = matches!(frame.format(), Format::ScatterGather | Format::LongScatterGather);
    let table = if has_table { table(maps, frame) } else { None };
    table.into_iter().flatten()
}

/// The table of a scatter-gather frame, up to its last entry.
#[cold]
fn table(maps: &Maps, frame: &Frame) -> Option<Vec<Part>> {
    let mut found = Vec::new();
    let offset = u32::from(frame.offset());
    let bytes = maps
        .at(frame.address(), offset + (PARTS * SG_ENTRY) as u32)
        .or_else(|| maps.at(frame.address(), offset + SG_ENTRY as u32))?;
    for at in 0..PARTS {
        let entry: [u8; 16] = bytes.read(offset as usize + at * SG_ENTRY)?;
        let part = sg_entry(entry);
        if part.extension {
            return None;
        }
        found.push(part);
        if part.is_final {
            return Some(found);
        }
    }
    None
}
