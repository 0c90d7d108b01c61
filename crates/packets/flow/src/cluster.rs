//! The queues of a PF_RING cluster: which of its programs gets a packet.
//!
//! The hash is PF_RING's: a plain sum over fields of the packet, the same in both directions, and
//! the queue is its remainder. Fragments of an IPv4 packet go where the first one went.

use std::{collections::HashMap, str::FromStr, time::Duration};

use crate::headers::{Fragment, Headers, Network, Plain, TCP};

/// How the packets are shared out; numbered as PF_RING's `cluster_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterType {
    /// By IP addresses, protocol and ports: the same as [`FiveTuple`](Self::FiveTuple).
    PerFlow = 0,
    /// One after the other.
    RoundRobin = 1,
    /// By IP addresses.
    TwoTuple = 2,
    /// By IP addresses and ports.
    FourTuple = 3,
    /// By IP addresses, protocol and ports.
    FiveTuple = 4,
    /// TCP by the five, all else by IP addresses.
    TcpFiveTuple = 5,
    /// The same by what is in a tunnel.
    InnerPerFlow = 6,
    InnerTwoTuple = 7,
    InnerFourTuple = 8,
    InnerFiveTuple = 9,
    InnerTcpFiveTuple = 10,
    /// As [`FiveTuple`](Self::FiveTuple), and what is not IP by its Ethernet addresses.
    IpFiveTuple = 11,
    /// The same by what is in a tunnel.
    InnerIpFiveTuple = 12,
}

use ClusterType::*;

/// Names on a command line.
const NAMES: [(&str, ClusterType); 13] = [
    ("per-flow", PerFlow),
    ("round-robin", RoundRobin),
    ("2-tuple", TwoTuple),
    ("4-tuple", FourTuple),
    ("5-tuple", FiveTuple),
    ("tcp-5-tuple", TcpFiveTuple),
    ("inner-per-flow", InnerPerFlow),
    ("inner-2-tuple", InnerTwoTuple),
    ("inner-4-tuple", InnerFourTuple),
    ("inner-5-tuple", InnerFiveTuple),
    ("inner-tcp-5-tuple", InnerTcpFiveTuple),
    ("ip-5-tuple", IpFiveTuple),
    ("inner-ip-5-tuple", InnerIpFiveTuple),
];

impl ClusterType {
    /// All names that can be read.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// By PF_RING's number.
    pub fn from_number(number: u32) -> Option<ClusterType> {
        NAMES.iter().map(|(_, kind)| *kind).find(|kind| *kind as u32 == number)
    }

    /// The sum that decides; 0 where packets go round robin.
    pub fn hash(self, headers: &Headers) -> u32 {
        let inner = matches!(
            self,
            InnerPerFlow
                | InnerTwoTuple
                | InnerFourTuple
                | InnerFiveTuple
                | InnerTcpFiveTuple
                | InnerIpFiveTuple
        );
        let (macs, network) = match &headers.tunnel {
            Some(tunnel) if inner => (&tunnel.macs, &tunnel.network),
            _ => (&headers.macs, &headers.network),
        };
        // What is in the tunnel does not count here.
        let is_tcp = headers.network.protocol == TCP;
        match self {
            RoundRobin => 0,
            IpFiveTuple | InnerIpFiveTuple if headers.network.protocol == 0 => {
                let is_ip = headers.network.version != 0;
                if is_ip { 0 } else { macs.as_flattened().iter().map(|b| u32::from(*b)).sum() }
            }
            TwoTuple | InnerTwoTuple => sum(network, false, false),
            FourTuple | InnerFourTuple => sum(network, false, true),
            TcpFiveTuple | InnerTcpFiveTuple => sum(network, is_tcp, is_tcp),
            PerFlow | InnerPerFlow | FiveTuple | InnerFiveTuple | IpFiveTuple
            | InnerIpFiveTuple => sum(network, true, true),
        }
    }
}

