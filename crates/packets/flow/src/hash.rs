//! A number that the packets of a flow share, in both directions.
//!
//! A flow is what goes between two pairs of IP address and TCP, UDP or SCTP port. Fragments go
//! by their addresses alone, since all but the first have no ports; other packets by their
//! Ethernet addresses. What is in a GRE tunnel goes by what it is inside.

use crate::headers::word;

/// Ethernet, two tags, the longest IPv4 header.
const HEADERS: usize = 14 + 8 + 60;
/// Bytes of a packet that are looked at, at most: headers, GRE, headers again, ports.
pub const HASHED_BYTES: usize = HEADERS + 16 + HEADERS + 4;

/// What a packet goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowHash {
    /// The number. All its bits are equally good.
    pub hash: u32,
    /// Made from IP addresses, not from Ethernet's.
    pub is_ip: bool,
}

/// The flow of a packet that begins with `bytes`; [`HASHED_BYTES`] of them are enough.
///
/// ```
/// let arp = [&[0xff; 6], &[2, 0, 0, 0, 0, 1][..], &[8, 6]].concat();
/// let flow = ringway_flow::flow_hash(&arp);
/// assert!(!flow.is_ip && flow.hash != 0);
/// ```
pub fn flow_hash(bytes: &[u8]) -> FlowHash {
    let flow = payload(bytes).and_then(|(ethertype, packet)| network(ethertype, packet, true));
    let ethernet = || Some(unordered(bytes.get(..6)?, bytes.get(6..12)?));
    let is_ip = flow.is_some();
    FlowHash { hash: (flow.or_else(ethernet).unwrap_or(0) >> 32) as u32, is_ip }
}

/// `None` if it is not IP. A tunnel inside a tunnel is not looked into.
fn network(ethertype: u16, packet: &[u8], tunnels: bool) -> Option<u64> {
    match ethertype {
        0x0800 => ipv4(packet, tunnels),
        0x86dd => ipv6(packet, tunnels),
        _ => None,
    }
}

/// What is in a GRE tunnel (RFC 2784, RFC 2890): IP, or Ethernet frames. `None` for what is
/// neither.
fn tunnelled(gre: &[u8]) -> Option<u64> {
    const GRE_ETHERNET: u16 = 0x6558;
    const VERSION: u16 = 7;
    let flags = word(gre, 0)?;
    // Checksum, key and sequence number, each four bytes if it is there.
    let options = (flags & 0xb000).count_ones() as usize;
    let inner = gre.get(4 + 4 * options..).filter(|_| flags & VERSION == 0)?;
    match word(gre, 2)? {
        GRE_ETHERNET => {
            payload(inner).and_then(|(ethertype, packet)| network(ethertype, packet, false))
        }
        ethertype => network(ethertype, inner, false),
    }
}

/// What is behind the Ethernet header and at most two VLAN tags, with its type.
fn payload(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let mut at = 12;
    for _ in 0..2 {
        if !matches!(word(bytes, at)?, 0x8100 | 0x88a8) {
            break;
        }
        at += 4;
    }
    Some((word(bytes, at)?, &bytes[at + 2..]))
}

fn ipv4(packet: &[u8], tunnels: bool) -> Option<u64> {
    let addresses = unordered(packet.get(12..16)?, packet.get(16..20)?);
    let header = usize::from(packet[0] & 0xf) * 4;
    let fragment = word(packet, 6)? & 0x3fff != 0;
    let transport = packet.get(header..).filter(|_| !fragment);
    Some(with_ports(addresses, packet[9], transport, tunnels))
}

/// Extension headers are not walked: what has one goes by its addresses.
fn ipv6(packet: &[u8], tunnels: bool) -> Option<u64> {
    let addresses = unordered(packet.get(8..24)?, packet.get(24..40)?);
    Some(with_ports(addresses, packet[6], packet.get(40..), tunnels))
}

fn with_ports(addresses: u64, protocol: u8, transport: Option<&[u8]>, tunnels: bool) -> u64 {
    const GRE: u8 = 47;
    if protocol == GRE
        && tunnels
        && let Some(inner) = transport.and_then(tunnelled)
    {
        return inner;
    }
    let known = matches!(protocol, 6 | 17 | 132);
    let ports =
        transport.filter(|_| known).and_then(|t| Some(unordered(t.get(..2)?, t.get(2..4)?)));
    mix(addresses ^ ports.unwrap_or(0).rotate_left(32))
}

