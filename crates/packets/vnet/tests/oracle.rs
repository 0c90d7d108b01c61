//! S-VHDR-3 against frames that etherparse makes, checksums and all.

mod common;

use common::{Ip, Packet, Transport, packet};
use etherparse::{IpNumber, Ipv4Header, UdpHeader};
use proptest::prelude::*;
use ringway_vnet::{
    Error, Header, MAX_DATAGRAMS, MAX_FRAME, Output, consume, consume_as_sent, consume_pieces,
    least_frames, most_frames,
};

const NEEDS_CSUM: u8 = 1;

/// Of the checksum in the transport header.
fn checksum_offset(packet: &Packet) -> usize {
    match packet.transport {
        Transport::Tcp(_) => 16,
        Transport::Udp(_) => 6,
    }
}

fn gso_type(packet: &Packet) -> u8 {
    match (&packet.transport, &packet.ip) {
        (Transport::Tcp(_), Ip::V4(_)) => 1,
        (Transport::Tcp(_), Ip::V6(_)) => 4,
        (Transport::Udp(_), _) => 3,
    }
}

/// The packets that `packet` has to become: each with `step` bytes of the payload. `ecn`: the answer to a congestion signal is
/// given once; else it is a bit of a counter.
fn cut(packet: &Packet, step: usize, ecn: bool) -> Vec<Packet> {
    let count = packet.payload.len().div_ceil(step).max(1);
    let segment = |i: usize| {
        let mut segment = packet.clone();
        let end = packet.payload.len().min((i + 1) * step);
        segment.payload = packet.payload[i * step..end].to_vec();
        if let Ip::V4(ip) = &mut segment.ip {
            ip.identification = ip.identification.wrapping_add(i as u16);
        }
        if let Transport::Tcp(tcp) = &mut segment.transport {
            tcp.sequence_number = tcp.sequence_number.wrapping_add((i * step) as u32);
            tcp.cwr &= i == 0 || !ecn;
            tcp.fin &= i + 1 == count;
            tcp.psh &= i + 1 == count;
        }
        segment
    };
    (0..count).map(segment).collect()
}

/// The frame as a machine that leaves the rest to its network card sends it: no lengths in the
/// headers that only a whole datagram has, and no checksums.
fn partial_csum(packet: &Packet) -> Vec<u8> {
    let mut frame = packet.bytes();
    let (ip, transport) = (14 + 4 * packet.tags.len(), packet.transport_at());
    match packet.ip {
        Ip::V4(_) => [2, 3, 10, 11].iter().for_each(|i| frame[ip + i] = 0),
        Ip::V6(_) => frame[ip + 4..ip + 6].fill(0),
    }
    frame[transport + checksum_offset(packet)..][..2].fill(0x5a);
    frame
}

