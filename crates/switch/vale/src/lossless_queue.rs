//! Waiting for a lossless port, in place of losing packets.
//!
//! A full receive ring of such a port has a queue of senders. A sender that waits keeps its
//! packet, and all behind it, in its own ring, which fills up: that is how its program learns.
//! Senders that have nothing for that ring are not concerned.
//!
//! - First come, first served: the first of the queue sends as much as there is room for, then
//!   goes to its end. So a packet of many slots gets its room, however many short ones want it.
//! - A sender waits in one queue at a time, and has no claim on any other ring meanwhile. A
//!   flooded packet goes to all that have room at once, and waits for the others one by one.
//! - A packet that takes no room, since the port's filter keeps it from there, waits for nothing.
//! - Patience has an end. A receiver that frees nothing for a while is taken for dead, and loses
//!   packets as others do until it frees a slot again. So the dead and the hostile hold up those
//!   who send to them once; one that frees a slot now and then is slow, as far as one can tell.
#![expect(
    clippy::indexing_slicing,
    reason = "4 words, indexed by the upper 2 bits of a port's number; a ring that waits has its set"
)]

use std::collections::VecDeque;

use crate::clock::Millis;
use ringway_switch_port::{Frame, PortIndex, Room};

/// A sending ring: port and number.
pub(crate) type Sender = (PortIndex, usize);

/// A receive ring of a lossless port.
#[derive(Debug)]
pub(crate) struct LosslessQueue {
    patience: Millis,
    queue: VecDeque<Sender>,
    /// The same, by number of the sending ring: senders that wait look for themselves in each round.
    waiting: Vec<PortSet>,
    /// When the receiver last freed a slot, or the first of the queue came.
    since: Millis,
    /// Free slots that this has given, less those that were filled.
    free: u32,
    given_up: bool,
}

impl LosslessQueue {
    pub fn new(patience: Millis) -> LosslessQueue {
        LosslessQueue {
            patience,
            queue: VecDeque::new(),
            waiting: Vec::new(),
            since: 0,
            free: 0,
            given_up: false,
        }
    }

    /// How many of `frames`, which need so many slots as `slots` says, `sender` is to deliver now,
    /// in their order. If `queue`, it is queued for the rest.
    pub fn admit(
        &mut self,
        sender: Sender,
        frames: &[Frame],
        slots: impl Fn(&Frame) -> u32,
        room: Room,
        now: Millis,
        queue: bool,
    ) -> usize {
        self.look(room, now);
        let mut left = room.free;
        let mut served = false;
        let turn = self.queue.front().is_none_or(|first| *first == sender);
        let fits = |frame: &&Frame| {
            let count = slots(frame);
            if count == 0 {
                return true;
            }
            // What never fits is lost, and not waited for.
            let fits = turn && (count <= left || count > room.slots);
            left -= if fits && count <= left { count } else { 0 };
            served |= fits;
            fits
        };
        let fitting = frames.iter().take_while(fits).count();
        if self.given_up {
            self.free = left;
            return frames.len();
        }
        if self.queue.is_empty() || served {
            (self.since, self.free) = (now, left);
        }
        if fitting > 0 {
            self.leave(sender);
        }
        if fitting < frames.len() && queue && !self.has(sender) {
            self.queue.push_back(sender);
            let (port, ring) = sender;
            if ring >= self.waiting.len() {
                self.waiting.resize_with(ring + 1, PortSet::default);
            }
            self.waiting[ring].insert(port);
        }
        fitting
    }

    /// Whether `sender`, whose next packet has `count` slots, still waits.
    pub fn holds(&mut self, sender: Sender, count: u32, room: Room, now: Millis) -> bool {
        if !self.has(sender) {
            return false;
        }
        self.look(room, now);
        !self.given_up && (self.queue.front() != Some(&sender) || count > room.free)
    }

    /// Whether `sender` is in the queue.
    fn has(&self, (port, ring): Sender) -> bool {
        self.waiting.get(ring).is_some_and(|ports| ports.contains(port))
    }

    /// `sender` does not wait any more.
    pub fn leave(&mut self, sender: Sender) {
        if !self.has(sender) {
            return;
        }
        let (port, ring) = sender;
        self.waiting[ring].remove(port);
        if self.queue.front() == Some(&sender) {
            self.queue.pop_front();
        } else {
            self.queue.retain(|waiting| *waiting != sender);
        }
    }

    /// `port` sends nothing any more.
    pub fn forget(&mut self, port: PortIndex) {
        self.queue.retain(|(waiting, _)| *waiting != port);
        self.waiting.iter_mut().for_each(|ports| ports.remove(port));
    }

    /// When patience ends, if a sender waits.
    pub fn deadline(&self) -> Option<Millis> {
        (!self.queue.is_empty()).then_some(self.since + self.patience)
    }

    fn look(&mut self, room: Room, now: Millis) {
        if room.free > self.free {
            (self.free, self.since, self.given_up) = (room.free, now, false);
        } else if self.given_up {
            self.free = room.free;
        } else if self.deadline().is_some_and(|end| end <= now) {
            self.given_up = true;
            self.queue.clear();
            self.waiting.clear();
        }
    }
}

