//! What a port costs the others in one turn, counted by the work that its packets make, whatever becomes
//! of them (trust rule 7): each of these is a way to have the worker do much for little.

mod common;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use common::{BROADCAST, Client, header, mac};
use etherparse::PacketBuilder;
use ringway_abi::{Dir, NS_MOREFRAG};
use ringway_kring::{Doorbell, Kring};
use ringway_mirror::{Mirror, MirrorMode, Mirrors};
use ringway_region::RingInit;
use ringway_switch_port::{
    Backpressure, Burst, Configure, Delivered, Drops, Frame, Mirrored, PacketIo, PortMirrors, Wake,
};
use ringway_vale::{Clock, Forwarding, PortConfig, RingPort, SteppedBridge};
use rustix::fd::{AsFd, BorrowedFd};

/// What one turn may copy, of a packet that is under way when it ends, and what is counted in other
/// units.
const TURN: usize = (1 << 20) + PACKET;
const PACKET: usize = 64 << 10;
const BUF: usize = 2048;
const LONG: u8 = 12;
/// TCP over IPv4, and datagrams of `gso_size`, in virtio-net headers.
const TCP: u8 = 1;
const DATAGRAMS: u8 = 5;

fn bridge(forwarding: &Forwarding) -> SteppedBridge {
    SteppedBridge::new(forwarding, Clock::new(|| 0)).unwrap()
}

fn with_header(header_len: u8) -> PortConfig {
    PortConfig { header_len, ..PortConfig::default() }
}

/// A frame of all that an IP packet holds.
fn frame(of: u8, length: usize) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(mac(1), BROADCAST).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9);
    let mut frame = Vec::new();
    let payload = vec![0xab; length];
    match of {
        TCP => builder.tcp(1, 2, 3, 4).write(&mut frame, &payload).unwrap(),
        _ => builder.udp(1, 2).write(&mut frame, &payload).unwrap(),
    }
    frame
}

/// The same behind a header that asks for segments of `gso_size`.
fn offloaded(of: u8, gso_size: u16, length: usize) -> Vec<u8> {
    let mut bytes = vec![1, of, 0, 0, 0, 0, 34, 0, 0, 0, 0, 0];
    bytes[4..6].copy_from_slice(&gso_size.to_ne_bytes());
    bytes[8] = if of == TCP { 16 } else { 6 };
    bytes.extend(frame(of, length));
    bytes
}

/// Fills a ring with a packet of many slots, as often as it has room. Returns slots of one.
fn fill(client: &Client, packet: &[u8]) -> u32 {
    let slots = packet.len().div_ceil(BUF);
    let view = client.tx[0].ring();
    while view.distance(view.head(), view.tail()) as usize >= slots {
        for (i, piece) in (1..).zip(packet.chunks(BUF)) {
            let more = if i < slots { NS_MOREFRAG } else { 0 };
            client.fill(0, piece, piece.len() as u16, more, None);
        }
    }
    client.tx_sync(0);
    slots as u32
}

/// Slots that the worker has done with.
fn taken(client: &Client) -> u32 {
    let ring = client.tx[0].ring();
    ring.next(client.tx[0].csb().service.hwtail())
}

fn mirrors(monitors: &[Client], slots: u32, mode: MirrorMode) -> Mirrors {
    let mirror = |monitor: &Client| {
        let bufs: Vec<u32> = (2..2 + slots).collect();
        let init = RingInit { dir: Dir::Rx, ringid: 0, num_slots: slots };
        let ring = Kring::create(&monitor.region, 0, &init, &bufs).unwrap();
        Mirror::new(ring, Arc::new(Doorbell::new().unwrap()), mode)
    };
    monitors.iter().map(mirror).collect()
}

/// A way to have each byte that is sent cost many.
struct Way {
    name: &'static str,
    packet: Vec<u8>,
    header_len: u8,
    receivers: usize,
    /// Of the sender, and of each receiver.
    monitors: [usize; 2],
    /// Bytes that one packet has the worker copy.
    cost: usize,
}

