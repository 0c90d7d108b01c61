//! Which frame queue a received frame goes to: the first distribution that it has all fields and protocols of.

use super::{
    crc64::crc64,
    parse::{Headers, LOOKED_AT, Layer},
};
use crate::netcfg::policy::{Policy, Step};

/// Fields of keys by their names: the header that each is in, its offset there, and its bytes.
const FIELDS: &[(&str, Layer, u8, u8)] = &[
    ("ethernet.dst", Layer::Ethernet, 0, 6),
    ("ethernet.src", Layer::Ethernet, 6, 6),
    ("ethernet.type", Layer::EtherType, 0, 2),
    ("vlan.tci", Layer::Vlan, 0, 2),
    ("arp.htype", Layer::Arp, 0, 2),
    ("arp.ptype", Layer::Arp, 2, 2),
    ("arp.opcode", Layer::Arp, 6, 2),
    ("arp.tpa", Layer::Arp, 24, 4),
    ("ipv4.tos", Layer::Ipv4, 1, 1),
    ("ip.dscp", Layer::Ipv4, 1, 1),
    ("ipv4.foffset", Layer::Ipv4, 6, 2),
    ("ipv4.nextp", Layer::Ipv4, 9, 1),
    ("ipv4.src", Layer::Ipv4, 12, 4),
    ("ipv4.dst", Layer::Ipv4, 16, 4),
    ("ipv6.tos", Layer::Ipv6, 0, 2),
    ("ipv6.nexthdr", Layer::Ipv6, 6, 1),
    ("ipv6.src", Layer::Ipv6, 8, 16),
    ("ipv6.dst", Layer::Ipv6, 24, 16),
    ("tcp.sport", Layer::Tcp, 0, 2),
    ("tcp.dport", Layer::Tcp, 2, 2),
    ("udp.sport", Layer::Udp, 0, 2),
    ("udp.dport", Layer::Udp, 2, 2),
    ("sctp.sport", Layer::Sctp, 0, 2),
    ("sctp.dport", Layer::Sctp, 2, 2),
    ("ipsec_esp.spi", Layer::Esp, 0, 4),
    ("udpipsec.spi", Layer::UdpEsp, 0, 4),
];

const PROTOCOLS: &[(&str, Layer)] = &[
    ("ethernet", Layer::Ethernet),
    ("vlan", Layer::Vlan),
    ("arp", Layer::Arp),
    ("ipv4", Layer::Ipv4),
    ("ipv6", Layer::Ipv6),
    ("tcp", Layer::Tcp),
    ("udp", Layer::Udp),
    ("sctp", Layer::Sctp),
    ("ipsec_esp", Layer::Esp),
    ("udpipsec", Layer::UdpEsp),
];

/// Bytes of a key, at most; fields that find no room are left out of the sum.
const KEY: usize = 56;

/// A policy, ready to be applied to frames.
#[derive(Debug, Default)]
pub struct Distributor {
    steps: Vec<Compiled>,
    default: u32,
}

#[derive(Debug)]
struct Compiled {
    /// Layers that a frame must have; one more than there are where it can have them never.
    needs: u16,
    fields: Vec<(Layer, u8, u8)>,
    base: u32,
    count: u32,
    entries: Vec<(Vec<u8>, Compiled)>,
    is_link: bool,
}

const NEVER: u16 = 1 << 15;

impl Distributor {
    pub fn new(policy: &Policy) -> Distributor {
        let steps = policy.steps.iter().map(Compiled::new).collect();
        Distributor { steps, default: policy.default }
    }

    /// The frame queue of a frame that begins with `frame`; `None` where its headers are malformed.
    #[inline]
    pub fn fqid(&self, frame: &[u8]) -> Option<u32> {
        let headers = Headers::parse(frame);
        if headers.malformed {
            return None;
        }
        let frame = &frame[..frame.len().min(LOOKED_AT)];
        let found = self.steps.iter().find_map(|step| step.fqid(&headers, frame));
        Some(found.unwrap_or(self.default))
    }
}

impl Compiled {
    fn new(step: &Step) -> Compiled {
        let field = |name: &String| FIELDS.iter().find(|(field, ..)| field == name);
        let protocol = |name: &String| PROTOCOLS.iter().find(|(protocol, _)| protocol == name);
        // What is not known no frame has.
        let of_fields = step.key.iter().map(|name| field(name).map_or(NEVER, |f| f.1.bit()));
        let of_protocols =
            step.protocols.iter().map(|name| protocol(name).map_or(NEVER, |p| p.1.bit()));
        let mut bytes = 0;
        let fields =
            step.key.iter().filter_map(field).map(|(_, layer, at, len)| (*layer, *at, *len));
        let fields = fields.take_while(|(.., len)| {
            bytes += usize::from(*len);
            bytes <= KEY
        });
        Compiled {
            needs: of_fields.chain(of_protocols).fold(0, |needs, bit| needs | bit),
            fields: fields.collect(),
            base: step.base,
            count: step.count,
            entries: step
                .entries
                .iter()
                .map(|(v, step)| (v.clone(), Compiled::new(step)))
                .collect(),
            is_link: step.is_link(),
        }
    }

