//! Ports that have no rings in a client's region, as interfaces have none, and what their bridge's owner asks for.

mod common;

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};

use common::{BROADCAST, Client, barrier, bytes, header, mac};
use etherparse::PacketBuilder;
use ringway_abi::{Dir, NS_MOREFRAG};
use ringway_kring::{Doorbell, Kring, Offsets};
use ringway_mirror::{Mirror, MirrorMode, Mirrors};
use ringway_region::{Buf, RingInit};
use ringway_switch_port::{
    Backpressure, Burst, Configure, Delivered, Drops, Frame, Mirrored, PacketIo, PortMirrors,
    Unsent, Wake,
};
use ringway_vale::{
    AddressFilter, Bridge, Clock, Forwarding, Lossless, PortConfig, Remainder, StaticAddress,
    SteppedBridge, Vlan, confine_workers,
};
use ringway_vnet::{Header, for_kernel};
use rustix::fd::{AsFd, BorrowedFd};

/// What a port has to send, and what it has got: the length of its header, and its bytes.
#[derive(Default)]
struct Script {
    to_send: VecDeque<Vec<u8>>,
    /// Sends the first again and again.
    endless: bool,
    received: Vec<(u8, Vec<u8>)>,
    /// What begins with this has no room.
    no_room_for: Option<u8>,
    /// What the kernel has refused of that, and not taken yet.
    refused: Delivered,
    waiting: Delivered,
    /// What it lost of what it had to send, as its socket tells when it is asked for more, and by a counter.
    lost: [Drops; 2],
}

/// An interface whose kernel is a script.
struct Scripted {
    script: Arc<Mutex<Script>>,
    sending: Vec<Vec<u8>>,
    as_sent: bool,
    takes_headers: bool,
    doorbell: Doorbell,
}

impl Scripted {
    fn new(script: &Arc<Mutex<Script>>) -> Scripted {
        Scripted {
            script: script.clone(),
            sending: Vec::new(),
            as_sent: false,
            takes_headers: false,
            doorbell: Doorbell::new().unwrap(),
        }
    }
}

impl PacketIo for Scripted {
    fn collect<'a>(&'a mut self, _: usize, burst: &mut Burst<'a>, drops: &mut Drops) -> u32 {
        let mut script = self.script.lock().unwrap();
        add(drops, &std::mem::take(&mut script.lost[0]));
        if script.endless {
            self.sending.extend(script.to_send.front().cloned());
        } else {
            self.sending.extend(script.to_send.drain(..));
        }
        burst.source.as_sent = self.as_sent;
        for bytes in &mut self.sending {
            burst.push_private(bytes);
            burst.end_frame();
        }
        burst.frames.len() as u32
    }

    fn release(&mut self, _: usize) {
        self.sending.clear();
    }

    fn tx_rings(&self) -> usize {
        1
    }

    fn receives(&self) -> bool {
        true
    }

    fn deliver(
        &mut self,
        _: usize,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        let mut delivered = Delivered::default();
        for frame in frames {
            let mut bytes = vec![0; frame.len as usize];
            burst.gather(frame, Buf::of(&mut bytes));
            let mut script = self.script.lock().unwrap();
            if script.no_room_for == bytes.first().copied() {
                drops.ring_full += 1;
                continue;
            }
            delivered.add(frame.len);
            script.received.push((burst.source.header_len, bytes));
        }
        delivered
    }

    fn unsent(&mut self, drops: &mut Drops) -> Unsent {
        let mut script = self.script.lock().unwrap();
        let refused = std::mem::take(&mut script.refused);
        drops.ring_full += refused.packets;
        Unsent { refused, waiting: script.waiting }
    }

    fn discard(&mut self) {
        let mut script = self.script.lock().unwrap();
        let waiting = std::mem::take(&mut script.waiting);
        script.refused += waiting;
    }

    fn flush(&mut self, _: bool) {}

    fn count_lost(&mut self, drops: &mut Drops) {
        add(drops, &std::mem::take(&mut self.script.lock().unwrap().lost[1]));
    }
}

