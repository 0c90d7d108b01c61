//! What the capture reads of a packet, for long headers, for rules and for hashes.

use ringway_flow::{Headers, PARSED_BYTES};

use super::wire::*;
use crate::abi::{IP_FRAG_OFFSET, IP_MORE_FRAG, NO_TUNNEL_ID, pkt_parsing_info};

/// Ports of GTP and of VXLAN.
const TUNNELS: [u16; 3] = [2123, 2152, 4789];

/// Reads a packet that begins with `bytes` into `info`; returns the flags of it that are about fragments.
pub fn capture(bytes: &[u8], info: &mut pkt_parsing_info) -> u32 {
    let bytes = &bytes[..bytes.len().min(PARSED_BYTES)];
    *info = pkt_parsing_info::default();
    info.tunnel.id = NO_TUNNEL_ID;
    let mut flags = 0;
    let _ = read(bytes, info, &mut flags);
    flags
}

fn read(bytes: &[u8], info: &mut pkt_parsing_info, flags: &mut u32) -> Option<()> {
    let mut at = link(bytes, info)?;
    if info.eth_type == MPLS {
        at = labelled(bytes, at, info)?;
    }
    info.offset.l3 = offset(at);
    let packet = bytes.get(at..)?;
    let network = match info.eth_type {
        IPV4 => ipv4(packet)?,
        IPV6 if packet.first()? >> 4 == 6 => ipv6(packet)?,
        _ => return None,
    };
    network.put(info);
    at += network.length;
    info.offset.l4 = offset(at);
    info.offset.payload = info.offset.l4;
    if network.more_fragments {
        *flags |= IP_MORE_FRAG;
    }
    if network.is_later_fragment {
        *flags |= IP_FRAG_OFFSET;
        return Some(());
    }
    let segment = bytes.get(at..)?;
    if network.proto == ICMP {
        (info.icmp_type, info.icmp_code) = (*segment.first()?, *segment.get(1)?);
        info.offset.payload = offset(at + 8);
    }
    if let Some(length) = transport(network.proto, segment, info) {
        info.offset.payload = offset(at + length);
    }
    let ports = [info.l4_src_port, info.l4_dst_port];
    let may_be_tunnel = match network.proto {
        GRE => true,
        UDP => ports.iter().any(|port| TUNNELS.contains(port)),
        _ => false,
    };
    if may_be_tunnel && let Some(found) = Headers::parse(bytes).tunnel {
        tunnel(&found, info);
    }
    Some(())
}

/// Goes on behind MPLS labels: to IP, by its first digit.
fn labelled(bytes: &[u8], mut at: usize, info: &mut pkt_parsing_info) -> Option<usize> {
    const MOST: usize = 9;
    let mut labels = 0;
    loop {
        let is_last = bytes.get(at + 2)? & 1 != 0;
        at += 4;
        labels += 1;
        if is_last {
            break;
        }
        if labels == MOST {
            return None;
        }
    }
    info.eth_type = match bytes.get(at)? >> 4 {
        4 => IPV4,
        6 => IPV6,
        _ => return None,
    };
    Some(at)
}