fn ways() -> Vec<Way> {
    let long = frame(TCP, 65_000);
    let tcp = offloaded(TCP, 1460, 65_000);
    let few = [0, 0];
    let way =
        |name, packet: &Vec<u8>, header_len, receivers: usize, monitors: [usize; 2], copies| Way {
            name,
            packet: packet.clone(),
            header_len,
            receivers,
            monitors,
            cost: packet.len() * copies,
        };
    vec![
        way("to one port", &long, 0, 1, few, 1),
        // Read, summed, written, and copied.
        way("segments", &tcp, LONG, 1, few, 4),
        way("flooded", &long, 0, 40, few, 40),
        way("flooded in segments", &tcp, LONG, 10, few, 40),
        way("flooded, with monitors", &long, 0, 10, [0, 3], 40),
        way("monitors of the receiver", &long, 0, 1, [0, 20], 21),
        way("monitors of the sender", &long, 0, 0, [20, 0], 21),
    ]
}

#[test]
fn a_turn_is_charged_for_all_that_it_does() {
    for way in ways() {
        let mut bridge = bridge(&Forwarding::Flood);
        let sender = Client::new([1, 1], [1024, 16], 0);
        let place = bridge.attach(Box::new(sender.port()), with_header(way.header_len)).unwrap();
        let new = |_| Client::new([1, 1], [16, 1024], 0);
        let receivers: Vec<Client> = (0..way.receivers).map(new).collect();
        let monitors: Vec<Client> = (0..way.monitors.iter().sum()).map(new).collect();
        if way.monitors[0] > 0 {
            let tx = vec![mirrors(&monitors[..way.monitors[0]], 1024, MirrorMode::CopySent)];
            bridge.set_mirrors(place, PortMirrors { tx, rx: vec![] });
        }
        for receiver in &receivers {
            let place = bridge.attach(Box::new(receiver.port()), PortConfig::default()).unwrap();
            if way.monitors[1] > 0 {
                let rx =
                    vec![mirrors(&monitors[..way.monitors[1]], 1024, MirrorMode::CopyReceived)];
                bridge.set_mirrors(place, PortMirrors { tx: vec![], rx });
            }
        }
        let slots = fill(&sender, &way.packet);
        let (mut before, mut parts) = (0, 0);
        let packets = 1023 / slots;
        while before < packets {
            bridge.round();
            bridge.flush_idle();
            receivers.iter().for_each(|receiver| drop(receiver.receive(0, usize::MAX)));
            let now = taken(&sender) / slots;
            let work = (now - before) as usize * way.cost;
            // What a packet has cost in the turns before the one that was its last is not counted twice.
            assert!(work <= TURN + way.cost, "{}: {work} bytes in one turn", way.name);
            (before, parts) = (now, parts + 1);
        }
        let least = packets as usize * way.cost / (TURN + way.cost);
        assert!(parts >= least, "{}: {parts} turns, not {least}", way.name);
    }
}

