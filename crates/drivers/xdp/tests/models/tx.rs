//! Sending: what the kernel gets of the slots that a program fills, and when they come back.

use std::sync::atomic::Ordering::Relaxed;

use proptest::{collection::vec, prelude::*};
use ringway_abi::{Dir, NS_BUF_CHANGED, NS_MOREFRAG, NS_REPORT};
use ringway_kring::{Kring, Offsets};
use ringway_testkit::dropped;
use ringway_xdp::{Desc, MAX_FRAGS, RX_HEADROOM, RingSizes, XdpTx};

use crate::kernel::{BUFFER, CHUNK, Kernel, TX, bytes_at, kring, sync};

const SLOTS: u32 = 32;
/// The TX ring is full before the program's is.
const SIZES: RingSizes = RingSizes { fill: 8, completion: 64, rx: 8, tx: 16 };
/// Buffers behind those of the slots: in reach, spare ones, and out of reach.
const SPARES: u32 = 4;
const FIRST_SPARE: u32 = 2 + SLOTS;
const REACH: u32 = FIRST_SPARE + SPARES;
const BEYOND: u32 = SLOTS;
/// The greatest offset, and the bits that say it.
const MOST: u32 = 300;
const MASK: u64 = 0xffff;

#[derive(Clone, Copy, Debug)]
enum Buffer {
    Own,
    /// A buffer out of the kernel's reach.
    Beyond,
    None(u32),
}

#[derive(Clone, Copy, Debug)]
struct Filled {
    buffer: Buffer,
    length: u16,
    more: bool,
    offset: u32,
}

#[derive(Clone, Debug)]
enum Op {
    Fill(Vec<Filled>),
    /// The kernel takes so many.
    Take(u32),
    /// It completes so many of those that it has taken, and which.
    Complete(usize, Vec<prop::sample::Index>),
    Sync,
}

fn filled() -> impl Strategy<Value = Filled> {
    let length = prop_oneof![
        8 => 14u16..200,
        2 => 0u16..15,
        1 => BUFFER as u16 - 301..=BUFFER as u16 + 1,
        1 => Just(u16::MAX),
    ];
    let buffer = prop_oneof![
        16 => Just(Buffer::Own),
        3 => Just(Buffer::Beyond),
        1 => prop_oneof![Just(0), Just(1), Just(REACH + BEYOND + 200), Just(u32::MAX)].prop_map(Buffer::None),
    ];
    let offset = prop_oneof![3 => Just(0), 1 => 0..=MOST, 1 => Just(MOST + 7)];
    (buffer, length, prop::bool::weighted(0.4), offset)
        .prop_map(|(buffer, length, more, offset)| Filled { buffer, length, more, offset })
}

fn op() -> impl Strategy<Value = Op> {
    // A packet that may be too long, and slots at random.
    let buffer = prop_oneof![3 => Just(Buffer::Own), 1 => Just(Buffer::Beyond)];
    let packet =
        (1usize..2 * MAX_FRAGS as usize, filled(), buffer).prop_map(|(count, filled, buffer)| {
            let own = Filled { buffer, length: 40, ..filled };
            (1..=count).map(|i| Filled { more: i < count, ..own }).collect()
        });
    prop_oneof![
        6 => vec(filled(), 1..8).prop_map(Op::Fill),
        2 => packet.prop_map(Op::Fill),
        6 => (0..=SIZES.tx).prop_map(Op::Take),
        6 => (0usize..20, vec(any::<prop::sample::Index>(), 20)).prop_map(|(n, which)| Op::Complete(n, which)),
        4 => Just(Op::Sync),
    ]
}

/// What the program has put into a slot, as long as it has not come back.
#[derive(Clone)]
struct Sent {
    at: u32,
    filled: Filled,
    bytes: Vec<u8>,
    /// By a sync.
    seen: bool,
    done: bool,
}

struct World {
    kernel: Kernel,
    kring: Kring,
    driver: XdpTx,
    most_slots: u32,
    /// For a host ring: the flags of slots stay.
    to_host: bool,
    /// Bytes of the longest frame that the interface sends, without a tag; 0: any.
    longest: u32,
    /// From the slot behind the tail on.
    slots: Vec<Sent>,
    /// Slots that the kernel is to find, in their order; and what it has taken and not completed: slot and address.
    staged: Vec<(u32, bool)>,
    taken: Vec<(u32, u64)>,
    dropping: bool,
    spares: u32,
    /// Those that come back with the next sync, when it has looked at what is to be sent.
    returning: u32,
    packets: u64,
    bytes: u64,
    lost: [u64; 2],
    short: u64,
    stamp: u8,
}

