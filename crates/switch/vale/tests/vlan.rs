//! VLANs, against a model that works on whole frames: who receives what, with which tag, and
//! what is counted.

mod common;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use common::{BROADCAST, Client, Piece, barrier, bytes, header, mac, watched::Watched};
use proptest::{collection::vec, prelude::*, sample::select};
use ringway_abi::{Dir, NS_MOREFRAG};
use ringway_kring::Offsets;
use ringway_switch_port::{Burst, Drops, Frame};
use ringway_vale::{
    Bridge, Clock, Forwarding, Lossless, PortConfig, PortCounters, SteppedBridge, Vlan,
};
use ringway_vnet::{Header, Output, consume};

const PORTS: usize = 5;
const VIDS: [u16; 4] = [1, 2, 300, 4094];

fn vlan() -> impl Strategy<Value = Vlan> {
    let vid = || select(&VIDS);
    let trunk = (prop::collection::btree_set(vid(), 0..4), prop::option::of(vid()));
    prop_oneof![
        1 => Just(Vlan::Unaware),
        2 => vid().prop_map(Vlan::Access),
        2 => trunk.prop_map(|(allowed, native)| Vlan::Trunk { allowed, native }),
    ]
}

#[derive(Clone, Debug)]
enum Op {
    Send { from: usize, dst: u8, tags: Vec<u16>, len: usize, cut: usize },
    Configure { port: usize, vlan: Vlan },
}

fn op() -> impl Strategy<Value = Op> {
    // Priority and drop eligibility above the number.
    let vid = prop_oneof![8 => select(&VIDS), 1 => Just(0), 1 => Just(4095)];
    let tci = (vid, 0u16..16).prop_map(|(vid, priority)| priority << 12 | vid);
    let send = (0..PORTS, 0..PORTS as u8 + 1, vec(tci, 0..3), 0usize..100, 14usize..60);
    prop_oneof![
        20 => send.prop_map(|(from, dst, tags, len, cut)| Op::Send { from, dst, tags, len, cut }),
        1 => (0..PORTS, vlan()).prop_map(|(port, vlan)| Op::Configure { port, vlan }),
    ]
}

/// The first tag, if there is one.
fn tci(frame: &[u8]) -> Option<u16> {
    (frame.get(12..14)? == [0x81, 0]).then(|| u16::from_be_bytes([frame[14], frame[15]]))
}

/// The VLAN of a frame that comes from such a port, unless it must not.
fn ingress(vlan: &Vlan, frame: &[u8]) -> Option<u16> {
    match (vlan, tci(frame).unwrap_or(0) & 0xfff) {
        (_, 4095) => None,
        (Vlan::Unaware, vid) => Some(vid),
        (Vlan::Access(own), 0) => Some(*own),
        (Vlan::Access(_), _) => None,
        (Vlan::Trunk { native, .. }, 0) => *native,
        (Vlan::Trunk { allowed, .. }, vid) => allowed.contains(&vid).then_some(vid),
    }
}

/// Whether a port receives the frames of a VLAN with their tags, if it does at all.
fn egress(vlan: &Vlan, vid: u16) -> Option<bool> {
    match vlan {
        Vlan::Unaware => Some(vid != 0),
        Vlan::Access(own) => (vid == *own).then_some(false),
        Vlan::Trunk { native, .. } if *native == Some(vid) => Some(false),
        Vlan::Trunk { allowed, .. } => allowed.contains(&vid).then_some(true),
    }
}

/// The frame as it arrives.
fn dressed(frame: &[u8], vid: u16, tagged: bool) -> Vec<u8> {
    let mut frame = frame.to_vec();
    match (tagged, tci(&frame)) {
        (true, None) => {
            frame.splice(12..12, [0x81, 0, (vid >> 8) as u8, vid as u8]);
        }
        (true, Some(tci)) => {
            let named = tci & 0xf000 | vid;
            frame.splice(14..16, named.to_be_bytes());
        }
        (false, Some(_)) if vid != 0 => drop(frame.drain(12..16)),
        (false, _) => {}
    }
    frame
}

