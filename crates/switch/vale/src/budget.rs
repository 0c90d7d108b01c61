//! What a port may cost in one turn (trust rules 6 and 7): all the work that it causes, whether
//! anything is delivered or not, in units of about the time in which a byte is copied. A port that has
//! used up its turn goes on in the next round, so other ports, and what the registry asks, never wait
//! longer for it.
//!
//! The units are estimates. Where they are too low, as for memory that is far away, time bounds the
//! turn: after every [`STRIDE`] of work the worker looks at a clock.

use ringway_switch_port::Delivered;

use crate::clock::{Fine, Micros};

/// What handing over one packet costs besides its bytes.
const PACKET: u64 = 256;

/// A look at a ring that has something, and at one that has nothing: a turn of the least length has
/// enough for all rings of a port that sends nothing.
const LOOK: u64 = 1024;
const EMPTY_LOOK: u64 = 64;

/// Each slot that is found: it is read, checked, its header read, and its addresses looked up.
const SLOT: u64 = 128;

/// A run of packets that is offered to one port, and each of its packets, received or not.
const RUN: u64 = 128;
const OFFER: u64 = 32;

/// Each port that a flood passes by.
const PORT: u64 = 16;

/// For all ports together, and the most and the least for one.
const ROUND: u64 = 32 << 20;
const TURN: u64 = 1 << 20;
const SHORT_TURN: u64 = 64 << 10;

/// The same in time.
const ROUND_TIME: Micros = 16_000;
const TURN_TIME: Micros = 1000;
const SHORT_TURN_TIME: Micros = 100;

/// Work between two looks at the clock.
const STRIDE: u64 = 128 << 10;

/// The most that a turn may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    work: u64,
    time: Micros,
}

impl Turn {
    /// For a port that goes, before its owner is answered: two turns, in which nearly every port has
    /// forwarded what its program had sent.
    pub const LAST: Turn = Turn { work: 2 * TURN, time: 2 * TURN_TIME };

    /// For one port of `attached` in one round: up to some tenths of a millisecond, and less where
    /// many ports share the worker.
    pub fn of_one(attached: u64) -> Turn {
        let share =
            |round: u64, [least, most]: [u64; 2]| (round / attached.max(1)).clamp(least, most);
        let work = share(ROUND, [SHORT_TURN, TURN]);
        Turn { work, time: share(ROUND_TIME, [SHORT_TURN_TIME, TURN_TIME]) }
    }
}

/// What is left of a port's turn.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
    /// When so much is left, the clock is looked at.
    next_look: u64,
    /// Time that the turn takes at most, and when it ends, once the clock was looked at.
    time: Micros,
    end: Option<Micros>,
    clock: Fine,
}

impl Budget {
    #[inline]
    pub fn new(Turn { work, time }: Turn, clock: Fine) -> Budget {
        Budget { left: work, next_look: work.saturating_sub(STRIDE), time, end: None, clock }
    }

    #[inline]
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Bytes that a burst may have: more would be copied in vain.
    #[inline]
    pub fn burst_bytes(&self) -> u32 {
        self.left.min(TURN) as u32
    }

    /// So many slots were found in a ring.
    #[inline]
    pub fn charge_look(&mut self, slots: u32) {
        let look = if slots == 0 { EMPTY_LOOK } else { LOOK };
        self.charge_units(look + u64::from(slots) * SLOT);
    }

    /// So many ports were looked at.
    #[inline]
    pub fn charge_ports(&mut self, ports: u64) {
        self.charge_units(ports * PORT);
    }

    /// A run of so many packets was offered to a port, which took what `delivered` says, copied so
    /// many times.
    #[inline]
    pub fn charge_offer(&mut self, packets: usize, delivered: Delivered, copies: u64) {
        self.charge_units(RUN + packets as u64 * OFFER + cost(delivered, copies));
    }

    /// So much was copied, so many times.
    #[inline]
    pub fn charge(&mut self, work: Delivered, copies: u64) {
        self.charge_units(cost(work, copies));
    }

    #[inline]
    fn charge_units(&mut self, units: u64) {
        self.left = self.left.saturating_sub(units);
        if self.left < self.next_look {
            self.look_at_clock();
        }
    }

    #[cold]
    fn look_at_clock(&mut self) {
        let now = (self.clock)();
        let end = *self.end.get_or_insert(now + self.time);
        if now >= end {
            self.left = 0;
        }
        self.next_look = self.left.saturating_sub(STRIDE);
    }

    /// How many of packets with these lengths may be copied so many times each.
    pub fn affords(&self, lengths: impl Iterator<Item = u32>, copies: u64) -> usize {
        let mut left = self.left;
        let fits = |len: &u32| {
            let cost = cost(Delivered { packets: 1, bytes: (*len).into() }, copies);
            let fits = cost <= left;
            left = left.saturating_sub(cost);
            fits
        };
        lengths.take_while(fits).count()
    }
}

#[inline]
fn cost(Delivered { packets, bytes }: Delivered, copies: u64) -> u64 {
    (bytes + packets * PACKET) * copies
}
