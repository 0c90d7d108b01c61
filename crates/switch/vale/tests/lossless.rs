//! Lossless ports: nothing sent to them is lost or overtakes, and nobody waits who need not.

mod common;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use common::{BROADCAST, Client, barrier, bytes, header, listen, mac, until_asleep};
use proptest::{collection::vec, prelude::*};
use ringway_abi::{Dir, NS_MOREFRAG};
use ringway_filter::{Insn, Program};
use ringway_kring::{Doorbell, Kring};
use ringway_mirror::{Mirror, MirrorMode, Mirrors};
use ringway_region::RingInit;
use ringway_switch_port::PortMirrors;
use ringway_vale::{
    Bridge, Clock, Forwarding, Lossless, PortConfig, PortCounters, PortFilter, Remainder, Totals,
};

fn lossless() -> PortConfig {
    PortConfig { lossless: Some(Lossless::default()), ..PortConfig::default() }
}

/// Senders 0 and 1, lossless receivers 2 and 3 with rings of so many slots, and 4, which loses.
struct World {
    bridge: Bridge,
    clients: Vec<Client>,
    counters: Vec<Arc<PortCounters>>,
    millis: Arc<AtomicU64>,
}

const LOSSLESS: [usize; 2] = [2, 3];
const LOSSY: usize = 4;

impl World {
    fn new(name: &str, slots: [u32; 2]) -> World {
        let addresses = (0..5).map(|n| (mac(n), n)).collect();
        let forwarding = Forwarding::Static { addresses, flood_unknown: true };
        let millis = Arc::new(AtomicU64::new(0));
        let hand = millis.clone();
        let clock = Clock::new(move || hand.load(Relaxed));
        let bridge = Bridge::start_with(name, &forwarding, clock).unwrap();
        let port = |rx| Client::new([1, 1], [64, rx], 0);
        let clients = vec![port(1024), port(1024), port(slots[0]), port(slots[1]), port(8)];
        let config = |port: usize| match LOSSLESS.contains(&port) {
            true => lossless(),
            false => PortConfig::default(),
        };
        let attach = |(port, client): (usize, &Client)| client.attach_as(&bridge, config(port)).1;
        let counters = clients.iter().enumerate().map(attach).collect();
        World { bridge, clients, counters, millis }
    }

    fn totals(&self, port: usize) -> Totals {
        self.counters[port].totals()
    }

    /// Sends a frame if the ring has the slots; returns whether.
    fn send(&self, from: usize, to: Option<usize>, number: u32, pieces: usize) -> bool {
        let view = self.clients[from].tx[0].ring();
        if (view.distance(view.head(), view.tail()) as usize) < pieces {
            return false;
        }
        let dst = to.map_or(BROADCAST, |to| mac(to as u8));
        for i in 1..=pieces {
            let mut piece = match i {
                1 => header(dst, mac(from as u8)).to_vec(),
                _ => vec![],
            };
            piece.extend([&number.to_le_bytes()[..], &[i as u8]].concat());
            let more = if i < pieces { NS_MOREFRAG } else { 0 };
            self.clients[from].fill(0, &piece, piece.len() as u16, more, None);
        }
        self.clients[from].tx_sync(0);
        true
    }

    /// Takes frames off a receiver: sender, number, pieces.
    fn receive(&self, port: usize, frames: usize) -> Vec<(usize, u32, usize)> {
        let read = |frame: Vec<common::Piece>| {
            let (first, n) = (&frame[0].0, frame.len());
            let number = u32::from_le_bytes(first[14..18].try_into().unwrap());
            (usize::from(first[11]), number, n)
        };
        self.clients[port].receive(0, frames).into_iter().map(read).collect()
    }

    /// Whether the bridge has taken all that `port` has sent.
    fn is_drained(&self, port: usize) -> bool {
        self.clients[port].tx_sync(0);
        let view = self.clients[port].tx[0].ring();
        view.tail() == view.prev(view.head())
    }

    fn pass(&self, millis: u64) {
        self.millis.fetch_add(millis, Relaxed);
        self.clients[0].worker.notify();
    }
}

