//! Receiving: what a program finds in its slots of what the kernel has received, whichever buffers it has used.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::atomic::Ordering::Relaxed,
};

use proptest::{collection::vec, prelude::*, sample::Index};
use ringway_abi::{Dir, NS_BUF_CHANGED, NS_MOREFRAG};
use ringway_kring::{Kring, Offsets};
use ringway_testkit::{datagram, dropped, take_frames};
use ringway_xdp::{Desc, RX_HEADROOM, RingSizes, XdpRx};

use crate::kernel::{BUFFER, CHUNK, FILL, Kernel, RX, bytes_at, kring, sync, write_at};

const SLOTS: u32 = 16;
const SIZES: RingSizes = RingSizes { fill: 16, completion: 8, rx: 32, tx: 8 };
const SPARES: u32 = 4;
const FIRST_SPARE: u32 = 2 + SLOTS;
const REACH: u32 = FIRST_SPARE + SPARES;
const BEYOND: u32 = SLOTS;
const MOST: u32 = 700;
const MASK: u64 = 0xffff;
/// Bits of a slot's `ptr` that are the program's.
const UPPER: u64 = 0xabc_0000;
/// In a shadow word: the buffer is a spare one.
const SPARE: u32 = 1 << 30;

#[derive(Clone, Debug)]
enum Op {
    /// A packet of these parts, each in one of the buffers that the kernel has.
    /// If the flag says so, the last comes later than the others.
    Receive(Vec<Part>, bool),
    /// Something that is in none of the buffers that it has, and a frame behind it.
    Odd(u64, Index),
    /// The program takes so many, and changes their buffers for others, or for nothing.
    Release(u32, Vec<Change>),
    Sync,
}

/// A part's length, which of the kernel's buffers has it, and where in that it begins.
type Part = (u32, Index, u64);

const PLACE: u64 = RX_HEADROOM as u64;

#[derive(Clone, Copy, Debug)]
enum Change {
    None,
    Beyond,
    Nothing,
    Offset(u32),
}

fn op() -> impl Strategy<Value = Op> {
    let length = prop_oneof![
        4 => 14u32..300,
        1 => BUFFER - MOST - 2..=BUFFER - MOST + 2,
        1 => BUFFER - 2..=BUFFER,
        1 => Just(BUFFER + 9),
    ];
    let change = prop_oneof![
        6 => Just(Change::None),
        2 => Just(Change::Beyond),
        1 => Just(Change::Nothing),
        2 => prop_oneof![0..MOST, Just(MOST + 5)].prop_map(Change::Offset),
    ];
    // With a tag, behind a card's timestamp, with both; and where no driver has any.
    let odd =
        prop_oneof![Just(252u64), Just(272), Just(268), Just(8), Just(7), Just(0), 240u64..700];
    let place = prop_oneof![9 => Just(PLACE), 1 => odd.clone()];
    let one = (length.clone(), any::<Index>(), place);
    let elsewhere = (length, any::<Index>(), odd);
    prop_oneof![
        6 => (vec(one, 1..4), any::<bool>()).prop_map(|(parts, later)| Op::Receive(parts, later)),
        1 => (prop_oneof![Just(u64::MAX), Just(0), Just(1 << 40)], any::<Index>())
            .prop_map(|(address, which)| Op::Odd(address, which)),
        1 => elsewhere.prop_map(|part| Op::Receive(vec![part], false)),
        4 => (0u32..6, vec(change, 6)).prop_map(|(count, changes)| Op::Release(count, changes)),
        5 => Just(Op::Sync),
    ]
}

struct World {
    kernel: Kernel,
    kring: Kring,
    driver: XdpRx,
    offsets: bool,
    /// Chunks that the kernel may use.
    posted: Vec<u64>,
    /// What it has received and the program has not seen: the bytes of each part of a packet, and whether it goes on.
    arrived: VecDeque<(Vec<u8>, bool)>,
    /// The first slot that was not looked at, and whether the packet before it goes on there.
    next: u32,
    goes_on: bool,
    /// Buffers that are in no slot, and not among the spare ones.
    stock: Vec<u32>,
    stamp: u8,
    packets: u64,
    bytes: u64,
    lost: [u64; 2],
}

