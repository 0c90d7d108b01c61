//! One output: its ring, and the queue of what the ring has no room for.

use ringway::{Buffers, NS_BUF_CHANGED, NS_MOREFRAG, Port, Slot, Slots};

use crate::{
    bundle::Places,
    onward::{Onward, Returned},
    parcel::Parcel,
    queue::Queue,
};

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

pub struct Output {
    pub port: Port,
    /// As it was opened.
    pub name: String,
    pub id: u32,
    pub counters: Counters,
    /// What of that the consumer has been handed.
    handed: Counters,
    /// The buffers of the input.
    source: Buffers,
    /// The port is in another region than the input.
    copies: bool,
    /// Bytes that a slot can have there.
    room: usize,
    /// Slots of the ring.
    slots: u32,
    /// Slots that were filled since the last sync: the consumer does not have them yet.
    filled: u32,
    /// Free slots behind those, whose packets, if they had any, have been passed on.
    free: u32,
    /// For a group that another follows.
    onward: Option<Onward>,
    queue: Queue,
}

/// How an output gets a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hand {
    /// In exchange for other buffers.
    Exchange,
    /// A copy: others get it, too.
    Copy,
}

impl Output {
    /// An output of what comes from `input`, on the first transmit ring of `port`.
    pub fn new(mut port: Port, name: String, id: u32, input: &Port) -> Output {
        let (source, copies) = (input.buffers(), !port.shares_region_with(input));
        let room = port.max_frame();
        let mut tx = port.tx(0);
        let slots = tx.slots();
        let (free, slots) = (slots.held(), slots.num_slots());
        Output {
            port,
            name,
            id,
            counters: Counters::default(),
            handed: Counters::default(),
            source,
            copies,
            room,
            slots,
            filled: 0,
            free,
            onward: None,
            queue: Queue::default(),
        }
    }

    /// Its port has been closed, or opened again, or the input has: what waits is of another region then.
    pub fn reopened(&mut self, input: &Port, is_own: bool) {
        if is_own {
            self.lose_filled();
        }
        (self.source, self.copies) = (input.buffers(), !self.port.shares_region_with(input));
        if !is_own {
            return;
        }
        (self.filled, self.free, self.room) = (0, 0, self.port.max_frame());
        if let Some(tx) = self.port.split().0.first_mut() {
            let slots = tx.slots();
            (self.free, self.slots) = (slots.held(), slots.num_slots());
        }
        if self.onward.is_some() {
            self.passes_on();
        }
    }

    /// What was put into the ring since the last sync has gone with it.
    fn lose_filled(&mut self) {
        let Counters { forwarded, forwarded_bytes, .. } = self.handed;
        let counters = &mut self.counters;
        counters.dropped += counters.forwarded - forwarded;
        counters.dropped_bytes += counters.forwarded_bytes - forwarded_bytes;
        (counters.forwarded, counters.forwarded_bytes) = (forwarded, forwarded_bytes);
    }

    /// What it has done since the last time; what the consumer has not been handed yet is for the next.
    pub fn take_counters(&mut self) -> Counters {
        let Counters { forwarded, forwarded_bytes, .. } = std::mem::take(&mut self.handed);
        let all = self.counters;
        self.counters = Counters {
            forwarded: all.forwarded - forwarded,
            forwarded_bytes: all.forwarded_bytes - forwarded_bytes,
            ..Counters::default()
        };
        Counters { forwarded, forwarded_bytes, ..all }
    }

    /// Has what the consumer releases [passed on](Self::released).
    pub fn passes_on(&mut self) {
        self.onward = Some(Onward::new(self.slots));
    }

    /// Whether packets are copied into its ring, because it is in another region than the input.
    pub fn copies(&self) -> bool {
        self.copies
    }

    /// Whether half of the ring has been filled, and not been given to the consumer yet.
    pub fn is_half_filled(&self) -> bool {
        self.filled >= self.slots / 2
    }

    /// Slots' worth of packets that wait for room.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Packets that wait for room.
    pub fn queued_packets(&self) -> u64 {
        self.queue.packets()
    }

