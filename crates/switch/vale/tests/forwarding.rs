//! Everything that ports of a bridge can see, against a model of the rules S-VALE-5 to 11:
//! who receives what, in which order, and what is counted.

mod common;

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering::Relaxed},
};

use common::{BROADCAST, BUF_SIZE, Client, Piece, barrier, header, mac};
use proptest::{collection::vec, prelude::*};
use ringway_abi::{NETMAP_MAX_FRAGS, NS_INDIRECT, NS_MOREFRAG};
use ringway_vale::{Bridge, Learned, PortCounters, Table, Totals};

/// Tx and rx rings, their slots, and the headroom of each port. Port 0 sends more than a
/// burst at once, port 2 has buffers of 1792 bytes, and rings of 8 slots are soon full.
const PORTS: [([u32; 2], [u32; 2], u32); 4] = [
    ([1, 1], [512, 512], 0),
    ([3, 2], [256, 8], 0),
    ([2, 3], [64, 128], 256),
    ([1, 2], [1024, 256], 0),
];

/// Addresses that the table keeps apart; those after them are groups.
const HOSTS: u8 = 6;

fn address(n: u8) -> [u8; 6] {
    match n {
        n if n < HOSTS => mac(n),
        n if n == HOSTS => [1, 0, 0x5e, 0, 0, 1],
        _ => BROADCAST,
    }
}

// --- What happens ------------------------------------------------------------------------

#[derive(Clone, Copy, Debug, PartialEq)]
enum Buffer {
    Own,
    /// An index that names no buffer.
    Wrong(u32),
    /// Who sends has fetched the data already: the flag tells the bridge nothing, unless all that
    /// could be fetched is the Ethernet header.
    Indirect,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    len: u16,
    buffer: Buffer,
    more: bool,
    /// Used where the slot begins a packet.
    dst: u8,
    src: u8,
}

#[derive(Clone, Debug)]
enum Op {
    Send { port: usize, ring: usize, slots: Vec<Slot> },
    Receive { port: usize, ring: usize, frames: usize },
    Toggle { port: usize },
    Listen { port: usize, receives: bool },
}

