//! Ports with virtio-net headers (S-VHDR-1 to 3): what each of them sees of what another sends.

mod common;

use std::sync::Arc;

use common::{BROADCAST, Client, Piece, barrier, header, mac};
use etherparse::{PacketBuilder, PacketHeaders, TransportHeader};
use proptest::{collection::vec, prelude::*};
use ringway_abi::NS_MOREFRAG;
use ringway_switch_port::Drops;
use ringway_vale::{Bridge, PortConfig, PortCounters};

const LENGTHS: [u8; 3] = [0, 10, 12];

/// A header that asks for nothing, and yet has no two bytes alike.
const PLAIN: [u8; 12] = [2, 0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

/// A bridge and its ports.
struct World {
    bridge: Bridge,
    clients: Vec<Client>,
    counters: Vec<Arc<PortCounters>>,
}

impl World {
    /// Ports with headers of these lengths, and receive rings of so many slots.
    fn new(ports: &[(u8, u32)]) -> World {
        let bridge = Bridge::start("vale-vnet").unwrap();
        let clients: Vec<_> =
            ports.iter().map(|&(_, slots)| Client::new([1, 1], [128, slots], 0)).collect();
        let attach = |(client, &(header_len, _)): (&Client, &(u8, u32))| {
            client.attach_as(&bridge, PortConfig { header_len, ..PortConfig::default() }).1
        };
        let counters = clients.iter().zip(ports).map(attach).collect();
        World { bridge, clients, counters }
    }

    /// Sends one packet in slots of these bytes.
    fn send(&self, port: usize, slots: &[&[u8]]) {
        let client = &self.clients[port];
        for (i, bytes) in (1..).zip(slots) {
            let more = if i < slots.len() { NS_MOREFRAG } else { 0 };
            client.fill(0, bytes, bytes.len() as u16, more, None);
        }
        client.tx_sync(0);
        client.drained(0);
        barrier(&self.bridge);
    }

    fn received(&self, port: usize) -> Vec<Vec<Piece>> {
        self.clients[port].receive(0, usize::MAX)
    }

    fn drops(&self, port: usize) -> Drops {
        self.counters[port].totals().drops
    }
}

fn join(slots: &[&[u8]]) -> Vec<u8> {
    slots.concat()
}

/// A packet as its slots: bytes and flags.
fn pieces(slots: &[&[u8]]) -> Vec<Piece> {
    let count = slots.len();
    let flags = |i| (count as u16) << 8 | if i + 1 < count { NS_MOREFRAG } else { 0 };
    slots.iter().enumerate().map(|(i, bytes)| (bytes.to_vec(), flags(i))).collect()
}

/// The header that a port with `to` bytes of it gets from one with `from`, which sent [`PLAIN`].
fn header_between(from: u8, to: u8) -> Vec<u8> {
    let mut header = vec![0; to.into()];
    let common = if from == to { from } else { from.min(to).min(10) };
    header[..common.into()].copy_from_slice(&PLAIN[..common.into()]);
    header
}

#[test]
fn s_vhdr_3_every_pair_of_lengths() {
    let (begin, second, third) = (header(BROADCAST, mac(1)), [0x22; 700], [0x33; 1]);
    for from in LENGTHS {
        let world = World::new(&[(from, 64), (0, 64), (10, 64), (12, 64), (from, 64)]);
        let sent = &PLAIN[..from.into()];
        let whole = [sent, &begin, &second].concat();
        world.send(0, &[&whole]);
        world.send(0, &[&join(&[sent, &begin]), &second, &third]);
        if from > 0 {
            world.send(0, &[sent, &begin, &second]);
            world.send(0, &[sent, &join(&[&begin, &second])]);
        }
        for (port, to) in [(1, 0), (2, 10), (3, 12), (4, from)] {
            let head = &header_between(from, to)[..];
            let mut expected = vec![
                pieces(&[&join(&[head, &begin, &second])]),
                pieces(&[&join(&[head, &begin]), &second, &third]),
            ];
            if from > 0 && to > 0 {
                expected.push(pieces(&[head, &begin, &second]));
                expected.push(pieces(&[head, &join(&[&begin, &second])]));
            } else if from > 0 {
                expected.push(pieces(&[&begin, &second]));
                expected.push(pieces(&[&join(&[&begin, &second])]));
            }
            assert_eq!(world.received(port), expected, "from {from} to {to}");
        }
        assert_eq!(world.drops(0), Drops::default());
    }
}

#[test]
fn s_vhdr_2_headers_are_whole_in_the_first_slot() {
    for length in [10, 12] {
        let world = World::new(&[(length, 64), (length, 64), (0, 64)]);
        let sent = &PLAIN[..length.into()];
        let frame = header(BROADCAST, mac(1));
        let short: [&[&[u8]]; 5] = [
            &[&sent[1..]],
            &[&sent[1..], &frame],
            &[sent],
            &[&join(&[sent, &frame[1..]])],
            &[sent, &frame[1..]],
        ];
        for (n, slots) in (1..).zip(short) {
            world.send(0, slots);
            assert_eq!(world.drops(0), Drops { too_short: n, ..Drops::default() });
        }
        world.send(0, &[&join(&[sent, &frame])]);
        assert_eq!(world.received(1), [pieces(&[&join(&[sent, &frame])])]);
        assert_eq!(world.received(2), [pieces(&[&frame])]);
    }
}

/// Addresses are behind the header, for learning and for looking up.
#[test]
fn s_vhdr_2_addresses_are_behind_the_header() {
    let world = World::new(&[(12, 64), (0, 64), (10, 64)]);
    world.send(0, &[&join(&[&[0; 12], &header(mac(9), mac(1))])]);
    world.send(1, &[&header(mac(9), mac(2))]);
    (0..3).for_each(|port| drop(world.received(port)));
    world.send(1, &[&header(mac(1), mac(2))]);
    assert_eq!(world.received(0), [pieces(&[&join(&[&[0; 12], &header(mac(1), mac(2))])])]);
    world.send(0, &[&[0; 12], &header(mac(2), mac(1))]);
    assert_eq!(world.received(1), [pieces(&[&header(mac(2), mac(1))])]);
    assert_eq!(world.received(2), Vec::<Vec<Piece>>::new());
}

#[test]
fn s_vhdr_1_the_length_may_change() {
    let world = World::new(&[(0, 64), (0, 64)]);
    let frame = header(BROADCAST, mac(1));
    for header_len in [12, 0, 10] {
        world.bridge.configure(1, PortConfig { header_len, ..PortConfig::default() });
        world.send(0, &[&frame]);
        assert_eq!(world.received(1), [pieces(&[&join(&[&vec![0; header_len.into()], &frame])])]);
    }
}

/// No header fits before a frame that fills the buffer, or before the first piece of a long one: they go on in a slot
/// more.
#[test]
fn s_vhdr_3_a_frame_that_fills_its_buffer() {
    for to in [10usize, 12] {
        let world = World::new(&[(0, 64), (to as u8, 64)]);
        let mut frame = header(BROADCAST, mac(1)).to_vec();
        frame.resize(2048 - to, 1);
        let zeros = vec![0; to];
        world.send(0, &[&frame]);
        assert!(world.received(1) == [pieces(&[&join(&[&zeros, &frame])])]);
        for len in [2048 - to + 1, 2048] {
            frame.resize(len, 1);
            let whole = join(&[&zeros, &frame]);
            let (first, rest) = whole.split_at(len);
            world.send(0, &[&frame]);
            assert!(world.received(1) == [pieces(&[first, rest])], "{len} to {to}");
            world.send(0, &[&frame, &frame, &[2; 60]]);
            assert!(world.received(1) == [pieces(&[first, rest, &frame, &[2; 60]])]);
        }
        assert_eq!(world.drops(1), Drops::default());
    }
}

// --- Offloads ----------------------------------------------------------------------------

const PAYLOAD_AT: usize = 14 + 20 + 20;

/// A TCP packet with this payload, and everything in it right.
fn tcp(payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(mac(1), BROADCAST)
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .tcp(1, 2, 1000, 500)
        .psh()
        .write(&mut frame, payload)
        .unwrap();
    frame
}

fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|i| ((i * i) >> 3) as u8).collect()
}

