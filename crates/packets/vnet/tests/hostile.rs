//! Whatever stands in header and frame: no panic, and a bounded result.

mod common;

use common::packet;
use proptest::{collection::vec, prelude::*};
use ringway_vnet::{
    Error, Header, MAX_FRAME, Output, PartialCsum, checksum, consume, consume_as_sent,
    consume_pieces, for_kernel, is_expressible,
};

fn check(header: &[u8], frame: &mut [u8], max_frame: usize, out: &mut [u8]) {
    let Some(header) = Header::parse(header) else { return };
    let most = frame.len().max(1);
    if let Ok(Output::Segments(segments)) = consume(&header, frame, max_frame, out) {
        let lengths: Vec<_> = segments.frames(out).map(|frame| frame.len()).collect();
        assert!((1..=most).contains(&lengths.len()));
        assert!(lengths.iter().all(|length| (42..=max_frame).contains(length)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes(
        header in vec(any::<u8>(), 0..14), mut frame in vec(any::<u8>(), 0..200),
        max_frame in any::<u16>(), room in 0usize..5000
    ) {
        check(&header, &mut frame, max_frame.into(), &mut vec![0; room]);
    }

    /// Nearly good ones reach further.
    #[test]
    fn spoiled_packets(
        packet in packet(), spoilt in vec((0usize..80, any::<u8>()), 0..4),
        gso in 0u8..6, flags in 0u8..4, words in any::<[u16; 4]>(), max_frame in 0usize..9000
    ) {
        let mut frame = packet.bytes();
        for (at, byte) in spoilt {
            if let Some(place) = frame.get_mut(at) {
                *place = byte;
            }
        }
        let [gso_size, csum_start, csum_offset, num_buffers] = words;
        let header =
            Header { flags, gso_type: gso, hdr_len: 0, gso_size, csum_start, csum_offset, num_buffers };
        check(&header.emit(), &mut frame, max_frame, &mut vec![0; 2 * MAX_FRAME]);
    }
}

#[test]
fn s_vhdr_3_checksums_outside_the_frame_are_refused() {
    let wanted = |csum_start, csum_offset| {
        let header = Header { flags: 1, csum_start, csum_offset, ..Header::default() };
        consume(&header, &mut [0; 60], 1514, &mut [])
    };
    assert_eq!(wanted(58, 0), Ok(Output::InPlace));
    assert_eq!(wanted(0, 58), Ok(Output::InPlace));
    for (start, offset) in [(59, 0), (0, 59), (60, 0), (61, 0), (u16::MAX, u16::MAX), (40, 19)] {
        assert_eq!(wanted(start, offset), Err(Error::BadChecksum), "{start} {offset}");
    }
}

#[test]
fn too_long_frames_are_refused() {
    // IP's longest packet, behind Ethernet's header with two tags.
    assert_eq!(MAX_FRAME, 65_557);
    let mut frame = vec![0; MAX_FRAME + 1];
    assert_eq!(consume(&Header::default(), &mut frame, 1514, &mut []), Err(Error::NoRoom));
    assert_eq!(consume(&Header::default(), &mut frame[1..], 1514, &mut []), Ok(Output::InPlace));
}

/// CVE-2026-100236 (of DPDK's segmentation, by its record): a header that is not all in the first piece of a frame, or does not
/// fit the memory for a segment, is copied all the same; and one longer than a segment's payload makes that negative.
#[test]
fn headers_longer_than_a_segment_or_a_piece() {
    let tcp = Tcp { ip_options: 40, tcp_options: 40, payload: 1000 };
    let (frame, headers) = (tcp.bytes(), 14 + 60 + 60);
    let header = Header {
        flags: 1,
        gso_type: 1,
        hdr_len: 54,
        gso_size: 1,
        csum_start: 14 + 60,
        csum_offset: 16,
        num_buffers: 0,
    };
    let pieces = |first, max_frame, room: usize| {
        let (mut frame, mut out) = (frame.clone(), vec![0xee; room + 64]);
        let result = consume_pieces(&header, &mut frame, first, max_frame, &mut out[..room]);
        assert!(out[room..].iter().all(|byte| *byte == 0xee), "{first} {max_frame} {room}");
        result.map(|output| lengths(output, &mut out))
    };
    // The first piece has fewer bytes than the headers.
    for first in 0..headers {
        assert_eq!(pieces(first, 1514, 2 * MAX_FRAME), Err(Error::BadFrame), "{first}");
    }
    // A segment has no room for a payload.
    for max_frame in 0..=headers {
        assert_eq!(pieces(headers, max_frame, 2 * MAX_FRAME), Err(Error::NoRoom), "{max_frame}");
    }
    let one_by_one = pieces(headers, headers + 1, 1000 * (headers + 1)).unwrap();
    assert_eq!(one_by_one, vec![headers + 1; 1000]);
    // The memory is a byte short, or has room for a part of the headers.
    for room in [1000 * (headers + 1) - 1, headers - 1, 0] {
        assert_eq!(pieces(headers, headers + 1, room), Err(Error::NoRoom), "{room}");
    }
    // As long as the sender says: a byte, but no shorter than the headers.
    let mut out = vec![0; 2 * MAX_FRAME];
    let as_sent = consume_as_sent(&header, &mut frame.clone(), &mut out).unwrap();
    let lengths = lengths(as_sent, &mut out);
    assert!(lengths.iter().all(|length| (headers + 1..=2 * headers).contains(length)));
    assert_eq!(lengths.iter().map(|length| length - headers).sum::<usize>(), 1000);
}

/// Of the segments.
fn lengths(output: Output, out: &mut [u8]) -> Vec<usize> {
    match output {
        Output::Segments(segments) => segments.frames(out).map(|frame| frame.len()).collect(),
        Output::InPlace => vec![],
    }
}

/// A segment to be cut, over IPv4, with so many bytes of options.
struct Tcp {
    ip_options: usize,
    tcp_options: usize,
    payload: usize,
}

impl Tcp {
    fn bytes(&self) -> Vec<u8> {
        let tcp_length = 20 + self.tcp_options;
        let ip_length = 20 + self.ip_options;
        let total = ((ip_length + tcp_length + self.payload) as u16).to_be_bytes();
        let mut ip = vec![0x40 | (ip_length / 4) as u8, 0, total[0], total[1], 0, 0, 0, 0, 64, 6];
        ip.resize(ip_length, 0);
        let mut tcp = vec![0; tcp_length];
        (tcp[12], tcp[13]) = ((tcp_length / 4) as u8 * 16, 0x10);
        ethernet([8, 0], &[ip, tcp, vec![7; self.payload]].concat())
    }
}

/// What is not TCP or UDP in one piece directly over IP is not taken apart.
#[test]
fn s_vhdr_3_odd_packets_are_refused() {
    let refused = |gso_type, frame: &mut [u8]| {
        let header = Header { gso_type, gso_size: 100, ..Header::default() };
        consume(&header, frame, 1514, &mut [0; 4096]) == Err(Error::BadFrame)
    };
    let mut v4 = [0; 80];
    (v4[12], v4[14], v4[23], v4[46]) = (8, 0x45, 6, 0x50);
    assert!(!refused(1, &mut v4.clone()), "the packet that the others are made of");
    for (at, byte, what) in [
        (12, 0x09, "another ethertype"),
        (14, 0x65, "another version"),
        (14, 0x44, "an IP header that is too short"),
        (20, 0x20, "the first fragment"),
        (21, 0x01, "a later fragment"),
        (23, 1, "ICMP"),
        (46, 0x40, "a TCP header that is too short"),
        (46, 0xf0, "a TCP header that is too long"),
    ] {
        let mut frame = v4;
        frame[at] = byte;
        assert!(refused(1, &mut frame), "{what}");
    }
    let mut three_tags = [0; 100];
    for at in [12, 16, 20] {
        three_tags[at] = 0x81;
    }
    three_tags[24..92].copy_from_slice(&v4[12..][..68]);
    assert!(refused(1, &mut three_tags), "three VLAN tags");
    let mut v6 = [0; 100];
    (v6[12], v6[13], v6[14], v6[20]) = (0x86, 0xdd, 0x60, 17);
    assert!(!refused(3, &mut v6.clone()), "the packet that the next is made of");
    for extension in [44, 51, 135] {
        v6[20] = extension;
        assert!(refused(3, &mut v6.clone()), "IPv6 extension {extension}");
    }
    // Options, or a route whose end it has reached; not one with another stop, nor more than there are of IPv4.
    for (extension, length, left, is_fine) in [
        (0, 0, 0, true),
        (60, 0, 1, true),
        (60, 1, 0, true),
        (60, 2, 0, false),
        (43, 0, 0, true),
        (43, 0, 1, false),
        (43, 255, 0, false),
    ] {
        v6[20] = extension;
        (v6[54], v6[55], v6[57]) = (17, length, left);
        assert_eq!(!refused(3, &mut v6.clone()), is_fine, "{extension}, {length}, {left}");
    }
}

fn ipv4(carries: u8, inside: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + inside.len() as u16).to_be_bytes();
    let header = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, carries, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&header[..], inside].concat()
}

fn ipv6(carries: u8, inside: &[u8]) -> Vec<u8> {
    let [high, low] = (inside.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0, high, low, carries, 64][..], &[0xfd; 32], inside].concat()
}

