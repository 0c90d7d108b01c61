//! Headers of offloads: a guest gets a frame whole where it takes it so, and finished where it does not.

use crate::common::{Port, machine};
use ringway_vhost::guest::Setup;
use ringway_vnet::Header;

const GUEST_CSUM: u64 = 1 << 1;
const GUEST_TSO4: u64 = 1 << 7;
const HOST: u64 = 1 | 1 << 11;

const PAYLOAD: usize = 7000;
const MSS: u16 = 1460;

const HEADER: Header = Header {
    flags: 1,
    gso_type: 1,
    hdr_len: 54,
    gso_size: MSS,
    csum_start: 34,
    csum_offset: 16,
    num_buffers: 0,
};

/// TCP over IPv4, with the pseudo header's sum where the checksum belongs.
fn frame(payload: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let length = (40 + payload) as u16;
    frame.extend([0x45, 0, (length >> 8) as u8, length as u8, 0, 0, 0, 0, 64, 6, 0, 0]);
    frame.extend([192, 0, 2, 1, 192, 0, 2, 2]);
    frame.extend([0, 7, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    frame.extend((0..payload).map(|i| (i * 7) as u8));
    let sum = pseudo(&frame);
    frame[50..52].copy_from_slice(&sum.to_be_bytes());
    frame
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn sum(bytes: &[u8]) -> u32 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    bytes.chunks(2).map(word).sum()
}

fn pseudo(frame: &[u8]) -> u16 {
    fold(sum(&frame[26..34]) + 6 + (frame.len() - 34) as u32)
}

/// Whether TCP's checksum is right.
fn is_right(frame: &[u8]) -> bool {
    fold(u32::from(pseudo(frame)) + sum(&frame[34..])) == 0xffff
}

/// What a guest with these features receives of one frame.
fn received(features: u64, header: Header, frame: &[u8]) -> (Vec<Vec<u8>>, u64) {
    let (mut guest, mut connection) = machine(Setup { features, ..Setup::default() });
    let mut port = Port::new();
    while guest.offer_buffer(0, 2048) {}
    assert!(port.give(&[&header.emit()[..], frame].concat(), 2048));
    let moved = connection.receive((&port.rx, 12), 8);
    let frames: Vec<_> = std::iter::from_fn(|| guest.receive(0)).collect();
    assert_eq!(moved.frames, frames.len() as u64);
    (frames, moved.bad_offload)
}

#[test]
fn a_guest_that_takes_segments_whole_gets_them_whole() {
    let frame = frame(PAYLOAD);
    let (frames, _) = received(GUEST_CSUM | GUEST_TSO4, HEADER, &frame);
    assert_eq!(frames.len(), 1);
    let header = Header::parse(&frames[0][..12]).unwrap();
    assert_eq!(header, Header { num_buffers: 4, ..HEADER });
    assert!(frames[0][12..] == frame);
}

#[test]
fn others_get_segments_and_sums() {
    for features in [0, GUEST_CSUM, GUEST_TSO4] {
        let (frames, _) = received(features, HEADER, &frame(PAYLOAD));
        let mut payload: Vec<u8> = Vec::new();
        for frame in &frames {
            assert_eq!(
                Header::parse(frame).unwrap(),
                Header { num_buffers: 1, ..Header::default() }
            );
            assert!(frame.len() <= 12 + 54 + usize::from(MSS) && is_right(&frame[12..]));
            payload.extend(&frame[12 + 54..]);
        }
        assert!(payload == frame(PAYLOAD)[54..], "{features:#x}");
    }
    let sum = Header { gso_type: 0, gso_size: 0, ..HEADER };
    let (frames, _) = received(0, sum, &frame(500));
    assert!(frames.len() == 1 && is_right(&frames[0][12..]));
    let (frames, _) = received(GUEST_CSUM, sum, &frame(500));
    assert!(frames.len() == 1 && !is_right(&frames[0][12..]) && frames[0][0] == 1);
}

/// What a sender says of a frame that it is not, no guest is told.
#[test]
fn a_header_that_contradicts_its_frame_is_not_passed_on() {
    let all = GUEST_CSUM | GUEST_TSO4 | 1 << 8;
    for (header, dropped) in [
        (Header { csum_start: 60_000, ..HEADER }, 1),
        (Header { gso_type: 4, ..HEADER }, 1),
        (Header { gso_type: 2, ..HEADER }, 1),
        (Header { flags: 0x41, ..HEADER }, 1),
        (Header { gso_type: 0, csum_start: 60_000, ..HEADER }, 1),
    ] {
        let (frames, bad) = received(all, header, &frame(PAYLOAD));
        assert_eq!(bad, dropped, "{header:?}");
        let plain = Header { num_buffers: 1, ..Header::default() };
        assert!(frames.iter().all(|frame| Header::parse(frame).unwrap() == plain), "{header:?}");
    }
    // That a checksum was verified is nobody's word but the guest's own.
    let verified = Header { flags: 2, ..Header::default() };
    let (frames, _) = received(all, verified, &frame(100));
    assert_eq!(frames[0][0], 0);
}

/// A header is the switch's to check, where the port has such; where it has none, the guest has agreed that it says
/// nothing.
#[test]
fn what_a_guest_asks_for_goes_to_the_port() {
    let (mut guest, mut connection) = machine(Setup { features: HOST, ..Setup::default() });
    let mut port = Port::new();
    assert!(connection.features().has_offloads());
    let sent = [&HEADER.emit()[..], &frame(PAYLOAD)].concat();
    assert!(guest.send(0, &sent, 2048));
    assert_eq!(connection.send((&port.tx, 12), 8).frames, 1);
    assert!(port.sent() == [sent]);
}

/// A header that asks for what cannot be is its sender's loss. Others go on with what they ask for, and nothing else.
#[test]
fn a_header_is_checked_where_it_comes_from() {
    let frame = frame(600);
    let sum = Header { flags: 1, csum_start: 34, csum_offset: 16, ..Header::default() };
    let cut = Header { gso_type: 1, gso_size: 100, hdr_len: 54, ..sum };
    let longest = frame.len() as u16;
    for (header, expected) in [
        (Header { hdr_len: 65_535, gso_size: 3, ..Header::default() }, Some(Header::default())),
        (Header { hdr_len: 65_535, ..cut }, Some(Header { hdr_len: longest, ..cut })),
        (cut, Some(cut)),
        (Header { gso_size: 0, ..cut }, None),
        (Header { gso_type: 2, ..cut }, None),
        (Header { gso_type: 0xff, ..cut }, None),
        (Header { flags: 4, ..sum }, None),
        (Header { csum_start: 65_535, ..sum }, None),
    ] {
        // In one piece, and in many.
        for piece in [2048, 50] {
            let (mut guest, mut connection) = machine(Setup::default());
            let mut port = Port::new();
            assert!(guest.send(0, &[&header.emit()[..], &frame].concat(), piece));
            let moved = connection.send((&port.tx, Header::LONG), 8);
            assert_eq!(guest.reap(0), 1);
            let sent = port.sent();
            let found = sent.first().map(|sent| Header::parse(sent).unwrap());
            assert_eq!((found, moved.bad_offload), (expected, expected.is_none().into()));
            assert!(sent.iter().all(|sent| sent[Header::LONG..] == frame));
        }
    }
    // What another port's program says of itself is no better.
    let all = 0x1983 | 1 << 1 | 1 << 7;
    let (got, _) = received(all, Header { hdr_len: 65_535, ..cut }, &frame);
    assert_eq!(Header::parse(&got[0]).unwrap().hdr_len, longest);
}
