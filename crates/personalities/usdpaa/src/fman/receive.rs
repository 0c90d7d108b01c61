//! Receiving: from a port's rings into buffers of the interface's pools, and into frame queues.

use ringway::{BoundRing, NS_MOREFRAG, Port, Turns};
use ringway_abi::Dir;
use ringway_qbman::{Frame, Pools, manager};
use ringway_region::{Buf, RingView};

use super::{
    distribute::Distributor,
    interface::{Counters, Numbers, POOLS},
    transmit::discard,
};
use crate::{
    memory::{Maps, Part},
    rejected,
};

/// Packets that are received in a row.
const BURST: usize = 64;
/// Bytes of a buffer in front of the frame.
const HEADROOM: u32 = 64;
/// Bytes of a frame that fits one buffer, at most.
const LONGEST: u32 = POOLS[POOLS.len() - 1].1 - HEADROOM;
/// Buffers of one frame, at most.
pub(super) const MOST_PARTS: usize = 16;
/// Bytes of an entry of a table of them.
pub(super) const SG_ENTRY: usize = 16;
/// How many slots ahead of the present one packets are prefetched.
const AHEAD: u32 = 4;

/// Buffers of one pool, taken for a burst.
struct Stash {
    pool: u8,
    size: u32,
    buffers: [u64; BURST],
    left: usize,
    /// The pool has had no more.
    is_dry: bool,
}

pub struct Receiver {
    numbers: Numbers,
    stashes: [Stash; POOLS.len()],
    batch: Vec<(u32, Frame)>,
    /// Which ring is the first to have buffers.
    turns: Turns,
}

/// What a burst goes by.
pub struct World<'w> {
    pub maps: &'w Maps,
    pub distributor: &'w Distributor,
    pub counters: &'w Counters,
}

/// A buffer to receive into.
struct Place<'a> {
    pool: u8,
    address: u64,
    bytes: Buf<'a>,
    /// Other processes may write to it meanwhile.
    is_shared: bool,
}

impl Receiver {
    pub fn new(numbers: Numbers) -> Receiver {
        let stash =
            |(pool, size)| Stash { pool, size, buffers: [0; BURST], left: 0, is_dry: false };
        Receiver {
            numbers,
            stashes: POOLS.map(stash),
            batch: Vec::with_capacity(BURST),
            turns: Turns::default(),
        }
    }

    /// Receives a burst of each ring; returns how many packets were taken.
    pub fn take(&mut self, port: &mut Port, world: &World<'_>) -> usize {
        let (rings, mut turns) = (port.binding().rings(Dir::Rx), self.turns);
        let mut packets = 0;
        turns.each(rings.len(), |at| {
            let taken = self.ring(&rings[at], world);
            packets += taken;
            taken > 0
        });
        self.turns = turns;
        packets
    }

    fn ring(&mut self, ring: &BoundRing, world: &World<'_>) -> usize {
        let view = ring.kring().ring();
        // What the last burst has left is taken first: a sync for many packets.
        if held(view) == 0 {
            let _ = ring.sync();
        }
        let slots = held(view);
        let (mut at, mut seen, mut packets) = (view.head(), 0, 0);
        while seen < slots && packets < BURST {
            let slot = view.plain_slot(at);
            if slots - seen > AHEAD
                && let Some(buf) = view.buf(view.plain_slot(view.advance(at, AHEAD)).buf_idx)
            {
                buf.prefetch();
            }
            if slot.flags & NS_MOREFRAG == 0 {
                if let Some(from) = view.buf(slot.buf_idx) {
                    let length = from.size().min(slot.len.into());
                    self.receive(length, BURST - packets, world, |offset, to| {
                        if let Some(rest) = from.skip(offset) {
                            to.copy_from(&rest, (length - offset) as usize);
                        }
                    });
                }
                (at, seen) = (view.next(at), seen + 1);
            } else {
                let Some((parts, length)) = whole(view, at, slots - seen) else {
                    if seen == 0 {
                        begun(view, slots);
                        return 0;
                    }
                    break;
                };
                self.receive(length, BURST - packets, world, |offset, to| {
                    gather(view, at, parts, offset, to);
                });
                (at, seen) = (view.advance(at, parts), seen + parts);
            }
            packets += 1;
        }
        if seen > 0 {
            view.set_cur(at);
            view.set_head(at);
        }
        self.finish(world.maps, world.counters);
        packets
    }