/// A packet that costs more than a turn reaches some ports in one and the others in the next, each once,
/// and in order.
#[test]
fn a_flooded_packet_takes_several_turns() {
    let mut bridge = bridge(&Forwarding::Flood);
    let sender = Client::new([1, 1], [128, 16], 0);
    bridge.attach(Box::new(sender.port()), PortConfig::default()).unwrap();
    let receivers: Vec<Client> = (0..40).map(|_| Client::new([1, 1], [16, 512], 0)).collect();
    for receiver in &receivers {
        bridge.attach(Box::new(receiver.port()), PortConfig::default()).unwrap();
    }
    let packets: Vec<Vec<u8>> =
        (0..3u8).map(|n| [&frame(TCP, 60_000)[..], &[n]].concat()).collect();
    for packet in &packets {
        let slots = packet.len().div_ceil(BUF);
        for (i, piece) in (1..).zip(packet.chunks(BUF)) {
            let more = if i < slots { NS_MOREFRAG } else { 0 };
            sender.fill(0, piece, piece.len() as u16, more, None);
        }
    }
    sender.tx_sync(0);
    let delivered = || -> usize {
        let slots = |client: &Client| client.rx[0].hwtail() as usize;
        receivers.iter().map(slots).sum::<usize>() * BUF
    };
    let (mut before, mut turns) = (0, 0);
    while bridge.round() {
        bridge.flush_idle();
        let now = delivered();
        assert!(now - before <= TURN, "{} bytes in one turn", now - before);
        (before, turns) = (now, turns + 1);
    }
    assert!(turns >= 7, "{turns} turns");
    for receiver in &receivers {
        let got = receiver.receive(0, usize::MAX);
        let whole: Vec<Vec<u8>> =
            got.into_iter().map(|p| p.into_iter().flat_map(|(bytes, _)| bytes).collect()).collect();
        assert!(whole == packets);
    }
}

/// A receiver of `slots` slots that notes what room was asked for, and how many packets it has got.
struct Sink {
    port: RingPort,
    slots: u32,
    asked: Arc<AtomicU64>,
    got: Arc<AtomicU64>,
    by_call: bool,
}

impl PacketIo for Sink {
    fn tx_rings(&self) -> usize {
        0
    }

    fn receives(&self) -> bool {
        true
    }

    fn collect<'a>(&'a mut self, _: usize, _: &mut Burst<'a>, _: &mut Drops) -> u32 {
        0
    }

    fn release(&mut self, _: usize) {}

    fn deliver(
        &mut self,
        ring: usize,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        let delivered = self.port.deliver(ring, frames, burst, drops);
        self.got.fetch_add(delivered.packets, Relaxed);
        delivered
    }

    fn sends_by_call(&self) -> bool {
        self.by_call
    }

    fn flush(&mut self, idle: bool) {
        self.port.flush(idle);
    }
}

impl Backpressure for Sink {
    fn has_room(&mut self, _: usize, slots: u32, _: &Burst<'_>) -> bool {
        if slots <= self.slots {
            // It is converted.
            self.asked.fetch_add(1, Relaxed);
        }
        slots <= self.slots
    }
}

impl Configure for Sink {}
impl Mirrored for Sink {}
impl Wake for Sink {
    fn arm(&mut self) {}

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.port.doorbell()
    }

    fn drain(&self) {}
}

/// What finds no room, and what no stack makes, is refused before anything is made of it, and counted.
#[test]
fn what_cannot_be_delivered_is_not_converted() {
    let cases = [
        ("datagrams of a byte", offloaded(DATAGRAMS, 1, 3000), 4000, [1, 0]),
        ("129 datagrams", offloaded(DATAGRAMS, 20, 129 * 20), 4000, [1, 0]),
        ("more than any stack puts into one", offloaded(DATAGRAMS, 400, 60_000), 15, [1, 0]),
        ("more segments than the ring has slots", offloaded(TCP, 1460, 65_000), 15, [0, 1]),
        ("an unknown kind", offloaded(2, 1460, 3000), 4000, [1, 0]),
    ];
    for (name, packet, room, expected) in cases {
        let mut bridge = bridge(&Forwarding::Flood);
        let sender = Client::new([1, 1], [64, 16], 0);
        let receiver = Client::new([1, 1], [16, 16], 0);
        let asked = Arc::new(AtomicU64::new(0));
        let from = bridge.attach(Box::new(sender.port()), with_header(LONG)).unwrap();
        let (port, got) = (receiver.port(), Arc::default());
        let sink = Sink { port, slots: room, asked: asked.clone(), got, by_call: false };
        let to = bridge.attach(Box::new(sink), PortConfig::default()).unwrap();
        let slots = packet.len().div_ceil(BUF);
        for (i, piece) in (1..).zip(packet.chunks(BUF)) {
            let more = if i < slots { NS_MOREFRAG } else { 0 };
            sender.fill(0, piece, piece.len() as u16, more, None);
        }
        sender.tx_sync(0);
        bridge.round();
        bridge.flush_idle();
        let drops = |port| bridge.totals(port).unwrap().drops;
        assert_eq!([drops(from).bad_offload, drops(to).ring_full], expected, "{name}");
        assert!(name == "129 datagrams" || asked.load(Relaxed) == 0, "{name}: it was converted");
    }
    // As many as a stack makes arrive.
    let mut bridge = bridge(&Forwarding::Flood);
    let (sender, receiver) = (Client::new([1, 1], [64, 16], 0), Client::new([1, 1], [16, 256], 0));
    bridge.attach(Box::new(sender.port()), with_header(LONG)).unwrap();
    bridge.attach(Box::new(receiver.port()), PortConfig::default()).unwrap();
    let packet = offloaded(DATAGRAMS, 8, 128 * 8);
    sender.fill(0, &packet, packet.len() as u16, 0, None);
    sender.tx_sync(0);
    bridge.round();
    bridge.flush_idle();
    assert_eq!(receiver.receive(0, usize::MAX).len(), 128);
}