#[derive(Clone, Debug)]
enum Op {
    Send {
        from: usize,
        to: Option<usize>,
        pieces: usize,
    },
    Receive {
        port: usize,
        frames: usize,
    },
    Await,
    /// It is lossless as before.
    Configure {
        port: usize,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let to = prop_oneof![3 => (2usize..5).prop_map(Some), 1 => Just(None)];
    let pieces = prop_oneof![4 => Just(1usize), 1 => 2usize..7];
    prop_oneof![
        20 => (0usize..2, to, pieces).prop_map(|(from, to, pieces)| Op::Send { from, to, pieces }),
        5 => (2usize..5, 1usize..8).prop_map(|(port, frames)| Op::Receive { port, frames }),
        5 => Just(Op::Await),
        1 => (2usize..4).prop_map(|port| Op::Configure { port }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Against what was sent: each receiver has the packets of each sender in their order, a
    /// lossless one all of them, and once.
    #[test]
    fn nothing_is_lost_and_nothing_overtakes(
        ops in vec(op(), 1..300), slots in [8u32..20, 8u32..20],
    ) {
        let world = World::new("vale-lossless", slots);
        let mut sent = vec![];
        let mut received = vec![vec![]; 5];
        for (number, op) in (0..).zip(&ops) {
            match *op {
                Op::Send { from, to, pieces } => {
                    if world.send(from, to, number, pieces) {
                        sent.push((to, (from, number, pieces)));
                    }
                }
                Op::Receive { port, frames } => received[port].extend(world.receive(port, frames)),
                Op::Await => barrier(&world.bridge),
                Op::Configure { port } => prop_assert!(world.bridge.configure(port as u8, lossless())),
            }
        }
        for round in 0.. {
            let drained = world.is_drained(0) && world.is_drained(1);
            for (port, frames) in received.iter_mut().enumerate().skip(2) {
                frames.extend(world.receive(port, usize::MAX));
            }
            if drained {
                break;
            }
            prop_assert!(round < 10_000, "there is room, and nothing moves");
            barrier(&world.bridge);
        }
        barrier(&world.bridge);
        for (port, frames) in received.iter().enumerate().skip(2) {
            for from in 0..2 {
                let is_for = |to: &Option<usize>| to.is_none_or(|to| to == port);
                let of = sent.iter().filter(|(to, frame)| is_for(to) && frame.0 == from);
                let mut expected: Vec<_> = of.map(|(_, frame)| *frame).collect();
                let got: Vec<_> = frames.iter().filter(|f| f.0 == from).copied().collect();
                if port == LOSSY {
                    let lost = world.totals(port).drops.ring_full;
                    prop_assert!(lost > 0 || expected.iter().all(|frame| got.contains(frame)));
                    expected.retain(|frame| got.contains(frame));
                }
                prop_assert_eq!(got, expected, "port {} from {}", port, from);
            }
            let drops = world.totals(port).drops;
            prop_assert!(port == LOSSY || drops.ring_full == 0, "{drops:?}");
        }
        let frames = |from| sent.iter().filter(|(_, frame)| frame.0 == from).count() as u64;
        for from in 0..2 {
            prop_assert_eq!(world.totals(from).sent_packets, frames(from));
        }
    }
}

/// Fills receiver 2, which has seven free slots, and leaves three packets of sender 0 waiting.
fn blocked(name: &str) -> World {
    let world = World::new(name, [8, 8]);
    assert!((0..10).all(|n| world.send(0, Some(2), n, 1)));
    until_asleep(name);
    assert!(!world.is_drained(0));
    barrier(&world.bridge);
    assert_eq!(world.totals(0).sent_packets, 7);
    world
}

#[test]
fn only_senders_to_the_full_port_wait() {
    let world = blocked("vale-ll-cross");
    for n in 0..100 {
        assert!(world.send(1, Some([3, 4][n as usize % 2]), n, 1));
        world.clients[1].drained(0);
        world.receive(3, 9);
        world.receive(4, 9);
    }
    assert_eq!((world.totals(3).drops, world.totals(4).drops), Default::default());
}

/// Those who have room get the packet at once, and once.
#[test]
fn a_flood_goes_to_those_who_have_room() {
    let world = blocked("vale-ll-flood");
    assert!(world.send(1, None, 77, 2) && world.send(1, Some(3), 78, 1));
    until_asleep("vale-ll-flood");
    assert_eq!(world.receive(3, 9), [(1, 77, 2)]);
    assert_eq!(world.receive(4, 9), [(1, 77, 2)]);
    assert!(!world.is_drained(1));
    let mut all = vec![];
    while all.len() < 11 {
        all.extend(world.receive(2, 9));
        barrier(&world.bridge);
    }
    world.clients[1].drained(0);
    assert_eq!(all[10], (1, 77, 2));
    assert_eq!(world.receive(3, 9), [(1, 78, 1)]);
}

/// The worker sleeps while all wait, and the receiver's sync wakes it.
#[test]
fn freed_slots_wake_the_worker() {
    let name = "vale-ll-wake";
    let world = blocked(name);
    for n in 10..200 {
        until_asleep(name);
        let sender = &world.clients[0];
        sender.tx_bell.drain();
        sender.tx[0].csb().app.arm();
        assert_eq!(world.receive(2, 1).len(), 1);
        listen(&sender.tx_bell);
        assert!(world.send(0, Some(2), n, 1));
    }
}

/// What is sent shows up as a full ring, and POLLOUT stops.
#[test]
fn the_sender_sees_its_ring_fill_up() {
    let world = blocked("vale-ll-full");
    let mut accepted = 3;
    while world.send(0, Some(2), 99, 1) {
        accepted += 1;
    }
    assert_eq!(accepted, 63);
    assert!(!world.clients[0].tx[0].ready());
}

#[test]
fn a_receiver_that_frees_nothing_loses_packets_until_it_does() {
    let name = "vale-ll-dead";
    let world = blocked(name);
    world.pass(999);
    until_asleep(name);
    barrier(&world.bridge);
    assert_eq!(world.totals(2).drops.ring_full, 0);
    world.pass(1);
    world.clients[0].drained(0);
    barrier(&world.bridge);
    assert_eq!(world.totals(2).drops.ring_full, 3);

    // From now on it holds up nobody, not for a moment.
    for n in 0..20 {
        assert!(world.send(1, Some(2), n, 1) && world.send(0, None, n, 1));
        world.clients[1].drained(0);
        world.clients[0].drained(0);
        assert_eq!(world.receive(3, 9).len(), 1);
    }

    // It was not dead after all.
    assert_eq!(world.receive(2, 2).len(), 2);
    assert!((0..3).all(|n| world.send(1, Some(2), n, 1)));
    until_asleep(name);
    assert!(!world.is_drained(1));
    assert_eq!(world.receive(2, 9).len(), 7);
    world.clients[1].drained(0);
}

/// A frame that the receiver's filter keeps from it takes no room, so neither its sender nor those that
/// wait for room hold it up.
#[test]
fn what_a_filter_drops_waits_for_nothing() {
    const DENIED: u32 = 200;
    let name = "vale-ll-filter";
    let world = World::new(name, [8, 64]);
    // The number is at 14.
    let insn = |code, jf, k| Insn { code, jt: 0, jf, k };
    let program = vec![insn(0x30, 0, 14), insn(0x15, 1, DENIED), insn(6, 0, 0), insn(6, 0, 1)];
    let program = Program::new(program).unwrap();
    let filter_out = Some(Arc::new(PortFilter { text: String::new(), program }));
    assert!(world.bridge.configure(2, PortConfig { filter_out, ..lossless() }));
    assert!((0..7).all(|n| world.send(0, Some(2), n, 1)));
    world.clients[0].drained(0);
    assert!(world.send(0, Some(2), DENIED, 1) && world.send(0, None, DENIED, 3));
    world.clients[0].drained(0);
    assert_eq!(world.receive(3, 9), [(0, DENIED, 3)]);
    // The other is the first in the queue.
    assert!(world.send(1, Some(2), 7, 1));
    until_asleep(name);
    assert!(!world.is_drained(1));
    assert!(world.send(0, Some(2), DENIED, 1) && world.send(0, Some(3), 8, 1));
    world.clients[0].drained(0);
    assert_eq!(world.receive(3, 9), [(0, 8, 1)]);
    // It has freed nothing meanwhile.
    world.pass(999);
    assert!(world.send(0, Some(2), DENIED, 1));
    world.clients[0].drained(0);
    assert!(!world.is_drained(1));
    world.pass(1);
    world.clients[1].drained(0);
    barrier(&world.bridge);
    let drops = world.totals(2).drops;
    assert_eq!((drops.denied, drops.ring_full), (4, 1));
}

// --- Segments ----------------------------------------------------------------------------

/// A virtio-net header that asks for segments of TCP over IPv4.
const TSO: [u8; 12] = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const HEADERS: usize = 14 + 20 + 20;

/// A frame of `len` bytes, of TCP over IPv4.
fn tcp(len: usize) -> Vec<u8> {
    let mut frame = header(BROADCAST, mac(0)).to_vec();
    frame.resize(len, 0);
    (frame[12], frame[13], frame[14], frame[23], frame[46]) = (8, 0, 0x45, 6, 0x50);
    frame
}

/// A sender with virtio-net headers, and a lossless receiver without, with a ring of so many slots. The time stands
/// still: patience has no end.
struct Segmented {
    bridge: Bridge,
    sender: Client,
    receiver: Client,
    counters: Arc<PortCounters>,
}

impl Segmented {
    fn new(name: &str, slots: u32) -> Segmented {
        let bridge = Bridge::start_with(name, &Forwarding::default(), Clock::new(|| 0)).unwrap();
        let sender = Client::new([1, 1], [512, 16], 0);
        sender.attach_as(&bridge, PortConfig { header_len: 12, ..PortConfig::default() });
        let receiver = Client::new([1, 1], [16, slots], 0);
        let (_, counters) = receiver.attach_as(&bridge, lossless());
        Segmented { bridge, sender, receiver, counters }
    }

    /// Sends a frame in slots of 2000 bytes.
    fn send(&self, header: [u8; 12], frame: &[u8]) {
        let whole = [&header[..], frame].concat();
        let pieces: Vec<_> = whole.chunks(2000).collect();
        for (i, piece) in (1..).zip(&pieces) {
            let more = if i < pieces.len() { NS_MOREFRAG } else { 0 };
            self.sender.fill(0, piece, piece.len() as u16, more, None);
        }
        self.sender.tx_sync(0);
    }
}

#[test]
fn segments_wait_for_the_slots_they_take() {
    let name = "vale-ll-tso";
    let world = Segmented::new(name, 16);
    (0..8).for_each(|_| world.send([0; 12], &tcp(60)));
    world.send(TSO, &tcp(12000));
    until_asleep(name);
    assert_eq!(world.receiver.receive(0, usize::MAX).len(), 8);
    world.sender.drained(0);
    barrier(&world.bridge);
    let got: Vec<_> = bytes(world.receiver.receive(0, usize::MAX)).iter().map(Vec::len).collect();
    let payload: usize = got.iter().map(|len| len - HEADERS).sum();
    assert_eq!((got.len(), payload), (9, 12000 - HEADERS));
    assert_eq!(world.counters.totals().drops.ring_full, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Long frames, short ones and those for a header's receiver, as the receiver gets round to it.
    #[test]
    fn no_segment_is_lost(
        frames in vec(prop_oneof![60usize..1514, 1514usize..60000], 1..30), slots in 48u32..80,
        takes in vec(1usize..20, 1..10)
    ) {
        let world = Segmented::new("vale-ll-segs", slots);
        let (mut frames, mut takes) = (frames.iter().peekable(), takes.iter().cycle());
        let (mut expected, mut got) = (vec![], vec![]);
        loop {
            let view = world.sender.tx[0].ring();
            let free = || view.distance(view.head(), view.tail()) as usize;
            while let Some(len) = frames.next_if(|len| len.div_ceil(2000) < free()) {
                world.send(if *len > 1514 { TSO } else { [0; 12] }, &tcp(*len));
                let payload = len - HEADERS;
                expected.extend((0..payload.div_ceil(1460)).map(|i| 1460.min(payload - i * 1460)));
            }
            world.sender.tx_sync(0);
            let more = bytes(world.receiver.receive(0, *takes.next().unwrap()));
            got.extend(more.iter().map(|frame| frame.len() - HEADERS));
            if frames.peek().is_none() && got.len() >= expected.len() {
                break;
            }
            std::thread::yield_now();
        }
        prop_assert_eq!(got, expected);
        barrier(&world.bridge);
        prop_assert_eq!(world.counters.totals().drops.ring_full, 0);
    }
}

/// A hostile receiver can take back what it freed: that frees nothing.
#[test]
fn heads_that_go_to_and_fro_are_no_progress() {
    let name = "vale-ll-hostile";
    let world = World::new(name, [8, 8]);
    assert!(world.send(0, Some(2), 0, 3) && world.send(0, Some(2), 1, 6));
    until_asleep(name);
    let kring = &world.clients[2].rx[0];
    for n in 0..40 {
        kring.csb().app.publish([1, 0, 9, u32::MAX][n % 4], 0);
        world.pass(100);
        until_asleep(name);
    }
    world.clients[0].drained(0);
    barrier(&world.bridge);
    assert_eq!(world.totals(2).drops.ring_full, 1);
}

#[test]
fn nobody_waits_for_whom_nobody_listens_to() {
    let world = blocked("vale-ll-deaf");
    world.clients[2].set_receives(false);
    world.clients[0].worker.notify();
    world.clients[0].drained(0);
    barrier(&world.bridge);
    assert_eq!(world.totals(0).drops.no_destination, 3);
}

#[test]
fn nobody_waits_for_a_port_that_has_gone_or_loses_again() {
    let world = blocked("vale-ll-gone");
    assert!(world.send(1, None, 1, 1));
    until_asleep("vale-ll-gone");
    assert!(world.bridge.configure(2, PortConfig::default()));
    world.clients[0].drained(0);
    world.clients[1].drained(0);
    barrier(&world.bridge);
    assert_eq!(world.totals(2).drops.ring_full, 4);

    let world = blocked("vale-ll-gone2");
    world.bridge.detach(2);
    world.clients[0].drained(0);
    assert_eq!(bytes(world.clients[4].receive(0, 9)).len(), 0);
    barrier(&world.bridge);
    assert_eq!(world.totals(0).drops.no_destination, 3);
}

/// Also when no port is lossless any more: those who have a packet already do not get it again.
#[test]
fn half_a_flood_is_completed_when_the_last_lossless_port_has_gone() {
    for detaches in [false, true] {
        let name = ["vale-ll-last0", "vale-ll-last1"][usize::from(detaches)];
        let world = blocked(name);
        assert!(world.bridge.configure(3, PortConfig::default()));
        assert!(world.send(1, None, 77, 1) && world.send(1, None, 78, 1));
        until_asleep(name);
        assert!(!world.is_drained(1));
        if detaches {
            world.bridge.detach(2);
        } else {
            assert!(world.bridge.configure(2, PortConfig::default()));
        }
        world.clients[1].drained(0);
        for port in [3, 4] {
            assert_eq!(world.receive(port, 9), [(1, 77, 1), (1, 78, 1)], "detaches: {detaches}");
        }
    }
}

/// A sender that dies while it waits leaves its place to the others.
#[test]
fn a_sender_that_has_gone_holds_up_nobody() {
    let world = blocked("vale-ll-first");
    assert!(world.send(1, Some(2), 50, 1));
    until_asleep("vale-ll-first");
    world.bridge.detach(0);
    assert_eq!(world.receive(2, 9).len(), 7);
    world.clients[1].drained(0);
    assert_eq!(world.receive(2, 9), [(1, 50, 1)]);
    barrier(&world.bridge);
    assert_eq!(world.totals(2).drops.ring_full, 3, "what had waited is lost there");
}

/// However much that one has sent. Where its rings are to go on elsewhere, nothing is lost.
#[test]
fn what_a_sender_that_has_gone_leaves_is_counted() {
    for remainder in [Remainder::Forward, Remainder::Drop] {
        let name = "vale-ll-left";
        let bridge = Bridge::start(name).unwrap();
        let [sender, receiver] = [[1024, 8], [8, 8]].map(|slots| Client::new([1, 1], slots, 0));
        sender.attach(&bridge);
        let (_, counters) = receiver.attach_as(&bridge, lossless());
        for number in 0..500u16 {
            sender.send(&[&header(BROADCAST, mac(0))[..], &number.to_be_bytes()].concat());
        }
        until_asleep(name);
        bridge.leave(0, None, remainder, None).unwrap().wait();
        barrier(&bridge);
        let lost = if remainder == Remainder::Forward { 500 - 7 } else { 0 };
        assert_eq!(counters.totals().drops.ring_full, lost);
        assert_eq!(sender.tx[0].hwcur(), if lost > 0 { 500 } else { 7 });
    }
}

/// A sync of the receiver waits until its monitors have what it has released: it is told, although
/// a sender, who wants more room, has looked at that before.
#[test]
fn a_receiver_is_told_what_its_monitors_have() {
    let name = "vale-ll-monitor";
    let world = World::new(name, [8, 8]);
    let receiver = &world.clients[2];
    let init = RingInit { dir: Dir::Rx, ringid: 0, num_slots: 8 };
    let bufs: Vec<u32> = (1000..1008).collect();
    let monitor = Kring::create(&receiver.region, 2, &init, &bufs).unwrap();
    let mirror = Mirror::new(monitor, Arc::new(Doorbell::new().unwrap()), MirrorMode::SwapReceived);
    world.bridge.set_mirrors(2, PortMirrors { tx: vec![], rx: vec![Mirrors::from_iter([mirror])] });
    assert!((0..7).all(|n| world.send(0, Some(2), n, 1)) && world.send(0, Some(2), 7, 3));
    for _ in 0..2 {
        until_asleep(name);
        assert_eq!(world.receive(2, 1).len(), 1);
        until_asleep(name);
        assert!(receiver.rx[0].is_taken_back());
    }
    world.receive(2, 1);
    world.clients[0].drained(0);
}

/// A worker that polls never sleeps, and its patience ends all the same.
#[test]
fn patience_ends_for_who_polls() {
    let world = blocked("vale-ll-poll");
    world.bridge.poll(vec![0]);
    world.pass(1000);
    world.clients[0].drained(0);
    barrier(&world.bridge);
    assert_eq!(world.totals(2).drops.ring_full, 3);
    world.bridge.poll(vec![]);
}
