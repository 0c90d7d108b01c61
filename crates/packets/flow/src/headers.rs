//! The headers of a packet, as PF_RING's capture side reads them: what its hashes go by.

/// Bytes of a packet that are looked at, at most.
pub const PARSED_BYTES: usize = 128;

pub(crate) const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;
const GRE: u8 = 47;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// Ports of UDP by which there are tunnels.
const GTP: [u16; 2] = [2123, 2152];
const VXLAN: u16 = 4789;

/// Two ends: of IP, and of what is in it. What a packet does not have is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// 4, 6, or 0 for what is not IP.
    pub version: u8,
    pub protocol: u8,
    /// Source and destination; an IPv4 address is in the first four bytes.
    pub addresses: [[u8; 16]; 2],
    pub ports: [u16; 2],
    pub fragment: Option<Fragment>,
}

/// A part of an IPv4 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    pub id: u16,
    pub is_first: bool,
    pub is_last: bool,
}

/// A packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Destination and source.
    pub macs: [[u8; 6]; 2],
    /// Of the outer tag; 0 without one.
    pub vlan: u16,
    pub network: Network,
    pub tunnel: Option<Tunnel>,
}

/// What is in a tunnel that has a number: GTP version 1, GRE with a key, VXLAN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tunnel {
    pub id: u32,
    /// All 0 in a tunnel of IP.
    pub macs: [[u8; 6]; 2],
    pub network: Network,
}

impl Headers {
    /// Reads a packet that begins with `bytes`. What is cut off is as if it were not there.
    pub fn parse(bytes: &[u8]) -> Headers {
        let bytes = &bytes[..bytes.len().min(PARSED_BYTES)];
        let Some((macs, vlan, ethertype, packet)) = ethernet(bytes) else {
            return Headers::default();
        };
        let Some((network, transport)) = ip(ethertype, packet) else {
            return Headers { macs, vlan, ..Headers::default() };
        };
        let tunnel = transport.and_then(|bytes| tunnel(&network, bytes));
        Headers { macs, vlan, network, tunnel }
    }
}

/// What a packet goes by that is as most are: TCP, UDP or SCTP in IPv4, whole, without tags, options and tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    pub protocol: u8,
    /// Sums of both addresses and of both ports.
    pub addresses: u32,
    pub ports: u32,
}

impl Plain {
    /// `None` if it is another: [`Headers::parse`] reads all.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Plain> {
        const LENGTH: usize = 14 + 20 + 4;
        const VERSION_4_WITHOUT_OPTIONS: u32 = 0x45;
        const TYPE_AND_VERSION: u32 = (IPV4 as u32) << 16 | VERSION_4_WITHOUT_OPTIONS << 8;
        let bytes: &[u8; LENGTH] = bytes.first_chunk()?;
        let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let two_words = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let protocol = bytes[14 + 9];
        let is_part = word(14 + 6) & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0;
        if two_words(12) & 0xffff_ff00 != TYPE_AND_VERSION || is_part {
            return None;
        }
        let (source, destination) = (word(34), word(36));
        let is_tunnel = |port| port == GTP[0] || port == GTP[1] || port == VXLAN;
        match protocol {
            TCP | SCTP => {}
            UDP if !is_tunnel(source) && !is_tunnel(destination) => {}
            _ => return None,
        }
        let addresses = two_words(26).wrapping_add(two_words(30));
        Some(Plain { protocol, addresses, ports: u32::from(source) + u32::from(destination) })
    }
}

type Ethernet<'b> = ([[u8; 6]; 2], u16, u16, &'b [u8]);

/// Addresses, outer VLAN, type, and what is behind all tags and labels.
fn ethernet(bytes: &[u8]) -> Option<Ethernet<'_>> {
    // Another 14 bytes stand in front of the type.
    const PREFIXED: u16 = 0xd28b;
    // 0x88a8 is none to PF_RING: such a packet is not IP.
    const TAG: u16 = 0x8100;
    const MPLS: u16 = 0x8847;
    let macs = [array(bytes, 0)?, array(bytes, 6)?];
    let mut at = 12;
    if word(bytes, at)? == PREFIXED {
        at += 14;
    }
    let mut vlan = None;
    while word(bytes, at)? == TAG {
        vlan = vlan.or(Some(word(bytes, at + 2)? & 0xfff));
        at += 4;
    }
    let (ethertype, packet) = (word(bytes, at)?, &bytes[at + 2..]);
    let (ethertype, packet) = match ethertype {
        MPLS => labelled(packet)?,
        _ => (ethertype, packet),
    };
    Some((macs, vlan.unwrap_or(0), ethertype, packet))
}

/// What is behind MPLS labels: IP, by its first digit.
fn labelled(packet: &[u8]) -> Option<(u16, &[u8])> {
    const MOST: usize = 9;
    let last = (0..MOST).find(|label| packet.get(4 * label + 2).is_some_and(|b| b & 1 != 0))?;
    let packet = packet.get(4 * (last + 1)..)?;
    match packet.first()? >> 4 {
        4 => Some((IPV4, packet)),
        6 => Some((IPV6, packet)),
        _ => None,
    }
}