fn add(drops: &mut Drops, more: &Drops) {
    drops.ring_full += more.ring_full;
    drops.too_long += more.too_long;
    drops.too_short += more.too_short;
    drops.bad_offload += more.bad_offload;
    drops.bad_slot += more.bad_slot;
}

impl Backpressure for Scripted {}

impl Configure for Scripted {
    fn takes_headers(&self) -> bool {
        self.takes_headers
    }
}

impl Mirrored for Scripted {}

impl Wake for Scripted {
    fn arm(&mut self) {}

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    fn drain(&self) {
        self.doorbell.drain();
    }
}

fn stepped() -> SteppedBridge {
    SteppedBridge::new(&Forwarding::default(), Clock::new(|| 0)).unwrap()
}

fn frame(dst: [u8; 6], src: u8) -> Vec<u8> {
    [&header(dst, mac(src))[..], &[src; 46]].concat()
}

/// TCP over IPv4 of so many bytes.
fn tcp(payload: usize) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(mac(1), BROADCAST)
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .tcp(1, 2, 1000, 500);
    let payload: Vec<u8> = (0..payload).map(|i| (i * 7 / 4) as u8).collect();
    let mut frame = Vec::new();
    builder.write(&mut frame, &payload).unwrap();
    frame
}

/// A header that leaves segments of 1460 bytes to others.
const TSO: [u8; 12] = [1, 1, 0, 0, 0xb4, 0x05, 34, 0, 16, 0, 0, 0];

fn tagged(frame: &[u8], vid: u8) -> Vec<u8> {
    [&frame[..12], &[0x81, 0, 0, vid], &frame[12..]].concat()
}

/// A frame that the kernel cuts and sums is given to it whole, with the header that it understands, whether a tag goes
/// or not; what needs nothing of that goes without.
#[test]
fn what_the_kernel_finishes_is_not_cut() {
    let whole = tcp(3001);
    for (takes_headers, is_tagged, size) in [
        (true, false, 2000),
        (true, false, 700),
        (true, true, 2000),
        (false, false, 2000),
        (false, true, 700),
    ] {
        let mut bridge = stepped();
        let sender = Client::new([1, 1], [64, 64], 0);
        let vlan = |is_sender| match (is_tagged, is_sender) {
            (false, _) => Vlan::Unaware,
            (true, true) => Vlan::Trunk { allowed: [5].into(), native: None },
            (true, false) => Vlan::Access(5),
        };
        let config = PortConfig { header_len: 12, vlan: vlan(true), ..PortConfig::default() };
        bridge.attach(Box::new(sender.port()), config).unwrap();
        let script = Arc::new(Mutex::new(Script::default()));
        let port = Scripted { takes_headers, ..Scripted::new(&script) };
        let config = PortConfig { vlan: vlan(false), ..PortConfig::default() };
        bridge.attach(Box::new(port), config).unwrap();
        let (mut vnet, mut sent) = (TSO, whole.clone());
        if is_tagged {
            (vnet[6], sent) = (38, tagged(&whole, 5));
        }
        let plain = [
            &[0; 12][..],
            &if is_tagged { tagged(&whole[..200], 5) } else { whole[..200].to_vec() },
        ]
        .concat();
        for packet in [[&vnet[..], &sent].concat(), plain] {
            let pieces: Vec<_> = packet.chunks(size).collect();
            for (i, piece) in (1..).zip(&pieces) {
                let more = if i < pieces.len() { NS_MOREFRAG } else { 0 };
                sender.fill(0, piece, piece.len() as u16, more, None);
            }
        }
        sender.tx_sync(0);
        while bridge.round() {}
        let got = std::mem::take(&mut script.lock().unwrap().received);
        let case = format!("{takes_headers} {is_tagged} {size}");
        assert_eq!(got.last(), Some(&(0, whole[..200].to_vec())), "{case}");
        let totals = bridge.totals(1).unwrap();
        if takes_headers {
            let asked = Header::parse(&TSO).unwrap();
            let mut begin = whole.clone();
            let told = for_kernel(&asked, &mut begin, whole.len(), 1514, false).unwrap();
            assert_eq!(got[..1], [(10, [&told.emit()[..10], &begin].concat())], "{case}");
            assert_eq!((got.len(), totals.received_packets), (2, 2));
        } else {
            let lengths: Vec<_> =
                got.iter().map(|(header, bytes)| (*header, bytes.len())).collect();
            assert_eq!(lengths, [(0, 1514), (0, 1514), (0, 54 + 81), (0, 200)], "{case}");
        }
        assert_eq!((totals.drops, bridge.totals(0).unwrap().drops), Default::default());
    }
}