    /// Receives a frame whose bytes from an offset on `copy` writes into a buffer, as many as it holds. `more`: how many
    /// may come in this burst, with this one.
    #[inline]
    pub fn receive(
        &mut self,
        length: u32,
        more: usize,
        world: &World<'_>,
        copy: impl Fn(u32, &Buf<'_>),
    ) {
        if length > LONGEST {
            return self.scatter(length, world, copy);
        }
        let Some(place) = place(&mut self.stashes, length + HEADROOM, more, world.maps) else {
            return Counters::add(&world.counters.no_buffer, 1);
        };
        let Some(bytes) = place.bytes.skip(HEADROOM) else { return };
        copy(0, &bytes);
        let frame = Frame::contiguous(place.pool, place.address, HEADROOM as u16, length);
        let fqid = self.fqid(&bytes, place.is_shared, length, world);
        self.batch.push((fqid, frame));
    }

    /// The queue of a frame that begins with these bytes.
    #[inline]
    fn fqid(&self, bytes: &Buf<'_>, is_shared: bool, length: u32, world: &World<'_>) -> u32 {
        let length = length.min(bytes.size()) as usize;
        let fqid = if is_shared {
            shared_fqid(bytes, length, world.distributor)
        } else {
            // SAFETY: the buffer is the interface's since it came from its pool, and its bytes were written just now; no
            // other process has them. A program that writes to a buffer that it has released breaks the API's contract.
            let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast_const(), length) };
            world.distributor.fqid(bytes)
        };
        fqid.unwrap_or(self.numbers.rx_error)
    }

    /// Receives a frame that no buffer holds into several, and a table of these.
    #[cold]
    fn scatter(&mut self, length: u32, world: &World<'_>, copy: impl Fn(u32, &Buf<'_>)) {
        let size = POOLS[POOLS.len() - 1].1;
        let count = length.div_ceil(size) as usize;
        if count > MOST_PARTS {
            return Counters::add(&world.counters.too_long, 1);
        }
        let needed = HEADROOM + (MOST_PARTS * SG_ENTRY) as u32;
        let table = place(&mut self.stashes, needed, 1, world.maps);
        let parts = (0..count).map_while(|_| place(&mut self.stashes, size, 1, world.maps));
        let parts: Vec<Place<'_>> = parts.collect();
        let (Some(table), true) = (&table, parts.len() == count) else {
            for place in parts.iter().chain(&table) {
                put_back(&mut self.stashes, place);
            }
            return Counters::add(&world.counters.no_buffer, 1);
        };
        let mut offset = 0;
        for (n, place) in parts.iter().enumerate() {
            copy(offset, &place.bytes);
            let part = Part {
                address: place.address,
                pool: place.pool,
                offset: 0,
                length: size.min(length - offset),
                extension: false,
                is_final: n + 1 == count,
            };
            table.bytes.store(HEADROOM as usize + n * SG_ENTRY, part.entry());
            offset += part.length;
        }
        let frame = Frame::scattered(table.pool, table.address, HEADROOM as u16, length);
        let fqid = self.fqid(&parts[0].bytes, parts[0].is_shared, length, world);
        self.batch.push((fqid, frame));
    }

    /// Enqueues what was received, and gives back buffers that were too many.
    pub fn finish(&mut self, maps: &Maps, counters: &Counters) {
        let manager = manager();
        if !self.batch.is_empty() {
            let mut rejected = 0;
            manager.enqueue_all(&self.batch, |frame, queue, why| {
                rejected += 1;
                if !rejected::tell(frame, queue, self.numbers.fman, why) {
                    discard(maps, &frame);
                }
            });
            Counters::add(&counters.received, self.batch.len() as u64);
            Counters::add(&counters.rejected, rejected);
            self.batch.clear();
        }
        for stash in &mut self.stashes {
            if stash.left > 0 {
                give_back(&manager.pools, stash.pool, &stash.buffers[..stash.left]);
                stash.left = 0;
            }
            stash.is_dry = false;
        }
    }
}

