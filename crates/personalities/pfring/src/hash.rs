//! PF_RING's hash of a packet: a sum, the same in both directions.

use crate::abi::{NO_TUNNEL_ID, ip_addr, pkt_parsing_info};

/// The default hash.
pub fn default_hash(info: &pkt_parsing_info) -> u32 {
    sum(info, true)
}

/// The same, but never by Ethernet addresses.
pub fn hash_above_ethernet(info: &pkt_parsing_info) -> u32 {
    sum(info, false)
}

/// Of the outer headers, or of what is in the tunnel. Ethernet addresses count where there is nothing above them.
#[inline]
fn sum(info: &pkt_parsing_info, by_macs: bool) -> u32 {
    let tunnel = &info.tunnel;
    let id = tunnel.id;
    let (version, proto, macs, addresses, ports) = match id {
        NO_TUNNEL_ID => (
            info.ip_version,
            info.l3_proto,
            [&info.smac, &info.dmac],
            [&info.ip_src, &info.ip_dst],
            [info.l4_src_port, info.l4_dst_port],
        ),
        _ => (
            tunnel.ip_version,
            tunnel.proto,
            [&tunnel.smac, &tunnel.dmac],
            [&tunnel.ip_src, &tunnel.ip_dst],
            [tunnel.l4_src_port, tunnel.l4_dst_port],
        ),
    };
    let [source, destination] = addresses;
    let addresses = match version {
        4 => first_word(source).wrapping_add(first_word(destination)),
        6 => words(source).chain(words(destination)).fold(0, u32::wrapping_add),
        _ if by_macs && proto == 0 => macs.into_iter().flatten().map(|byte| u32::from(*byte)).sum(),
        _ => 0,
    };
    let [source, destination] = ports.map(u32::from);
    addresses
        .wrapping_add(info.vlan_id.into())
        .wrapping_add(proto.into())
        .wrapping_add(source)
        .wrapping_add(destination)
}

fn words(address: &ip_addr) -> impl Iterator<Item = u32> {
    address.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word))
}

fn first_word(address: &ip_addr) -> u32 {
    words(address).next().unwrap_or(0)
}