impl Plain {
    /// As [`ClusterType::hash`].
    #[inline]
    fn hash(self, kind: ClusterType) -> u32 {
        let protocol = u32::from(self.protocol);
        match kind {
            RoundRobin => 0,
            TwoTuple | InnerTwoTuple => self.addresses,
            TcpFiveTuple | InnerTcpFiveTuple if self.protocol != TCP => self.addresses,
            FourTuple | InnerFourTuple => self.addresses.wrapping_add(self.ports),
            _ => self.addresses.wrapping_add(self.ports).wrapping_add(protocol),
        }
    }
}

impl Network {
    /// The sums of the source's and of the destination's address; 0 if it is not IP.
    pub fn address_sums(&self) -> [u32; 2] {
        self.addresses.map(|address| {
            let words = address.as_chunks::<4>().0.iter();
            match self.version {
                4 => words.map(|word| u32::from_be_bytes(*word)).fold(0, u32::wrapping_add),
                // As the reference has it: as the words are in memory.
                6 => words.map(|word| u32::from_ne_bytes(*word)).fold(0, u32::wrapping_add),
                _ => 0,
            }
        })
    }
}

/// Addresses, and protocol and ports if they count; 0 if it is not IP.
fn sum(network: &Network, protocol: bool, ports: bool) -> u32 {
    if !matches!(network.version, 4 | 6) {
        return 0;
    }
    let [source, destination] = network.address_sums();
    let protocol = if protocol { u32::from(network.protocol) } else { 0 };
    let ports = if ports { network.ports.map(u32::from).iter().sum() } else { 0 };
    source.wrapping_add(destination).wrapping_add(protocol).wrapping_add(ports)
}

/// No such way to share packets out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no hash; write one of {}", NAMES.map(|(name, _)| name).join(", "))]
pub struct ClusterTypeError {
    text: String,
}

impl FromStr for ClusterType {
    type Err = ClusterTypeError;

    fn from_str(text: &str) -> Result<ClusterType, ClusterTypeError> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, kind)| *kind).ok_or_else(|| ClusterTypeError { text: text.into() })
    }
}

/// How long a fragment is waited for.
const FRAGMENT_LIFE: Duration = Duration::from_secs(5);
/// IPv4 packets whose fragments are expected at once, at most.
const FRAGMENTED: usize = 4096;

/// A cluster: what its packets are shared out by, among how many queues.
#[derive(Debug)]
pub struct Cluster {
    kind: ClusterType,
    queues: u32,
    /// For a remainder without a division: 2^64 by the queues, rounded up.
    inverse: u64,
    round: u16,
    fragments: Fragments,
}

impl Cluster {
    /// There is at least one queue.
    pub fn new(kind: ClusterType, queues: u32) -> Cluster {
        let queues = queues.max(1);
        let inverse = (u64::MAX / u64::from(queues)).wrapping_add(1);
        Cluster { kind, queues, inverse, round: 0, fragments: Fragments::default() }
    }

    /// The queue of a packet that came at `now`, by a clock that only goes forward.
    ///
    /// ```
    /// use ringway_flow::{Cluster, ClusterType, Headers};
    /// let mut cluster = Cluster::new(ClusterType::RoundRobin, 3);
    /// let mut queue = || cluster.queue(&Headers::default(), std::time::Duration::ZERO);
    /// assert_eq!([queue(), queue(), queue(), queue()], [0, 1, 2, 0]);
    /// ```
    #[inline]
    pub fn queue(&mut self, headers: &Headers, now: Duration) -> u32 {
        match headers.network.fragment {
            None => self.fresh(headers),
            Some(fragment) => self.fragment(headers, fragment, now),
        }
    }

