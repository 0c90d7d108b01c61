//! Transmitting: from the interface's channel to a port's ring, and buffers back to where they belong.

use ringway::{BoundRing, NS_MOREFRAG, Port};
use ringway_abi::Dir;
use ringway_queues::{Entry, Format, Frame, manager};
use ringway_region::Buf;

use super::{
    distribute::Distributor,
    interface::{Counters, Numbers},
    receive::{MOST_PARTS as PARTS, Receiver, SG_ENTRY, World, give_back, held},
};
use crate::memory::{Maps, Part, sg_entry};

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
        let size = port.max_frame() as u32;
        let before = self.pending.start;
        let mut sent = 0;
        while let Some(entry) = self.entries.get(self.pending.start).filter(|_| self.waits()) {
            let frame = entry.frame;
            let confirms = entry.context_a & NO_CONFIRM == 0;
            match parts(maps, &frame).map(|parts| put(ring, size, &parts)) {
                Some(Sent::No) => break,
                Some(Sent::Yes) => {
                    sent += 1;
                    self.complete(maps, &frame, confirms, self.numbers.tx_confirm);
                }
                Some(Sent::Never) | None => {
                    Counters::add(&counters.unsendable, 1);
                    self.complete(maps, &frame, true, self.numbers.tx_error);
                }
            }
            self.pending.start += 1;
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
        receiver.finish(counters);
        self.pending = 0..0;
        self.release();
        taken
    }

    /// The frame has gone: its buffers go back to their pools, or to the program by the queue `fqid`.
    fn complete(&mut self, maps: &Maps, frame: &Frame, confirms: bool, fqid: u32) {
        if confirms {
            let mut taken = true;
            manager().enqueue_all(&[(fqid, *frame)], |_, _, _| taken = false);
            if taken {
                return;
            }
            // Nobody has set up that queue: then nobody waits for the buffer either.
        }
        if matches!(frame.format(), Format::ScatterGather | Format::LongScatterGather) {
            table(maps, frame)
                .into_iter()
                .flatten()
                .for_each(|part| self.let_go(part.pool, part.address));
        }
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

/// Puts a frame into the ring's next slots.
#[inline]
fn put(ring: &BoundRing, size: u32, parts: &Parts<'_>) -> Sent {
    let view = ring.kring().ring();
    let slots = if parts.length <= size { 1 } else { parts.length.div_ceil(size) };
    if parts.length == 0 || slots >= view.num_slots() {
        return Sent::Never;
    }
    if held(view) < slots {
        let _ = ring.sync();
        if held(view) < slots {
            return Sent::No;
        }
    }
    let mut at = view.head();
    let mut offset = 0;
    for part in 1..=slots {
        let slot = view.plain_slot(at);
        let length = size.min(parts.length - offset);
        let Some(to) = view.buf(slot.buf_idx).and_then(|buf| buf.part(0, length)) else {
            return Sent::Never;
        };
        parts.copy_part(offset, &to);
        let flags = if part < slots { NS_MOREFRAG } else { 0 };
        view.set_slot(at, slot.buf_idx, length as u16, flags);
        at = view.next(at);
        offset += length;
    }
    view.set_cur(at);
    view.set_head(at);
    Sent::Yes
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
