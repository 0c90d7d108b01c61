//! One output: its ring, and the queue of what the ring has no room for.

use std::collections::VecDeque;

use ringway::{Buffers, NS_BUF_CHANGED, NS_MOREFRAG, Port, Slot, Slots};

/// Buffers that are in no slot and in no queue.
pub type Stock = Vec<u32>;

/// What an output has done with packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub forwarded: u64,
    pub forwarded_bytes: u64,
    pub dropped: u64,
    pub dropped_bytes: u64,
}

impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.forwarded += other.forwarded;
        self.forwarded_bytes += other.forwarded_bytes;
        self.dropped += other.dropped;
        self.dropped_bytes += other.dropped_bytes;
    }
}

/// A slot's packet, or a part of one, that waits for room.
struct Waiting {
    slot: Slot,
    hash: u32,
}

pub struct Output {
    pub port: Port,
    /// As it was opened.
    pub name: String,
    pub id: u32,
    pub counters: Counters,
    /// The buffers of the input.
    source: Buffers,
    /// The port is in another region than the input.
    copies: bool,
    /// For each slot of the ring that holds a packet, or a part of one, that has not been passed
    /// on: its hash.
    hashes: Vec<Option<u32>>,
    /// Free slots whose packets, if they had any, have been passed on.
    free: u32,
    queue: VecDeque<Waiting>,
    /// Something was put into the ring since the last sync.
    dirty: bool,
}

/// How an output gets a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hand {
    /// In exchange for other buffers.
    Exchange,
    /// A copy: others get it, too.
    Copy,
}

/// A packet in the slots of another ring: `count` of them, from the `at`th on.
#[derive(Clone, Copy)]
pub struct Parcel {
    pub at: u32,
    pub count: u32,
    pub hash: u32,
}

impl Parcel {
    /// The packet that begins at slot `at`, of those before `end`.
    pub fn find(slots: &Slots<'_>, at: u32, end: u32, hash: u32) -> Parcel {
        let mut next = at;
        while next + 1 < end && slots.get(next).flags & NS_MOREFRAG != 0 {
            next += 1;
        }
        Parcel { at, count: next + 1 - at, hash }
    }

    fn bytes(&self, slots: &Slots<'_>) -> u64 {
        (0..self.count).map(|n| u64::from(slots.get(self.at + n).len)).sum()
    }
}

impl Output {
    /// An output of what comes from `input`, on the first transmit ring of `port`.
    pub fn new(mut port: Port, name: String, id: u32, input: &Port) -> Output {
        let (source, copies) = (input.buffers(), !port.shares_region_with(input));
        let mut tx = port.tx(0);
        let slots = tx.slots();
        let (free, hashes) = (slots.held(), vec![None; slots.num_slots() as usize]);
        Output {
            port,
            name,
            id,
            counters: Counters::default(),
            source,
            copies,
            hashes,
            free,
            queue: VecDeque::new(),
            dirty: false,
        }
    }

    /// Whether packets are copied into its ring, because it is in another region than the input.
    pub fn copies(&self) -> bool {
        self.copies
    }

    /// Slots' worth of packets that wait for room.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Whether a packet of so many slots would have to wait.
    pub fn is_congested(&self, count: u32) -> bool {
        !self.queue.is_empty() || self.free < count
    }

    /// Whether the consumer has packets that it has not released.
    pub fn is_busy(&self) -> bool {
        self.free + 1 < self.hashes.len() as u32
    }

    /// Takes a packet: into the ring, or behind the others that wait, or not at all. Its slots
    /// get other buffers in exchange, unless others are to have the packet too.
    pub fn take(&mut self, from: &mut Slots<'_>, parcel: Parcel, stock: &mut Stock, hand: Hand) {
        let bytes = parcel.bytes(from);
        if !self.is_congested(parcel.count) {
            let mut tx = self.port.tx(0);
            let mut to = tx.slots();
            let copies = self.copies || hand == Hand::Copy;
            for n in 0..parcel.count {
                let sent = from.get(parcel.at + n);
                if copies {
                    self.source.copy_out(sent, &mut to, n);
                } else {
                    let back = put(&mut to, n, sent);
                    from.set(parcel.at + n, exchanged(sent, back));
                }
                self.hashes[to.place(n) as usize] = Some(parcel.hash);
            }
            to.advance(parcel.count);
            self.free -= parcel.count;
            self.dirty = true;
            self.counters.forwarded += 1;
            self.counters.forwarded_bytes += bytes;
        } else if stock.len() >= parcel.count as usize {
            let first = stock.len() - parcel.count as usize;
            for (n, spare) in (0..parcel.count).zip(stock.drain(first..)) {
                let mut slot = from.get(parcel.at + n);
                match hand {
                    Hand::Exchange => from.set(parcel.at + n, exchanged(slot, spare)),
                    Hand::Copy => {
                        self.source.copy(slot, spare);
                        slot.buf_idx = spare;
                    }
                }
                self.queue.push_back(Waiting { slot, hash: parcel.hash });
            }
        } else {
            self.counters.dropped += 1;
            self.counters.dropped_bytes += bytes;
        }
    }