/// The frame in slots of up to `size` bytes, behind a header of 12 bytes.
fn slots<'a>(header: &'a [u8; 12], frame: &'a [u8], size: usize) -> Vec<&'a [u8]> {
    std::iter::once(&header[..]).chain(frame.chunks(size)).collect()
}

/// What a machine writes that leaves segments of TCP over IPv4 to others.
const TSO: [u8; 12] = [1, 1, 0, 0, 0xb4, 0x05, 34, 0, 16, 0, 0, 0];

#[test]
fn s_vhdr_3_checksums_are_completed() {
    let world = World::new(&[(12, 64), (0, 64), (12, 64)]);
    let frame = tcp(&payload(3001));
    let mut partial_csum = frame.clone();
    // The sum of the pseudo header: addresses, protocol, length.
    let sum = 2 * 0x0a00u32 + 1 + 2 + 6 + 20 + 3001;
    partial_csum[50..52].copy_from_slice(&(sum as u16).to_be_bytes());
    let header = [1, 0, 0, 0, 0, 0, 34, 0, 16, 0, 0, 0];
    for size in [2048, 1333, 77] {
        world.send(0, &slots(&header, &partial_csum, size));
        let expected: Vec<_> = frame.chunks(size).collect();
        assert_eq!(world.received(1), [pieces(&expected)], "slots of {size} bytes");
        assert_eq!(world.received(2), [pieces(&slots(&header, &partial_csum, size))]);
    }
}

