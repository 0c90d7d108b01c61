//! Packets with known headers, and any bytes at all.

use proptest::{collection::vec, prelude::*};

use super::program;
use crate::abi::*;

/// UDP from 10.0.0.1:1000 to 10.0.0.2:53, with these tags.
fn udp(tags: &[u16]) -> Vec<u8> {
    let mut frame = vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    tags.iter().for_each(|tag| frame.extend([0x81, 0, (tag >> 8) as u8, *tag as u8]));
    frame.extend([8, 0, 0x45, 0x10, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([3, 232, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
    frame
}

fn capture(bytes: &[u8]) -> (pkt_parsing_info, u32) {
    // What stood there before is gone.
    let mut info = pkt_parsing_info { ip_tos: 7, last_matched_rule_id: 7, ..Default::default() };
    let flags = super::capture(bytes, &mut info);
    (info, flags)
}

fn v4(address: ip_addr) -> u32 {
    u32::from_ne_bytes(*address.first_chunk().unwrap())
}

#[test]
fn udp_behind_tags() {
    for (tags, vlan, qinq) in [(&[][..], 0, 0), (&[0x2007], 7, 0), (&[7, 8, 9], 7, 8)] {
        let frame = udp(tags);
        let at = 14 + 4 * tags.len() as i16;
        let mut header = pfring_pkthdr { caplen: frame.len() as u32, ..Default::default() };
        assert_eq!(program(&frame, &mut header, 5, true), 4);
        for info in [capture(&frame).0, header.parsed_pkt] {
            assert_eq!((info.dmac, info.smac), ([1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]));
            assert_eq!(
                [{ info.eth_type }, { info.vlan_id }, { info.qinq_vlan_id }],
                [0x800, vlan, qinq]
            );
            assert_eq!((info.ip_version, info.l3_proto, info.ip_tos), (4, 17, 0x10));
            assert_eq!([v4(info.ip_src), v4(info.ip_dst)], [0x0a00_0001, 0x0a00_0002]);
            assert_eq!([{ info.l4_src_port }, { info.l4_dst_port }], [1000, 53]);
            let pkt_offset { eth, vlan, l3, l4, payload } = info.offset;
            assert_eq!([eth, l3, l4, payload], [0, at, at + 20, at + 28]);
            assert_eq!(vlan, if tags.is_empty() { 0 } else { at - 4 });
            assert_eq!({ info.tunnel.id }, NO_TUNNEL_ID);
        }
        let sum = 0x0a00_0001 + 0x0a00_0002 + 17 + 1053 + u32::from(vlan);
        assert_eq!({ header.pkt_hash }, sum);
        assert_eq!(crate::hash::default_hash(&capture(&frame).0), sum);
    }
}

#[test]
fn a_program_reads_as_deep_as_it_asks_for() {
    for (level, depth) in [(2, 2), (3, 3), (4, 4), (5, 4)] {
        assert_eq!(program(&udp(&[]), &mut pfring_pkthdr::default(), level, false), depth);
    }
}

#[test]
fn fragments_have_flags_and_no_ports() {
    for (flags, seen, ports) in [(0x2000u16, IP_MORE_FRAG, 1000), (0x2010, 12, 0), (0x10, 8, 0)] {
        let mut frame = udp(&[]);
        frame[20..22].copy_from_slice(&flags.to_be_bytes());
        let (info, found) = capture(&frame);
        assert_eq!((found, { info.l4_src_port }), (seen, ports));
        assert_eq!({ info.offset.payload }, if ports == 0 { 34 } else { 42 });
        let depth = program(&frame, &mut pfring_pkthdr::default(), 5, false);
        assert_eq!(depth, if ports == 0 { 3 } else { 4 });
    }
}

#[test]
fn a_gtp_tunnel_is_looked_into() {
    let mut frame = udp(&[]);
    frame[36..38].copy_from_slice(&2152u16.to_be_bytes());
    frame.truncate(42);
    frame.extend([0x30, 255, 0, 0, 0, 0, 0, 7]);
    frame.extend(&udp(&[])[14..]);
    let mut header = pfring_pkthdr::default();
    assert_eq!(program(&frame, &mut header, 5, false), 6);
    for info in [capture(&frame).0, header.parsed_pkt] {
        let tunnel = info.tunnel;
        assert_eq!(({ tunnel.id }, { tunnel.eth_type }, tunnel.proto), (7, 0x800, 17));
        assert_eq!((v4(tunnel.ip_src), { tunnel.l4_dst_port }), (0x0a00_0001, 53));
    }
}

proptest! {
    /// A packet is read as far as it goes, whatever is in it.
    #[test]
    fn any_bytes_are_read(
        mut bytes in vec(any::<u8>(), 0..300), tags in 0usize..4, keep in 0usize..60, cut in 0usize..300,
        level in 0u8..7, l3: i16, l4: i16, hash: bool,
    ) {
        let known = udp(&vec![7; tags]);
        let keep = keep.min(known.len()).min(bytes.len());
        bytes[..keep].copy_from_slice(&known[..keep]);
        bytes.truncate(cut);
        capture(&bytes);
        program(&bytes, &mut pfring_pkthdr::default(), level, hash);
        let mut header = pfring_pkthdr::default();
        (header.parsed_pkt.offset.l3, header.parsed_pkt.offset.l4) = (l3, l4);
        let depth = program(&bytes, &mut header, level, hash);
        prop_assert!((2..=6).contains(&depth));
    }

    /// What is behind the window of the capture does not count.
    #[test]
    fn the_capture_reads_128_bytes(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(capture(&bytes), capture(&bytes[..bytes.len().min(128)]));
    }
}
