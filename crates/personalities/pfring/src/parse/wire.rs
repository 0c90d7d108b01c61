//! Headers as they are on the wire, in whatever bytes there are: what is cut off is not there.

use crate::abi::{ip_addr, pkt_parsing_info};

pub const IPV4: u16 = 0x0800;
pub const IPV6: u16 = 0x86dd;
pub const MPLS: u16 = 0x8847;
const TAG: u16 = 0x8100;
/// Another 14 bytes stand in front of the type.
const PREFIXED: u16 = 0xd28b;

pub const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const GRE: u8 = 47;
pub const SCTP: u8 = 132;

pub fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

pub fn half(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

/// An offset as a header has it.
pub fn offset(at: usize) -> i16 {
    i16::try_from(at).unwrap_or(i16::MAX)
}

/// Reads addresses, tags and type; returns where what is behind them begins.
pub fn link(bytes: &[u8], info: &mut pkt_parsing_info) -> Option<usize> {
    info.dmac = array(bytes, 0)?;
    info.smac = array(bytes, 6)?;
    let mut at = 12;
    if half(bytes, at)? == PREFIXED {
        at += 14;
    }
    let mut tags = 0;
    while half(bytes, at)? == TAG {
        let id = half(bytes, at + 2)? & 0xfff;
        match tags {
            0 => info.vlan_id = id,
            1 => info.qinq_vlan_id = id,
            _ => {}
        }
        info.offset.vlan = offset(at + 2);
        tags += 1;
        at += 4;
    }
    info.eth_type = half(bytes, at)?;
    Some(at + 2)
}

/// An IP header.
pub struct Network {
    pub version: u8,
    pub proto: u8,
    pub tos: u8,
    pub addresses: [ip_addr; 2],
    /// Bytes, extension headers included.
    pub length: usize,
    pub more_fragments: bool,
    pub is_later_fragment: bool,
}

/// An address as PF_RING has it: in host order.
fn ipv4_address(bytes: &[u8], at: usize) -> Option<ip_addr> {
    let mut address = [0; 16];
    address[..4].copy_from_slice(&word(bytes, at)?.to_ne_bytes());
    Some(address)
}

pub fn ipv4(bytes: &[u8]) -> Option<Network> {
    let fragment = half(bytes, 6)?;
    Some(Network {
        version: 4,
        proto: *bytes.get(9)?,
        tos: bytes[1],
        addresses: [ipv4_address(bytes, 12)?, ipv4_address(bytes, 16)?],
        length: usize::from(bytes[0] & 0xf) * 4,
        more_fragments: fragment & 0x2000 != 0,
        is_later_fragment: fragment & 0x1fff != 0,
    })
}

pub fn ipv6(bytes: &[u8]) -> Option<Network> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const NOTHING: u8 = 59;
    const OPTIONS: u8 = 60;
    let addresses = [array(bytes, 8)?, array(bytes, 24)?];
    let (mut proto, mut length) = (bytes[6], 40);
    while let Some(header) = array::<2>(bytes, length) {
        length += match proto {
            HOP_BY_HOP | ROUTING | OPTIONS => 8 + 8 * usize::from(header[1]),
            FRAGMENT => 8,
            _ => break,
        };
        proto = header[0];
    }
    Some(Network {
        version: 6,
        proto: if proto == NOTHING { 0 } else { proto },
        tos: bytes[0] & 0xf,
        addresses,
        length,
        more_fragments: false,
        is_later_fragment: false,
    })
}

impl Network {
    pub fn put(&self, info: &mut pkt_parsing_info) {
        info.ip_version = self.version;
        info.l3_proto = self.proto;
        info.ip_tos = self.tos;
        [info.ip_src, info.ip_dst] = self.addresses;
    }
}

/// Reads ports, and what TCP has beside them; returns bytes of the header. `None` if it is not there.
pub fn transport(proto: u8, bytes: &[u8], info: &mut pkt_parsing_info) -> Option<usize> {
    let ports = || Some([half(bytes, 0)?, half(bytes, 2)?]);
    match proto {
        TCP => {
            let length = usize::from(*bytes.get(12)? >> 4) * 4;
            info.tcp_flags = *bytes.get(13)? & 0x3f;
            info.tcp_seq_num = word(bytes, 4)?;
            info.tcp_ack_num = word(bytes, 8)?;
            [info.l4_src_port, info.l4_dst_port] = ports()?;
            Some(length)
        }
        UDP | SCTP => {
            [info.l4_src_port, info.l4_dst_port] = ports()?;
            Some(if proto == UDP { 8 } else { 12 })
        }
        _ => None,
    }
}

/// What [`ringway_flow`] finds in a tunnel, put where a header has it.
pub fn tunnel(found: &ringway_flow::Tunnel, info: &mut pkt_parsing_info) {
    let ringway_flow::Network { version, protocol, addresses, ports, .. } = found.network;
    let [source, destination] = addresses.map(|address| match version {
        4 => ipv4_address(&address, 0).unwrap_or_default(),
        _ => address,
    });
    let tunnel = &mut info.tunnel;
    tunnel.id = found.id;
    [tunnel.dmac, tunnel.smac] = found.macs;
    tunnel.eth_type = match version {
        4 => IPV4,
        6 => IPV6,
        _ => 0,
    };
    tunnel.ip_version = version;
    tunnel.proto = protocol;
    (tunnel.ip_src, tunnel.ip_dst) = (source, destination);
    [tunnel.l4_src_port, tunnel.l4_dst_port] = ports;
}