    /// The queue of a packet that begins with `bytes`, as [`queue`](Self::queue) has it of its headers, and whether it
    /// is IP. [`PARSED_BYTES`](crate::PARSED_BYTES) are enough.
    #[inline]
    pub fn queue_of(&mut self, bytes: &[u8], now: Duration) -> (u32, bool) {
        match self.queue_at_once(bytes) {
            Some(queue) => (queue, true),
            None => self.queue_of_any(bytes, now),
        }
    }

    /// The same where it is a packet as most are: TCP, UDP or SCTP in IPv4, whole, without tags, options and tunnels.
    /// `None`, with nothing changed, if it is another. 38 bytes are enough.
    #[inline]
    pub fn queue_at_once(&mut self, bytes: &[u8]) -> Option<u32> {
        let plain = Plain::parse(bytes)?;
        Some(self.next(|kind| plain.hash(kind)))
    }

    #[inline(never)]
    fn queue_of_any(&mut self, bytes: &[u8], now: Duration) -> (u32, bool) {
        let headers = Headers::parse(bytes);
        (self.queue(&headers, now), headers.network.version != 0)
    }

    fn fresh(&mut self, headers: &Headers) -> u32 {
        self.next(|kind| kind.hash(headers))
    }

    #[inline]
    fn next(&mut self, hash: impl FnOnce(ClusterType) -> u32) -> u32 {
        let hash = match self.kind {
            RoundRobin => {
                let round = self.round;
                self.round = round.wrapping_add(1);
                round.into()
            }
            kind => hash(kind),
        };
        self.remainder(hash)
    }

    fn fragment(&mut self, headers: &Headers, fragment: Fragment, now: Duration) -> u32 {
        let [source, destination] = headers.network.addresses;
        let key = (source, destination, fragment.id);
        if fragment.is_first {
            let queue = self.fresh(headers);
            self.fragments.remember(key, queue, now);
            return queue;
        }
        let known = self.fragments.find(&key, fragment.is_last, now);
        // The reference has these two for what it does not know.
        let unknown = if self.fragments.known.is_empty() { u32::MAX } else { 255 };
        self.remainder(known.unwrap_or(unknown))
    }

    /// `hash` modulo the queues (D. Lemire, O. Kaser, N. Kurz: Faster remainder by direct computation).
    fn remainder(&self, hash: u32) -> u32 {
        let fraction = self.inverse.wrapping_mul(hash.into());
        ((u128::from(fraction) * u128::from(self.queues)) >> 64) as u32
    }
}

/// Where the first fragments went of packets whose last ones have not come.
#[derive(Debug, Default)]
struct Fragments {
    known: HashMap<FragmentKey, (u32, Duration)>,
    swept: Duration,
}

/// Addresses and number of a fragmented packet.
type FragmentKey = ([u8; 16], [u8; 16], u16);

impl Fragments {
    fn remember(&mut self, key: FragmentKey, queue: u32, now: Duration) {
        if self.known.len() >= FRAGMENTED && now > self.swept {
            // Once a second at most: there may be as many again at once.
            self.swept = now + Duration::from_secs(1);
            self.known.retain(|_, (_, end)| *end > now);
        }
        if self.known.len() < FRAGMENTED {
            self.known.insert(key, (queue, now + FRAGMENT_LIFE));
        }
    }