/// Runs of one packet each, offered to many ports that have no room: what is refused is charged.
#[test]
fn what_is_refused_is_charged() {
    let mut bridge = bridge(&Forwarding::Learning { ageing_seconds: 300 });
    let sender = Client::new([16, 1], [256, 16], 0);
    bridge.attach(Box::new(sender.port()), PortConfig::default()).unwrap();
    let full: Vec<Client> = (0..200).map(|_| Client::new([1, 1], [16, 16], 0)).collect();
    for receiver in &full {
        bridge.attach(Box::new(receiver.port()), PortConfig::default()).unwrap();
    }
    // To all, and to itself, in turns: the rings of the others are full after 15.
    for ring in 0..16 {
        for i in 0..255u8 {
            let to = if i % 2 == 0 { BROADCAST } else { mac(1) };
            sender.fill(ring, &header(to, mac(1)), 60, 0, None);
        }
        sender.tx_sync(ring);
    }
    let rounds = (0..).take_while(|_| bridge.round()).count();
    // 16 rings of 128 floods, each to 200 ports, which cost what copying so many bytes does.
    let work = 16 * 128 * 200 * 100;
    assert!(rounds >= work / TURN, "{rounds} turns");
}

/// An interface that has short frames for all, without end.
struct Flooder {
    frames: Vec<Vec<u8>>,
    doorbell: Doorbell,
}

impl PacketIo for Flooder {
    fn tx_rings(&self) -> usize {
        1
    }

    fn receives(&self) -> bool {
        true
    }

    fn collect<'a>(&'a mut self, _: usize, burst: &mut Burst<'a>, _: &mut Drops) -> u32 {
        let mut bytes = 0;
        for frame in &mut self.frames {
            if bytes >= burst.limit {
                break;
            }
            bytes += frame.len() as u32 + burst.per_frame;
            burst.push_private(frame);
            burst.end_frame();
        }
        burst.frames.len() as u32
    }

    fn release(&mut self, _: usize) {}

    fn deliver(&mut self, _: usize, _: &[Frame], _: &Burst<'_>, _: &mut Drops) -> Delivered {
        Delivered::default()
    }

    fn flush(&mut self, _: bool) {}
}

impl Backpressure for Flooder {}
impl Configure for Flooder {}
impl Mirrored for Flooder {}
impl Wake for Flooder {
    fn arm(&mut self) {}

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    fn drain(&self) {}
}

