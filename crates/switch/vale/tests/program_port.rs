//! A port whose program is a bridge, without that bridge: what it finds in its receive rings, and what it
//! makes of packets in its sending rings, against plain models.

mod common;

use std::sync::Arc;

use common::{BUF_SIZE, Client};
use proptest::{collection::vec, prelude::*};
use ringway_abi::{NETMAP_MAX_FRAGS, NS_MOREFRAG};
use ringway_kring::Doorbell;
use ringway_ring::WorkerServed;
use ringway_switch_port::{Burst, Delivered, Drops, PacketIo, Source, Wake};
use ringway_vale::ProgramPort;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const RX_SLOTS: u32 = 512;
const TX_SLOTS: u32 = 16;

/// Slots, and bytes, after which a look ends with the packet.
const BURST: usize = 128;
const BURST_BYTES: u32 = 256 << 10;

fn port(client: &Client) -> ProgramPort<WorkerServed> {
    // Each ring has a doorbell of its own.
    let others = std::iter::repeat_with(|| Arc::new(Doorbell::new().unwrap()));
    let doorbells = std::iter::once(client.rx_bell.clone()).chain(others);
    let rx = client.rx.iter().cloned().zip(doorbells).collect();
    let driver = WorkerServed::new(client.worker.clone());
    ProgramPort::new(client.tx.clone(), rx, driver).unwrap()
}

/// A slot that the other bridge has filled.
#[derive(Clone, Copy, Debug)]
struct Slot {
    len: u16,
    more: bool,
    has_buffer: bool,
}

fn slots() -> impl Strategy<Value = Vec<Slot>> {
    let len = prop_oneof![
        20 => 0u16..=BUF_SIZE as u16,
        1 => BUF_SIZE as u16 + 1..BUF_SIZE as u16 + 3,
        1 => 60_000..=u16::MAX
    ];
    let slot = |more: f64| {
        (len.clone(), prop::bool::weighted(more), prop::bool::weighted(0.98))
            .prop_map(|(len, more, has_buffer)| Slot { len, more, has_buffer })
    };
    prop_oneof![vec(slot(0.2), 0..400), vec(slot(0.98), 0..400)]
}

/// What one look finds: the lengths of each packet's pieces, how many slots, and how many packets are lost.
fn look(slots: &[Slot], limit: u32) -> (Vec<Vec<u32>>, usize, u64) {
    let (mut packets, mut found, mut bytes, mut lost) = (Vec::new(), 0, 0, 0);
    while found < slots.len() && found < BURST && bytes < limit.min(BURST_BYTES) {
        let rest = &slots[found..];
        let count = rest.iter().position(|slot| !slot.more).map_or(rest.len(), |last| last + 1);
        let packet = &rest[..count];
        let fits = |slot: &Slot| slot.has_buffer && u32::from(slot.len) <= BUF_SIZE;
        if count <= NETMAP_MAX_FRAGS as usize && packet.iter().all(fits) {
            packets.push(packet.iter().map(|slot| slot.len.into()).collect());
        } else {
            lost += 1;
        }
        bytes += packet.iter().map(|slot| u32::from(slot.len)).sum::<u32>();
        found += count;
    }
    (packets, found, lost)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whole_packets_are_found_and_broken_ones_counted(
        slots in slots(), limit in prop_oneof![Just(u32::MAX), 0u32..100_000],
        begin in 0..RX_SLOTS,
    ) {
        let client = Client::new([1, 2], [TX_SLOTS, RX_SLOTS], 0);
        let kring = &client.rx[1];
        let view = kring.ring();
        // The last program of the ring has stopped there.
        kring.csb().service.publish(0, begin);
        client.receive(1, usize::MAX);
        let mut end = begin;
        for slot in &slots {
            let own = view.slot(end).buf_idx;
            let index = if slot.has_buffer { own } else { u32::MAX };
            view.set_slot(end, index, slot.len, if slot.more { NS_MOREFRAG } else { 0 });
            end = view.next(end);
        }
        kring.csb().service.publish(begin, end);

        let mut port = port(&client);
        prop_assert_eq!(port.tx_rings(), 2, "it sends what the rings have received");
        let mut at = 0;
        let mut drops = Drops::default();
        let mut total = 0;
        loop {
            let (packets, found, lost) = look(&slots[at..], limit);
            // What is not released is found again.
            for _ in 0..2 {
                let mut burst = Burst::default().recycle(Source::default());
                burst.limit = limit;
                prop_assert_eq!(port.collect(1, &mut burst, &mut drops) as usize, found);
                let pieces = |f| burst.pieces(f).iter().map(|(_, len)| *len).collect::<Vec<_>>();
                let got: Vec<_> = burst.frames.iter().map(pieces).collect();
                prop_assert_eq!(&got, &packets);
                total += lost;
                prop_assert_eq!(drops, Drops { bad_slot: total, ..Drops::default() });
            }
            port.release(1);
            at += found;
            if found == 0 {
                break;
            }
        }
        prop_assert!(at == slots.len() || limit == 0);
        let head = view.advance(begin, at as u32);
        prop_assert_eq!((view.head(), kring.csb().app.head()), (head, head));
    }
}

const TAG: [u8; 4] = [0x81, 0, 0, 10];

/// A packet by the lengths of its pieces.
type Packet = Vec<usize>;

fn packets() -> impl Strategy<Value = Vec<Packet>> {
    let len = prop_oneof![10 => 14usize..200, 2 => Just(BUF_SIZE as usize), 1 => 2049usize..2051];
    vec(prop_oneof![8 => vec(len.clone(), 1..5), 1 => vec(len, 14..18)], 0..12)
}

/// What the sending ring is to have.
struct Ring {
    /// Free slots, and the next that is filled.
    free: usize,
    head: u32,
    filled: Vec<(u32, Vec<u8>, u16)>,
}