impl World {
    fn new(first: u32, most_slots: u32, to_host: bool, longest: u32) -> World {
        let kernel = Kernel::new(SIZES, first);
        let kring = kring(Dir::Tx, SLOTS, SPARES + BEYOND);
        let driver = kernel.fake.tx(kring.ring().region().layout()).unwrap();
        let driver = driver.with_frags(most_slots);
        let driver = if to_host { driver.to_host() } else { driver };
        Offsets { mask: MASK, max: MOST, gap: 0 }.note(&kring);
        for (i, place) in (0..SPARES).zip(kring.ring().spares()) {
            place.store(FIRST_SPARE + i, Relaxed);
        }
        kring.owner().spares.store(SPARES, Relaxed);
        kring.owner().in_umem.store(REACH, Relaxed);
        kring.owner().longest.store(longest, Relaxed);
        World {
            kernel,
            kring,
            driver,
            most_slots,
            to_host,
            longest,
            slots: Vec::new(),
            staged: Vec::new(),
            taken: Vec::new(),
            dropping: false,
            spares: SPARES,
            returning: 0,
            packets: 0,
            bytes: 0,
            lost: [0; 2],
            short: 0,
            stamp: 0,
        }
    }

    fn fill(&mut self, list: &[Filled]) {
        let ring = self.kring.ring();
        let mut at = ring.head();
        for &filled in list {
            if at == ring.tail() {
                break;
            }
            self.stamp = self.stamp.wrapping_add(1);
            let index = match filled.buffer {
                Buffer::Own => 2 + at,
                Buffer::Beyond => REACH + at,
                Buffer::None(index) => index,
            };
            let bytes: Vec<u8> =
                (0..filled.length).map(|i| self.stamp.wrapping_add(i as u8)).collect();
            if let Some(buf) = ring.buf(index) {
                buf.write(filled.offset.min(MOST) as usize, &bytes);
            }
            let more = if filled.more { NS_MOREFRAG } else { 0 };
            ring.set_slot(at, index, filled.length, more | NS_REPORT | NS_BUF_CHANGED);
            ring.set_slot_ptr(at, 0xabc_0000 | u64::from(filled.offset));
            self.slots.push(Sent { at, filled, bytes, seen: false, done: false });
            at = ring.next(at);
        }
        ring.set_head(at);
        ring.set_cur(at);
    }

    /// Whether it fits its buffer, and names one.
    fn is_good(filled: &Filled) -> bool {
        !matches!(filled.buffer, Buffer::None(_)) && !World::is_too_long(filled)
    }

    fn is_too_long(filled: &Filled) -> bool {
        u32::from(filled.length) > BUFFER - filled.offset.min(MOST)
    }

    /// Whether the interface sends a packet of these slots, by its length: it has room for a tag.
    fn is_beyond(&self, packet: &[Sent]) -> bool {
        let length: u32 = packet.iter().map(|slot| u32::from(slot.filled.length)).sum();
        self.longest != 0 && length > self.longest + 4
    }