/// A system call for each port and frame is what a flood to interfaces costs, although it comes after the turn: a
/// turn of a program, which keeps the rest, and of an interface, which is asked for less, has so many of
/// them that others need not wait longer.
#[test]
fn what_system_calls_send_is_charged() {
    const PORTS: u64 = 20;
    const FRAMES: usize = 100;
    // What a call costs in bytes that are copied, in a turn of 1 MiB, and a frame for all that is under way.
    const CALLS: u64 = (1 << 20) / 1500 + PORTS;
    let frame = || header(BROADCAST, mac(1)).into_iter().chain([0; 46]).collect::<Vec<u8>>();
    for (by_call, of_interface, is_bounded) in
        [(false, false, false), (true, false, true), (false, true, false), (true, true, true)]
    {
        let mut bridge = bridge(&Forwarding::Flood);
        let sender = Client::new([1, 1], [256, 16], 0);
        if of_interface {
            let frames = (0..FRAMES).map(|_| frame()).collect();
            let port = Flooder { frames, doorbell: Doorbell::new().unwrap() };
            bridge.attach(Box::new(port), PortConfig::default()).unwrap();
        } else {
            bridge.attach(Box::new(sender.port()), PortConfig::default()).unwrap();
            (0..FRAMES).for_each(|_| sender.fill(0, &frame(), 60, 0, None));
            sender.tx_sync(0);
        }
        let got = Arc::new(AtomicU64::new(0));
        let receivers: Vec<Client> =
            (0..PORTS).map(|_| Client::new([1, 1], [16, 512], 0)).collect();
        for receiver in &receivers {
            let (port, asked, got) = (receiver.port(), Arc::default(), got.clone());
            let sink = Sink { port, slots: 512, asked, got, by_call };
            bridge.attach(Box::new(sink), PortConfig::default()).unwrap();
        }
        // That it floods is known after the first turn; in the second a program has the rest of its frames.
        let turns: Vec<u64> = (0..3)
            .map(|_| {
                bridge.round();
                bridge.flush_idle();
                got.swap(0, Relaxed)
            })
            .collect();
        let all = FRAMES as u64 * PORTS;
        let what = format!("{by_call} {of_interface}: {turns:?}");
        match (of_interface, is_bounded) {
            (_, false) => assert_eq!(turns[0], all, "{what}"),
            (true, true) => assert!(turns[1..].iter().all(|n| (1..=CALLS).contains(n)), "{what}"),
            (false, true) => assert!(turns.iter().all(|n| (1..=CALLS).contains(n)), "{what}"),
        }
    }
}

static TIME: AtomicU64 = AtomicU64::new(0);

/// Where work takes longer than it is reckoned to, the clock ends the turn.
#[test]
fn a_turn_is_bounded_in_time() {
    let turns = |fine: fn() -> u64| {
        let clock = Clock::new(|| 0).with_fine(fine);
        let mut bridge = SteppedBridge::new(&Forwarding::Flood, clock).unwrap();
        let (sender, receiver) =
            (Client::new([16, 1], [256, 16], 0), Client::new([1, 1], [16, 4096], 0));
        bridge.attach(Box::new(sender.port()), PortConfig::default()).unwrap();
        bridge.attach(Box::new(receiver.port()), PortConfig::default()).unwrap();
        for ring in 0..16 {
            (0..200).for_each(|_| sender.fill(ring, &header(BROADCAST, mac(1)), 1000, 0, None));
            sender.tx_sync(ring);
        }
        (0..).take_while(|_| bridge.round()).count()
    };
    let fast = turns(|| 0);
    // A millisecond goes by between two looks.
    let slow = turns(|| TIME.fetch_add(1000, Relaxed));
    assert!(slow >= 2 * fast, "{slow} turns, and {fast} where no time goes by");
}

/// An interface with frames without end, which cannot keep what it has given.
struct Torrent {
    memory: Vec<u8>,
    doorbell: Arc<Doorbell>,
}

impl PacketIo for Torrent {
    fn tx_rings(&self) -> usize {
        1
    }