fn chain() -> impl Strategy<Value = Vec<Slot>> {
    let len = prop_oneof![
        10 => 14u16..200,
        1 => 0u16..14,
        2 => 1500u16..=2048,
        1 => Just(1792u16),
        1 => 2049u16..=u16::MAX,
    ];
    let buffer = prop_oneof![
        40 => Just(Buffer::Own),
        1 => prop_oneof![Just(0), Just(1), 8000u32.., Just(u32::MAX)].prop_map(Buffer::Wrong),
        1 => Just(Buffer::Indirect),
    ];
    let kind = prop_oneof![20 => (len, buffer), 1 => Just((0, Buffer::Indirect))];
    let pieces = prop_oneof![
        12 => Just(1usize),
        3 => 2usize..5,
        1 => 60usize..70,
        1 => 70usize..300,
    ];
    let addresses = (0..HOSTS + 2, 0..HOSTS + 1);
    (pieces, vec(kind, 1..4), addresses, prop::bool::weighted(0.95)).prop_map(
        |(count, kinds, (dst, src), ends)| {
            // A long chain repeats harmless pieces around one interesting place.
            let odd_one = count / 2;
            let slot = |i: usize| {
                let (len, buffer) = match count {
                    1..5 => kinds[i % kinds.len()],
                    _ if i == odd_one => kinds[0],
                    _ => (30, Buffer::Own),
                };
                Slot { len, buffer, more: i + 1 < count || !ends, dst, src }
            };
            (0..count).map(slot).collect()
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let port = 0..PORTS.len();
    prop_oneof![
        10 => (port.clone(), 0usize..3, vec(chain(), 1..40)).prop_map(|(port, ring, chains)| {
            let ([rings, _], [slots, _], _) = PORTS[port];
            let mut all = chains.concat();
            all.truncate(slots as usize - 1);
            Op::Send { port, ring: ring % rings as usize, slots: all }
        }),
        8 => (port.clone(), 0usize..3, 0usize..200).prop_map(|(port, ring, frames)| {
            Op::Receive { port, ring: ring % PORTS[port].0[1] as usize, frames }
        }),
        2 => port.clone().prop_map(|port| Op::Toggle { port }),
        1 => (port, any::<bool>()).prop_map(|(port, receives)| Op::Listen { port, receives }),
    ]
}

// --- The model ---------------------------------------------------------------------------

#[derive(Default)]
struct ModelRing {
    frames: VecDeque<Vec<Piece>>,
    used: usize,
    /// The burst that found it full.
    full: Option<usize>,
}

/// Slots that the bridge looks at in one go.
const BURST: usize = 128;

struct ModelPort {
    /// Place on the bridge, while attached.
    index: Option<usize>,
    receives: bool,
    totals: Totals,
    rx: Vec<ModelRing>,
    rx_slots: usize,
    buf_size: usize,
}

struct Model {
    ports: Vec<ModelPort>,
    /// Address to place, while the port is there.
    table: HashMap<[u8; 6], usize>,
    /// Tells the bursts of one send from those of others.
    bursts: usize,
}

impl ModelPort {
    /// S-VALE-10, 11.
    fn deliver(&mut self, ring: usize, burst: usize, pieces: &[Vec<u8>]) -> bool {
        if !self.receives {
            return false;
        }
        let ring = ring % self.rx.len();
        let ring = &mut self.rx[ring];
        if ring.full == Some(burst) || ring.used + pieces.len() > self.rx_slots - 1 {
            self.totals.drops.ring_full += 1;
            if pieces.len() < self.rx_slots {
                ring.full = Some(burst);
            }
            return true;
        }
        // S-SYNC-9.
        if pieces.iter().any(|piece| piece.len() > self.buf_size) {
            self.totals.drops.too_long += 1;
            return true;
        }
        ring.used += pieces.len();
        let count = pieces.len();
        let flags = |i: usize| (count as u16) << 8 | if i + 1 < count { NS_MOREFRAG } else { 0 };
        let frame: Vec<_> = pieces.iter().enumerate().map(|(i, p)| (p.clone(), flags(i))).collect();
        self.totals.received_packets += 1;
        self.totals.received_bytes += frame.iter().map(|(p, _)| p.len() as u64).sum::<u64>();
        ring.frames.push_back(frame);
        true
    }
}

impl Model {
    /// All slots of one send; the last packet ends with them, complete or not (S-VALE-5).
    fn send(&mut self, port: usize, ring: usize, slots: &[(Slot, Vec<u8>)]) {
        let buf_size = self.ports[port].buf_size;
        let has_buffer = |slot: &Slot| !matches!(slot.buffer, Buffer::Wrong(_));
        let usable = |slot: &Slot| has_buffer(slot) && usize::from(slot.len) <= buf_size;
        let is_too_long = |slot: &Slot| has_buffer(slot) && usize::from(slot.len) > buf_size;
        let (mut end, mut from) = (BURST, 0);
        for packet in slots.split_inclusive(|(slot, _)| !slot.more) {
            let most = NETMAP_MAX_FRAGS as usize;
            let too_long = packet.iter().take(most).position(|(slot, _)| is_too_long(slot));
            let lost_by = match too_long {
                _ if !has_buffer(&packet[0].0) => 1,
                Some(at) => at + 1,
                None => most + 1,
            };
            // A packet goes on in the next burst if it is known to be lost, else it begins there.
            while from + packet.len() > end {
                end = if from + lost_by > end { from + BURST } else { end + BURST };
            }
            from += packet.len();
            if packet.len() >= lost_by {
                let drops = &mut self.ports[port].totals.drops;
                match too_long {
                    Some(_) if lost_by > 1 || has_buffer(&packet[0].0) => drops.too_long += 1,
                    _ => drops.bad_slot += 1,
                }
                continue;
            }
            let piece = |(slot, bytes): &(Slot, Vec<u8>)| {
                if usable(slot) { bytes.clone() } else { vec![] }
            };
            let pieces: Vec<Vec<u8>> = packet.iter().map(piece).collect();
            let wrong = packet.iter().filter(|(slot, _)| !usable(slot)).count();
            self.ports[port].totals.drops.bad_slot += wrong as u64;
            let burst = self.bursts + end;
            self.forward(port, ring, burst, &packet[0].0, &pieces);
        }
        self.bursts += end;
    }

    fn forward(
        &mut self,
        port: usize,
        ring: usize,
        burst: usize,
        first: &Slot,
        pieces: &[Vec<u8>],
    ) {
        let sender = &mut self.ports[port];
        sender.totals.sent_packets += 1;
        let unfetched = (first.len, first.buffer) == (0, Buffer::Indirect);
        if first.len < 14 && !unfetched {
            sender.totals.drops.too_short += 1;
            return;
        }
        sender.totals.sent_bytes += pieces.iter().map(|p| p.len() as u64).sum::<u64>();
        let (dst, src) = (address(first.dst), address(first.src));
        if src[0] & 1 == 0 {
            self.table.insert(src, sender.index.unwrap());
        }
        let own = sender.index;
        let known = self.table.get(&dst).filter(|_| dst[0] & 1 == 0);
        let others = self.ports.iter_mut().filter(|p| p.index.is_some() && p.index != own);
        let mut reached = false;
        for other in others {
            reached |= match known {
                Some(_) if other.index != known.copied() => false,
                Some(_) => other.deliver(ring, burst, pieces),
                None => other.deliver(0, burst, pieces),
            };
        }
        if !reached {
            self.ports[port].totals.drops.no_destination += 1;
        }
    }
}

// --- Both, side by side ------------------------------------------------------------------

struct World {
    bridge: Bridge,
    clients: Vec<Client>,
    counters: Vec<Arc<PortCounters>>,
    model: Model,
    /// Makes the bytes of every slot different.
    stamp: u8,
}

impl World {
    fn new() -> World {
        let port = |(rings, slots, headroom): ([u32; 2], [u32; 2], u32)| ModelPort {
            index: None,
            receives: true,
            totals: Totals::default(),
            rx: (0..rings[1]).map(|_| ModelRing::default()).collect(),
            rx_slots: slots[1] as usize,
            buf_size: (BUF_SIZE - headroom) as usize,
        };
        let mut world = World {
            bridge: Bridge::start("vale-test").unwrap(),
            clients: PORTS.map(|(r, s, h)| Client::new(r, s, h)).into(),
            counters: PORTS.map(|_| Arc::default()).into(),
            model: Model { ports: PORTS.map(port).into(), table: HashMap::new(), bursts: 0 },
            stamp: 0,
        };
        (0..PORTS.len()).for_each(|port| world.toggle(port));
        world
    }

    fn toggle(&mut self, port: usize) {
        if let Some(index) = self.model.ports[port].index.take() {
            self.bridge.detach(index as u8);
            self.model.table.retain(|_, place| *place != index);
            return;
        }
        let taken = |i| self.model.ports.iter().any(|p| p.index == Some(i));
        let free = (0..).find(|&i| !taken(i)).unwrap();
        let (index, counters) = self.clients[port].attach(&self.bridge);
        assert_eq!(usize::from(index), free, "the first free place");
        self.counters[port] = counters;
        let model = &mut self.model.ports[port];
        model.index = Some(free);
        model.totals = Totals::default();
    }

    fn send(&mut self, port: usize, ring: usize, slots: &[Slot]) {
        if self.model.ports[port].index.is_none() {
            return;
        }
        let client = &self.clients[port];
        let (mut begins, mut sent) = (true, Vec::new());
        for slot in slots {
            self.stamp = self.stamp.wrapping_add(1);
            let mut bytes = vec![self.stamp; slot.len.into()];
            if begins {
                let header = header(address(slot.dst), address(slot.src));
                let n = bytes.len().min(14);
                bytes[..n].copy_from_slice(&header[..n]);
                if (slot.len, slot.buffer) == (0, Buffer::Indirect) {
                    client.write_next(ring, &header);
                }
            }
            begins = !slot.more;
            let mut flags = if slot.more { NS_MOREFRAG } else { 0 };
            let index = match slot.buffer {
                Buffer::Own => None,
                Buffer::Wrong(index) => Some(index),
                Buffer::Indirect => {
                    flags |= NS_INDIRECT;
                    None
                }
            };
            client.fill(ring, &bytes, slot.len, flags, index);
            sent.push((*slot, bytes));
        }
        client.tx_sync(ring);
        client.drained(ring);
        self.model.send(port, ring, &sent);
    }

    fn receive(&mut self, port: usize, ring: usize, frames: usize) -> Result<(), TestCaseError> {
        let model = &mut self.model.ports[port].rx[ring];
        let got = self.clients[port].receive(ring, frames);
        let n = frames.min(model.frames.len());
        let expected: Vec<_> = model.frames.drain(..n).collect();
        model.used -= expected.iter().map(Vec::len).sum::<usize>();
        prop_assert_eq!(got, expected, "port {} ring {}", port, ring);
        Ok(())
    }

    fn step(&mut self, op: &Op) -> Result<(), TestCaseError> {
        match op {
            Op::Send { port, ring, slots } => self.send(*port, *ring, slots),
            Op::Toggle { port } => self.toggle(*port),
            Op::Listen { port, receives } => {
                self.clients[*port].set_receives(*receives);
                self.model.ports[*port].receives = *receives;
            }
            Op::Receive { port, ring, frames } => self.receive(*port, *ring, *frames)?,
        }
        barrier(&self.bridge);
        for (port, model) in self.model.ports.iter().enumerate() {
            if model.index.is_some() {
                let totals = Totals { moved: 0, ..self.counters[port].totals() };
                let behind = self.model.table.values().filter(|at| Some(**at) == model.index);
                let expected = Totals { known: behind.count() as u64, ..model.totals };
                prop_assert_eq!(totals, expected, "port {}", port);
            }
        }
        Ok(())
    }
}

#[test]
fn the_addresses_of_this_test_do_not_collide() {
    let mut table = Table::new(0);
    let number = |n| {
        let [a, b, c, d, e, f] = address(n);
        u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
    };
    assert!((0..HOSTS).all(|n| table.learn(number(n), n) == Learned::There));
    assert!((0..HOSTS).all(|n| table.lookup(number(n)) == Some(n)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn s_vale_5_to_11_ports_see_what_the_model_sees(ops in vec(op(), 1..40)) {
        let mut world = World::new();
        for op in &ops {
            world.step(op)?;
        }
        for (port, ([_, rings], ..)) in PORTS.into_iter().enumerate() {
            for ring in 0..rings as usize {
                world.receive(port, ring, usize::MAX)?;
            }
        }
        prop_assert!(world.clients.iter().all(|c| Arc::strong_count(&c.receives) > 0));
    }
}

/// A packet of 40 slots that lies across the end of a burst of 128 stays in one piece, and
/// one that is lost there is lost to its end.
#[test]
fn s_vale_11_chains_across_bursts() {
    for odd_one in [None, Some(127), Some(128), Some(140)] {
        let mut world = World::new();
        let whole = Slot { len: 60, buffer: Buffer::Own, more: false, dst: HOSTS + 1, src: 0 };
        let mut slots = vec![whole; 110];
        slots.extend([Slot { more: true, ..whole }; 39]);
        slots.extend([whole; 21]);
        if let Some(i) = odd_one {
            slots[i].buffer = Buffer::Wrong(0);
        }
        world.step(&Op::Send { port: 0, ring: 0, slots }).unwrap();
        let drops = world.counters[0].totals().drops;
        assert_eq!(drops.bad_slot, odd_one.is_some().into());
        for port in 1..PORTS.len() {
            world.receive(port, 0, usize::MAX).unwrap();
        }
    }
}

/// Cursors outside the ring are counted once, and the port goes on when they are in it again.
#[test]
fn s_sync_6_a_wrong_head_costs_the_sender_only() {
    let bridge = Bridge::start("vale-test").unwrap();
    let [a, b] = [(); 2].map(|()| Client::new([1, 1], [64, 64], 0));
    let ((_, counters), _) = (a.attach(&bridge), b.attach(&bridge));
    for _ in 0..2 {
        a.tx[0].csb().app.publish(64, 64);
        a.worker.notify();
        barrier(&bridge);
    }
    a.tx[0].csb().app.publish(0, 0);
    let frame = header(BROADCAST, mac(1));
    a.send(&frame);
    a.drained(0);
    barrier(&bridge);
    assert_eq!(b.receive(0, 9), [[(frame.to_vec(), 0x100)]]);
    assert!(counters.totals().drops.bad_index <= 1);
    assert!(a.receives.load(Relaxed));
}