struct World {
    bridge: Bridge,
    clients: Vec<Client>,
    counters: Vec<Arc<PortCounters>>,
    vlans: Vec<Vlan>,
    /// Where an address of a VLAN is.
    table: HashMap<([u8; 6], u16), usize>,
    drops: Vec<u64>,
}

impl World {
    fn new(vlans: Vec<Vlan>) -> World {
        let bridge = Bridge::start("vale-vlan").unwrap();
        let clients: Vec<_> = vlans.iter().map(|_| Client::new([1, 1], [64, 64], 0)).collect();
        let config = |vlan: &Vlan| PortConfig { vlan: vlan.clone(), ..PortConfig::default() };
        let attach = |(client, vlan): (&Client, _)| client.attach_as(&bridge, config(vlan)).1;
        let counters = clients.iter().zip(&vlans).map(attach).collect();
        let (table, drops) = (HashMap::new(), vec![0; vlans.len()]);
        World { bridge, clients, counters, vlans, table, drops }
    }

    fn configure(&mut self, port: usize, vlan: Vlan) {
        let config = PortConfig { vlan: vlan.clone(), ..PortConfig::default() };
        assert!(self.bridge.configure(port as u8, config));
        if std::mem::replace(&mut self.vlans[port], vlan.clone()) != vlan {
            self.table.retain(|_, at| *at != port);
        }
    }

    /// Sends a frame, in two slots if it is longer than `cut`; returns who receives what.
    fn send(&self, from: usize, frame: &[u8], cut: usize) -> Vec<Vec<Vec<u8>>> {
        let (first, second) = frame.split_at(cut.min(frame.len()));
        let more = if second.is_empty() { 0 } else { NS_MOREFRAG };
        let client = &self.clients[from];
        client.fill(0, first, first.len() as u16, more, None);
        if more != 0 {
            client.fill(0, second, second.len() as u16, 0, None);
        }
        client.tx_sync(0);
        client.drained(0);
        barrier(&self.bridge);
        self.clients.iter().map(|client| bytes(client.receive(0, usize::MAX))).collect()
    }