/// The same whichever of the two comes first.
fn unordered(a: &[u8], b: &[u8]) -> u64 {
    let number = |bytes: &[u8]| {
        bytes.chunks(8).fold(1, |sum, part| {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            mix(sum ^ u64::from_le_bytes(word))
        })
    };
    mix(number(a).wrapping_add(number(b)))
}

/// Every bit of the result depends on all bits of `n` (the finaliser of SplitMix64).
fn mix(mut n: u64) -> u64 {
    n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn hash(bytes: &[u8]) -> u32 {
        flow_hash(bytes).hash
    }

    #[derive(Clone, Debug)]
    struct Flow {
        ends: [(Vec<u8>, u16); 2],
        protocol: u8,
        tags: usize,
        options: usize,
    }

    fn flow() -> impl Strategy<Value = Flow> {
        let end = |n| (vec(any::<u8>(), n), any::<u16>());
        let ends = prop::sample::select(&[4usize, 16]).prop_flat_map(move |n| (end(n), end(n)));
        let protocol = prop::sample::select(&[6u8, 17, 132]);
        (ends, protocol, 0usize..3, 0usize..11).prop_map(|((a, b), protocol, tags, options)| Flow {
            ends: [a, b],
            protocol,
            tags,
            options,
        })
    }

    /// A packet of the flow; `noise` stands in all places that must not matter.
    fn packet(flow: &Flow, back: bool, noise: u8, fragment: u16) -> Vec<u8> {
        let [from, to] = if back { [1, 0] } else { [0, 1] }.map(|i: usize| &flow.ends[i]);
        let mut bytes = vec![noise; 12];
        for _ in 0..flow.tags {
            bytes.extend([0x81, 0, noise, noise]);
        }
        if from.0.len() == 4 {
            bytes.extend([8, 0, 0x45 + flow.options as u8, noise, noise, noise, noise, noise]);
            bytes.extend(fragment.to_be_bytes());
            bytes.extend([noise, flow.protocol, noise, noise]);
        } else {
            bytes.extend([
                0x86,
                0xdd,
                0x60,
                noise,
                noise,
                noise,
                noise,
                noise,
                flow.protocol,
                noise,
            ]);
        }
        bytes.extend(from.0.iter().chain(&to.0));
        if from.0.len() == 4 {
            bytes.extend(vec![noise; flow.options * 4]);
        }
        bytes.extend([from.1.to_be_bytes(), to.1.to_be_bytes()].concat());
        bytes.extend([noise; 40]);
        bytes.truncate(HASHED_BYTES);
        bytes
    }

    proptest! {
        #[test]
        fn a_flow_has_one_number_in_both_directions(f in flow(), noise: [u8; 2]) {
            let [there, back] = [packet(&f, false, noise[0], 0), packet(&f, true, noise[1], 0)];
            prop_assert_eq!(hash(&there), hash(&back));
        }

        #[test]
        fn fragments_of_a_packet_have_one_number(f in flow(), noise: [u8; 2], at in 1u16..0x2000) {
            prop_assume!(f.ends[0].0.len() == 4);
            let mut other_ports = f.clone();
            other_ports.ends.iter_mut().for_each(|end| end.1 ^= 1);
            let first = packet(&f, false, noise[0], 0x2000);
            prop_assert_eq!(hash(&first), hash(&packet(&other_ports, false, noise[1], at)));
        }

        #[test]
        fn any_bytes_have_a_number(bytes in vec(any::<u8>(), 0..=HASHED_BYTES)) {
            hash(&bytes);
        }
    }

    /// The packet in a GRE tunnel, with these flags and inside as Ethernet or as IP.
    fn in_tunnel(inner: &[u8], flags: u16, ethernet: bool) -> Vec<u8> {
        let (ethertype, rest) = payload(inner).unwrap();
        let mut bytes = vec![9; 12];
        bytes.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 47, 0, 0]);
        bytes.extend([10, 9, 8, 7, 10, 9, 8, 6]);
        bytes.extend(flags.to_be_bytes());
        bytes.extend(if ethernet { 0x6558 } else { ethertype }.to_be_bytes());
        bytes.extend(vec![1; 4 * (flags & 0xb000).count_ones() as usize]);
        bytes.extend(if ethernet { inner } else { rest });
        bytes
    }

    proptest! {
        #[test]
        fn a_tunnel_is_looked_through(f in flow(), noise: u8, options in 0u16..8, ethernet: bool) {
            let plain = packet(&f, false, noise, 0);
            let flags = (options & 1) << 12 | (options & 2) << 12 | (options & 4) << 13;
            prop_assert_eq!(flow_hash(&in_tunnel(&plain, flags, ethernet)), flow_hash(&plain));
            // Another version is another protocol.
            let other = flow_hash(&in_tunnel(&plain, flags | 1, ethernet));
            prop_assert_eq!(other, flow_hash(&in_tunnel(&[0; 60], 1, true)));
        }
    }

    /// Each bit of addresses and ports counts; without ports, each of the addresses.
    #[test]
    fn flows_that_differ_in_a_bit_have_different_numbers() {
        for length in [4, 16] {
            for protocol in [6, 1] {
                let ends = [(vec![0x5a; length], 80), (vec![0xa5; length], 1025)];
                let flow = Flow { ends, protocol, tags: 0, options: 0 };
                let mut numbers = vec![hash(&packet(&flow, false, 0, 0))];
                for end in 0..2 {
                    for bit in 0..length * 8 {
                        let mut other = flow.clone();
                        other.ends[end].0[bit / 8] ^= 1 << (bit % 8);
                        numbers.push(hash(&packet(&other, false, 0, 0)));
                    }
                    for bit in 0..if protocol == 6 { 16 } else { 0 } {
                        let mut other = flow.clone();
                        other.ends[end].1 ^= 1 << bit;
                        numbers.push(hash(&packet(&other, false, 0, 0)));
                    }
                }
                let count = numbers.len();
                numbers.sort_unstable();
                numbers.dedup();
                assert_eq!(numbers.len(), count, "{length} bytes, protocol {protocol}");
            }
        }
    }

    /// The published sequence of SplitMix64 from 1234567.
    #[test]
    fn mix_is_the_finaliser_of_splitmix64() {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let sequence =
            [1, 2, 3, 4, 5].map(|n: u64| mix(1_234_567u64.wrapping_add(STEP.wrapping_mul(n))));
        assert_eq!(
            sequence,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }

    /// The ports of a packet whose headers are as long as they can be are the last that is looked at.
    #[test]
    fn the_longest_headers_are_looked_at_whole() {
        let longest = |protocol, ports| {
            let ends = [(vec![10, 0, 0, 1], 1), (vec![10, 0, 0, 2], ports)];
            let mut bytes = packet(&Flow { ends, protocol, tags: 2, options: 10 }, false, 0, 0);
            bytes.truncate(HEADERS + 4);
            bytes
        };
        let tunnel = |ports| {
            let mut bytes = longest(47, 0);
            bytes.truncate(HEADERS);
            bytes.extend([0xb0, 0, 0x65, 0x58, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            bytes.extend(longest(6, ports));
            bytes
        };
        let [one, other] = [tunnel(0x100), tunnel(0x101)];
        assert_eq!(one.len(), HASHED_BYTES);
        assert_ne!(flow_hash(&one), flow_hash(&other));
        assert_eq!(flow_hash(&one), flow_hash(&longest(6, 0x100)));
    }

    /// A thousand flows that differ in one port number spread over eight ports.
    #[test]
    fn flows_are_spread() {
        let mut f = Flow {
            ends: [(vec![10, 0, 0, 1], 0), (vec![10, 0, 0, 2], 80)],
            protocol: 6,
            tags: 0,
            options: 0,
        };
        let mut counts = [0; 8];
        for port in 0..1024 {
            f.ends[0].1 = port;
            counts[hash(&packet(&f, false, 0, 0)) as usize >> 29] += 1;
        }
        assert!(counts.iter().all(|n| (80..180).contains(n)), "{counts:?}");
    }
}