    /// Moves what waits into the ring, as far as there is room; returns how many slots.
    pub fn drain(&mut self, stock: &mut Stock) -> u32 {
        let mut tx = self.port.tx(0);
        let mut to = tx.slots();
        let mut moved = 0;
        while let Some(count) = first_packet(&self.queue)
            && count <= self.free
        {
            for (n, waiting) in (0..).zip(self.queue.drain(..count as usize)) {
                self.counters.forwarded_bytes += u64::from(waiting.slot.len);
                stock.push(match self.copies {
                    true => {
                        self.source.copy_out(waiting.slot, &mut to, n);
                        waiting.slot.buf_idx
                    }
                    false => put(&mut to, n, waiting.slot),
                });
                self.hashes[to.place(n) as usize] = Some(waiting.hash);
            }
            to.advance(count);
            self.free -= count;
            self.counters.forwarded += 1;
            moved += count;
        }
        self.dirty |= moved > 0;
        moved
    }

    /// Drops the oldest packets that wait, until `count` buffers are free.
    pub fn revoke(&mut self, count: usize, stock: &mut Stock) {
        let enough = stock.len() + count;
        while stock.len() < enough
            && let Some(slots) = first_packet(&self.queue)
        {
            for waiting in self.queue.drain(..slots as usize) {
                self.counters.dropped_bytes += u64::from(waiting.slot.len);
                stock.push(waiting.slot.buf_idx);
            }
            self.counters.dropped += 1;
        }
    }

    /// Gives up what waits.
    pub fn abandon(&mut self, stock: &mut Stock) {
        stock.extend(self.queue.drain(..).map(|waiting| waiting.slot.buf_idx));
    }

    /// Hands the consumer what was put into the ring.
    pub fn sync(&mut self, always: bool) {
        if always || self.dirty {
            self.port.tx(0).sync();
            self.dirty = false;
        }
    }

    /// Has the next wait for this pipe end when the consumer releases something.
    pub fn await_release(&mut self) {
        self.port.tx(0).slots().await_more();
    }

    /// Shows what the consumer has released since the last time, packet by packet, and counts
    /// the slots as free; returns how many slots that were.
    pub fn released(&mut self, mut pass_on: impl FnMut(&mut Slots<'_>, Parcel)) -> u32 {
        let (end, all) = self.returned();
        let mut tx = self.port.tx(0);
        let mut slots = tx.slots();
        let (mut at, mut released) = (self.free, 0);
        while at < end {
            let Some(hash) = self.hashes[slots.place(at) as usize] else {
                at += 1;
                continue;
            };
            let parcel = Parcel::find(&slots, at, end, hash);
            let last = at + parcel.count - 1;
            if slots.get(last).flags & NS_MOREFRAG != 0 && !all {
                // The rest of it is still the consumer's.
                break;
            }
            pass_on(&mut slots, parcel);
            (at..=last).for_each(|n| self.hashes[slots.place(n) as usize] = None);
            at += parcel.count;
            released += parcel.count;
        }
        self.free = at.min(slots.held());
        released
    }

    /// Slots that [`released`](Self::released) would show.
    pub fn new_releases(&mut self) -> u32 {
        let (end, _) = self.returned();
        let mut tx = self.port.tx(0);
        let slots = tx.slots();
        (self.free..end).filter(|n| self.hashes[slots.place(*n) as usize].is_some()).count() as u32
    }

    /// The end of the slots that the consumer has given back, and whether those are all.
    ///
    /// A ring keeps one slot empty, and the last packet may be in it: its turn to be free comes
    /// only with the next packet. If nothing is on its way nobody else looks at that slot.
    fn returned(&mut self) -> (u32, bool) {
        let held = self.port.tx(0).slots().held();
        let all = held + 1 == self.hashes.len() as u32;
        (held + u32::from(all), all)
    }
}

/// Slots of the packet at the front.
fn first_packet(queue: &VecDeque<Waiting>) -> Option<u32> {
    let last = queue.iter().position(|waiting| waiting.slot.flags & NS_MOREFRAG == 0);
    // The end may never have come.
    let count = last.map_or(queue.len(), |last| last + 1);
    (count > 0).then_some(count as u32)
}

/// Stores a packet's slot; returns the buffer that was there.
fn put(to: &mut Slots<'_>, n: u32, sent: Slot) -> u32 {
    let old = to.get(n);
    let flags = NS_BUF_CHANGED | sent.flags & NS_MOREFRAG;
    to.set(n, Slot { flags, ..sent });
    old.buf_idx
}

/// The slot with another buffer, and nothing in it.
fn exchanged(slot: Slot, buf_idx: u32) -> Slot {
    Slot { buf_idx, len: 0, flags: NS_BUF_CHANGED, ..slot }
}