    /// What is to be received.
    fn model(&mut self, from: usize, frame: &[u8], cut: usize) -> Vec<Vec<Vec<u8>>> {
        let mut received = vec![vec![]; self.vlans.len()];
        // Nobody looks at tags where no port is told about VLANs.
        let matters = self.vlans.iter().any(|vlan| *vlan != Vlan::Unaware);
        let whole = tci(frame).is_none() || cut.min(frame.len()) >= 18;
        let vid =
            if matters { ingress(&self.vlans[from], frame).filter(|_| whole) } else { Some(0) };
        let Some(vid) = vid else {
            self.drops[from] += 1;
            return received;
        };
        let address = |at: usize| <[u8; 6]>::try_from(&frame[at..at + 6]).unwrap();
        self.table.insert((address(6), vid), from);
        let known = self.table.get(&(address(0), vid)).copied();
        for to in (0..self.vlans.len()).filter(|to| *to != from && known.is_none_or(|k| k == *to)) {
            let Some(tagged) = egress(&self.vlans[to], vid) else { continue };
            let frame = if matters { dressed(frame, vid, tagged) } else { frame.to_vec() };
            received[to].push(frame);
        }
        received
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn frames_stay_in_their_vlans(vlans in vec(vlan(), PORTS), ops in vec(op(), 1..40)) {
        let mut world = World::new(vlans);
        for op in ops {
            match op {
                Op::Configure { port, vlan } => world.configure(port, vlan),
                Op::Send { from, dst, tags, len, cut } => {
                    let dst = if usize::from(dst) < PORTS { mac(dst) } else { BROADCAST };
                    let mut frame = [dst, mac(from as u8)].concat();
                    for tci in tags {
                        frame.extend([&[0x81, 0], &tci.to_be_bytes()[..]].concat());
                    }
                    frame.extend([0x12, 0x34]);
                    frame.extend((0..len).map(|i| i as u8));
                    let expected = world.model(from, &frame, cut);
                    prop_assert_eq!(world.send(from, &frame, cut), expected);
                }
            }
            for (counters, drops) in world.counters.iter().zip(&world.drops) {
                prop_assert_eq!(counters.totals().drops.vlan, *drops);
            }
        }
    }
}

fn trunk(allowed: &[u16], native: Option<u16>) -> Vlan {
    Vlan::Trunk { allowed: allowed.iter().copied().collect::<BTreeSet<_>>(), native }
}

/// The whole way, by hand: access to trunk to access, and no way into another VLAN.
#[test]
fn a_tag_comes_on_and_goes_off() {
    let world = World::new(vec![
        Vlan::Access(10),
        trunk(&[10, 20], None),
        Vlan::Access(20),
        Vlan::Access(10),
    ]);
    let plain = [&header(BROADCAST, mac(0))[..], &[1, 2, 3]].concat();
    let tagged = |tci: u16| {
        let mut frame = plain.clone();
        frame.splice(12..12, [0x81, 0, (tci >> 8) as u8, tci as u8]);
        frame
    };
    let none = Vec::<Vec<u8>>::new;
    assert_eq!(world.send(0, &plain, 99), [none(), vec![tagged(10)], none(), vec![plain.clone()]]);
    // Priority 5 stays where there is a tag to carry it.
    let urgent = world.send(0, &tagged(0xa000), 99);
    assert_eq!(urgent[1], [tagged(0xa00a)]);
    assert_eq!(world.send(1, &tagged(0xa014), 99), [none(), none(), vec![plain.clone()], none()]);
    // A tag of one's own is no way into another VLAN.
    assert_eq!(world.send(0, &tagged(20), 99).concat(), none());
    assert_eq!(world.counters[0].totals().drops.vlan, 1);
    // A customer's tag stays behind the switch's, which goes off, in any VLAN.
    let mut double = tagged(7);
    double.splice(12..12, [0x81, 0, 0, 20]);
    assert_eq!(world.send(1, &double, 99), [none(), none(), vec![tagged(7)], none()]);
    assert_eq!(world.counters[2].totals().drops.vlan, 0);
}

/// Two ports in VLAN 10, with virtio-net headers of these lengths: an access port, and a trunk with so many free slots.
struct Tagging {
    bridge: Bridge,
    access: Client,
    trunk: Client,
    counters: Arc<PortCounters>,
}

/// The name of the switch whose trunk is lossless.
const LOSSLESS: &str = "vale-tag-ll";

impl Tagging {
    fn new(headers: [u8; 2], free: u32, lossless: bool) -> Tagging {
        let bridge = Bridge::start(if lossless { LOSSLESS } else { "vale-tagging" }).unwrap();
        let [access, trunk] = [256, free + 1].map(|rx| Client::new([1, 1], [256, rx], 0));
        let vlans = [Vlan::Access(10), self::trunk(&[10], None)];
        let mut configs = Vec::new();
        for (vlan, header_len) in vlans.into_iter().zip(headers) {
            configs.push(PortConfig { vlan, header_len, ..PortConfig::default() });
        }
        configs[1].lossless = lossless.then(Lossless::default);
        let [_, counters] = [&access, &trunk].map(|client| {
            let config = configs.remove(0);
            client.attach_as(&bridge, config).1
        });
        Tagging { bridge, access, trunk, counters }
    }

    /// Sends a packet in slots of these bytes.
    fn send(&self, slots: &[&[u8]]) {
        for (i, bytes) in (1..).zip(slots) {
            let more = if i < slots.len() { NS_MOREFRAG } else { 0 };
            self.access.fill(0, bytes, bytes.len() as u16, more, None);
        }
        self.access.tx_sync(0);
    }

    /// The slots of each packet at the trunk, once all that was sent has gone.
    fn received(&self) -> Vec<Vec<Piece>> {
        self.access.drained(0);
        barrier(&self.bridge);
        self.trunk.receive(0, usize::MAX)
    }