#[test]
fn s_vhdr_3_large_frames_are_segmented() {
    for (length, max_frame) in [(1, 1514), (1460, 1514), (1461, 1514), (60000, 1514), (60000, 2048)]
    {
        let world = World::new(&[(12, 64), (0, 128), (12, 64), (10, 64)]);
        world.bridge.configure(1, PortConfig { max_frame, ..PortConfig::default() });
        let sent = payload(length);
        let frame = tcp(&sent);
        let slots = slots(&TSO, &frame, 2000);
        world.send(0, &slots);
        assert_eq!(world.received(2), [pieces(&slots)], "who understands headers gets all");
        let short = join(&[&TSO[..10]]);
        assert_eq!(world.received(3), [pieces(&[&[&short[..]], &slots[1..]].concat())]);

        let step = max_frame as usize - PAYLOAD_AT;
        let got = world.received(1);
        assert_eq!(got.len(), length.div_ceil(step));
        for (i, segment) in got.iter().enumerate() {
            let [(bytes, 0x100)] = &segment[..] else { panic!("a slot each: {segment:?}") };
            let part = &sent[i * step..sent.len().min((i + 1) * step)];
            let parsed = PacketHeaders::from_ethernet_slice(bytes).unwrap();
            let (ip, _) = parsed.net.unwrap().ipv4_ref().map(|(ip, _)| (ip.clone(), ())).unwrap();
            let Some(TransportHeader::Tcp(tcp)) = parsed.transport else { panic!("no TCP") };
            assert_eq!(&bytes[PAYLOAD_AT..], part);
            assert_eq!(ip.header_checksum, ip.calc_header_checksum());
            assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, part).unwrap());
            assert_eq!(tcp.sequence_number as usize, 1000 + i * step);
            assert_eq!(tcp.psh, i + 1 == got.len());
        }
        let totals = world.counters[1].totals();
        assert_eq!(totals.received_packets, got.len() as u64);
        assert_eq!(totals.received_bytes as usize, length + got.len() * PAYLOAD_AT);
    }
}

/// All segments of a packet, or none.
#[test]
fn s_vhdr_3_segments_without_room_are_dropped_together() {
    let world = World::new(&[(12, 64), (0, 8)]);
    let eight = tcp(&payload(8 * 1460));
    world.send(0, &slots(&TSO, &eight, 2000));
    assert_eq!(world.received(1), Vec::<Vec<Piece>>::new());
    assert_eq!(world.drops(1), Drops { ring_full: 1, ..Drops::default() });
    // Seven fit, but not twice.
    let seven = tcp(&payload(7 * 1460));
    world.send(0, &slots(&TSO, &seven, 2000));
    world.send(0, &slots(&TSO, &seven, 2000));
    assert_eq!(world.received(1).len(), 7);
    assert_eq!(world.drops(1), Drops { ring_full: 2, ..Drops::default() });
    assert_eq!(world.drops(0), Drops::default());
}

/// A packet that does not fit loses those behind it in the burst (S-VALE-10), and so costs no
/// more than itself.
#[test]
fn s_vale_10_segments_without_room_end_the_burst() {
    let world = World::new(&[(12, 64), (0, 8), (12, 64)]);
    let seven = tcp(&payload(7 * 1460));
    let sender = &world.clients[0];
    let small = [&[0; 12][..], &tcp(&payload(10))].concat();
    let fill = |slots: &[&[u8]]| {
        for (i, bytes) in (1..).zip(slots) {
            let more = if i < slots.len() { NS_MOREFRAG } else { 0 };
            sender.fill(0, bytes, bytes.len() as u16, more, None);
        }
    };
    fill(&[&small]);
    fill(&slots(&TSO, &seven, 2000));
    (0..3).for_each(|_| fill(&[&small]));
    sender.tx_sync(0);
    sender.drained(0);
    barrier(&world.bridge);
    assert_eq!(world.received(1), [pieces(&[&small[12..]])]);
    assert_eq!(world.drops(1), Drops { ring_full: 4, ..Drops::default() });
    assert_eq!(world.received(2).len(), 5);
}