fn ethernet(kind: [u8; 2], inside: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &kind, inside].concat()
}

/// MPLS in UDP (RFC 7510), with datagrams inside that are to be cut: they are not the outer UDP's.
#[test]
fn datagrams_in_a_tunnel_that_is_not_known_are_refused() {
    let udp = |to: u16, inside: &[u8]| {
        let length = (8 + inside.len() as u16).to_be_bytes();
        [&[0xc0, 0][..], &to.to_be_bytes(), &length, &[0, 0], inside].concat()
    };
    let inner = ipv4(17, &udp(9, &[0xaa; 4000]));
    let mpls = [&[0x12, 0x34, 0x51, 0x40][..], &inner].concat();
    let mut frame = ethernet([8, 0], &ipv4(17, &udp(6635, &mpls)));
    let mut out = vec![0; 2 * MAX_FRAME];
    let inside = 14 + 20 + 8 + 4 + 20;
    for (gso_type, start, expected) in [
        (5, inside, Err(Error::BadFrame)),
        (3, inside, Err(Error::BadFrame)),
        (5, 34, Ok(())),
        (3, 34, Ok(())),
    ] {
        let header = Header {
            flags: 1,
            gso_type,
            gso_size: 1000,
            csum_start: start,
            csum_offset: 6,
            ..Header::default()
        };
        let made = consume_as_sent(&header, &mut frame, &mut out).map(|_| ());
        assert_eq!(made, expected, "{gso_type}, {start}");
        let made = consume(&header, &mut frame, 1514, &mut out).map(|_| ());
        assert_eq!(made, expected, "{gso_type}, {start}");
    }
}