fn segments(header: &Header, frame: &mut [u8], max_frame: usize) -> Result<Vec<Vec<u8>>, Error> {
    let mut out = vec![0xee; 2 * MAX_FRAME];
    match consume(header, frame, max_frame, &mut out)? {
        Output::InPlace => panic!("not segmented"),
        Output::Segments(segments) => {
            let bytes = segments.bytes();
            let segments: Vec<_> = segments.frames(&mut out).map(|frame| frame.to_vec()).collect();
            assert_eq!(bytes, segments.iter().map(Vec::len).sum());
            assert!(segments.len() <= most_frames(header, frame.len(), max_frame));
            assert!(segments.len() >= least_frames(header, frame.len(), max_frame).unwrap());
            Ok(segments)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn s_vhdr_3_segments_are_packets_of_their_own(
        packet in packet(), room in prop_oneof![1usize..100, Just(1460), 100usize..9000], ecn: bool
    ) {
        let max_frame = packet.headers() + room;
        let header = Header {
            flags: NEEDS_CSUM,
            gso_type: gso_type(&packet) | if ecn { 0x80 } else { 0 },
            gso_size: 1,
            csum_start: packet.transport_at() as u16,
            ..Header::default()
        };
        let expected: Vec<_> = cut(&packet, room, ecn).iter().map(Packet::bytes).collect();
        let fits = expected.iter().map(Vec::len).sum::<usize>() <= 2 * MAX_FRAME;
        let got = segments(&header, &mut partial_csum(&packet), max_frame);
        let expected = if fits { Ok(expected) } else { Err(Error::NoRoom) };
        prop_assert!(got == expected, "{:x?}", got);
    }

    /// What the kernel has made one frame of, or is about to make several of.
    #[test]
    fn segments_are_as_long_as_they_were(packet in packet(), gso_size in 0u16..9000, ecn: bool) {
        let header = Header {
            flags: NEEDS_CSUM,
            gso_type: gso_type(&packet) | if ecn { 0x80 } else { 0 },
            gso_size,
            csum_start: packet.transport_at() as u16,
            ..Header::default()
        };
        // Shorter ones than their headers would take up too much memory.
        let step = usize::from(gso_size).max(packet.headers());
        let expected: Vec<_> = cut(&packet, step, ecn).iter().map(Packet::bytes).collect();
        let (mut frame, mut out) = (partial_csum(&packet), vec![0; 2 * MAX_FRAME]);
        let Ok(Output::Segments(segments)) = consume_as_sent(&header, &mut frame, &mut out) else {
            panic!("not segmented");
        };
        prop_assert!(segments.frames(&mut out).eq(expected));
    }

    /// Datagrams of the size that the sender chose, or none at all.
    #[test]
    fn s_vhdr_3_datagrams_keep_their_size(packet in packet(), gso_size in 0u16..3000) {
        let header = Header { gso_type: 5, gso_size, ..Header::default() };
        let got = segments(&header, &mut partial_csum(&packet), 1514);
        if gso_size == 0 {
            prop_assert_eq!(got, Err(Error::BadHeader));
        } else if matches!(packet.transport, Transport::Tcp(_)) {
            prop_assert_eq!(got, Err(Error::BadFrame));
        } else {
            let expected: Vec<_> =
                cut(&packet, gso_size.into(), false).iter().map(Packet::bytes).collect();
            let fits = packet.headers() + usize::from(gso_size) <= 1514
                && expected.iter().map(Vec::len).sum::<usize>() <= 2 * MAX_FRAME;
            let expected = match expected.len() {
                0..=MAX_DATAGRAMS if fits => Ok(expected),
                0..=MAX_DATAGRAMS => Err(Error::NoRoom),
                _ => Err(Error::TooMany),
            };
            prop_assert!(got == expected, "{:x?}", got);
        }
    }

    /// The machine has summed up the pseudo header and left the rest.
    #[test]
    fn s_vhdr_3_checksums_are_completed(packet in packet()) {
        let complete = packet.bytes();
        let start = packet.transport_at();
        let at = start + checksum_offset(&packet);
        let mut frame = complete.clone();
        // By the rules of ones' complement, what the rest of the sum has to be.
        frame[at..at + 2].fill(0);
        let rest = frame[start..].chunks(2).fold(0u32, |sum, pair| {
            sum + u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]))
        });
        let whole = !u16::from_be_bytes([complete[at], complete[at + 1]]);
        let partial = (u32::from(whole) + 0xffff - rest % 0xffff) % 0xffff;
        frame[at..at + 2].copy_from_slice(&(partial as u16).to_be_bytes());
        let header = Header {
            flags: NEEDS_CSUM,
            csum_start: start as u16,
            csum_offset: checksum_offset(&packet) as u16,
            ..Header::default()
        };
        prop_assert_eq!(consume(&header, &mut frame, 60, &mut []), Ok(Output::InPlace));
        if frame[at..at + 2] == [0xff; 2] {
            // TCP's other way to write zero.
            frame[at..at + 2].copy_from_slice(&complete[at..at + 2]);
        }
        prop_assert!(frame == complete);
    }

    /// A header that speaks of another kind of packet than there is.
    #[test]
    fn s_vhdr_3_other_packets_are_refused(packet in packet(), gso in prop::sample::select(vec![1u8, 3, 4])) {
        prop_assume!(gso != gso_type(&packet));
        let header = Header { gso_type: gso, ..Header::default() };
        prop_assert_eq!(segments(&header, &mut packet.bytes(), 1514), Err(Error::BadFrame));
    }

    /// Headers that are cut off, wherever.
    #[test]
    fn s_vhdr_3_short_packets_are_refused(packet in packet(), cut: prop::sample::Index) {
        let header = Header { gso_type: gso_type(&packet), ..Header::default() };
        let mut frame = packet.bytes();
        frame.truncate(cut.index(packet.headers()));
        prop_assert_eq!(segments(&header, &mut frame, 1514), Err(Error::BadFrame));
    }
}