/// Who wants segments has all headers in the first slot of the frame.
#[test]
fn s_vhdr_3_headers_in_two_slots_are_dropped() {
    let world = World::new(&[(12, 64), (0, 64), (12, 64)]);
    let frame = tcp(&payload(3000));
    let mut dropped = 0;
    for cut in (14..PAYLOAD_AT).chain([PAYLOAD_AT, PAYLOAD_AT + 1, 200]) {
        let (begin, rest) = frame.split_at(cut);
        let rest: Vec<_> = rest.chunks(2000).collect();
        for sent in [vec![join(&[&TSO, begin])], vec![TSO.to_vec(), begin.to_vec()]] {
            let begin: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
            let slots = [&begin[..], &rest[..]].concat();
            world.send(0, &slots);
            let good = cut >= PAYLOAD_AT;
            dropped += u64::from(!good);
            assert_eq!(world.received(1).len(), if good { 3 } else { 0 }, "cut at {cut}");
            assert_eq!(world.received(2), [pieces(&slots)], "who understands headers may");
        }
    }
    assert_eq!(world.drops(0), Drops { bad_offload: dropped, ..Drops::default() });
    let header = [1, 0, 0, 0, 0, 0, 34, 0, 16, 0, 0, 0];
    world.send(0, &slots(&header, &frame, 77));
    assert_eq!(world.received(1).len(), 1, "a checksum needs no headers");
}

#[test]
fn s_vhdr_3_what_cannot_be_done_is_dropped() {
    let world = World::new(&[(12, 64), (0, 64), (12, 64)]);
    let frame = tcp(&payload(100));
    let ask = |flags, gso, start, offset| {
        let mut header = [0; 12];
        (header[0], header[1], header[6], header[8]) = (flags, gso, start, offset);
        header
    };
    let bad = [
        ask(4, 0, 0, 0),
        ask(0x80, 0, 0, 0),
        ask(0, 2, 0, 0),
        ask(0, 0x7f, 0, 0),
        ask(0, 3, 0, 0),
        ask(0, 4, 0, 0),
        ask(1, 0, 154, 0),
        ask(1, 0, 34, 119),
    ];
    for (n, header) in (1..).zip(bad) {
        let slots = slots(&header, &frame, 2000);
        world.send(0, &slots);
        assert_eq!(world.drops(0), Drops { bad_offload: n, ..Drops::default() }, "{header:?}");
        assert_eq!(world.received(2), [pieces(&slots)], "who understands headers may refuse it");
    }
    world.send(0, &slots(&[0; 12], &frame, 2000));
    assert_eq!(world.received(1), [pieces(&[&frame])]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever headers and frames say, the others get what is sent to them, and the bridge lives.
    #[test]
    fn s_vhdr_3_hostile_headers(
        packets in vec((any::<[u8; 12]>(), vec(vec(any::<u8>(), 0..300), 1..6), any::<bool>()), 1..20),
        lengths in prop::sample::subsequence(&LENGTHS, 1)
    ) {
        let world = World::new(&[(lengths[0], 128), (0, 128), (12, 128), (10, 128)]);
        for (header, slots, tame) in &packets {
            let mut header = *header;
            if *tame {
                (header[0], header[1]) = (header[0] & 3, [0, 1, 3, 4, 5][header[1] as usize % 5]);
            }
            let good = tcp(&join(&slots.iter().map(Vec::as_slice).collect::<Vec<_>>()));
            let slots: Vec<_> = slots.iter().map(Vec::as_slice).collect();
            let begin = join(&[&header[..lengths[0].into()], slots[0]]);
            world.send(0, &[&[&begin[..]], &slots[1..]].concat());
            world.send(0, &[&join(&[&header[..lengths[0].into()], &good])]);
            for port in 1..4 {
                for packet in world.received(port) {
                    prop_assert!(packet.iter().all(|(bytes, _)| bytes.len() <= 2048));
                }
            }
        }
        let frame = header(BROADCAST, mac(3));
        world.send(1, &[&frame]);
        prop_assert_eq!(world.received(3), [pieces(&[&join(&[&[0; 10], &frame])])]);
    }
}