/// By a table's definition in RFC 9260, appendix A, a bit at a time.
fn crc32c(bytes: &[u8]) -> [u8; 4] {
    let step = |crc: u32| if crc & 1 != 0 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    let crc =
        bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |c, _| step(c)));
    (!crc).to_le_bytes()
}

/// SCTP's checksum is of IP's bytes, without padding, and no receiver with headers can be told of it.
#[test]
fn the_checksum_of_sctp_is_a_crc() {
    let packet = [0, 7, 0, 9, 1, 2, 3, 4, 0, 0, 0, 0, 11, 0, 0, 4];
    for (kind, ip) in [([8, 0], ipv4(132, &packet)), ([0x86, 0xdd], ipv6(132, &packet))] {
        for tags in 0..3 {
            let mut frame = ethernet(kind, &ip);
            (0..tags).for_each(|_| drop(frame.splice(12..12, [0x81, 0, 0, 5])));
            let start = frame.len() - packet.len();
            frame.extend([0xee; 5]);
            let header =
                Header { flags: 1, csum_start: start as u16, csum_offset: 8, ..Header::default() };
            assert!(!is_expressible(&header, &frame));
            assert_eq!(for_kernel(&header, &mut frame.clone(), frame.len(), 1514, false), None);
            let mut expected = frame.clone();
            expected[start + 8..start + 12].copy_from_slice(&crc32c(&packet));
            let found = PartialCsum { start, len: packet.len(), at: start + 8, is_crc: true };
            assert_eq!(PartialCsum::find(&frame), Some(found));
            assert_eq!(PartialCsum::find(&expected), None);
            // What was there does not matter.
            frame[start + 9] = 7;
            assert_eq!(consume(&header, &mut frame, 1514, &mut []), Ok(Output::InPlace));
            assert_eq!(frame, expected);
            // IP says that there is more, or less than the header.
            let at = 14 + 4 * tags + if kind == [8, 0] { 3 } else { 5 };
            for length in [frame[at] + 6, frame[at] - 5] {
                let mut frame = frame.clone();
                frame[at] = length;
                let made = consume(&header, &mut frame, 1514, &mut []);
                assert_eq!(made, Err(Error::BadChecksum));
            }
        }
    }
}

/// ip6tnl has a header of options in front of the packet inside, by default, and a sender may have its own.
#[test]
fn options_of_ipv6_are_in_every_segment() {
    let tcp = [0, 7, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0];
    let tcp = [&tcp[..], &[0xaa; 5000]].concat();
    let limit = |carries: u8| [carries, 0, 4, 1, 4, 1, 0, 0];
    let of = |carries, inside: &[u8]| ipv6(60, &[&limit(carries)[..], inside].concat());
    for packet in [of(41, &ipv6(6, &tcp)), of(6, &tcp), of(41, &of(6, &tcp))] {
        let mut frame = ethernet([0x86, 0xdd], &packet);
        let start = frame.len() - tcp.len();
        let header = Header {
            flags: 1,
            gso_type: 4,
            gso_size: 1000,
            csum_start: start as u16,
            csum_offset: 16,
            ..Header::default()
        };
        let headers = frame[..start].to_vec();
        let mut out = vec![0; 2 * MAX_FRAME];
        let Ok(Output::Segments(made)) = consume_as_sent(&header, &mut frame, &mut out) else {
            panic!("not cut");
        };
        assert_eq!(made.frames(&mut out).count(), 5);
        for segment in made.frames(&mut out) {
            let mut expected = headers.clone();
            // The lengths of each IPv6.
            let mut at = 14;
            while at < start {
                let length = (segment.len() - at - 40) as u16;
                expected[at + 4..at + 6].copy_from_slice(&length.to_be_bytes());
                at += if expected[at + 6] == 60 { 48 } else { 40 };
            }
            assert_eq!(segment[..start], expected);
            let length = (segment.len() - start) as u32;
            let pseudo = [&[0xfd; 32][..], &length.to_be_bytes(), &[0, 0, 0, 6]].concat();
            let all = checksum::sum(&pseudo) + checksum::sum(&segment[start..]);
            assert_eq!(checksum::finish(all), [0, 0]);
        }
    }
}