/// With a monitor, which sees what a wire would have, it is cut.
#[test]
fn a_monitor_sees_what_a_wire_would_have() {
    let mut bridge = stepped();
    let [sender, watch] = [(); 2].map(|()| Client::new([1, 1], [64, 64], 0));
    let config = PortConfig { header_len: 12, ..PortConfig::default() };
    bridge.attach(Box::new(sender.port()), config).unwrap();
    let script = Arc::new(Mutex::new(Script::default()));
    let port = Scripted { takes_headers: true, ..Scripted::new(&script) };
    let place = bridge.attach(Box::new(port), PortConfig::default()).unwrap();
    let init = RingInit { dir: Dir::Rx, ringid: 0, num_slots: 64 };
    let bufs: Vec<u32> = (66..130).collect();
    let ring = Kring::create(&watch.region, 1, &init, &bufs).unwrap();
    let mirror = Mirror::new(ring, Arc::new(Doorbell::new().unwrap()), MirrorMode::CopyReceived);
    bridge.set_mirrors(place, PortMirrors { tx: vec![], rx: vec![Mirrors::from_iter([mirror])] });
    let packet = [&TSO[..], &tcp(1900)].concat();
    sender.fill(0, &packet, packet.len() as u16, 0, None);
    sender.tx_sync(0);
    while bridge.round() {}
    let script = script.lock().unwrap();
    let got: Vec<_> =
        script.received.iter().map(|(header, bytes)| (*header, bytes.len())).collect();
    assert_eq!(got, [(0, 1514), (0, 54 + 440)]);
}

/// What an interface has sent, it has sent, also where it is lost on the way to the worker. What it was to send and
/// could not is lost by the same reason, and was not sent.
#[test]
fn what_is_lost_before_the_switch_was_sent() {
    let bridge = Bridge::start("vale-lost").unwrap();
    let script = Arc::new(Mutex::new(Script::default()));
    let counters = Arc::default();
    let port = Box::new(Scripted::new(&script));
    bridge.attach(port, PortConfig::default(), Arc::clone(&counters)).unwrap();
    let receiver = Client::new([1, 1], [64, 64], 0);
    receiver.attach(&bridge);
    {
        let mut script = script.lock().unwrap();
        let asked = Drops { too_long: 2, bad_offload: 3, too_short: 4, ..Drops::default() };
        // A broken descriptor is no frame.
        let counted = Drops { ring_full: 10, too_long: 20, bad_slot: 40, ..Drops::default() };
        script.lost = [asked, counted];
        script.refused = Delivered { packets: 100, bytes: 6000 };
        script.to_send.push_back(frame(BROADCAST, 1));
    }
    barrier(&bridge);
    bridge.count();
    let totals = counters.totals();
    assert_eq!((totals.sent_packets, totals.sent_bytes), (1 + 9 + 30, 60));
    assert_eq!((totals.drops.ring_full, totals.drops.too_long), (110, 22));
}