/// The headers have to be in the first piece.
#[test]
fn s_vhdr_3_headers_in_pieces_are_refused() {
    let mut frame = [0; 80];
    (frame[12], frame[14], frame[23], frame[46]) = (8, 0x45, 6, 0x50);
    let header = Header { gso_type: 1, ..Header::default() };
    for first in 0..=80 {
        let got = consume_pieces(&header, &mut frame, first, 1514, &mut [0; 100]);
        assert_eq!(got.is_ok(), first >= 54, "{first}: {got:?}");
        assert!(first >= 54 || got == Err(Error::BadFrame));
    }
}

/// A zeroed TCP packet over IPv4 in 54 bytes of headers, or UDP in 42.
fn zeroed(protocol: u8, payload: usize) -> Vec<u8> {
    let mut frame = vec![0; if protocol == 6 { 54 } else { 42 } + payload];
    (frame[12], frame[14], frame[23]) = (8, 0x45, protocol);
    if protocol == 6 {
        frame[46] = 0x50;
    }
    frame
}

/// What IP can say of its length is 65535 bytes, however long the receiver takes frames.
#[test]
fn s_vhdr_3_segments_fit_the_length_of_ip() {
    let header = Header { gso_type: 1, ..Header::default() };
    let room = 0xffff - 40;
    for (payload, expected) in [(room, 1), (room + 1, 2)] {
        let got = segments(&header, &mut zeroed(6, payload), usize::MAX).unwrap();
        let lengths: Vec<_> = got.iter().map(|f| u16::from_be_bytes([f[16], f[17]])).collect();
        assert_eq!(lengths, [&[0xffff][..], &[41]].concat()[..expected]);
    }
}

/// A datagram that is as long as a frame may be is sent; of one byte more, none is.
#[test]
fn s_vhdr_3_datagrams_fit_the_frame() {
    for (gso_size, max_frame, is_ok) in
        [(100, 142, true), (100, 141, false), (1, 43, true), (1, 42, false), (1, 0, false)]
    {
        let header = Header { gso_type: 5, gso_size, ..Header::default() };
        let got = segments(&header, &mut zeroed(17, 3 * usize::from(gso_size)), max_frame);
        let lengths = got.map(|frames| frames.iter().map(Vec::len).collect::<Vec<_>>());
        let expected = vec![42 + usize::from(gso_size); 3];
        assert_eq!(lengths, if is_ok { Ok(expected) } else { Err(Error::NoRoom) });
    }
    let header = Header { gso_type: 1, ..Header::default() };
    assert_eq!(segments(&header, &mut zeroed(6, 9), 54), Err(Error::NoRoom), "no room for payload");
}

/// As many as Linux puts into one frame, full or not.
#[test]
fn s_vhdr_3_datagrams_are_counted() {
    for size in [1u16, 2, 100] {
        let header = Header { gso_type: 5, gso_size: size, ..Header::default() };
        let most = usize::from(size) * MAX_DATAGRAMS;
        let count = |payload| segments(&header, &mut zeroed(17, payload), 1514).map(|f| f.len());
        assert_eq!(count(most), Ok(MAX_DATAGRAMS));
        assert_eq!(count(most - usize::from(size)), Ok(MAX_DATAGRAMS - 1));
        assert_eq!(count(most + 1), Err(Error::TooMany));
    }
}

/// In UDP, zero would say that there is none.
#[test]
fn s_vhdr_3_no_checksum_of_udp_is_zero() {
    let mut packet = Packet {
        tags: Vec::new(),
        ip: Ip::V4(Ipv4Header::new(0, 64, IpNumber::UDP, [10, 0, 0, 1], [10, 0, 0, 2]).unwrap()),
        transport: Transport::Udp(UdpHeader::default()),
        payload: vec![0; 2],
    };
    let at = packet.headers() - 2;
    let header = Header { gso_type: 3, ..Header::default() };
    let mut zeros = 0;
    for payload in 0..=u16::MAX {
        packet.payload = payload.to_be_bytes().to_vec();
        let expected = packet.bytes();
        zeros += usize::from(expected[at..at + 2] == [0xff; 2]);
        assert_eq!(segments(&header, &mut partial_csum(&packet), 1514), Ok(vec![expected]));
    }
    assert_eq!(zeros, 1, "one payload has the sum that could be written as zero");
}