    #[inline]
    fn fqid(&self, headers: &Headers, frame: &[u8]) -> Option<u32> {
        if headers.present & self.needs != self.needs {
            return None;
        }
        let mut key = [0; KEY];
        let key = self.key(headers, frame, &mut key);
        if self.is_link {
            let entry = self.entries.iter().find(|(value, _)| value == key);
            return entry.and_then(|(_, step)| step.fqid(headers, frame));
        }
        Some(self.base + share(crc64(key), self.count))
    }

    #[inline]
    fn key<'k>(&self, headers: &Headers, frame: &[u8], key: &'k mut [u8; KEY]) -> &'k [u8] {
        let mut end = 0;
        for &(layer, offset, len) in &self.fields {
            let (from, len) = (headers.at(layer) + usize::from(offset), usize::from(len));
            let (Some(from), Some(to)) = (frame.get(from..from + len), key.get_mut(end..end + len))
            else {
                continue;
            };
            to.copy_from_slice(from);
            end += len;
        }
        &key[..end]
    }
}

/// One of `count`: the low bits of the sum, where these are enough to say which.
#[inline]
fn share(hash: u64, count: u32) -> u32 {
    if count.is_power_of_two() {
        hash as u32 & (count - 1)
    } else {
        ((u64::from(hash as u32) * u64::from(count)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(key: &[&str], protocols: &[&str], base: u32, count: u32) -> Step {
        let owned = |names: &[&str]| names.iter().map(|name| String::from(*name)).collect();
        Step { key: owned(key), protocols: owned(protocols), base, count, entries: Vec::new() }
    }

    fn distributor(steps: Vec<Step>) -> Distributor {
        Distributor::new(&Policy { ranges: Vec::new(), default: 7, steps })
    }

    /// IPv4 in Ethernet, with tags, from 10.0.0.1 to 10.0.0.2.
    fn ipv4(tags: usize, protocol: u8, transport: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 5]));
        frame.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(transport);
        frame
    }

    #[test]
    fn programs_know_the_frame_queue_of_a_flow() {
        let ip = distributor(vec![step(&["ipv4.src", "ipv4.dst"], &[], 0x400, 32)]);
        let sum = crc64(&[10, 0, 0, 1, 10, 0, 0, 2]);
        for tags in 0..3 {
            let fqid = ip.fqid(&ipv4(tags, 17, &[0; 8]));
            assert_eq!(fqid, Some(0x400 + (sum & 31) as u32));
        }
    }

    #[test]
    fn the_first_distribution_that_fits_takes_the_frame() {
        let steps = vec![
            step(&["ipv4.src", "ipsec_esp.spi"], &[], 0x100, 1),
            step(&[], &["udp", "vlan"], 0x200, 1),
            step(&["nonsense.field"], &[], 0x300, 1),
            step(&["ipv6.src"], &[], 0x400, 1),
        ];
        let all = distributor(steps);
        assert_eq!(all.fqid(&ipv4(0, 50, &[0; 8])), Some(0x100));
        assert_eq!(all.fqid(&ipv4(1, 17, &[0; 8])), Some(0x200));
        assert_eq!(all.fqid(&ipv4(0, 17, &[0; 8])), Some(7));
        assert_eq!(all.fqid(&[&[0xff; 12][..], &[8, 6], &[0; 28]].concat()), Some(7));
        let mut ipv6 = [&[2; 12][..], &[0x86, 0xdd, 0x60], &[0; 39]].concat();
        assert_eq!(all.fqid(&ipv6), Some(0x400));
        ipv6.truncate(50);
        assert_eq!(all.fqid(&ipv6), None);
        assert_eq!(all.fqid(&[0; 13]), None);
    }

    #[test]
    fn a_link_takes_the_values_that_it_lists() {
        let mut link = step(&["ipv4.dst"], &[], 1, 1);
        link.entries.push((vec![10, 0, 0, 2], step(&["ipv4.src"], &[], 0x500, 1)));
        let linked = distributor(vec![link.clone(), step(&["ipv4.src"], &[], 0x600, 1)]);
        assert_eq!(linked.fqid(&ipv4(0, 17, &[])), Some(0x500));
        link.entries[0].0[3] = 9;
        let linked = distributor(vec![link, step(&["ipv4.src"], &[], 0x600, 1)]);
        assert_eq!(linked.fqid(&ipv4(0, 17, &[])), Some(0x600));
    }

    #[test]
    fn any_bytes_have_a_queue_or_are_malformed() {
        let key: Vec<&str> = FIELDS.iter().map(|field| field.0).collect();
        let steps = key.iter().map(|field| step(&[field], &[], 0x10, 3)).collect();
        let all = distributor(steps);
        proptest::proptest!(|(mut frame: Vec<u8>, kind in 0usize..4)| {
            let kinds = [[8, 0], [0x86, 0xdd], [8, 6], [0x81, 0]];
            if let Some(at) = frame.get_mut(12..14) {
                at.copy_from_slice(&kinds[kind]);
            }
            let _ = all.fqid(&frame);
        });
    }
}