/// The header in front of a frame is no part of what the port has sent, whether a kernel has put it there or a program. What
/// was cut as the kernel says is cut so for all.
#[test]
fn a_header_is_no_part_of_the_frame() {
    for as_sent in [false, true] {
        let mut bridge = stepped();
        let script = Arc::new(Mutex::new(Script::default()));
        let port = Scripted { as_sent, ..Scripted::new(&script) };
        let config = PortConfig { header_len: 10, ..PortConfig::default() };
        bridge.attach(Box::new(port), config).unwrap();
        let receiver = Client::new([1, 1], [64, 64], 0);
        let config = PortConfig { max_frame: 2000, ..PortConfig::default() };
        bridge.attach(Box::new(receiver.port()), config).unwrap();
        let small = frame(BROADCAST, 1);
        let plain = [&[0; 10][..], &small].concat();
        script.lock().unwrap().to_send.extend([plain.clone(), vec![0; 5], plain]);
        while bridge.round() {}
        let totals = bridge.totals(0).unwrap();
        assert_eq!((totals.sent_packets, totals.drops.too_short), (3, 1));
        assert_eq!(totals.sent_bytes, 120);
        bridge.flush_idle();
        assert_eq!(bytes(receiver.receive(0, 9)), [small.clone(), small]);
        script.lock().unwrap().to_send.push_back([&TSO[..10], &tcp(3000)].concat());
        while bridge.round() {}
        bridge.flush_idle();
        let got: Vec<_> = bytes(receiver.receive(0, 9)).iter().map(|f| f.len() - 54).collect();
        assert_eq!(
            got,
            if as_sent { [1460, 1460, 80] } else { [1946, 1054, 0] }[..2 + usize::from(as_sent)]
        );
    }
}

/// An interface without a link, and a stack behind an interface that is set down, get nothing, and what is for them is counted.
#[test]
fn a_port_that_is_down_gets_nothing() {
    for (is_down, leads_on) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut bridge = stepped();
        let [sender, receiver] = [(); 2].map(|()| Client::new([1, 1], [64, 64], 0));
        bridge.attach(Box::new(sender.port()), PortConfig::default()).unwrap();
        let config = PortConfig { is_down, leads_on, ..PortConfig::default() };
        bridge.attach(Box::new(receiver.port()), config).unwrap();
        sender.send(&frame(BROADCAST, 1));
        while bridge.round() {}
        bridge.flush_idle();
        assert_eq!(receiver.receive(0, 9).len(), usize::from(!is_down), "{is_down} {leads_on}");
        assert_eq!(bridge.totals(0).unwrap().drops.no_destination, is_down.into());
    }
}

/// What an interface could not send was not received, and what waits has not been yet: that is lost when its link goes
/// down, and when the port does.
#[test]
fn what_the_kernel_refuses_is_counted_once() {
    let mut bridge = stepped();
    let sender = Client::new([1, 1], [64, 64], 0);
    bridge.attach(Box::new(sender.port()), PortConfig::default()).unwrap();
    let script = Arc::new(Mutex::new(Script::default()));
    let config = PortConfig { is_interface: true, ..PortConfig::default() };
    let nic = bridge.attach(Box::new(Scripted::new(&script)), config.clone()).unwrap();
    let frames = |packets| Delivered { packets, bytes: 60 * packets };
    let received = |bridge: &mut SteppedBridge, refused: u64, waiting: u64| {
        let mut script = script.lock().unwrap();
        (script.refused, script.waiting) = (frames(refused), frames(waiting));
        drop(script);
        bridge.flush_idle();
        let totals = bridge.totals(nic).unwrap();
        assert_eq!(totals.received_bytes, 60 * totals.received_packets);
        (totals.received_packets, totals.drops.ring_full)
    };
    for n in 0..5 {
        sender.send(&frame(BROADCAST, n));
    }
    while bridge.round() {}
    assert_eq!(received(&mut bridge, 0, 5), (0, 0));
    assert_eq!(received(&mut bridge, 0, 3), (2, 0));
    assert_eq!(received(&mut bridge, 1, 2), (2, 1));
    assert_eq!(received(&mut bridge, 0, 2), (2, 1));
    bridge.configure(nic, PortConfig { is_down: true, ..config });
    bridge.flush_idle();
    let totals = bridge.totals(nic).unwrap();
    assert_eq!((totals.received_packets, totals.drops.ring_full), (2, 3));
}

