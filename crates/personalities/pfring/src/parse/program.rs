//! `pfring_parse_pkt`: what a program has read of a packet that it has.

use ringway_flow::Headers;

use super::wire::*;
use crate::{
    abi::{NO_TUNNEL_ID, pfring_pkthdr, pkt_parsing_info},
    hash::hash_above_ethernet,
};

/// Reads a packet as deep as `level` says; returns how deep it came: 2, 3 or 4, and more in a tunnel.
pub fn program(bytes: &[u8], header: &mut pfring_pkthdr, level: u8, hash: bool) -> i32 {
    let mut info = header.parsed_pkt;
    let depth = read(bytes, &mut info, level);
    header.parsed_pkt = info;
    if hash && { header.pkt_hash } == 0 {
        header.pkt_hash = hash_above_ethernet(&info);
    }
    depth
}

fn read(bytes: &[u8], info: &mut pkt_parsing_info, level: u8) -> i32 {
    info.tunnel.id = NO_TUNNEL_ID;
    let mut depth = 2;
    if info.offset.l3 == 0 {
        info.offset.eth = 0;
        info.offset.vlan = 0;
        (info.vlan_id, info.qinq_vlan_id) = (0, 0);
        let Some(at) = link(bytes, info) else { return depth };
        info.offset.l3 = offset(at);
    }
    if level < 3 {
        return depth;
    }
    let is_later_fragment = match info.offset.l4 {
        0 => match network(bytes, info) {
            Some(is_later_fragment) => is_later_fragment,
            None => return depth,
        },
        _ => false,
    };
    depth = 3;
    if level < 4 || is_later_fragment {
        return depth;
    }
    let at = usize::try_from(info.offset.l4).unwrap_or(usize::MAX);
    let segment = bytes.get(at..).unwrap_or_default();
    info.offset.payload = info.offset.l4;
    (info.l4_src_port, info.l4_dst_port) = (0, 0);
    if let Some(length) = transport(info.l3_proto, segment, info) {
        depth = 4;
        if info.l3_proto != SCTP {
            info.offset.payload = offset(at + length);
        }
    }
    if level < 5 || !matches!(info.l3_proto, UDP | GRE) {
        return depth;
    }
    match Headers::parse(bytes).tunnel {
        // VXLAN is the capture's alone.
        Some(found) if info.l3_proto == GRE || found.macs == [[0; 6]; 2] => {
            tunnel(&found, info);
            let inner = &found.network;
            depth + i32::from(inner.version != 0) + i32::from(inner.ports != [0; 2])
        }
        _ => depth,
    }
}

/// Reads the IP header; returns whether this is a later fragment of a packet. `None` if it is not IP.
fn network(bytes: &[u8], info: &mut pkt_parsing_info) -> Option<bool> {
    let at = usize::try_from(info.offset.l3).ok()?;
    let packet = bytes.get(at..)?;
    let network = match info.eth_type {
        IPV4 => ipv4(packet)?,
        IPV6 => ipv6(packet)?,
        _ => return None,
    };
    network.put(info);
    info.offset.l4 = offset(at.saturating_add(network.length));
    Some(network.is_later_fragment)
}