    /// What a sync makes of the slots that it has not looked at yet.
    fn stage(&mut self) {
        let room = (SIZES.tx - self.kernel.pending(TX)) as usize;
        let mut staged = 0;
        let mut from = self.slots.iter().position(|slot| !slot.seen).unwrap_or(self.slots.len());
        while from < self.slots.len() && staged < room {
            let goes_on = |slot: &Sent| slot.filled.more;
            if self.dropping {
                self.dropping = self.slots[from].filled.more;
                (self.slots[from].seen, self.slots[from].done) = (true, true);
                from += 1;
                continue;
            }
            // Where the packet ends, if its end was sent; and how many slots a packet may have.
            let end = self.slots[from..].iter().position(|slot| !goes_on(slot)).map(|n| n + 1);
            let limit = if goes_on(&self.slots[from]) {
                self.most_slots.min(SLOTS - 1) as usize
            } else {
                1
            };
            let mut count = end.unwrap_or(usize::MAX).min(limit);
            // Each takes a place, and a spare buffer where the kernel does not reach its own, until there is none.
            let (mut places, mut spares, mut waits) = (0, 0, false);
            for i in 0..count {
                if from + i == self.slots.len() || staged + places == room {
                    waits = true;
                    break;
                }
                let filled = self.slots[from + i].filled;
                let least = if i == 0 { 14 } else { 1 };
                // Of a slot that is a packet by itself, that is seen at once.
                let is_beyond =
                    !goes_on(&self.slots[from]) && self.is_beyond(&self.slots[from..=from]);
                if World::is_good(&filled) && filled.length >= least && !is_beyond {
                    places += 1;
                    if let Buffer::Beyond = filled.buffer {
                        if spares == self.spares && spares == SPARES {
                            // Even all of them are too few.
                            count = i;
                            break;
                        }
                        if spares == self.spares {
                            waits = true;
                            break;
                        }
                        spares += 1;
                    }
                }
            }
            if waits {
                break;
            }
            let is_beyond = self.is_beyond(&self.slots[from..from + count]);
            let packet = &mut self.slots[from..from + count];
            let is_long = end.is_none_or(|end| end > count);
            let is_good = |(i, slot): (usize, &Sent)| {
                World::is_good(&slot.filled) && (i > 0 || slot.filled.length >= 14)
            };
            let is_sent = !is_long && !is_beyond && packet.iter().enumerate().all(is_good);
            for slot in packet.iter_mut() {
                slot.seen = true;
                slot.done = !is_sent || slot.filled.length == 0;
            }
            if is_sent {
                let filled: Vec<_> = packet.iter().filter(|slot| slot.filled.length > 0).collect();
                for (i, slot) in (1..).zip(&filled) {
                    self.staged.push((slot.at, i < filled.len()));
                    self.bytes += u64::from(slot.filled.length);
                }
                self.packets += 1;
                self.spares -= spares;
                staged += places;
            } else {
                let has_buffers =
                    packet.iter().all(|slot| !matches!(slot.filled.buffer, Buffer::None(_)));
                let too_long = is_long
                    || is_beyond && has_buffers
                    || packet.iter().any(|slot| World::is_too_long(&slot.filled));
                let length: u32 = packet.iter().map(|slot| u32::from(slot.filled.length)).sum();
                match !too_long && has_buffers && length < 14 {
                    true => self.short += 1,
                    false => self.lost[usize::from(too_long)] += 1,
                }
                self.dropping = is_long;
            }
            from += count;
        }
    }

    fn sync(&mut self) -> Result<(), TestCaseError> {
        self.stage();
        let head = self.kring.ring().head();
        sync(&self.kring, head, &self.driver);
        self.spares += std::mem::take(&mut self.returning);
        self.reap()
    }

    /// All that is done, from the first on, has come back, without the flags that a sync consumes.
    fn reap(&mut self) -> Result<(), TestCaseError> {
        let done = self.slots.iter().take_while(|slot| slot.done).count();
        let ring = self.kring.ring();
        for slot in self.slots.drain(..done) {
            let flags = ring.slot(slot.at).flags;
            let more = if slot.filled.more { NS_MOREFRAG } else { 0 };
            let kept = if self.to_host { NS_REPORT | NS_BUF_CHANGED } else { 0 };
            prop_assert_eq!(flags, more | kept, "slot {}", slot.at);
        }
        let oldest = self.slots.first().map_or(ring.head(), |slot| slot.at);
        prop_assert_eq!(ring.tail(), ring.prev(oldest));
        let counters = self.kring.counters();
        let counted = [&counters.packets, &counters.bytes].map(|c| c.load(Relaxed));
        prop_assert_eq!(counted, [self.packets, self.bytes]);
        prop_assert_eq!(dropped(&self.kring), [self.lost[0], self.lost[1], 0]);
        prop_assert_eq!(counters.too_short.load(Relaxed), self.short);
        prop_assert_eq!(self.kring.owner().spares.load(Relaxed), self.spares);
        Ok(())
    }

    fn take(&mut self, most: u32) -> Result<(), TestCaseError> {
        let sent = self.kernel.take_sent(most);
        let expected: Vec<_> = self.staged.drain(..sent.len()).collect();
        for (Desc { address, length, options }, (at, more)) in sent.into_iter().zip(expected) {
            let slot = self.slots.iter().find(|slot| slot.at == at).unwrap();
            prop_assert_eq!((length, options), (slot.filled.length.into(), more.into()));
            prop_assert_eq!(address % CHUNK, u64::from(RX_HEADROOM + slot.filled.offset.min(MOST)));
            let buffer = (address / CHUNK) as u32;
            match slot.filled.buffer {
                Buffer::Own => prop_assert_eq!(buffer, 2 + at),
                _ => prop_assert!((FIRST_SPARE..REACH).contains(&buffer)),
            }
            prop_assert!(self.taken.iter().all(|(_, taken)| taken / CHUNK != address / CHUNK));
            prop_assert_eq!(bytes_at(&self.kring, address, length), &slot.bytes[..]);
            self.taken.push((at, address));
        }
        Ok(())
    }

    fn complete(&mut self, count: usize, which: &[prop::sample::Index]) {
        for which in which.iter().take(count.min(self.taken.len())) {
            self.complete_one(which.index(self.taken.len()));
        }
    }