/// A sending ring whose next packet waits for a lossless port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stall {
    pub to: PortIndex,
    pub ring: usize,
    /// Slots of the packet.
    pub count: u32,
}

/// A sending ring whose next packet does not go on now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    /// What it waits for; `None`: its port's turn is over.
    pub stall: Option<Stall>,
    /// Ports that have the packet already.
    pub reached: PortSet,
    /// Mirrors that have it already.
    pub copied: MirrorSet,
}

/// Some of the mirrors of a bridge: a bit for each.
pub(crate) type MirrorSet = u16;

/// Some ports of a bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortSet([u64; 4]);

impl PortSet {
    pub fn all() -> PortSet {
        PortSet([u64::MAX; 4])
    }

    pub fn of(port: PortIndex) -> PortSet {
        let mut set = PortSet::default();
        set.insert(port);
        set
    }

    /// Those of both.
    pub fn or(self, PortSet(other): PortSet) -> PortSet {
        PortSet(std::array::from_fn(|i| self.0[i] | other[i]))
    }

    /// Those that are not of the others.
    pub fn without(self, PortSet(other): PortSet) -> PortSet {
        PortSet(std::array::from_fn(|i| self.0[i] & !other[i]))
    }

    pub fn contains(&self, port: PortIndex) -> bool {
        self.0[usize::from(port >> 6)] >> (port & 63) & 1 != 0
    }

    pub fn insert(&mut self, port: PortIndex) {
        self.0[usize::from(port >> 6)] |= 1 << (port & 63);
    }

    pub fn remove(&mut self, port: PortIndex) {
        self.0[usize::from(port >> 6)] &= !(1 << (port & 63));
    }

    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringway_switch_port::Burst;

    const A: Sender = (1, 0);
    const B: Sender = (2, 0);

    /// Frames of so many slots.
    fn frames(counts: &[u8]) -> Vec<Frame> {
        let mut burst = Burst::default();
        counts.iter().for_each(|_| burst.end_frame());
        let with = |(frame, count): (&Frame, &u8)| Frame { count: *count, ..*frame };
        burst.frames.iter().zip(counts).map(with).collect()
    }

    fn slots(frame: &Frame) -> u32 {
        frame.count.into()
    }

    fn room(free: u32) -> Room {
        Room { free, slots: 15, bytes: 2048 }
    }

    #[test]
    fn a_long_packet_is_not_overtaken_for_ever() {
        let mut lossless = LosslessQueue::new(1000);
        assert_eq!(lossless.admit(A, &frames(&[5]), slots, room(3), 0, true), 0);
        assert_eq!(lossless.admit(B, &frames(&[1, 1]), slots, room(3), 0, true), 0, "A was first");
        assert!(lossless.holds(A, 5, room(4), 10) && lossless.holds(B, 1, room(4), 10));
        assert!(!lossless.holds(A, 5, room(5), 20));
        assert_eq!(lossless.admit(A, &frames(&[5, 1]), slots, room(5), 20, true), 1);
        assert!(lossless.holds(A, 1, room(1), 30), "it was its turn, and now it is B's");
        assert!(!lossless.holds(B, 1, room(1), 30));
    }

    /// A packet that takes all slots waits for them; what takes more never fits, and is let through to be lost.
    #[test]
    fn a_packet_of_all_slots_waits() {
        let mut lossless = LosslessQueue::new(1000);
        assert_eq!(lossless.admit(A, &frames(&[15]), slots, room(14), 0, true), 0);
        assert_eq!(lossless.admit(A, &frames(&[15]), slots, room(15), 1, true), 1);
        assert_eq!(lossless.admit(A, &frames(&[16]), slots, room(14), 2, true), 1);
    }

    #[test]
    fn patience_ends_when_nothing_is_freed_and_returns_when_something_is() {
        let mut lossless = LosslessQueue::new(1000);
        assert_eq!(lossless.admit(A, &frames(&[2]), slots, room(0), 0, true), 0);
        assert!(lossless.holds(A, 2, room(1), 900), "one was freed");
        assert_eq!(lossless.deadline(), Some(1900));
        // A hostile one that takes it back and frees it again has freed nothing.
        assert!(lossless.holds(A, 2, room(0), 1300) && lossless.holds(A, 2, room(1), 1600));
        assert!(!lossless.holds(A, 2, room(1), 1900));
        assert_eq!(
            lossless.admit(A, &frames(&[2, 2]), slots, room(1), 1900, true),
            2,
            "to be lost"
        );
        assert_eq!(
            lossless.admit(B, &frames(&[3]), slots, room(1), 5000, true),
            1,
            "to be lost at once"
        );
        assert_eq!(lossless.admit(B, &frames(&[3]), slots, room(2), 5001, true), 0, "it lives");
    }

    #[test]
    fn what_never_fits_is_not_waited_for() {
        let mut lossless = LosslessQueue::new(1000);
        assert_eq!(lossless.admit(A, &frames(&[16, 3, 16, 3]), slots, room(4), 0, true), 3);
    }

