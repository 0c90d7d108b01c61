//! Packets that are written from a model, field by field, are read back as that.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

const NOTHING: u8 = 59;

/// An IP packet.
#[derive(Clone, Debug)]
struct Ip {
    six: bool,
    protocol: u8,
    addresses: [[u8; 16]; 2],
    ports: [u16; 2],
    /// Of IPv4: words of options, identification, the bit for more fragments, and the offset.
    options: u8,
    id: u16,
    more: bool,
    offset: u16,
    /// Of IPv6: extension headers with their lengths beyond 8 bytes, in units of as much.
    extensions: Vec<(u8, u8)>,
}

impl Ip {
    fn ethertype(&self) -> u16 {
        if self.six { 0x86dd } else { 0x0800 }
    }

    fn has_ports(&self) -> bool {
        [6, 17, 132].contains(&self.protocol)
    }

    fn is_later_fragment(&self) -> bool {
        !self.six && self.offset > 0
    }

    /// The packet with this behind its header, or behind the ports if it has some.
    fn write(&self, rest: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.six {
            let kinds = self.extensions.iter().map(|(kind, _)| *kind).chain([self.protocol]);
            let kinds: Vec<u8> = kinds.collect();
            bytes.extend([0x6f, 0xff, 0xff, 0xff, 0, 0, kinds[0], 64]);
            bytes.extend(self.addresses.as_flattened());
            for (&next, (kind, more)) in kinds[1..].iter().zip(&self.extensions) {
                // A fragment's header has no length in its second byte.
                let units = if *kind == 44 { 0 } else { usize::from(*more) };
                bytes.extend(
                    [&[next, *more, 0, 1, 0, 0, 0, 9][..], &vec![0xee; 8 * units]].concat(),
                );
            }
        } else {
            bytes.extend([0x45 + self.options, 0xff, 0, 0]);
            bytes.extend(self.id.to_be_bytes());
            // The bits beside are "do not fragment" and one that is reserved.
            let flags = self.offset | if self.more { 0x2000 } else { 0xc000 };
            bytes.extend(flags.to_be_bytes());
            bytes.extend([64, self.protocol, 0xff, 0xff]);
            self.addresses.iter().for_each(|address| bytes.extend(&address[..4]));
            bytes.extend(vec![0xee; 4 * usize::from(self.options)]);
        }
        if self.has_ports() {
            bytes.extend(self.ports.map(u16::to_be_bytes).as_flattened());
        }
        bytes.extend(rest);
        bytes
    }

    fn network(&self) -> Network {
        let mut addresses = self.addresses;
        if !self.six {
            addresses.iter_mut().for_each(|address| address[4..].fill(0));
        }
        let is_part = self.more || self.offset > 0;
        let fragment = Fragment { id: self.id, is_first: self.offset == 0, is_last: !self.more };
        Network {
            version: if self.six { 6 } else { 4 },
            protocol: if self.six && self.protocol == NOTHING { 0 } else { self.protocol },
            addresses,
            ports: if self.has_ports() && !self.is_later_fragment() { self.ports } else { [0; 2] },
            fragment: (is_part && !self.six).then_some(fragment),
        }
    }
}

/// With ports that are none of a tunnel's.
fn ip() -> impl Strategy<Value = Ip> {
    let ends = (any::<bool>(), any::<[[u8; 16]; 2]>(), any::<[u16; 2]>());
    let protocol = select(&[6u8, 17, 132, 1, NOTHING]);
    let offset = prop_oneof![Just(0u16), 1u16..0x2000];
    let four = (0u8..=10, any::<u16>(), any::<bool>(), offset);
    let extensions = vec((select(&[0u8, 43, 44, 60]), 0u8..2), 0..3);
    (ends, protocol, four, extensions).prop_map(|(ends, protocol, four, extensions)| {
        let ((six, addresses, ports), (options, id, more, offset)) = (ends, four);
        let ports = ports.map(|port| port | 0x8000);
        Ip { six, protocol, addresses, ports, options, id, more, offset, extensions }
    })
}

/// What an Ethernet frame has in front of the packet.
#[derive(Clone, Debug)]
struct Link {
    macs: [[u8; 6]; 2],
    is_prefixed: bool,
    tags: Vec<u16>,
    labels: usize,
}

impl Link {
    fn write(&self, ethertype: u16, packet: &[u8]) -> Vec<u8> {
        let mut bytes = self.macs.as_flattened().to_vec();
        if self.is_prefixed {
            bytes.extend([&[0xd2, 0x8b][..], &[0x81; 12]].concat());
        }
        for tag in &self.tags {
            bytes.extend([0x8100u16, *tag].map(u16::to_be_bytes).as_flattened());
        }
        bytes.extend(if self.labels > 0 { 0x8847 } else { ethertype }.to_be_bytes());
        for label in 1..=self.labels {
            let bottom = u8::from(label == self.labels);
            bytes.extend([0xff, 0xff, 0xfe | bottom, 0xff]);
        }
        bytes.extend(packet);
        bytes
    }