impl World {
    fn new(first: u32, offsets: bool) -> World {
        let kernel = Kernel::new(SIZES, first);
        let kring = kring(Dir::Rx, SLOTS, SPARES + BEYOND);
        let driver = kernel.fake.rx(kring.ring().region().layout()).unwrap().with_frags();
        if offsets {
            Offsets { mask: MASK, max: MOST, gap: 0 }.note(&kring);
        }
        for (i, place) in (0..SPARES).zip(kring.ring().spares()) {
            place.store(FIRST_SPARE + i, Relaxed);
        }
        kring.owner().spares.store(SPARES, Relaxed);
        kring.owner().in_umem.store(REACH, Relaxed);
        driver.lend(&kring);
        let posted = kernel.take_posted(u32::MAX);
        let expected: Vec<_> = (2..1 + SLOTS).map(|buffer| u64::from(buffer) * CHUNK).collect();
        assert_eq!(posted, expected, "all but one");
        World {
            next: kring.ring().tail(),
            kernel,
            kring,
            driver,
            offsets,
            posted,
            arrived: VecDeque::new(),
            goes_on: false,
            stock: (REACH..REACH + BEYOND).collect(),
            stamp: 0,
            packets: 0,
            bytes: 0,
            lost: [0; 2],
        }
    }

    /// The kernel puts a part of a packet into one of its buffers: what the program is to see of it; and if it is lost,
    /// the counter of that.
    fn part(&mut self, (length, which, place): &Part) -> (Desc, Result<Vec<u8>, usize>) {
        let chunk = self.posted.swap_remove(which.index(self.posted.len()));
        self.stamp = self.stamp.wrapping_add(1);
        let most = if *place == PLACE { BUFFER } else { CHUNK as u32 };
        let mut bytes: Vec<u8> =
            (0..*length.min(&most)).map(|i| self.stamp.wrapping_add(i as u8)).collect();
        let end = place + bytes.len() as u64;
        let fate = match (bytes.len() as u32 <= BUFFER && *place >= 8, end <= CHUNK) {
            (_, false) => Err(0),
            (false, true) => Err(1),
            (true, true) => Ok(bytes.clone()),
        };
        // The kernel itself never leaves the chunk.
        bytes.truncate((CHUNK - place) as usize);
        write_at(&self.kring, chunk + place, &bytes);
        (Desc { address: chunk + place, length: *length, options: 0 }, fate)
    }

    fn receive(&mut self, parts: &[Part], later: bool) -> Result<(), TestCaseError> {
        let count = parts.len().min(self.posted.len());
        let (mut descs, fates): (Vec<_>, Vec<_>) =
            parts[..count].iter().map(|part| self.part(part)).unzip();
        let Some(last) = descs.pop() else { return Ok(()) };
        let others: Vec<_> = descs.into_iter().map(Desc::going_on).collect();
        self.kernel.receive(&others);
        if later && !others.is_empty() {
            // It is not whole yet: nothing of it is there, or counted.
            let (before, whole) = (self.kring.ring().tail(), self.arrived.len());
            self.sync()?;
            self.sync()?;
            if whole == 0 && self.lost[0] == 0 {
                prop_assert_eq!(self.kring.ring().tail(), before);
            }
        }
        self.kernel.receive(&[last]);
        let whole: Result<Vec<_>, _> = fates.into_iter().collect();
        match &whole {
            Ok(parts) => {
                self.packets += 1;
                self.bytes += parts.iter().map(|part| part.len() as u64).sum::<u64>();
            }
            Err(counter) => self.lost[*counter] += 1,
        }
        // A lost packet has its slots, and nothing in them.
        let parts = whole.unwrap_or(vec![Vec::new(); count]);
        self.arrived.extend((1..).zip(parts).map(|(i, bytes)| (bytes, i < count)));
        Ok(())
    }