    /// Whether a packet of so many slots would have to wait.
    #[inline]
    pub fn is_congested(&self, count: u32) -> bool {
        !self.queue.is_empty() || self.free < count
    }

    /// Whether the consumer has packets that it has not released.
    pub fn is_busy(&self) -> bool {
        self.free + 1 < self.slots
    }

    /// Takes a packet: into the ring, or behind the others that wait, or not at all. Its slots
    /// get other buffers in exchange, unless others are to have the packet too.
    #[inline]
    pub fn take(&mut self, from: &mut Slots<'_>, parcel: Parcel, stock: &mut Stock, hand: Hand) {
        if self.copies && !self.fits(from, &parcel) {
            return self.drop_packet(from, &parcel);
        }
        if self.is_congested(parcel.count) {
            return self.take_later(from, parcel, stock, hand);
        }
        let copies = self.copies || hand == Hand::Copy;
        let mut tx = self.port.tx(0);
        let mut to = tx.slots();
        for at in parcel.at..parcel.at + parcel.count {
            let len = if copies {
                let sent = from.get(at);
                self.source.copy_out(sent, &mut to, self.filled);
                sent.len
            } else {
                to.exchange(self.filled, from, at)
            };
            if let Some(onward) = &mut self.onward {
                onward.put(to.place(self.filled), parcel.hash);
            }
            self.counters.forwarded_bytes += u64::from(len);
            self.filled += 1;
        }
        self.free -= parcel.count;
        self.counters.forwarded += 1;
    }

    /// Whether each slot of a packet fits a buffer of the output: none is sent in part.
    fn fits(&self, from: &Slots<'_>, parcel: &Parcel) -> bool {
        (parcel.at..parcel.at + parcel.count).all(|at| usize::from(from.get(at).len) <= self.room)
    }

    #[cold]
    fn drop_packet(&mut self, from: &Slots<'_>, parcel: &Parcel) {
        self.counters.dropped += 1;
        self.counters.dropped_bytes += parcel.bytes(from);
    }

    /// Takes packets of one slot each, in exchange for other buffers.
    #[inline]
    pub fn take_all(&mut self, from: &mut Slots<'_>, places: Places, stock: &mut Stock) {
        if self.copies || self.onward.is_some() || self.is_congested(places.left()) {
            let parcels = places.map(|at| Parcel { at, count: 1, hash: 0 });
            return parcels.for_each(|parcel| self.take(from, parcel, stock, Hand::Exchange));
        }
        let mut tx = self.port.tx(0);
        let mut to = tx.slots();
        let (mut filled, mut bytes) = (self.filled, 0);
        for at in places {
            bytes += u64::from(to.exchange(filled, from, at));
            filled += 1;
        }
        let packets = filled - self.filled;
        self.filled = filled;
        self.free -= packets;
        self.counters.forwarded += u64::from(packets);
        self.counters.forwarded_bytes += bytes;
    }

    /// Without room in the ring.
    #[cold]
    fn take_later(&mut self, from: &mut Slots<'_>, parcel: Parcel, stock: &mut Stock, hand: Hand) {
        let Some(first) = stock.len().checked_sub(parcel.count as usize) else {
            return self.drop_packet(from, &parcel);
        };
        for (n, spare) in (0..parcel.count).zip(stock.drain(first..)) {
            let mut slot = from.get(parcel.at + n);
            match hand {
                Hand::Exchange => from.set(parcel.at + n, exchanged(slot, spare)),
                Hand::Copy => {
                    self.source.copy(slot, spare);
                    slot.buf_idx = spare;
                }
            }
            self.queue.push(slot, parcel.hash);
        }
    }