impl Ring {
    /// Packets whose buffers are there, but for the slot `bad`.
    fn deliver(
        &mut self,
        packets: &[Vec<Vec<u8>>],
        is_tagged: bool,
        bad: u32,
        drops: &mut Drops,
    ) -> Delivered {
        let (mut delivered, mut is_full) = (Delivered::default(), false);
        for packet in packets {
            let mut packet = packet.clone();
            if is_tagged {
                // Where there are buffers for the packet as it was sent, what is too much has one of its own.
                let has_buffer = packet.len() > self.free || self.head % TX_SLOTS != bad;
                let fits = packet[0].len() <= BUF_SIZE as usize;
                packet[0].splice(12..12, TAG);
                if fits
                    && has_buffer
                    && packet[0].len() > BUF_SIZE as usize
                    && !is_full
                    && packet.len() <= self.free
                {
                    let rest = packet[0].split_off(BUF_SIZE as usize);
                    packet.insert(1, rest);
                }
            }
            if is_full || packet.len() > self.free {
                drops.ring_full += 1;
                is_full |= packet.len() < TX_SLOTS as usize;
                continue;
            }
            let slot = |i: usize| (self.head + i as u32) % TX_SLOTS;
            let problem =
                (0..packet.len()).find(|i| slot(*i) == bad || packet[*i].len() > BUF_SIZE as usize);
            match problem {
                Some(i) if slot(i) == bad => drops.bad_slot += 1,
                Some(_) => drops.too_long += 1,
                None => {
                    let length = packet.iter().map(Vec::len).sum::<usize>();
                    for (i, piece) in packet.iter().enumerate() {
                        let more = if i + 1 < packet.len() { NS_MOREFRAG } else { 0 };
                        self.filled.push((slot(i), piece.clone(), more));
                    }
                    self.head = slot(packet.len());
                    self.free -= packet.len();
                    delivered.packets += 1;
                    delivered.bytes += length as u64;
                }
            }
        }
        delivered
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn packets_are_sent_as_far_as_there_is_room(
        bursts in vec((packets(), 0..TX_SLOTS), 1..6),
        bad in prop_oneof![2 => Just(u32::MAX), 1 => 0..TX_SLOTS],
        number in 0usize..6, is_tagged: bool,
    ) {
        let client = Client::new([2, 1], [TX_SLOTS, RX_SLOTS], 0);
        let kring = &client.tx[number % 2];
        let view = kring.ring();
        if bad < TX_SLOTS {
            view.set_slot(bad, u32::MAX, 0, 0);
        }
        let mut port = port(&client);
        let mut ring = Ring { free: TX_SLOTS as usize - 1, head: 0, filled: Vec::new() };
        let (mut drops, mut expected) = (Drops::default(), Drops::default());
        for (n, (packets, freed)) in bursts.into_iter().enumerate() {
            let byte = |i: usize, at: usize| (n * 31 + i * 7 + at) as u8;
            let mut packets: Vec<Vec<Vec<u8>>> = packets
                .iter()
                .map(|packet| {
                    let piece = |(i, len): (usize, &usize)| (0..*len).map(|at| byte(i, at)).collect();
                    packet.iter().enumerate().map(piece).collect()
                })
                .collect();
            let model = ring.deliver(&packets, is_tagged, bad, &mut expected);
            let mut burst = Burst::default().recycle(Source::default());
            for packet in &mut packets {
                packet.iter_mut().for_each(|piece| burst.push_private(piece));
                burst.end_frame();
            }
            burst.read_headers();
            let mut frames = burst.frames.clone();
            if is_tagged {
                for frame in &mut frames {
                    let mut header = frame.header();
                    header[12..].copy_from_slice(&TAG);
                    *frame = frame.edited(header, -4);
                }
            }
            let got = port.deliver(number, &frames, &burst, &mut drops);
            prop_assert_eq!((got.packets, got.bytes), (model.packets, model.bytes));
            prop_assert_eq!(drops, expected);
            port.flush(false);
            prop_assert_eq!((view.head(), kring.csb().app.head()), (ring.head, ring.head));
            for (slot, bytes, flags) in ring.filled.drain(..) {
                let there = view.slot(slot);
                prop_assert_eq!((usize::from(there.len), there.flags), (bytes.len(), flags));
                let mut data = vec![0; bytes.len()];
                view.buf(there.buf_idx).unwrap().copy_to(bytes.len(), &mut data);
                prop_assert!(data == bytes);
            }
            // The other bridge takes some.
            ring.free = (ring.free + freed as usize).min(TX_SLOTS as usize - 1);
            let tail = (ring.head + ring.free as u32) % TX_SLOTS;
            kring.csb().service.publish(view.next(tail), tail);
        }
    }
}

/// The worker of the second bridge hears what the first delivers, on each ring, and hears it once.
#[test]
fn it_is_heard_when_a_ring_has_something() {
    let client = Client::new([1, 1], [TX_SLOTS, TX_SLOTS], 0);
    let mut port = port(&client);
    let is_heard = |port: &ProgramPort<WorkerServed>| {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let doorbell = port.doorbell();
        poll(&mut [PollFd::new(&doorbell, PollFlags::IN)], Some(&now)).unwrap() == 1
    };
    assert!(!is_heard(&port));
    let csb = client.rx[0].csb();
    // It has not asked yet.
    csb.app.kick(&csb.service, || client.rx_bell.notify());
    assert!(!is_heard(&port));
    port.arm();
    csb.service.publish(0, 1);
    csb.app.kick(&csb.service, || client.rx_bell.notify());
    assert!(is_heard(&port));
    port.drain();
    assert!(!is_heard(&port));
}