    fn complete_one(&mut self, which: usize) {
        let (at, address) = self.taken.remove(which);
        self.kernel.complete(&[address]);
        let slot = self.slots.iter_mut().find(|slot| slot.at == at).unwrap();
        slot.done = true;
        self.returning += u32::from(matches!(slot.filled.buffer, Buffer::Beyond));
    }

    fn complete_all(&mut self) {
        (0..self.taken.len()).for_each(|_| self.complete_one(0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Packets are sent whole or dropped whole, in their order; slots come back in theirs, in whichever order the kernel
    /// completes them; and every spare buffer is where it belongs.
    #[test]
    fn the_kernel_gets_what_the_slots_hold(
        ops in vec(op(), 1..60), first in prop_oneof![Just(0), u32::MAX - 40..=u32::MAX],
        most_slots in prop_oneof![1 => Just(1), 1 => 2u32..9, 3 => Just(MAX_FRAGS)],
        to_host in prop::bool::weighted(0.2),
        longest in prop_oneof![Just(0), 14u32..400],
    ) {
        let mut world = World::new(first, most_slots, to_host, longest);
        for op in &ops {
            match op {
                Op::Fill(list) => world.fill(list),
                Op::Take(most) => world.take(*most)?,
                Op::Complete(count, which) => world.complete(*count, which),
                Op::Sync => world.sync()?,
            }
        }
    }
}

/// A packet that needs more spare buffers than the ring has is lost as a whole, and what is behind it is sent; so is a
/// frame that needs one where there is none.
#[test]
fn what_no_spare_buffers_hold_is_lost() {
    let mut world = World::new(0, MAX_FRAGS, false, 0);
    let of = |buffer, more| Filled { buffer, length: 60, more, offset: 0 };
    let beyond = |count: u32| (1..=count).map(move |i| of(Buffer::Beyond, i < count));
    // All spare buffers but one are on their way: the packet waits for them, and is lost when they are back.
    world.fill(&beyond(SPARES - 1).collect::<Vec<_>>());
    world.fill(&beyond(SPARES + 2).collect::<Vec<_>>());
    world.fill(&[of(Buffer::Own, false)]);
    world.sync().unwrap();
    assert_eq!((world.packets, world.lost), (1, [0, 0]));
    world.take(u32::MAX).unwrap();
    world.complete_all();
    world.sync().unwrap();
    world.sync().unwrap();
    assert_eq!((world.packets, world.lost), (2, [0, 1]));
    world.take(u32::MAX).unwrap();
    world.complete_all();
    world.sync().unwrap();

    world.kring.owner().spares.store(0, Relaxed);
    let slots = [of(Buffer::Beyond, false), of(Buffer::Beyond, true), of(Buffer::Own, false)];
    world.fill(&slots);
    let head = world.kring.ring().head();
    sync(&world.kring, head, &world.driver);
    assert_eq!(dropped(&world.kring), [2, 1, 0]);
    assert_eq!(world.kring.ring().tail(), world.kring.ring().prev(head));
}

/// What is on the completion ring and belongs to no slot is passed over: it is of a process that was killed.
#[test]
fn a_completion_of_nothing_is_passed_over() {
    let mut world = World::new(0, 1, false, 0);
    let good = Filled { buffer: Buffer::Own, length: 60, more: false, offset: 0 };
    world.fill(&[good; 3]);
    world.sync().unwrap();
    world.take(3).unwrap();
    let [a, b, c] = [0, 1, 2].map(|i| world.taken[i].1);
    world.kernel.complete(&[20 * CHUNK, b, u64::MAX, c, 0]);
    world.slots[1].done = true;
    world.slots[2].done = true;
    world.sync().unwrap();
    world.kernel.complete(&[b, a]);
    world.slots[0].done = true;
    world.sync().unwrap();
    assert!(world.slots.is_empty());
}

/// A kernel that waits for a kick gets one in each sync that leaves something there, and none else. What stands for its
/// socket here is none, and says so: that is all.
#[test]
fn a_kernel_that_waits_is_kicked() {
    let mut world = World::new(0, 1, false, 0);
    let kicks = |world: &World| world.kring.counters().kicks.load(Relaxed);
    let good = Filled { buffer: Buffer::Own, length: 60, more: false, offset: 0 };
    world.fill(&[good; 2]);
    world.sync().unwrap();
    assert_eq!(kicks(&world), 0, "it does not wait");
    world.kernel.set_wakeup(TX, true);
    world.sync().unwrap();
    assert_eq!(kicks(&world), 1);
    world.take(2).unwrap();
    world.sync().unwrap();
    assert_eq!(kicks(&world), 1, "there is nothing to send");
}