/// The worker's own frames, which look for loops, are in no counter: neither while they wait for the kernel among others,
/// nor when it has taken or refused them.
#[test]
fn frames_of_the_workers_own_are_not_counted() {
    const MANY: u64 = 1200;
    for is_refused in [false, true] {
        let mut bridge = stepped();
        let scripts = [(); 2].map(|()| Arc::new(Mutex::new(Script::default())));
        let [_, nic] = scripts.each_ref().map(|script| {
            let config = PortConfig { is_interface: true, ..PortConfig::default() };
            bridge.attach(Box::new(Scripted::new(script)), config).unwrap()
        });
        let behind =
            |packets, probe| Delivered { packets: packets + 1, bytes: packets * 60 + probe };
        scripts[1].lock().unwrap().waiting = behind(700, 60);
        scripts[0].lock().unwrap().to_send.extend((0..MANY).map(|_| frame(BROADCAST, 1)));
        while bridge.round() {}
        bridge.flush_idle();
        let mut counted = |waiting, refused| {
            let mut script = scripts[1].lock().unwrap();
            (script.waiting, script.refused) = (waiting, refused);
            drop(script);
            bridge.flush_idle();
            let totals = bridge.totals(nic).unwrap();
            [totals.received_packets, totals.received_bytes, totals.drops.ring_full]
        };
        let received = std::mem::take(&mut scripts[1].lock().unwrap().received);
        assert_eq!(received.len() as u64, MANY + 1);
        let probe = &received[MANY as usize].1;
        assert_eq!(probe[0], 0xcf, "the last is the worker's");
        let (probe, none) = (probe.len() as u64, Delivered::default());
        for left in [700, 3, 0] {
            let received = MANY - left;
            assert_eq!(counted(behind(left, probe), none), [received, received * 60, 0]);
        }
        let refused = if is_refused { behind(0, probe) } else { none };
        assert_eq!(counted(none, refused), [MANY, MANY * 60, 0]);
        // Others are in the counters again.
        let one = Delivered { packets: 1, bytes: 60 };
        assert_eq!(counted(one, none), [MANY - 1, (MANY - 1) * 60, 0]);
        assert_eq!(counted(none, one), [MANY - 1, (MANY - 1) * 60, 1]);
    }
}

/// Nor where the port has no room for them.
#[test]
fn frames_of_the_workers_own_without_room_are_not_counted() {
    const MANY: u64 = 1200;
    let mut bridge = stepped();
    let scripts = [(); 2].map(|()| Arc::new(Mutex::new(Script::default())));
    let [_, nic] = scripts.each_ref().map(|script| {
        script.lock().unwrap().no_room_for = Some(0xcf);
        let config = PortConfig { is_interface: true, ..PortConfig::default() };
        bridge.attach(Box::new(Scripted::new(script)), config).unwrap()
    });
    scripts[0].lock().unwrap().to_send.extend((0..MANY).map(|_| frame(BROADCAST, 1)));
    while bridge.round() {}
    bridge.flush_idle();
    let totals = bridge.totals(nic).unwrap();
    assert_eq!((totals.received_packets, totals.drops), (MANY, Drops::default()));
}