    fn find(&mut self, key: &FragmentKey, is_last: bool, now: Duration) -> Option<u32> {
        let &(queue, end) = self.known.get(key)?;
        if is_last || end <= now {
            self.known.remove(key);
        }
        (end > now).then_some(queue)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;
    use crate::headers::PARSED_BYTES;

    const ALL: [ClusterType; 13] = {
        let mut all = [PerFlow; 13];
        let mut n = 0;
        while n < 13 {
            all[n] = NAMES[n].1;
            n += 1;
        }
        all
    };

    /// One direction of a flow, with all that may stand around it.
    #[derive(Clone, Debug)]
    struct Flow {
        six: bool,
        addresses: [[u8; 16]; 2],
        ports: [u16; 2],
        protocol: u8,
        tags: usize,
        macs: [u8; 12],
    }

    impl Flow {
        fn back(&self) -> Flow {
            let ([a, b], [c, d]) = (self.addresses, self.ports);
            let mut macs = self.macs;
            macs.rotate_left(6);
            Flow { addresses: [b, a], ports: [d, c], macs, ..self.clone() }
        }

        fn ip(&self, flags: u16, payload: &[u8]) -> Vec<u8> {
            let mut bytes = Vec::new();
            if self.six {
                bytes.extend([0x60, 0, 0, 0, 0, 0, self.protocol, 64]);
                bytes.extend(self.addresses.as_flattened());
            } else {
                bytes.extend([0x45, 0, 0, 0, 0x12, 0x34]);
                bytes.extend(flags.to_be_bytes());
                bytes.extend([64, self.protocol, 0, 0]);
                self.addresses.iter().for_each(|address| bytes.extend(&address[..4]));
            }
            if flags & 0x1fff == 0 && [6, 17, 132].contains(&self.protocol) {
                bytes.extend(self.ports.map(u16::to_be_bytes).as_flattened());
                bytes.extend([0; 4]);
            }
            bytes.extend(payload);
            bytes
        }

        fn frame(&self, flags: u16, payload: &[u8]) -> Vec<u8> {
            let mut bytes = self.macs.to_vec();
            (0..self.tags).for_each(|tag| bytes.extend([0x81, 0, 0, tag as u8 + 1]));
            bytes.extend(if self.six { [0x86, 0xdd] } else { [8, 0] });
            bytes.extend(self.ip(flags, payload));
            bytes
        }

        fn headers(&self) -> Headers {
            Headers::parse(&self.frame(0, &[9; 20]))
        }
    }

    fn flow() -> impl Strategy<Value = Flow> {
        let parts = (any::<bool>(), any::<[[u8; 16]; 2]>(), any::<[u16; 2]>());
        let more = (select(&[6u8, 17, 132, 1, 89]), 0usize..3, any::<[u8; 12]>());
        (parts, more).prop_map(|((six, addresses, ports), (protocol, tags, macs))| Flow {
            six,
            addresses,
            // The numbers of tunnels mean something else.
            ports: ports.map(|port| port | 0x8000),
            protocol,
            tags,
            macs,
        })
    }

    fn udp() -> Flow {
        let address = |last| {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&[10, 0, 0, last]);
            bytes
        };
        Flow {
            six: false,
            addresses: [address(1), address(2)],
            ports: [1000, 2000],
            protocol: 17,
            tags: 0,
            macs: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
        }
    }

    #[test]
    fn the_sums_are_those_of_the_reference() {
        let (udp, tcp) = (udp().headers(), Flow { protocol: 6, ..udp() }.headers());
        let addresses = 0x0a00_0001 + 0x0a00_0002;
        for (kind, of_udp, of_tcp) in [
            (PerFlow, 17 + 3000, 6 + 3000),
            (RoundRobin, u32::wrapping_neg(addresses), u32::wrapping_neg(addresses)),
            (TwoTuple, 0, 0),
            (FourTuple, 3000, 3000),
            (FiveTuple, 17 + 3000, 6 + 3000),
            (TcpFiveTuple, 0, 6 + 3000),
            (IpFiveTuple, 17 + 3000, 6 + 3000),
        ] {
            for (headers, more) in [(&udp, of_udp), (&tcp, of_tcp)] {
                assert_eq!(kind.hash(headers), addresses.wrapping_add(more), "{kind:?}");
            }
        }
        let six = Flow { six: true, ..self::udp() }.headers();
        let words = 2 * 10 + (1 << 24) + (2 << 24);
        assert_eq!(TwoTuple.hash(&six), if cfg!(target_endian = "little") { words } else { 0 });
        let arp = Headers::parse(&[&[1; 12][..], &[8, 6], &[9; 28]].concat());
        for kind in ALL {
            let by_mac = matches!(kind, IpFiveTuple | InnerIpFiveTuple);
            assert_eq!(kind.hash(&arp), if by_mac { 12 } else { 0 }, "{kind:?}");
        }
    }