    fn receives(&self) -> bool {
        true
    }

    fn collect<'a>(&'a mut self, _: usize, burst: &mut Burst<'a>, _: &mut Drops) -> u32 {
        let most = (burst.limit as usize / BUF).clamp(1, 128);
        for frame in self.memory.chunks_mut(1514).take(most) {
            frame[..14].copy_from_slice(&header(BROADCAST, mac(1)));
            burst.push_private(frame);
            burst.end_frame();
        }
        most as u32
    }

    fn release(&mut self, _: usize) {}

    fn deliver(&mut self, _: usize, _: &[Frame], _: &Burst<'_>, _: &mut Drops) -> Delivered {
        Delivered::default()
    }

    fn flush(&mut self, _: bool) {}
}

impl Backpressure for Torrent {}
impl Configure for Torrent {}
impl Mirrored for Torrent {}
impl Wake for Torrent {
    fn arm(&mut self) {}

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    fn drain(&self) {}
}

/// What an interface has for all comes in short bursts where it goes to many.
#[test]
fn an_interface_that_floods_has_shorter_bursts() {
    let mut bridge = bridge(&Forwarding::Flood);
    let doorbell = Arc::new(Doorbell::new().unwrap());
    let torrent = Torrent { memory: vec![0; 128 * 1514], doorbell };
    bridge.attach(Box::new(torrent), PortConfig::default()).unwrap();
    let receivers: Vec<Client> = (0..100).map(|_| Client::new([1, 1], [16, 256], 0)).collect();
    for receiver in &receivers {
        bridge.attach(Box::new(receiver.port()), PortConfig::default()).unwrap();
    }
    let mut turns = Vec::new();
    for _ in 0..10 {
        bridge.round();
        bridge.flush_idle();
        let frames = |client: &Client| client.receive(0, usize::MAX).len();
        turns.push(receivers.iter().map(frames).sum::<usize>() * 1514);
    }
    // The first is not known to be for all.
    assert!(turns[1..].iter().all(|bytes| (1..TURN).contains(bytes)), "{turns:?}");
}

/// A flooded packet that is queued for a full lossless port is known to wait there, also while its turn has
/// not sufficed for all others: a queue never has a sender that may not come.
#[test]
fn a_flood_that_is_queued_is_held() {
    let mut bridge = bridge(&Forwarding::Flood);
    let lossless = PortConfig { lossless: Some(Default::default()), ..PortConfig::default() };
    let full = Client::new([1, 1], [16, 64], 0);
    let place = bridge.attach(Box::new(full.port()), lossless).unwrap();
    let sender = Client::new([1, 1], [128, 16], 0);
    let from = bridge.attach(Box::new(sender.port()), PortConfig::default()).unwrap();
    let receivers: Vec<Client> = (0..40).map(|_| Client::new([1, 1], [16, 512], 0)).collect();
    for receiver in &receivers {
        bridge.attach(Box::new(receiver.port()), PortConfig::default()).unwrap();
    }
    // The first two fill the lossless port.
    let slots = fill(&sender, &frame(TCP, 60_000));
    assert_eq!(63 / slots, 2);
    let has_third = |client: &Client| client.rx[0].hwtail() >= 3 * slots;
    let mut amid = 0;
    while bridge.round() {
        bridge.flush_idle();
        let waits_for = bridge.state(from).unwrap().waits_for;
        if has_third(&receivers[0]) {
            assert_eq!(waits_for, Some(place));
            amid += usize::from(!receivers.iter().all(has_third));
        }
    }
    assert!(amid > 0, "one turn was enough");
    assert_eq!(full.receive(0, usize::MAX).len(), 2);
    while bridge.round() {
        bridge.flush_idle();
    }
    assert!(receivers.iter().all(has_third));
    assert_eq!(full.receive(0, usize::MAX).len(), 2, "the third, and the next");
}