    /// The program gives slots back, with other buffers.
    fn release(&mut self, changes: &[Change]) {
        let ring = self.kring.ring();
        let mut at = ring.head();
        for change in changes {
            if at == ring.tail() {
                break;
            }
            let mut index = ring.slot(at).buf_idx;
            if index == 0 {
                index = self.stock.pop().unwrap();
            }
            let beyond = self.stock.iter().position(|index| *index >= REACH);
            match (change, beyond) {
                (Change::Beyond, Some(place)) => {
                    std::mem::swap(&mut index, &mut self.stock[place]);
                }
                (Change::Nothing, _) => {
                    self.stock.push(index);
                    index = 0;
                    self.lost[0] += 1;
                }
                (Change::Offset(offset), _) => ring.set_slot_ptr(at, UPPER | u64::from(*offset)),
                _ => {}
            }
            ring.set_slot(at, index, 77, NS_BUF_CHANGED);
            at = ring.next(at);
        }
        ring.set_head(at);
        ring.set_cur(at);
    }

    fn sync(&mut self) -> Result<(), TestCaseError> {
        let mut left = self.kring.owner().spares.load(Relaxed);
        sync(&self.kring, self.kring.ring().head(), &self.driver);
        for chunk in self.kernel.take_posted(u32::MAX) {
            prop_assert!(chunk % CHUNK == 0 && chunk / CHUNK < REACH.into(), "{:x}", chunk);
            prop_assert!(!self.posted.contains(&chunk), "the kernel has it already");
            left -= u32::from(chunk / CHUNK >= FIRST_SPARE.into());
            self.posted.push(chunk);
        }
        self.look()?;
        prop_assert!(self.arrived.is_empty(), "all that has arrived is there");
        let counters = self.kring.counters();
        let counted = [&counters.packets, &counters.bytes].map(|c| c.load(Relaxed));
        prop_assert_eq!(counted, [self.packets, self.bytes]);
        let [_, too_long, ring_full] = dropped(&self.kring);
        prop_assert_eq!([too_long, ring_full], [self.lost[1], 0]);
        // Each buffer is in one place, the spare ones with them.
        let ring = self.kring.ring();
        let in_slots = (0..SLOTS).map(|at| ring.slot(at).buf_idx).filter(|index| *index != 0);
        let mut all: Vec<u32> = in_slots.chain(self.stock.iter().copied()).collect();
        all.sort_unstable();
        prop_assert!(all.into_iter().eq((2..2 + SLOTS).chain(REACH..REACH + BEYOND)));
        let free = self.kring.owner().spares.load(Relaxed);
        let lent = (0..SLOTS).map(|at| self.kring.shadow(at).load(Relaxed));
        let lent: BTreeSet<u32> =
            lent.filter(|word| word & SPARE != 0).map(|word| word & !SPARE).collect();
        let listed = ring.spares().take(free as usize).map(|place| place.load(Relaxed));
        let spares: BTreeSet<u32> = listed.chain(lent.iter().copied()).collect();
        prop_assert_eq!(lent.len() as u32 + free, SPARES);
        prop_assert!(spares.into_iter().eq(FIRST_SPARE..REACH));
        // With a spare buffer left, none waits to be given to the kernel: its flags are gone.
        let mut at = ring.tail();
        while left > 0 && at != ring.head() {
            prop_assert_eq!(ring.slot(at).flags & NS_BUF_CHANGED, 0, "slot {}", at);
            at = ring.next(at);
        }
        Ok(())
    }