    #[test]
    fn names_are_read_back() {
        let read: Vec<_> = ClusterType::names().map(str::parse).collect();
        assert_eq!(read, ALL.map(Ok));
        for kind in ALL {
            assert_eq!(ClusterType::from_number(kind as u32), Some(kind));
        }
        assert_eq!(ClusterType::from_number(ALL.len() as u32), None);
        let error = "6-tuple".parse::<ClusterType>().unwrap_err().to_string();
        assert!(
            error.contains("`6-tuple` is no hash; write one of per-flow, round-robin"),
            "{error}"
        );
    }

    /// The packet in a tunnel of each kind.
    fn tunnels(inner: &Flow) -> Vec<Vec<u8>> {
        let (ethertype, packet) = (if inner.six { [0x86, 0xdd] } else { [8, 0] }, inner.ip(0, &[]));
        let outer = |protocol, port| Flow { protocol, ports: [40000, port], ..udp() };
        let gtp = [&[0x30, 255, 0, 0, 0, 0, 0, 7], &packet[..]].concat();
        let extended = [&[0x34, 255, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0x85, 1, 0, 0, 0], &packet[..]];
        let gre = |flags: u8, options: &[u8]| {
            let header = [&[flags, 0][..], &ethertype, options, &packet].concat();
            outer(47, 0).frame(0, &header)
        };
        let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &inner.frame(0, &[])].concat();
        vec![
            outer(17, 2152).frame(0, &gtp),
            outer(17, 2152).frame(0, &extended.concat()),
            gre(0x20, &[0, 0, 0, 7]),
            gre(0xb0, &[0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1]),
            outer(17, 4789).frame(0, &vxlan),
        ]
    }

    proptest! {
        #[test]
        fn both_directions_of_a_flow_have_one_queue(flow in flow(), queues in 1u32..65) {
            for kind in ALL {
                let mut cluster = Cluster::new(kind, queues);
                let [there, back] = [&flow, &flow.back()].map(Flow::headers);
                prop_assert_eq!(kind.hash(&there), kind.hash(&back));
                if kind != RoundRobin {
                    let hash = kind.hash(&there);
                    let queue = cluster.queue(&there, Duration::ZERO);
                    prop_assert_eq!(queue, hash % queues);
                    prop_assert_eq!(queue, cluster.queue(&back, Duration::ZERO));
                }
            }
        }

        #[test]
        fn fragments_follow_the_first(flow in flow(), queues in 1u32..65, middle in 1u16..0x1fff) {
            let flow = Flow { six: false, ..flow };
            let fragment = |flags| Headers::parse(&flow.frame(flags, &[9; 20]));
            for kind in ALL {
                let mut cluster = Cluster::new(kind, queues);
                let mut queue = |flags, at| cluster.queue(&fragment(flags), Duration::from_secs(at));
                let unknown = queue(middle, 0);
                prop_assert_eq!(unknown, u32::MAX % queues);
                let first = queue(0x2000, 1);
                prop_assert_eq!(queue(0x2000 | middle, 2), first);
                prop_assert_eq!(queue(middle, 3), first);
                prop_assert_eq!(queue(middle, 4), unknown, "it was the last");
                queue(0x2000, 10);
                prop_assert_eq!(queue(0x2000 | middle, 15), unknown, "it has come too late");
            }
        }

        #[test]
        fn what_is_in_a_tunnel_has_the_queue_that_it_has_outside(flow in flow()) {
            let flow = Flow { tags: 0, ..flow };
            let plain = flow.headers();
            for (n, frame) in tunnels(&flow).iter().enumerate() {
                let headers = Headers::parse(frame);
                let tunnel = headers.tunnel.expect("a tunnel");
                prop_assert_eq!(tunnel.id, 7);
                if frame.len() <= PARSED_BYTES {
                    prop_assert_eq!(tunnel.network, plain.network, "{}", n);
                    for (inner, outer) in [(InnerFiveTuple, FiveTuple), (InnerTwoTuple, TwoTuple)] {
                        prop_assert_eq!(inner.hash(&headers), outer.hash(&plain));
                        prop_assert_eq!(outer.hash(&headers), outer.hash(&Headers { tunnel: None, ..headers }));
                    }
                }
            }
        }

        #[test]
        fn any_bytes_have_a_queue(
            flow in flow(), cut in 0usize..200, noise in vec(any::<u8>(), 0..200), n in 0usize..6,
        ) {
            let mut bytes = tunnels(&flow).get(n).cloned().unwrap_or(noise.clone());
            for (byte, noise) in bytes.iter_mut().zip(&noise).skip(cut) {
                *byte = *noise;
            }
            bytes.truncate(noise.len());
            let headers = Headers::parse(&bytes);
            for kind in ALL {
                let [mut one, mut other] = [Cluster::new(kind, 3), Cluster::new(kind, 3)];
                let queue = one.queue(&headers, Duration::ZERO);
                prop_assert!(queue < 3);
                let is_ip = headers.network.version != 0;
                prop_assert_eq!(other.queue_of(&bytes, Duration::ZERO), (queue, is_ip));
            }
        }

        #[test]
        fn what_is_plain_goes_where_its_headers_say(
            flow in flow(), tunnel in select(&[0u16, 2123, 2152, 4789]), comes_back: bool,
            flags in select(&[0u16, 0x4000, 0x2000, 0x1000, 7]), cut in 0usize..200,
        ) {
            let port = if tunnel == 0 { flow.ports[1] } else { tunnel };
            let ports = if comes_back { [port, flow.ports[0]] } else { [flow.ports[0], port] };
            let is_most = !flow.six && flow.tags == 0 && flags & 0x3fff == 0 && match flow.protocol {
                6 | 132 => true,
                17 => tunnel == 0,
                _ => false,
            };
            let mut bytes = Flow { ports, ..flow }.frame(flags, &[9; 20]);
            bytes.truncate(cut.max(30));
            let headers = Headers::parse(&bytes);
            let plain = Plain::parse(&bytes);
            prop_assert_eq!(plain.is_some(), is_most && bytes.len() >= 38);
            for kind in ALL {
                let [mut one, mut other] = [Cluster::new(kind, 5), Cluster::new(kind, 5)];
                let queue = one.queue(&headers, Duration::ZERO);
                let is_ip = headers.network.version != 0;
                prop_assert_eq!(other.queue_at_once(&bytes), plain.map(|_| queue));
                let [mut one, mut other] = [Cluster::new(kind, 5), Cluster::new(kind, 5)];
                prop_assert_eq!(one.queue(&headers, Duration::ZERO), queue);
                prop_assert_eq!(other.queue_of(&bytes, Duration::ZERO), (queue, is_ip));
                prop_assert!(plain.is_none_or(|plain| plain.hash(kind) == kind.hash(&headers)));
            }
        }

        #[test]
        fn a_remainder_needs_no_division(hash: u32, queues in 1u32..=u32::MAX) {
            prop_assert_eq!(Cluster::new(PerFlow, queues).remainder(hash), hash % queues);
        }
    }

    /// What PF_RING makes of tags of 0x88a8 and of fragments of IPv6: the first is no tag, so the
    /// packet is not IP; the second have the ports that stand behind the fragment's header, where
    /// the header of their protocol is whole.
    #[test]
    fn provider_tags_and_fragments_of_ipv6_are_as_the_original_has_them() {
        const MACS: u32 = 78;
        let plain = udp().frame(0, &[]);
        let tagged = |types: &[u16]| {
            let tags = types.iter().flat_map(|kind| [kind.to_be_bytes(), [0, 7]]).flatten();
            let bytes = plain[..12].iter().copied().chain(tags).chain(plain[12..].iter().copied());
            Headers::parse(&bytes.collect::<Vec<u8>>())
        };
        let sum = FiveTuple.hash(&Headers::parse(&plain));
        let cases: [(&[u16], u32, u32); 5] = [
            (&[], sum, sum),
            (&[0x8100], sum, sum),
            (&[0x8100, 0x8100], sum, sum),
            (&[0x88a8], 0, MACS),
            (&[0x88a8, 0x8100], 0, MACS),
        ];
        for (types, by_five, by_macs) in cases {
            let headers = tagged(types);
            let hashes = [FiveTuple, IpFiveTuple].map(|kind| kind.hash(&headers));
            assert_eq!(hashes, [by_five, by_macs], "{types:x?}");
        }
        let fragment = |protocol: u8, offset: u16, payload: &[u8]| {
            let mut bytes = [1; 12].to_vec();
            bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 40, 44, 64]);
            bytes.extend([[0; 15].as_slice(), &[1], &[0; 15], &[2]].concat());
            bytes.extend([protocol, 0]);
            bytes.extend((offset << 3 | 1).to_be_bytes());
            bytes.extend([0, 0, 0, 9]);
            bytes.extend(payload);
            Headers::parse(&bytes).network.ports
        };
        let data: Vec<u8> = (1..=40).collect();
        for (protocol, whole) in [(17, 8), (TCP, 20), (132, 4)] {
            for offset in [0, 100] {
                let ports = |length: usize| fragment(protocol, offset, &data[..length]);
                assert_eq!(ports(whole), [0x102, 0x304], "{protocol} at {offset}");
                assert_eq!(ports(whole - 1), [0; 2], "{protocol} at {offset}");
            }
        }
        assert_eq!(fragment(58, 0, &data), [0; 2], "ICMPv6 has none");
    }

    #[test]
    fn fragments_that_never_end_are_bounded() {
        let mut cluster = Cluster::new(FiveTuple, 4);
        let mut headers = udp().headers();
        for id in 0..2 * FRAGMENTED as u16 {
            headers.network.fragment = Some(Fragment { id, is_first: true, is_last: false });
            cluster.queue(&headers, Duration::ZERO);
        }
        assert_eq!(cluster.fragments.known.len(), FRAGMENTED);
        cluster.queue(&headers, 2 * FRAGMENT_LIFE);
        assert_eq!(cluster.fragments.known.len(), 1);
    }

    /// When there are as many as there may be, those that have come too late go; they are looked
    /// for once a second.
    #[test]
    fn old_fragments_make_room_for_new_ones() {
        const HALF: u16 = FRAGMENTED as u16 / 2;
        let mut fragments = Fragments::default();
        let mut remember = |id: u16, milliseconds| {
            fragments.remember(([1; 16], [2; 16], id), 3, Duration::from_millis(milliseconds));
            fragments.known.len()
        };
        for (ids, at) in [(0..HALF, 0), (HALF..2 * HALF, 1000)] {
            ids.for_each(|id| assert_eq!(remember(id, at), usize::from(id) + 1));
        }
        // Before the first end, at which a second begins; in that second, and at its end; and when
        // the later half has ended, too.
        let new = 2 * HALF;
        let lengths = [4500, 5200, 5500, 6000].map(|at| remember(new, at));
        assert_eq!(lengths, [FRAGMENTED, FRAGMENTED, FRAGMENTED, 1]);
        (1..2 * HALF).for_each(|id| _ = remember(new + id, 6001));
        assert_eq!(remember(0, 7001), FRAGMENTED);
        assert_eq!(remember(0, 11_000), FRAGMENTED, "one is gone, and one has come");
    }
}