    /// Nor does it stand for something that was freed.
    #[test]
    fn what_takes_no_room_waits_for_nothing() {
        let mut lossless = LosslessQueue::new(1000);
        assert_eq!(lossless.admit(A, &frames(&[0, 1, 0]), slots, room(0), 0, true), 1);
        assert_eq!(lossless.admit(B, &frames(&[0, 0, 1]), slots, room(0), 500, true), 2);
        assert_eq!(lossless.queue, [A, B]);
        assert_eq!(lossless.admit(B, &frames(&[0, 0]), slots, room(0), 900, true), 2);
        assert_eq!(lossless.queue, [A], "what waited waits no more");
        assert_eq!(lossless.deadline(), Some(1000));
    }

    #[test]
    fn a_sender_that_has_gone_holds_up_no_other() {
        let mut lossless = LosslessQueue::new(1000);
        lossless.admit(A, &frames(&[1]), slots, room(0), 0, true);
        lossless.admit(B, &frames(&[1]), slots, room(0), 0, true);
        lossless.forget(A.0);
        assert!(!lossless.holds(B, 1, room(1), 1));
    }

    /// Against a set of the standard library, with ports in each of its words and at their ends.
    #[test]
    fn a_set_of_ports_holds_each_port_by_itself() {
        let some = [0u8, 1, 62, 63, 64, 65, 127, 128, 191, 192, 254, 255];
        let mut set = PortSet::default();
        let mut model = std::collections::BTreeSet::new();
        let check = |set: &PortSet, model: &std::collections::BTreeSet<u8>| {
            assert!((0..=255).all(|port| set.contains(port) == model.contains(&port)), "{model:?}");
            assert_eq!(set.is_empty(), model.is_empty());
        };
        for port in some.into_iter().chain(some) {
            set.insert(port);
            model.insert(port);
            check(&set, &model);
        }
        for port in some.into_iter().chain(some) {
            set.remove(port);
            model.remove(&port);
            check(&set, &model);
        }
    }

    #[test]
    fn rings_of_one_port_wait_by_themselves() {
        let mut lossless = LosslessQueue::new(1000);
        let senders: [Sender; 4] = [(1, 2), (1, 0), (2, 2), (1, 5)];
        for sender in senders {
            assert!(!lossless.has(sender));
            assert_eq!(lossless.admit(sender, &frames(&[2]), slots, room(0), 7, true), 0);
            assert!(lossless.has(sender));
        }
        assert!(!lossless.has((1, 1)) && !lossless.has((2, 0)) && !lossless.has((1, 6)));
        lossless.leave((2, 2));
        lossless.leave((2, 2));
        assert!(!lossless.has((2, 2)));
        assert_eq!(lossless.queue, [(1, 2), (1, 0), (1, 5)]);
        lossless.leave((1, 2));
        assert_eq!(lossless.queue, [(1, 0), (1, 5)]);
        assert!(lossless.holds((1, 5), 1, room(2), 8) && !lossless.holds((1, 0), 2, room(2), 8));
        lossless.forget(1);
        assert!(senders.iter().all(|sender| !lossless.has(*sender)));
        assert_eq!(lossless.deadline(), None);
    }

    /// A sender that does not want to wait is not queued, and no sender is queued twice.
    #[test]
    fn a_sender_has_one_place_if_it_wants_one() {
        let mut lossless = LosslessQueue::new(1000);
        assert_eq!(lossless.admit(A, &frames(&[2]), slots, room(1), 5, false), 0);
        assert_eq!(lossless.deadline(), None);
        for _ in 0..2 {
            assert_eq!(lossless.admit(A, &frames(&[2]), slots, room(1), 5, true), 0);
            assert_eq!(lossless.queue, [A]);
        }
        assert_eq!(lossless.admit(A, &frames(&[1, 2]), slots, room(2), 6, true), 1);
        assert_eq!(lossless.admit(B, &frames(&[2]), slots, room(1), 6, true), 0);
        assert_eq!(lossless.queue, [A, B]);
        assert_eq!(lossless.admit(A, &frames(&[2, 1]), slots, room(2), 6, true), 1);
        assert_eq!(lossless.queue, [B, A], "it had its turn");
        assert_eq!(lossless.admit(B, &frames(&[2]), slots, room(2), 6, true), 1);
        assert_eq!(lossless.queue, [A], "it has nothing more");
    }

    /// Patience is that of the first in the queue, and begins anew with what is freed.
    #[test]
    fn patience_begins_with_the_first_that_waits() {
        let mut lossless = LosslessQueue::new(1000);
        lossless.admit(A, &frames(&[2]), slots, room(1), 100, true);
        assert_eq!(lossless.deadline(), Some(1100));
        lossless.admit(B, &frames(&[2]), slots, room(1), 500, true);
        assert_eq!(lossless.deadline(), Some(1100));
        assert!(lossless.holds(A, 2, room(1), 1099));
        assert!(!lossless.holds(A, 2, room(1), 1100));
        assert_eq!(lossless.deadline(), None, "the queue was given up");
        assert!(!lossless.has(A) && !lossless.has(B));
    }
}
