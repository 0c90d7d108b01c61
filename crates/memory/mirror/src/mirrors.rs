//! The mirrors of one ring, and how they are fed.

use std::sync::Arc;

use ringway_abi::{NS_MOREFRAG, NS_TXMON};
use ringway_kring::{Doorbell, Guard, Kring, Offsets, Turn};
use ringway_region::RingView;
use serde::{Deserialize, Serialize};

use crate::{
    slots::{SlotRef, copy, swap, write},
    time::{TimeSource, Times},
};

/// A slot's worth of a packet that is shown by its bytes, not by the ring that it lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Bytes.
    pub len: u32,
    pub flags: u16,
    /// When the packet came, in nanoseconds of CLOCK_TAI; 0 where that is not known.
    pub time: u64,
}

/// What a mirror carries, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MirrorMode {
    /// A copy of what is sent.
    CopySent,
    /// A copy of what is received.
    CopyReceived,
    /// The buffers of what was sent, when the sender gets its slots back.
    SwapSent,
    /// The buffers of what was received, when the receiver has released them.
    SwapReceived,
    /// The same, where the receiver is a monitor itself: NS_TXMON stays what it is.
    SwapReleased,
}

impl MirrorMode {
    /// Whether it is fed what is in use, not what is free.
    pub fn copies(self) -> bool {
        matches!(self, MirrorMode::CopySent | MirrorMode::CopyReceived)
    }

    fn tag(self) -> Option<u16> {
        match self {
            // S-FLAGS-NS_TXMON.
            MirrorMode::CopySent | MirrorMode::SwapSent => Some(NS_TXMON),
            MirrorMode::CopyReceived | MirrorMode::SwapReceived => Some(0),
            MirrorMode::SwapReleased => None,
        }
    }
}

/// One monitor's ring, as the process that feeds it sees it.
#[derive(Debug)]
pub struct Mirror {
    monitor: Kring,
    doorbell: Arc<Doorbell>,
    mode: MirrorMode,
    /// Of the ring that is mirrored, and of the monitor's.
    offsets: [Offsets; 2],
    times: TimeSource,
    /// Where others feed the ring too: which ring it must be.
    id: Option<u32>,
    /// Slots that the monitor's program has not been woken for.
    pending_notify: u32,
    /// Slots that passed by while another party fed the monitor, and are not counted there yet: its counters are
    /// written by the party whose turn it is.
    passed: u64,
}

/// What has passed by is counted, unless another party still has its turn.
impl Drop for Mirror {
    fn drop(&mut self) {
        if self.passed > 0
            && let Some(id) = self.id
            && let Some(Turn::Mine(_turn)) = turn(&self.monitor, id)
        {
            self.miss(self.passed);
        }
    }
}

impl Mirror {
    /// A mirror into the rx ring `monitor`, whose program sleeps on `doorbell`, and which nothing else
    /// feeds. For a swap, it must be in the region of the ring that is mirrored.
    pub fn new(monitor: Kring, doorbell: Arc<Doorbell>, mode: MirrorMode) -> Mirror {
        let (offsets, times) = Default::default();
        let (pending_notify, passed) = (0, 0);
        Mirror { monitor, doorbell, mode, offsets, times, id: None, pending_notify, passed }
    }

    /// For a ring that says when its packets came.
    pub fn with_times(mut self, times: TimeSource) -> Mirror {
        self.times = times;
        self
    }

    /// For rings whose packets begin elsewhere than at the start of their buffers: the ring that
    /// is mirrored, and the monitor's.
    pub fn with_offsets(mut self, offsets: [Offsets; 2]) -> Mirror {
        self.offsets = offsets;
        self
    }

    /// For a ring that others may feed too: it is fed only as long as it is the one of this
    /// [id](Kring::feed_id).
    pub fn shared(mut self, id: u32) -> Mirror {
        self.id = Some(id);
        self
    }

    /// Puts slots `[start, to)` of `ring` into the monitor's ring; returns how many. Those that find no room are
    /// counted there.
    fn feed(&self, ring: &RingView, start: u32, to: u32) -> u32 {
        let monitor = self.monitor.ring();
        let csb = self.monitor.csb();
        let head = csb.app.head();
        if head >= monitor.num_slots() {
            return 0;
        }
        let first = self.monitor.hwtail();
        let room = monitor.distance(first, monitor.prev(head));
        let (mut at, mut tail) = (begin(ring, start, to, room), first);
        let mut times = self.times();
        while at != to {
            let [theirs, mine] = self.offsets;
            let from = SlotRef { ring, at, offsets: theirs };
            let to = SlotRef { ring: monitor, at: tail, offsets: mine };
            if let Some(times) = &mut times {
                monitor.set_slot_ptr(tail, times.of(ring, &ring.slot(at)));
            }
            if self.mode.copies() {
                copy(from, to, self.mode.tag());
            } else {
                swap(from, to, self.mode.tag());
            }
            at = ring.next(at);
            tail = monitor.next(tail);
        }
        csb.service.publish(head, tail);
        let fed = monitor.distance(first, tail);
        self.note_missed(ring.distance(start, to).saturating_sub(fed));
        fed
    }

    /// What puts times into the monitor's slots; `None` where there is no place for them.
    fn times(&self) -> Option<Times> {
        (self.offsets[1] == Offsets::default()).then(|| Times::new(self.times))
    }

    /// Counts slots that found no room.
    fn note_missed(&self, slots: u32) {
        if slots > 0 {
            self.miss(slots.into());
        }
    }

    fn miss(&self, slots: u64) {
        self.monitor.note(|counters| &counters.ring_full, slots);
    }