    /// Moves what waits into the ring, as far as there is room; returns how many slots.
    pub fn drain(&mut self, stock: &mut Stock) -> u32 {
        let mut moved = 0;
        while let Some(count) = self.queue.first_packet()
            && count <= self.free
        {
            if self.copies && !self.queue.fits(count, self.room) {
                self.revoke_first(count, stock);
                continue;
            }
            let mut tx = self.port.tx(0);
            let mut to = tx.slots();
            for waiting in self.queue.take(count) {
                self.counters.forwarded_bytes += u64::from(waiting.slot.len);
                stock.push(match self.copies {
                    true => {
                        self.source.copy_out(waiting.slot, &mut to, self.filled);
                        waiting.slot.buf_idx
                    }
                    false => put(&mut to, self.filled, waiting.slot),
                });
                if let Some(onward) = &mut self.onward {
                    onward.put(to.place(self.filled), waiting.hash);
                }
                self.filled += 1;
            }
            self.free -= count;
            self.counters.forwarded += 1;
            moved += count;
        }
        moved
    }

    /// Drops the oldest packets that wait, until `count` buffers are free.
    pub fn revoke(&mut self, count: usize, stock: &mut Stock) {
        let enough = stock.len() + count;
        while stock.len() < enough
            && let Some(slots) = self.queue.first_packet()
        {
            self.revoke_first(slots, stock);
        }
    }

    /// Drops the packet of so many slots that has waited longest.
    #[cold]
    fn revoke_first(&mut self, slots: u32, stock: &mut Stock) {
        for waiting in self.queue.take(slots) {
            self.counters.dropped_bytes += u64::from(waiting.slot.len);
            stock.push(waiting.slot.buf_idx);
        }
        self.counters.dropped += 1;
    }

    /// Gives up what waits.
    pub fn abandon(&mut self, stock: &mut Stock) {
        self.queue.abandon(stock);
    }

    /// Hands the consumer what was put into the ring.
    pub fn sync(&mut self, always: bool) {
        if (always || self.filled > 0) && !self.port.is_shut() {
            let mut tx = self.port.tx(0);
            tx.slots().advance(self.filled);
            tx.sync();
            self.filled = 0;
            self.handed = self.counters;
        }
    }

    /// Has the next wait for this pipe end when the consumer releases something.
    pub fn await_release(&mut self) {
        if !self.port.is_shut() {
            self.port.tx(0).slots().await_more();
        }
    }

    /// After a sync: counts what the consumer has released since the last time as free, and shows it packet by packet if
    /// it is to be [passed on](Self::passes_on); returns how many slots that were.
    pub fn released(&mut self, pass_on: impl FnMut(&mut Slots<'_>, Parcel)) -> u32 {
        if self.port.is_shut() {
            return 0;
        }
        let returned = self.returned();
        let mut tx = self.port.tx(0);
        let mut slots = tx.slots();
        let held = slots.held();
        match &mut self.onward {
            None => {
                let released = held.saturating_sub(self.free);
                self.free = held;
                released
            }
            Some(onward) => {
                let (at, released) = onward.pass_on(&mut slots, returned, pass_on);
                self.free = at.min(held);
                released
            }
        }
    }

    /// Slots that [`released`](Self::released) would show.
    pub fn new_releases(&mut self) -> u32 {
        if self.port.is_shut() {
            return 0;
        }
        let returned = self.returned();
        let mut tx = self.port.tx(0);
        let slots = tx.slots();
        self.onward.as_ref().map_or(0, |onward| onward.count(&slots, returned))
    }

    /// What the consumer has given back since the last time.
    ///
    /// A ring keeps one slot empty, and the last packet may be in it: its turn to be free comes
    /// only with the next packet. If nothing is on its way nobody else looks at that slot.
    fn returned(&mut self) -> Returned {
        let held = self.port.tx(0).slots().held();
        let all = held + 1 == self.slots;
        Returned { first: self.free, end: held + u32::from(all), all }
    }
}

/// Stores a packet's slot; returns the buffer that was there.
#[inline]
fn put(to: &mut Slots<'_>, n: u32, sent: Slot) -> u32 {
    let old = to.get(n);
    let flags = NS_BUF_CHANGED | sent.flags & NS_MOREFRAG;
    to.set(n, Slot { flags, ..sent });
    old.buf_idx
}

/// The slot with another buffer, and nothing in it.
#[inline]
fn exchanged(slot: Slot, buf_idx: u32) -> Slot {
    Slot { buf_idx, len: 0, flags: NS_BUF_CHANGED, ..slot }
}