    /// As it is read: the frame's headers without what is in it.
    fn headers(&self) -> Headers {
        let vlan = self.tags.first().map_or(0, |tag| tag & 0xfff);
        Headers { macs: self.macs, vlan, ..Headers::default() }
    }
}

fn link() -> impl Strategy<Value = Link> {
    (any::<[[u8; 6]; 2]>(), any::<bool>(), vec(any::<u16>(), 0..3), 0usize..10)
        .prop_map(|(macs, is_prefixed, tags, labels)| Link { macs, is_prefixed, tags, labels })
}

/// A tunnel, and what is in it.
#[derive(Clone, Debug)]
enum Inside {
    Gre { flags: u8, inner: Ip },
    Gtp { port: u16, optional: u8, extensions: Vec<u8>, inner: Ip },
    Vxlan { link: Link, inner: Ip },
}

impl Inside {
    /// The outer packet's protocol and port, the tunnel's header and what is in it, and what is
    /// read of that.
    fn parts(&self, id: u32) -> (u8, u16, Vec<u8>, Tunnel) {
        let without_macs =
            |inner: &Ip| Tunnel { id, network: inner.network(), ..Tunnel::default() };
        let number = id.to_be_bytes();
        match self {
            Inside::Gre { flags, inner } => {
                let mut bytes = vec![flags | 0x20, 0xf8];
                bytes.extend(inner.ethertype().to_be_bytes());
                bytes.extend(vec![0xdd; if flags & 0xc0 == 0 { 0 } else { 4 }]);
                bytes.extend(number);
                bytes.extend(vec![0xcc; if flags & 0x10 == 0 { 0 } else { 4 }]);
                bytes.extend(inner.write(&[]));
                (47, 0, bytes, without_macs(inner))
            }
            Inside::Gtp { port, optional, extensions, inner } => {
                let extended = if extensions.is_empty() { 0 } else { 4 };
                let mut bytes = vec![0x30 | optional | extended, 0xff, 0, 0];
                bytes.extend(number);
                if optional | extended != 0 {
                    bytes.extend([0xbb, 0xbb, 0xbb, extended]);
                }
                for (n, units) in extensions.iter().enumerate() {
                    bytes.push(*units);
                    bytes.extend(vec![0xaa; 4 * usize::from(*units) - 2]);
                    bytes.push(u8::from(n + 1 < extensions.len()));
                }
                bytes.extend(inner.write(&[]));
                // The control protocol carries none.
                let tunnel = match port {
                    2152 => without_macs(inner),
                    _ => Tunnel { id, ..Tunnel::default() },
                };
                (17, *port, [vec![0; 4], bytes].concat(), tunnel)
            }
            Inside::Vxlan { link, inner } => {
                let id = id >> 8;
                let mut bytes = vec![0, 0, 0, 0, 8, 0xff, 0xff, 0xff];
                bytes.extend(&id.to_be_bytes()[1..]);
                bytes.push(0);
                bytes.extend(link.write(inner.ethertype(), &inner.write(&[])));
                (17, 4789, bytes, Tunnel { id, macs: link.macs, network: inner.network() })
            }
        }
    }
}