    /// What is in the slots that the program has by now.
    fn look(&mut self) -> Result<(), TestCaseError> {
        let ring = self.kring.ring();
        let (mut packet, mut fits) = (Vec::new(), true);
        while self.next != ring.tail() {
            let (at, slot) = (self.next, ring.slot(self.next));
            self.next = ring.next(at);
            let flags = |more| if more { NS_MOREFRAG } else { 0 };
            if slot.buf_idx == 0 {
                prop_assert_eq!((slot.len, slot.flags), (0, flags(self.goes_on)));
                continue;
            }
            let (bytes, more) = self.arrived.pop_front().expect("a frame that has not come");
            prop_assert_eq!(slot.flags, flags(more));
            self.goes_on = more;
            let offset = if self.offsets { (slot.ptr & MASK) as u32 } else { 0 };
            prop_assert!(offset <= MOST, "what the slot says is what it was agreed to be");
            prop_assert!(!self.offsets || [0, UPPER].contains(&(slot.ptr & !MASK)));
            fits &= bytes.is_empty() || offset + bytes.len() as u32 <= BUFFER;
            packet.push((at, offset, bytes));
            if more {
                continue;
            }
            if !fits {
                self.lost[1] += 1;
                self.packets -= 1;
                self.bytes -= packet.iter().map(|(.., bytes)| bytes.len() as u64).sum::<u64>();
            }
            for (at, offset, mut bytes) in packet.drain(..) {
                if !fits {
                    bytes.clear();
                }
                let slot = ring.slot(at);
                prop_assert_eq!(usize::from(slot.len), bytes.len(), "slot {} at {}", at, offset);
                let address = u64::from(slot.buf_idx) * CHUNK + u64::from(RX_HEADROOM + offset);
                let found = bytes_at(&self.kring, address, slot.len.into());
                prop_assert!(found == bytes, "slot {}", at);
            }
            fits = true;
        }
        prop_assert!(packet.is_empty(), "the last packet is whole");
        Ok(())
    }