    /// As [`feed`](Self::feed), with a copy of slots: their bytes, one behind the other.
    fn show(&self, bytes: &[u8], slots: &[Shown]) -> u32 {
        let (monitor, csb) = (self.monitor.ring(), self.monitor.csb());
        let head = csb.app.head();
        if head >= monitor.num_slots() {
            return 0;
        }
        let first = self.monitor.hwtail();
        let room = monitor.distance(first, monitor.prev(head)) as usize;
        let mut skipped = slots.len().saturating_sub(room);
        let goes_on = |at: usize| slots.get(at).is_some_and(|slot| slot.flags & NS_MOREFRAG != 0);
        while skipped > 0 && skipped < slots.len() && goes_on(skipped - 1) {
            skipped += 1;
        }
        let (mut at, mut tail, mut times) = (0, first, self.times());
        for (i, slot) in slots.iter().enumerate() {
            let end = at + slot.len as usize;
            if i >= skipped {
                let to = SlotRef { ring: monitor, at: tail, offsets: self.offsets[1] };
                if let Some(times) = &mut times {
                    let told = Some(slot.time).filter(|time| *time != 0);
                    monitor.set_slot_ptr(tail, times.next(slot.flags, told));
                }
                write(bytes.get(at..end).unwrap_or_default(), slot.flags, to, self.mode.tag());
                tail = monitor.next(tail);
            }
            at = end;
        }
        self.note_missed(skipped as u32);
        csb.service.publish(head, tail);
        monitor.distance(first, tail)
    }

    fn wake(&self) {
        let csb = self.monitor.csb();
        csb.app.kick(&csb.service, || self.doorbell.notify());
    }
}

/// Where to begin so that at most `room` slots before `to` remain: with the first slot of a
/// packet.
fn begin(ring: &RingView, from: u32, to: u32, room: u32) -> u32 {
    let count = ring.distance(from, to);
    if count <= room {
        return from;
    }
    let mut at = ring.advance(from, count - room);
    while at != to && ring.slot(ring.prev(at)).flags & NS_MOREFRAG != 0 {
        at = ring.next(at);
    }
    at
}

/// How often a ring that another process is filling is tried. Each time takes some microseconds.
const TRIES: usize = 16;

/// What becomes of the attempts to feed the ring of this id; `None`: another party feeds it all the time.
fn turn(monitor: &Kring, id: u32) -> Option<Turn<Guard<'_>>> {
    let mut tries = (0..TRIES).map(|_| monitor.try_feed(id));
    tries.find(|turn| !matches!(turn, Turn::Busy))
}

/// The mirrors of one ring. The default has none, and feeds no ring.
#[derive(Debug, Default)]
pub struct Mirrors(Vec<Mirror>);

impl FromIterator<Mirror> for Mirrors {
    fn from_iter<I: IntoIterator<Item = Mirror>>(mirrors: I) -> Mirrors {
        Mirrors(mirrors.into_iter().collect())
    }
}

impl Mirrors {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether any of them takes buffers.
    pub fn swaps(&self) -> bool {
        self.0.iter().any(|mirror| !mirror.mode.copies())
    }

    /// Shows slots `[from, to)` of `ring`, which hold packets, to the monitors that copy.
    #[inline]
    pub fn copy(&mut self, ring: &RingView, from: u32, to: u32) {
        self.feed(true, ring, from, to);
    }

    /// Gives the monitors that swap the buffers in slots `[from, to)` of `ring`, which are free.
    #[inline]
    pub fn swap(&mut self, ring: &RingView, from: u32, to: u32) {
        self.feed(false, ring, from, to);
    }

    /// Counts slots that passed by before these monitors could be had, as those that found no room: for those that
    /// copy, and for those that swap.
    pub fn miss(&mut self, [copied, swapped]: [u64; 2]) {
        for mirror in &mut self.0 {
            let slots = if mirror.mode.copies() { copied } else { swapped };
            match mirror.id {
                None => mirror.miss(slots),
                Some(_) => mirror.passed += slots,
            }
        }
    }

    /// Shows slots to the monitors that copy: their bytes, one behind the other.
    pub fn show(&mut self, bytes: &[u8], slots: &[Shown]) {
        if !slots.is_empty() {
            self.feed_with(true, slots.len() as u64, |mirror| mirror.show(bytes, slots));
        }
    }

    fn feed(&mut self, copies: bool, ring: &RingView, from: u32, to: u32) {
        if from != to {
            let slots = ring.distance(from, to).into();
            self.feed_with(copies, slots, |mirror| mirror.feed(ring, from, to));
        }
    }

    fn feed_with(&mut self, copies: bool, slots: u64, feed: impl Fn(&Mirror) -> u32) {
        for mirror in self.0.iter_mut().filter(|mirror| mirror.mode.copies() == copies) {
            let Some(id) = mirror.id else {
                mirror.pending_notify += feed(mirror);
                continue;
            };
            let passed = std::mem::take(&mut mirror.passed);
            let fed = match turn(&mirror.monitor, id) {
                Some(Turn::Mine(_turn)) => {
                    if passed > 0 {
                        mirror.miss(passed);
                    }
                    feed(mirror)
                }
                Some(_) => 0,
                None => {
                    mirror.passed = passed + slots;
                    0
                }
            };
            if fed > 0 {
                mirror.wake();
            }
        }
    }

    /// Wakes the monitors that sleep and have been given something; unless `now`, those only
    /// that have been given much.
    #[inline]
    pub fn wake(&mut self, now: bool) {
        for mirror in &mut self.0 {
            let much = mirror.monitor.ring().num_slots() / 4;
            if mirror.pending_notify > 0 && (now || mirror.pending_notify >= much) {
                mirror.pending_notify = 0;
                mirror.wake();
            }
        }
    }
}