fn inside() -> impl Strategy<Value = Inside> {
    // What is in there is small, so that it lies in what is looked at.
    let small = || ip().prop_map(|inner| Ip { options: 0, extensions: Vec::new(), ..inner });
    let link = link().prop_map(|link| Link { is_prefixed: false, labels: link.labels % 3, ..link });
    prop_oneof![
        (select(&[0u8, 0x80, 0x40, 0x10, 0x90]), small())
            .prop_map(|(flags, inner)| Inside::Gre { flags, inner }),
        (select(&[2123u16, 2152]), 0u8..4, vec(1u8..3, 0..3), small()).prop_map(
            |(port, optional, extensions, inner)| Inside::Gtp { port, optional, extensions, inner },
        ),
        (link, small()).prop_map(|(link, inner)| Inside::Vxlan { link, inner }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_packet_is_read_back(link in link(), ip in ip()) {
        let bytes = link.write(ip.ethertype(), &ip.write(&[9; 20]));
        prop_assume!(bytes.len() <= PARSED_BYTES);
        prop_assert_eq!(Headers::parse(&bytes), Headers { network: ip.network(), ..link.headers() });
    }

    #[test]
    fn what_is_not_ip_has_addresses_and_a_tag(link in link(), ethertype in select(&[0x0806u16, 0x88cc])) {
        let bytes = Link { labels: 0, ..link.clone() }.write(ethertype, &[0x45; 40]);
        prop_assert_eq!(Headers::parse(&bytes), link.headers());
    }

    #[test]
    fn a_tunnel_is_read_back(
        link in link(), outer in ip(), inside in inside(), id: u32, comes_back: bool,
    ) {
        let (protocol, port, tunnelled, tunnel) = inside.parts(id);
        let ports = if comes_back { [port, 40000] } else { [40000, port] };
        let outer = Ip { protocol, ports, extensions: Vec::new(), options: outer.options % 2, ..outer };
        let link = Link { is_prefixed: false, labels: link.labels % 2, ..link };
        let bytes = link.write(outer.ethertype(), &outer.write(&tunnelled));
        prop_assume!(bytes.len() <= PARSED_BYTES);
        let tunnel = (!outer.is_later_fragment()).then_some(tunnel);
        let expected = Headers { network: outer.network(), tunnel, ..link.headers() };
        prop_assert_eq!(Headers::parse(&bytes), expected);
    }

    /// What is not looked at does not matter, and what is cut off is not there.
    #[test]
    fn no_more_is_read_than_is_said(link in link(), ip in ip(), noise: u8) {
        let mut bytes = link.write(ip.ethertype(), &ip.write(&[9; 20]));
        bytes.resize(PARSED_BYTES, 9);
        let headers = Headers::parse(&bytes);
        bytes.extend([noise; 100]);
        prop_assert_eq!(Headers::parse(&bytes), headers);
    }
}

fn of_udp(port: u16, payload: &[u8]) -> Headers {
    let mut bytes = vec![1; 12];
    bytes.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend([0x9c, 0x40]);
    bytes.extend(port.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(payload);
    Headers::parse(&bytes)
}

/// What has a tunnel's port, or protocol, and is none of those that have a number.
#[test]
fn what_is_no_tunnel_is_none() {
    let tunnel = |port, payload: &[u8]| of_udp(port, payload).tunnel;
    let gtp = [0x30, 255, 0, 0, 0, 0, 0, 7];
    let vxlan = [8, 0, 0, 0, 0, 0, 7, 0];
    let id_of = |tunnel: Option<Tunnel>| tunnel.map(|tunnel| tunnel.id);
    assert_eq!(id_of(tunnel(2152, &gtp)), Some(7));
    for flags in [0x20, 0x10, 0x50] {
        assert_eq!(tunnel(2152, &[&[flags], &gtp[1..]].concat()), None, "{flags:x}");
    }
    assert_eq!(id_of(tunnel(4789, &[&vxlan[..], &[0; 14]].concat())), Some(7));
    for (at, byte) in [(0, 0), (0, 0x88), (7, 1)] {
        let mut other = vxlan;
        other[at] = byte;
        assert_eq!(tunnel(4789, &[&other[..], &[0; 14]].concat()), None, "{at}: {byte}");
    }
    assert_eq!(tunnel(4790, &vxlan), None);
    let gre = |flags: [u8; 2]| {
        let mut bytes = vec![1; 12];
        bytes.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 47, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend(flags);
        bytes.extend([8, 0, 0, 0, 0, 7]);
        Headers::parse(&bytes).tunnel
    };
    assert_eq!(id_of(gre([0x20, 0])), Some(7));
    assert_eq!((gre([0, 0]), gre([0x20, 1])), (None, None), "without a key; another version");
}

/// An extension of GTP without a length would be walked for ever.
#[test]
fn extensions_that_end_nowhere_are_not_walked() {
    let header = [0x34, 255, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0x85];
    assert_eq!(of_udp(2152, &[&header[..], &[0; 20]].concat()).tunnel, None);
    let cut = of_udp(2152, &header).tunnel;
    assert_eq!(cut, None, "the extension is cut off");
}

/// Ten labels are more than any packet has.
#[test]
fn too_many_labels_are_not_read() {
    let (macs, packet) = ([[1; 6], [2; 6]], [0x45; 40]);
    for labels in 9..=10 {
        let link = Link { macs, is_prefixed: false, tags: Vec::new(), labels };
        let headers = Headers::parse(&link.write(0, &packet));
        let expected = if labels == 9 { (4, macs) } else { (0, [[0; 6]; 2]) };
        assert_eq!((headers.network.version, headers.macs), expected, "{labels}");
    }
    let link = Link { macs, is_prefixed: false, tags: Vec::new(), labels: 1 };
    assert_eq!(Headers::parse(&link.write(0, &[0x55; 40])), Headers::default(), "no version of IP");
}