/// An interface is the owner's to close; a port of a client is let go of.
#[test]
fn an_interface_is_handed_over_when_it_leaves() {
    let bridge = Bridge::start("vale-handed").unwrap();
    let script = Arc::new(Mutex::new(Script::default()));
    let (client, doorbell) = (Client::new([1, 1], [64, 64], 0), Arc::new(Doorbell::new().unwrap()));
    for is_interface in [true, false] {
        let counters = Default::default();
        let place = match is_interface {
            true => {
                bridge.attach(Box::new(Scripted::new(&script)), PortConfig::default(), counters)
            }
            false => bridge.attach(Box::new(client.port()), PortConfig::default(), counters),
        };
        let leave = bridge.leave(place.unwrap(), None, Remainder::Forward, Some(doorbell.clone()));
        let draining = leave.unwrap();
        draining.wait();
        assert!(!draining.is_going_on() && doorbell.drain());
        assert_eq!(draining.into_port().is_some(), is_interface);
        assert!(bridge.leave(place.unwrap(), None, Remainder::Forward, None).is_none());
    }
    assert_eq!(Arc::strong_count(&client.receives), 1);
}

/// While there is work, some rounds are measured.
#[test]
fn rounds_are_measured() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let clock = Clock::new(|| 0).with_fine(|| 7 * NOW.fetch_add(1, Relaxed));
    let bridge = Bridge::start_with("vale-measured", &Forwarding::default(), clock).unwrap();
    let script = Arc::new(Mutex::new(Script { endless: true, ..Script::default() }));
    script.lock().unwrap().to_send.push_back(frame(mac(1), 1));
    let port = Box::new(Scripted::new(&script));
    let place = bridge.attach(port, PortConfig::default(), Default::default()).unwrap();
    let rounds = loop {
        let rounds = bridge.rounds();
        if rounds.counts.iter().sum::<u64>() > 2 && rounds.micros > 0 {
            break rounds;
        }
        thread::yield_now();
    };
    // Each look is 7 later than the one before.
    assert!(rounds.micros >= 7 && rounds.micros.is_multiple_of(7), "{rounds:?}");
    assert_eq!(rounds.counts[..2], [0, 0]);
    script.lock().unwrap().endless = false;
    bridge.detach(place);
}

/// A worker that cannot be confined has no bridge. What is said first counts.
#[test]
fn a_worker_is_confined_before_it_has_ports() {
    confine_workers(|| match thread::current().name() {
        Some("vale-refused") => Err(io::ErrorKind::PermissionDenied.into()),
        _ => Ok(()),
    });
    confine_workers(|| Err(io::ErrorKind::OutOfMemory.into()));
    let refused = Bridge::start("vale-refused").map(drop);
    assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert!(Bridge::start("vale-confined").is_ok());
}

/// By the kernel's clock, too: a worker that sleeps wakes up when patience ends, and the sender that waits hears of it.
#[test]
fn patience_ends_by_the_kernels_clock() {
    let bridge = Bridge::start("vale-patience").unwrap();
    let [sender, receiver] = [64, 8].map(|slots| Client::new([1, 1], [64, slots], 0));
    sender.attach(&bridge);
    let lossless = Some(Lossless { patience_ms: 1 });
    let config = PortConfig { lossless, ..PortConfig::default() };
    let (_, counters) = receiver.attach_as(&bridge, config);
    for number in 0..10 {
        sender.send(&frame(BROADCAST, number));
    }
    sender.drained(0);
    barrier(&bridge);
    assert_eq!(counters.totals().drops.ring_full, 3);
    assert_eq!(receiver.receive(0, 99).len(), 7);
}