    fn step(&mut self, op: &Op) -> Result<(), TestCaseError> {
        match op {
            Op::Receive(parts, later) => return self.receive(parts, *later),
            Op::Odd(address, which) if self.posted.len() > 1 => {
                let odd = Desc { address: *address, length: 60, options: 0 };
                self.kernel.receive(&[odd]);
                self.lost[0] += 1;
                self.receive(&[(60, *which, PLACE)], false)?;
                return self.sync();
            }
            Op::Release(count, changes) => self.release(&changes[..*count as usize]),
            Op::Sync => return self.sync(),
            Op::Odd(..) => {}
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Frames come in their order and whole, in the slots' own buffers, at their offsets; and each buffer stays in one
    /// place, whichever the kernel uses first.
    #[test]
    fn the_slots_hold_what_the_kernel_has_received(
        ops in vec(op(), 1..60), first in prop_oneof![Just(0), u32::MAX - 40..=u32::MAX],
        offsets in any::<bool>(), first_of in any::<Index>(),
    ) {
        let mut world = World::new(first, offsets);
        for op in &ops {
            world.step(op)?;
        }
        // All round the ring, with a buffer in each slot.
        for _ in 0..3 * SLOTS {
            world.sync()?;
            world.release(&[Change::None; SLOTS as usize]);
            world.sync()?;
            world.receive(&[(60, first_of, PLACE)], false)?;
        }
        world.sync()?;
        prop_assert_eq!(dropped(&world.kring)[0], world.lost[0]);
    }
}

fn plain(kernel: &Kernel, kring: &Kring) -> XdpRx {
    kernel.fake.rx(kring.ring().region().layout()).unwrap()
}

/// A frame is received wherever a driver has put it: with a tag in front, or behind a card's timestamp (igb, igc,
/// tsnep).
#[test]
fn a_frame_is_received_wherever_it_begins() {
    for (begin, length) in
        [(252, 60), (252, BUFFER), (256, BUFFER), (272, 60), (272, BUFFER - 16), (268, 1514)]
    {
        let kernel = Kernel::new(SIZES, 0);
        let kring = kring(Dir::Rx, SLOTS, 0);
        let driver = plain(&kernel, &kring).with_timestamps();
        driver.lend(&kring);
        let chunk = kernel.take_posted(1)[0];
        let bytes: Vec<u8> = (0..length).map(|i| i as u8).collect();
        write_at(&kring, chunk + begin - 8, &1234u64.to_ne_bytes());
        write_at(&kring, chunk + begin, &bytes);
        kernel.receive(&[Desc { address: chunk + begin, length, options: 0 }]);
        sync(&kring, 0, &driver);
        let slot = kring.ring().slot(0);
        assert_eq!((u32::from(slot.len), kring.ring().tail()), (length, 1), "at {begin}");
        assert!(bytes_at(&kring, chunk + PLACE, length) == bytes, "at {begin}");
        assert_eq!(kring.ring().timestamp(slot.buf_idx), Some(1234), "at {begin}");
        assert_eq!(dropped(&kring), [0; 3]);
    }
}

/// What names none of the ring's buffers is counted once, also where nothing comes behind it for a while, or where it
/// comes in the middle of a packet; and it does not stay in the kernel's ring.
#[test]
fn what_is_no_buffer_of_the_ring_counts_once() {
    let kernel = Kernel::new(SIZES, 0);
    let kring = kring(Dir::Rx, SLOTS, 0);
    let driver = plain(&kernel, &kring).with_frags();
    driver.lend(&kring);
    let odd = Desc { address: 1 << 40, length: 60, options: 0 };
    let part = || Desc { address: kernel.take_posted(1)[0] + PLACE, length: 60, options: 0 };
    for (descs, bad_slot, tail, left) in [
        (vec![odd], 1, 0, 0),
        (vec![part(), odd], 2, 1, 0),
        (vec![part().going_on(), odd], 2, 1, 2),
        (vec![part()], 3, 3, 0),
    ] {
        kernel.receive(&descs);
        for _ in 0..3 {
            sync(&kring, 0, &driver);
            assert_eq!(dropped(&kring)[0], bad_slot);
            assert_eq!((kring.ring().tail(), kernel.pending(RX)), (tail, left));
        }
    }
}

/// A packet with a part that cannot be where its slot has it is lost: all of it, and once, however often it is looked
/// at before it is whole.
#[test]
fn a_packet_with_a_part_that_has_no_room_is_lost_whole() {
    let kernel = Kernel::new(SIZES, 0);
    let kring = kring(Dir::Rx, SLOTS, 0);
    let ring = kring.ring();
    let driver = plain(&kernel, &kring).with_frags();
    driver.lend(&kring);
    let chunks = kernel.take_posted(u32::MAX);
    let at = |i: usize, begin: u64, length: u32, more: bool| Desc {
        address: chunks[i] + begin,
        length,
        options: more.into(),
    };
    let look = || {
        sync(&kring, ring.head(), &driver);
        let lengths: Vec<_> = (0..ring.tail()).map(|i| ring.slot(i).len).collect();
        let flags: Vec<_> = (0..ring.tail()).map(|i| ring.slot(i).flags).collect();
        (lengths, flags, dropped(&kring))
    };
    // A tag in front of a full buffer.
    kernel.receive(&[at(0, 252, BUFFER + 4, true)]);
    for _ in 0..3 {
        assert_eq!(look(), (vec![], vec![], [0; 3]));
    }
    kernel.receive(&[at(1, 256, 100, true)]);
    assert_eq!(look(), (vec![], vec![], [0; 3]));
    kernel.receive(&[at(2, 252, BUFFER + 4, false)]);
    let more = NS_MOREFRAG;
    assert_eq!(look(), (vec![0; 3], vec![more, more, 0], [0, 1, 0]));
    // The next ones are packets by themselves, and none lies where there is no room for a timestamp, or for all of it.
    kernel.receive(&[at(3, 252, 100, true), at(4, 256, 200, false)]);
    kernel.receive(&[at(5, 7, 100, false), at(6, 1948, 101, false), at(7, 1948, 100, false)]);
    let lengths = vec![0, 0, 0, 100, 200, 0, 0, 100];
    assert_eq!(look(), (lengths, vec![more, more, 0, more, 0, 0, 0, 0], [1, 2, 0]));
    let counters = kring.counters();
    let counted = [&counters.packets, &counters.bytes].map(|c| c.load(Relaxed));
    assert_eq!(counted, [2, 400]);
}

/// What was in front of a buffer is of another frame: the kernel gets it without.
#[test]
fn timestamps_are_of_the_frame() {
    let kernel = Kernel::new(SIZES, 0);
    let kring = kring(Dir::Rx, SLOTS, SPARES);
    let ring = kring.ring();
    kring.owner().in_umem.store(2 + SLOTS / 2, Relaxed);
    let spare = 2;
    ring.spares().next().unwrap().store(spare, Relaxed);
    kring.owner().spares.store(1, Relaxed);
    // The buffer of the first slot is out of reach, and the spare one is in no other.
    ring.set_slot(0, 2 + SLOTS / 2, 0, 0);
    ring.set_slot(SLOTS / 2, 0, 0, 0);
    (2..2 + SLOTS).for_each(|buffer| ring.set_timestamp(buffer, 1234));
    let driver = plain(&kernel, &kring).with_timestamps();
    driver.lend(&kring);
    let chunks = kernel.take_posted(u32::MAX);
    assert_eq!(chunks[0], u64::from(spare) * CHUNK);
    for chunk in &chunks {
        assert_eq!(bytes_at(&kring, chunk + 248, 8), [0; 8]);
    }
    for (i, chunk) in chunks.iter().take(2).enumerate() {
        write_at(&kring, chunk + 248, &(500 + i as u64).to_ne_bytes());
        let address = chunk + u64::from(RX_HEADROOM);
        kernel.receive(&[Desc { address, length: 60, options: 0 }]);
    }
    sync(&kring, ring.head(), &driver);
    let times: Vec<_> = (0..2).map(|i| ring.timestamp(ring.slot(i).buf_idx)).collect();
    assert_eq!(times, [Some(500), Some(501)]);
    assert_eq!(ring.slot(0).buf_idx, 2 + SLOTS / 2);
}

/// A kernel that is out of buffers and waits gets a kick, if there are some for it.
#[test]
fn a_kernel_without_buffers_is_kicked() {
    let kernel = Kernel::new(SIZES, 0);
    let kring = kring(Dir::Rx, SLOTS, 0);
    let driver = plain(&kernel, &kring);
    let kicks = || kring.counters().kicks.load(Relaxed);
    driver.lend(&kring);
    assert_eq!((kicks(), kernel.pending(FILL)), (0, SLOTS - 1));
    kernel.set_wakeup(FILL, true);
    sync(&kring, 0, &driver);
    assert_eq!(kicks(), 1);
    kernel.take_posted(u32::MAX);
    sync(&kring, 0, &driver);
    assert_eq!(kicks(), 1, "it has all");
    // To another socket they are lent again.
    driver.lend(&kring);
    assert_eq!((kicks(), kernel.pending(FILL)), (2, SLOTS - 1));
}

/// A host ring's flags stay.
#[test]
fn flags_of_a_host_ring_stay() {
    for from_host in [false, true] {
        let kernel = Kernel::new(SIZES, 0);
        let kring = kring(Dir::Rx, SLOTS, 0);
        (0..SLOTS)
            .for_each(|at| kring.ring().set_slot(at, 2 + at, 0, NS_BUF_CHANGED | NS_MOREFRAG));
        let driver = plain(&kernel, &kring);
        let driver = if from_host { driver.from_host() } else { driver };
        driver.lend(&kring);
        let flags = if from_host { NS_BUF_CHANGED } else { 0 };
        assert!((0..SLOTS - 1).all(|at| kring.ring().slot(at).flags == flags | NS_MOREFRAG));
    }
}

/// Packets in any number of buffers, one behind the other, and all round the ring: each by itself.
#[test]
fn checksums_are_completed_where_they_are_asked_for() {
    let payload: Vec<u8> = (0..1337u32).map(|i| (i * 7) as u8).collect();
    let [left, whole] = datagram(&payload);
    for completes in [false, true] {
        let kernel = Kernel::new(SIZES, 0);
        let kring = kring(Dir::Rx, SLOTS, 0);
        let driver = plain(&kernel, &kring).with_frags();
        let driver = if completes { driver.with_csum_completion() } else { driver };
        driver.lend(&kring);
        let mut chunks = Vec::new();
        for size in [1400, 1000, 500, 300, 1400, 700, 600] {
            let parts: Vec<_> = left.chunks(size).collect();
            for (i, part) in (1..).zip(&parts) {
                chunks.extend(kernel.take_posted(u32::MAX));
                let address = chunks.remove(0) + u64::from(RX_HEADROOM);
                write_at(&kring, address, part);
                let desc = Desc { address, length: part.len() as u32, options: 0 };
                kernel.receive(&[if i < parts.len() { desc.going_on() } else { desc }]);
            }
            sync(&kring, kring.ring().head(), &driver);
            let expected = if completes { &whole } else { &left };
            assert!(take_frames(&kring) == [&expected[..]], "in parts of {size}");
            sync(&kring, kring.ring().head(), &driver);
        }
    }
}