    fn drops(&self) -> Drops {
        self.counters.totals().drops
    }
}

/// A frame of so many bytes for all, as the access port sends it and as the trunk gets it.
fn tagged(len: usize) -> [Vec<u8>; 2] {
    let mut frame = header(BROADCAST, mac(0)).to_vec();
    frame.extend((0..len - 14).map(|i| (i % 251) as u8));
    let tagged = [&frame[..12], &[0x81, 0, 0, 10], &frame[12..]].concat();
    [frame, tagged]
}

/// The flags that slots of one packet have.
fn flags_are_right(packet: &[Piece]) -> bool {
    let count = packet.len() as u16;
    (1..)
        .zip(packet)
        .all(|(i, (_, flags))| *flags == count << 8 | if i < count { NS_MOREFRAG } else { 0 })
}

/// A tag takes room in the first slot. What it pushes out has a slot of its own, with headers of all lengths: the packet arrives
/// whole.
#[test]
fn a_tag_pushes_the_end_of_a_full_slot_into_one_more() {
    for headers in [[0, 0], [12, 12], [10, 10], [0, 12], [12, 0], [10, 12]] {
        let world = Tagging::new(headers, 255, false);
        let [from, to] = headers.map(usize::from);
        let sent_header = vec![0; from];
        let check = |slots: &[&[u8]], expected: &[u8], at_least: usize| {
            world.send(slots);
            let received = world.received();
            let lens: Vec<_> = slots.iter().map(|slot| slot.len()).collect();
            let [packet] = &received[..] else {
                panic!("{headers:?} {lens:?} {:?}", world.drops())
            };
            let bytes = packet.iter().flat_map(|(bytes, _)| bytes).copied().collect::<Vec<u8>>();
            assert!(bytes[..to].iter().all(|byte| *byte == 0));
            assert!(bytes[to..] == *expected, "{headers:?} {lens:?}");
            assert!(flags_are_right(packet) && packet.len() >= at_least, "{headers:?} {lens:?}");
        };
        for len in [1500, 2032, 2036, 2044, 2045, 2048 - from, 9000, 65_549] {
            let [frame, expected] = tagged(len);
            let whole = [&sent_header[..], &frame].concat();
            let slots: Vec<_> = whole.chunks(2048).collect();
            check(&slots, &expected, slots.len());
            if from > 0 {
                let slots: Vec<_> =
                    std::iter::once(&sent_header[..]).chain(frame.chunks(2048)).collect();
                check(&slots, &expected, slots.len() - 1);
            }
        }
        assert_eq!(world.drops(), Drops::default());
    }
    // The usual frame, and that which just fits with its tag, have a slot as before.
    let world = Tagging::new([0, 0], 255, false);
    for (len, lens) in [(60, &[64][..]), (2044, &[2048]), (2045, &[2048, 1]), (2048, &[2048, 4])] {
        world.send(&[&tagged(len)[0]]);
        let received = world.received();
        assert_eq!(received[0].iter().map(|(bytes, _)| bytes.len()).collect::<Vec<_>>(), lens);
    }
}

/// A machine leaves sums to others by an offset from the frame's beginning, which a tag moves; also where the header has
/// a slot of its own.
#[test]
fn a_tag_moves_what_the_header_points_at() {
    for apart in [false, true] {
        let world = Tagging::new([12, 12], 255, false);
        let header = [1, 0, 0, 0, 0, 0, 34, 0, 16, 0, 0, 0];
        let [frame, expected] = tagged(300);
        match apart {
            true => world.send(&[&header, &frame]),
            false => world.send(&[&[&header[..], &frame].concat()]),
        }
        let received = bytes(world.received()).concat();
        assert_eq!(received[..12], [1, 0, 0, 0, 0, 0, 38, 0, 16, 0, 0, 0], "apart: {apart}");
        assert!(received[12..] == expected);
    }
}

/// Also where the switch does what the header asks for.
#[test]
fn a_sum_is_completed_in_what_a_tag_pushes_out() {
    let header = [1, 0, 0, 0, 0, 0, 34, 0, 16, 0, 0, 0];
    for len in [300, 2036, 2048, 9000] {
        let [frame, _] = tagged(len);
        let mut summed = frame.clone();
        let parsed = Header::parse(&header).unwrap();
        assert_eq!(consume(&parsed, &mut summed, 1514, &mut []), Ok(Output::InPlace));
        summed.splice(12..12, [0x81, 0, 0, 10]);
        let world = Tagging::new([12, 0], 255, false);
        let slots: Vec<_> = std::iter::once(&header[..]).chain(frame.chunks(2048)).collect();
        world.send(&slots);
        let whole = [&header, &frame[..]].concat();
        world.send(&whole.chunks(2048).collect::<Vec<_>>());
        assert!(bytes(world.received()) == [&summed[..]; 2], "{len}");
        assert_eq!(world.drops(), Drops::default());
    }
}

/// Where the ring has no room for the slot more, the packet is lost as others are (S-VALE-10), and those behind it.
#[test]
fn a_full_ring_has_no_room_for_what_a_tag_pushes_out() {
    let [frame, expected] = tagged(2 * 2048);
    let (first, second) = frame.split_at(2048);
    let world = Tagging::new([0, 0], 3, false);
    world.send(&[first, second]);
    assert!(bytes(world.received()) == [expected]);
    // In one burst.
    for slots in [&[&frame[..60]][..], &[first, second], &[&frame[..60]]] {
        for (i, bytes) in (1..).zip(slots) {
            let more = if i < slots.len() { NS_MOREFRAG } else { 0 };
            world.access.fill(0, bytes, bytes.len() as u16, more, None);
        }
    }
    world.access.tx_sync(0);
    assert_eq!(world.received().len(), 1);
    assert_eq!(world.drops(), Drops { ring_full: 2, ..Drops::default() });
    // A packet that no such ring holds says nothing of those behind it.
    let world = Tagging::new([0, 0], 2, false);
    world.send(&[first, second]);
    world.send(&[&frame[..60]]);
    assert_eq!(world.received().len(), 1);
    assert_eq!(world.drops(), Drops { ring_full: 1, ..Drops::default() });
}

/// No packet has more than 64 slots.
#[test]
fn a_packet_of_64_slots_has_none_for_what_a_tag_pushes_out() {
    for headers in [[0, 0], [12, 12]] {
        let world = Tagging::new(headers, 255, false);
        let [frame, _] = tagged(2048);
        let mut first = vec![0; headers[0].into()];
        first.extend(&frame[..2048 - first.len()]);
        let mut slots = vec![&[1; 20][..]; 64];
        slots[0] = &first;
        world.send(&slots);
        assert_eq!(world.received().len(), 0);
        assert_eq!(world.drops(), Drops { too_long: 1, ..Drops::default() });
        world.send(&slots[..63]);
        assert_eq!(world.received()[0].len(), 64);
    }
}

/// The sender to a lossless trunk waits for the slot more.
#[test]
fn a_lossless_port_has_the_slot_for_what_a_tag_pushes_out() {
    for headers in [[0, 0], [12, 12]] {
        let world = Tagging::new(headers, 5, true);
        let [frame, expected] = tagged(3000);
        let whole = [&vec![0; headers[0].into()][..], &frame].concat();
        let (first, second) = whole.split_at(2048);
        world.send(&[first, second]);
        world.access.drained(0);
        world.send(&[first, second]);
        barrier(&world.bridge);
        common::until_asleep(LOSSLESS);
        assert_eq!(world.trunk.receive(0, usize::MAX).len(), 1, "two slots are free");
        let mut received = bytes(world.received());
        assert!(received.pop().unwrap()[headers[1].into()..] == expected);
        assert_eq!(world.drops(), Drops::default());
    }
}

/// Where the receiver's data begins at an offset, its slots have less room.
#[test]
fn a_tag_pushes_out_of_a_slot_with_an_offset() {
    let world = Tagging::new([0, 0], 255, false);
    let offsets = Offsets { mask: 0xfff, max: 128, gap: 1000 };
    world.bridge.set_offsets(1, Dir::Rx, 0, Some(offsets));
    for (len, lens) in [(996, &[1000][..]), (997, &[1000, 1]), (1000, &[1000, 4]), (1001, &[])] {
        world.send(&[&tagged(len)[0]]);
        world.access.drained(0);
        barrier(&world.bridge);
        let view = world.trunk.rx[0].ring();
        let before = view.head();
        let received = world.trunk.receive(0, usize::MAX);
        let got = received.iter().flatten().map(|(bytes, _)| bytes.len()).collect::<Vec<_>>();
        assert_eq!(got, lens);
        let mut bytes = Vec::new();
        for (i, len) in (0..).zip(lens) {
            let slot = view.slot(view.advance(before, i));
            let mut part = vec![0; *len];
            let begin = view.buf(slot.buf_idx).unwrap().skip(offsets.read(slot.ptr)).unwrap();
            begin.copy_to(*len, &mut part);
            bytes.extend(part);
        }
        assert!(lens.is_empty() || bytes == tagged(len)[1], "{len}");
    }
    assert_eq!(world.drops(), Drops { too_long: 1, ..Drops::default() });
}

/// Where no frame of a burst has a tag, and the receiver gets none, frames are handed over as they are.
#[test]
fn frames_that_need_no_tag_are_not_copied() {
    let tagged = |frame: &[u8], vid: u8| [&frame[..12], &[0x81, 0, 0, vid], &frame[12..]].concat();
    let plain = [&header(BROADCAST, mac(1))[..], &[0; 46]].concat();
    let trunk = |native| Vlan::Trunk { allowed: [5].into(), native };
    for (from, to, frames, expected) in [
        (Vlan::Access(5), Vlan::Access(5), [&plain[..], &plain], [2, 0]),
        (Vlan::Access(5), trunk(Some(5)), [&plain, &plain], [2, 0]),
        (Vlan::Access(5), trunk(None), [&plain, &plain], [0, 2]),
        (trunk(Some(5)), Vlan::Access(5), [&plain, &tagged(&plain, 5)], [0, 2]),
        (trunk(Some(5)), Vlan::Access(5), [&tagged(&plain, 0), &tagged(&plain, 5)], [0, 2]),
        (Vlan::Unaware, Vlan::Unaware, [&tagged(&plain, 0), &tagged(&plain, 0)], [0, 2]),
    ] {
        let mut bridge = SteppedBridge::new(&Forwarding::default(), Clock::new(|| 0)).unwrap();
        let [sender, receiver, other] = [(); 3].map(|()| Client::new([1, 1], [16, 16], 0));
        let with = |vlan: &Vlan| PortConfig { vlan: vlan.clone(), ..PortConfig::default() };
        bridge.attach(Box::new(sender.port()), with(&from)).unwrap();
        // Frames that the burst has, and that were copied for the receiver.
        let count: Arc<[AtomicUsize; 2]> = Arc::default();
        let noted = count.clone();
        let look = move |frames: &[Frame], burst: &Burst<'_>| {
            let is_copied = !burst.frames().as_ptr_range().contains(&frames.as_ptr());
            noted[usize::from(is_copied)].fetch_add(frames.len(), Relaxed);
        };
        let port = Watched { port: receiver.port(), look };
        bridge.attach(Box::new(port), with(&to)).unwrap();
        // Some port is told of VLANs.
        bridge.attach(Box::new(other.port()), with(&Vlan::Access(7))).unwrap();
        for frame in frames {
            sender.fill(0, frame, frame.len() as u16, 0, None);
        }
        sender.tx_sync(0);
        bridge.round();
        bridge.flush_idle();
        assert_eq!([0, 1].map(|i| count[i].load(Relaxed)), expected, "{from:?} to {to:?}");
        let got = bytes(receiver.receive(0, usize::MAX));
        let wanted = frames.map(|frame| {
            let vid = ingress(&from, frame).unwrap();
            dressed(frame, vid, egress(&to, vid).unwrap())
        });
        assert_eq!(got, wanted, "{from:?} to {to:?}");
    }
}
