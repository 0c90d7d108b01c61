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

/// What the kernel's work for one costs where a system call sends it: some 1.2 us, for a veth pair or a tap. It is done
/// when the round ends, but charged to the port that has sent the packet, since others wait for it.
const SENT_BY_CALL: u64 = 1500;

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

/// Each instruction of a port's filter, of which a frame takes some.
const INSTRUCTION: u64 = 8;

/// Each frame for a group of IP on a switch that knows groups, and each group in a report of a host's.
const GROUP: u64 = 512;
const RECORD: u64 = 2048;

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

    /// What has been charged of a turn that was so long; all of it where its time was up.
    #[inline]
    pub fn spent(&self, of: Turn) -> u64 {
        of.work.saturating_sub(self.left)
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

    /// What a packet that goes to so many ports costs there besides its bytes, for each of `copies` copies;
    /// `calls` of the ports send by a system call.
    pub fn per_copy(copies: u64, calls: u64) -> u32 {
        match calls {
            0 => 0,
            _ => (PACKET + calls * SENT_BY_CALL / copies.max(1)) as u32,
        }
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
    /// many times, and sends it by a system call or not: `calls` is 1 or 0.
    #[inline]
    pub fn charge_offer(&mut self, packets: usize, delivered: Delivered, copies: u64, calls: u64) {
        let sent = delivered.packets * calls * SENT_BY_CALL;
        self.charge_units(RUN + packets as u64 * OFFER + cost(delivered, copies) + sent);
    }

    /// A filter of so many instructions has looked at so many frames.
    #[inline]
    pub fn charge_filter(&mut self, frames: usize, instructions: usize) {
        self.charge_units((frames * instructions) as u64 * INSTRUCTION);
    }

    /// A frame for a group of IP was looked at; of a message of hosts or routers so many bytes, and groups.
    #[inline]
    pub fn charge_group(&mut self, bytes: usize, records: u64) {
        self.charge_units(GROUP + bytes as u64 + records * RECORD);
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

    /// How many of packets with these lengths may be copied, and sent by a system call, so many times each.
    pub fn affords(&self, lengths: impl Iterator<Item = u32>, copies: u64, calls: u64) -> usize {
        let mut left = self.left;
        let sent = calls * SENT_BY_CALL;
        let fits = |len: &u32| {
            let cost = sent + cost(Delivered { packets: 1, bytes: (*len).into() }, copies);
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NOW: Cell<Micros> = const { Cell::new(0) };
        static LOOKS: Cell<u32> = const { Cell::new(0) };
    }

    /// What the test has set, and how often it was asked.
    fn hand() -> Micros {
        LOOKS.set(LOOKS.get() + 1);
        NOW.get()
    }

    /// Of more work than is charged here, without a look at the clock.
    fn budget(work: u64) -> Budget {
        Budget::new(Turn { work, time: 1000 }, || 0)
    }

    /// What is left of it, unit by unit.
    fn left(mut budget: Budget) -> u64 {
        let mut units = 0;
        while !budget.is_spent() {
            budget.charge_units(1);
            units += 1;
        }
        units
    }

    #[test]
    fn many_ports_have_less_each() {
        for (ports, work, time) in [
            (0, 1 << 20, 1000),
            (1, 1 << 20, 1000),
            (16, 1 << 20, 1000),
            (20, 1 << 20, 800),
            (32, 1 << 20, 500),
            (64, 512 << 10, 250),
            (160, 209_715, 100),
            (256, 128 << 10, 100),
            (512, 64 << 10, 100),
            (1024, 64 << 10, 100),
        ] {
            let turn = Turn::of_one(ports);
            assert_eq!((turn.work, turn.time), (work, time), "{ports} ports");
        }
        assert_eq!((Turn::LAST.work, Turn::LAST.time), (2 << 20, 2000));
    }

    #[test]
    fn each_kind_of_work_has_its_price() {
        type Charge = fn(&mut Budget);
        let cases: [(Charge, u64); 10] = [
            (|b| b.charge_look(0), 64),
            (|b| b.charge_look(1), 1024 + 128),
            (|b| b.charge_look(3), 1024 + 3 * 128),
            (|b| b.charge_ports(5), 5 * 16),
            (|b| b.charge_offer(3, Delivered::default(), 2, 1), 128 + 3 * 32),
            (
                |b| b.charge_offer(3, Delivered { packets: 2, bytes: 100 }, 3, 0),
                128 + 3 * 32 + (100 + 2 * 256) * 3,
            ),
            (
                |b| b.charge_offer(3, Delivered { packets: 2, bytes: 100 }, 1, 1),
                128 + 3 * 32 + 100 + 2 * (256 + 1500),
            ),
            (|b| b.charge_filter(3, 7), 3 * 7 * 8),
            (|b| b.charge(Delivered { packets: 1, bytes: 10 }, 3), (10 + 256) * 3),
            (|b| b.charge(Delivered { packets: 1, bytes: 10 }, 0), 0),
        ];
        for (n, (charge, price)) in cases.into_iter().enumerate() {
            let mut budget = budget(5000);
            charge(&mut budget);
            assert_eq!(left(budget), 5000 - price, "case {n}");
        }
    }

    #[test]
    fn a_turn_is_spent_to_the_last_unit_and_no_further() {
        let mut turn = budget(64 + 80);
        turn.charge_look(0);
        assert!(!turn.is_spent());
        assert_eq!(turn.burst_bytes(), 80);
        turn.charge_ports(5);
        assert!(turn.is_spent());
        turn.charge_look(9);
        assert!(turn.is_spent());
        assert_eq!(turn.burst_bytes(), 0);
        assert_eq!(budget(2 << 20).burst_bytes(), 1 << 20);
    }

    #[test]
    fn what_is_afforded_is_what_can_be_paid() {
        let price = (100 + 256) * 3;
        for (work, expected) in
            [(0, 0), (price - 1, 0), (price, 1), (2 * price - 1, 1), (3 * price, 3), (9 * price, 4)]
        {
            assert_eq!(budget(work).affords([100; 4].into_iter(), 3, 0), expected, "{work}");
        }
        // Two of the three copies are sent by system calls.
        let price = price + 2 * 1500;
        for (work, expected) in [(price - 1, 0), (price, 1), (9 * price, 4)] {
            assert_eq!(budget(work).affords([100; 4].into_iter(), 3, 2), expected, "{work}");
        }
        // The first packet that is too long is the end, although a shorter one comes behind it.
        assert_eq!(budget(1000).affords([100, 5000, 100].into_iter(), 1, 0), 1);
    }

    /// A turn ends when its time is over, counted from the first look, one look after each stride.
    #[test]
    fn the_clock_is_looked_at_after_each_stride() {
        let mut turn = Budget::new(Turn { work: 1 << 20, time: 1000 }, hand);
        let mut stride = |units, now, looks, is_spent| {
            NOW.set(now);
            LOOKS.set(0);
            turn.charge_units(units);
            assert_eq!((LOOKS.get(), turn.is_spent()), (looks, is_spent), "at {now}");
        };
        stride(128 << 10, 0, 0, false);
        stride(1, 7000, 1, false);
        stride(128 << 10, 7500, 0, false);
        stride(1, 7999, 1, false);
        stride(100, 9000, 0, false);
        stride(128 << 10, 8000, 1, true);
    }

    /// A turn of less than a stride is not looked after: it is over before.
    #[test]
    fn a_short_turn_needs_no_clock() {
        LOOKS.set(0);
        let mut turn = Budget::new(Turn { work: 128 << 10, time: 0 }, hand);
        turn.charge_units((128 << 10) - 1);
        assert!(!turn.is_spent());
        turn.charge_units(1);
        assert!(turn.is_spent());
        assert_eq!(LOOKS.get(), 0);
    }
}