/// A program reads what was lost on the way to it; its successor reads what was lost since.
#[test]
fn a_program_is_told_what_it_has_lost() {
    let bridge = Bridge::start("vale-lost").unwrap();
    let sender = Client::new([1, 1], [64, 64], 0);
    let [receiver, next] = [(); 2].map(|()| Client::new([1, 1], [64, 8], 256));
    let next = next.with_bell_of(&receiver);
    sender.attach(&bridge);
    let (place, counters) = receiver.attach(&bridge);
    let lost = |client: &Client| client.rx[0].csb().service.lost();
    let send = |frames: u8, length: usize| {
        for number in 0..frames {
            let mut frame = frame(BROADCAST, number);
            frame.resize(length, 0);
            sender.send(&frame);
        }
        sender.drained(0);
        barrier(&bridge);
    };
    send(2, 2000);
    assert_eq!(lost(&receiver), [0, 2]);
    send(10, 60);
    assert_eq!(lost(&receiver), [3, 2]);
    send(4, 60);
    assert_eq!(lost(&receiver), [7, 2]);
    assert!(bridge.replace(place, Box::new(next.port())));
    assert!(!bridge.replace(99, Box::new(receiver.port())));
    send(1, 2000);
    send(8, 60);
    assert_eq!((lost(&receiver), lost(&next)), ([7, 2], [1, 1]));
    let drops = counters.totals().drops;
    assert_eq!((drops.ring_full, drops.too_long), (8, 3), "it goes on where the other has stopped");
}

/// A bridge without a thread does what one with a thread does.
#[test]
fn a_bridge_is_stepped() {
    let mut bridge = stepped();
    let clients: [Client; 3] = std::array::from_fn(|_| Client::new([1, 1], [64, 64], 0));
    let places = clients
        .each_ref()
        .map(|client| bridge.attach(Box::new(client.port()), PortConfig::default()).unwrap());
    assert_eq!(places, [0, 1, 2]);
    assert!(bridge.totals(3).is_none() && bridge.state(3).is_none());
    assert!(!bridge.configure(3, PortConfig::default()) && bridge.detach(3).is_none());
    let heard = |bridge: &mut SteppedBridge, from: usize, dst: [u8; 6]| {
        clients[from].send(&frame(dst, from as u8));
        while bridge.round() {}
        bridge.flush_idle();
        clients[from].tx_sync(0);
        clients.each_ref().map(|client| bytes(client.receive(0, 9)).len())
    };
    assert_eq!(heard(&mut bridge, 0, mac(1)), [0, 1, 1], "not learned yet");
    assert_eq!(heard(&mut bridge, 1, mac(0)), [1, 0, 0]);
    assert_eq!(heard(&mut bridge, 0, mac(1)), [0, 1, 0]);
    let all = AddressFilter::default();
    assert_eq!((bridge.flush_learned(&all), bridge.flush_learned(&all)), (2, 0));
    assert_eq!(heard(&mut bridge, 0, mac(1)), [0, 1, 1]);
    bridge.set_static_addresses(vec![StaticAddress { mac: mac(1), vlan: 0, port: 2 }]);
    assert_eq!(heard(&mut bridge, 0, mac(1)), [0, 0, 1]);
    bridge.set_forwarding(&Forwarding::Flood);
    assert_eq!(heard(&mut bridge, 0, mac(1)), [0, 1, 1]);
    assert_eq!(bridge.flush_learned(&all), 0, "a hub learns nothing");
    bridge.set_offsets(1, Dir::Rx, 0, Some(Offsets { mask: 0xff, max: 128, gap: 0 }));
    let ring = clients[1].rx[0].ring();
    let (at, sent) = (ring.tail(), frame(mac(1), 0));
    ring.set_slot_ptr(at, 64);
    clients[0].send(&sent);
    while bridge.round() {}
    let slot = ring.slot(at);
    let data = ring.buf(slot.buf_idx).unwrap().skip((slot.ptr & 0xff) as u32).unwrap();
    let mut got = vec![0; sent.len()];
    data.copy_to(got.len(), &mut got);
    assert!(slot.ptr & 0xff >= 64 && got == sent, "{:x}", slot.ptr);
    assert!(bridge.configure(2, PortConfig { isolated: true, ..PortConfig::default() }));
    drop(bridge.detach(2).unwrap());
    assert!(bridge.totals(2).is_none());
    assert_eq!(bridge.totals(0).unwrap().sent_packets, 6);
}