/// The IP header, and what is behind it if it has ports: not that of a later fragment of IPv4.
fn ip(ethertype: u16, packet: &[u8]) -> Option<(Network, Option<&[u8]>)> {
    let (mut network, transport) = match ethertype {
        IPV4 => ipv4(packet)?,
        IPV6 => ipv6(packet)?,
        _ => return None,
    };
    if let Some(bytes) = transport
        && matches!(network.protocol, TCP | UDP | SCTP)
        && let (Some(source), Some(destination)) = (word(bytes, 0), word(bytes, 2))
    {
        network.ports = [source, destination];
    }
    Some((network, transport))
}

fn ipv4(packet: &[u8]) -> Option<(Network, Option<&[u8]>)> {
    let mut addresses = [[0; 16]; 2];
    for (address, at) in addresses.iter_mut().zip([12, 16]) {
        address[..4].copy_from_slice(packet.get(at..at + 4)?);
    }
    let flags = word(packet, 6)?;
    let (more, offset) = (flags & MORE_FRAGMENTS != 0, flags & FRAGMENT_OFFSET);
    let id = word(packet, 4)?;
    let fragment =
        (more || offset != 0).then_some(Fragment { id, is_first: offset == 0, is_last: !more });
    let header = usize::from(packet[0] & 0xf) * 4;
    let transport = packet.get(header..).filter(|_| offset == 0);
    let protocol = packet[9];
    Some((Network { version: 4, protocol, addresses, ports: [0; 2], fragment }, transport))
}

/// What is behind a fragment's header has ports to PF_RING, also in the middle of a packet, if
/// there is as much of it as the protocol's header has.
fn ipv6(packet: &[u8]) -> Option<(Network, Option<&[u8]>)> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const NOTHING: u8 = 59;
    const OPTIONS: u8 = 60;
    if packet.first()? >> 4 != 6 {
        return None;
    }
    let addresses = [array(packet, 8)?, array(packet, 24)?];
    let (mut protocol, mut at, mut is_fragment) = (packet[6], 40, false);
    while let Some(header) = packet.get(at..at + 8) {
        at += match protocol {
            HOP_BY_HOP | ROUTING | OPTIONS => 8 + 8 * usize::from(header[1]),
            FRAGMENT => {
                is_fragment = true;
                8
            }
            _ => break,
        };
        protocol = header[0];
    }
    if protocol == NOTHING {
        protocol = 0;
    }
    let least = match protocol {
        TCP if is_fragment => 20,
        UDP if is_fragment => 8,
        _ => 0,
    };
    let network = Network { version: 6, protocol, addresses, ..Network::default() };
    Some((network, packet.get(at..).filter(|transport| transport.len() >= least)))
}

fn tunnel(outer: &Network, bytes: &[u8]) -> Option<Tunnel> {
    let payload = || bytes.get(8..);
    match outer.protocol {
        GRE => gre(bytes),
        UDP if outer.ports.iter().any(|port| GTP.contains(port)) => {
            gtp(payload()?, outer.ports.contains(&GTP[1]))
        }
        UDP if outer.ports.contains(&VXLAN) => vxlan(payload()?),
        _ => None,
    }
}

fn gre(bytes: &[u8]) -> Option<Tunnel> {
    let flags = word(bytes, 0)?;
    const CHECKSUM_OR_ROUTING: u16 = 0xc000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const VERSION: u16 = 7;
    if flags & KEY == 0 || flags & VERSION != 0 {
        return None;
    }
    let at = if flags & CHECKSUM_OR_ROUTING == 0 { 4 } else { 8 };
    let id = u32::from_be_bytes(array(bytes, at)?);
    let inner = at + if flags & SEQUENCE == 0 { 4 } else { 8 };
    let network = bytes.get(inner..).and_then(|packet| ip(word(bytes, 2)?, packet));
    Some(Tunnel { id, network: network.unwrap_or_default().0, ..Tunnel::default() })
}

fn gtp(bytes: &[u8], carries_ip: bool) -> Option<Tunnel> {
    // Version 1, and not GTP prime.
    const KIND: u8 = 0xf0;
    const OPTIONAL: u8 = 7;
    const EXTENDED: u8 = 4;
    let flags = *bytes.first()?;
    if flags & KIND != 0x30 {
        return None;
    }
    let id = u32::from_be_bytes(array(bytes, 4)?);
    let mut at = if flags & OPTIONAL == 0 { 8 } else { 12 };
    // Each extension ends with the type of the next; its first byte counts four bytes each.
    while flags & EXTENDED != 0 && bytes.get(at - 1).is_some_and(|next| *next != 0) {
        at += 4 * usize::from(*bytes.get(at).filter(|length| **length > 0)?);
    }
    let inner = bytes.get(at..).filter(|_| carries_ip).unwrap_or_default();
    let ethertype = match inner.first().map(|byte| byte >> 4) {
        Some(4) => IPV4,
        Some(6) => IPV6,
        _ => 0,
    };
    let network = ip(ethertype, inner).unwrap_or_default().0;
    Some(Tunnel { id, network, ..Tunnel::default() })
}

fn vxlan(bytes: &[u8]) -> Option<Tunnel> {
    let header: [u8; 8] = array(bytes, 0)?;
    if header[0] != 8 || header[7] != 0 {
        return None;
    }
    let id = u32::from_be_bytes([0, header[4], header[5], header[6]]);
    let inner = ethernet(&bytes[8..]);
    let (macs, network) = inner.map_or(Default::default(), |(macs, _, ethertype, packet)| {
        (macs, ip(ethertype, packet).unwrap_or_default().0)
    });
    Some(Tunnel { id, macs, network })
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests;