/// Buffers came from the pool: it has room for them, unless the program has put others in their place.
pub(super) fn give_back(pools: &Pools, pool: u8, buffers: &[u64]) {
    let _ = pools.release(pool, buffers);
}

/// A buffer of the smallest pool that has one with so many bytes.
#[inline]
fn place<'a>(
    stashes: &mut [Stash; POOLS.len()],
    needed: u32,
    more: usize,
    maps: &'a Maps,
) -> Option<Place<'a>> {
    for stash in stashes.iter_mut().filter(|stash| stash.size >= needed) {
        while let Some(address) = stash.take(more) {
            // What a program has released that is no buffer is let go.
            if let Some((bytes, is_shared)) = maps.room(address, stash.size) {
                return Some(Place { pool: stash.pool, address, bytes, is_shared });
            }
        }
    }
    None
}

/// The queue of a frame in memory that others may write to meanwhile: of a copy.
#[cold]
fn shared_fqid(bytes: &Buf<'_>, length: usize, distributor: &Distributor) -> Option<u32> {
    let mut copy = [0; POOLS[POOLS.len() - 1].1 as usize];
    let copied = bytes.copy_to(length, &mut copy);
    distributor.fqid(&copy[..copied])
}

/// A buffer that is not needed after all.
fn put_back(stashes: &mut [Stash; POOLS.len()], place: &Place<'_>) {
    let stash = stashes.iter_mut().find(|stash| stash.pool == place.pool && stash.left < BURST);
    match stash {
        Some(stash) => {
            stash.buffers[stash.left] = place.address;
            stash.left += 1;
        }
        None => give_back(&manager().pools, place.pool, &[place.address]),
    }
}

impl Stash {
    #[inline]
    fn take(&mut self, more: usize) -> Option<u64> {
        if self.left == 0 {
            if self.is_dry {
                return None;
            }
            let wanted = more.clamp(1, BURST);
            let got = manager().pools.acquire_up_to(self.pool, &mut self.buffers[..wanted]);
            self.is_dry = got < wanted;
            self.left = got;
        }
        self.left = self.left.checked_sub(1)?;
        Some(self.buffers[self.left])
    }
}

/// Slots that hold packets, as of the last sync; none if somebody has spoilt the cursors.
#[inline]
pub(super) fn held(view: &RingView) -> u32 {
    let (head, tail, n) = (view.head(), view.tail(), view.num_slots());
    if head < n && tail < n { view.distance(head, tail) } else { 0 }
}

/// Slots and bytes of the packet that begins at `at`, if its end is among the `left` slots.
fn whole(view: &RingView, at: u32, left: u32) -> Option<(u32, u32)> {
    let mut length: u32 = 0;
    for part in 0..left {
        let slot = view.plain_slot(view.advance(at, part));
        let size = view.buf(slot.buf_idx).map_or(0, |buf| buf.size());
        length = length.saturating_add(size.min(slot.len.into()));
        if slot.flags & NS_MOREFRAG == 0 {
            return Some((part + 1, length));
        }
    }
    None
}

/// All that there is, is the beginning of a packet: it is waited for the rest, unless the ring is too short for that.
#[cold]
fn begun(view: &RingView, slots: u32) {
    view.set_cur(view.tail());
    if slots + 1 >= view.num_slots() {
        view.set_head(view.tail());
    }
}

/// Copies the bytes of a packet from `offset` on, as far as they fit: others may have changed the parts' lengths.
fn gather(view: &RingView, at: u32, parts: u32, mut offset: u32, to: &Buf<'_>) {
    let mut done = 0;
    for part in 0..parts {
        let slot = view.plain_slot(view.advance(at, part));
        let Some(from) = view.buf(slot.buf_idx) else { continue };
        let length = from.size().min(slot.len.into());
        let Some(from) = from.part(0, length).and_then(|from| from.skip(offset)) else {
            offset -= length;
            continue;
        };
        offset = 0;
        let Some(rest) = to.skip(done) else { return };
        rest.copy_from(&from, from.size() as usize);
        done += from.size().min(rest.size());
    }
}
