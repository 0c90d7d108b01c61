//! Builds test frames: Ethernet, IPv4 or IPv6, UDP, and the payload that a receiver can verify.
//!
//! A template is built once; each frame then costs a few stores into it. Both checksums are put
//! together from partial sums that are known beforehand, so no frame is ever added up.

use crate::checksum::{fold, sum};
use crate::endpoint::{Dial, Endpoints, Family, Mac};
use crate::error::{Error, Result};
use crate::payload::{MARK_LEN, Mark, Pattern};
use etherparse::PacketBuilder;
use std::str::FromStr;

pub const ETHERNET_LEN: usize = 14;
pub const UDP_LEN: usize = 8;
const TTL: u8 = 64;
/// The protocol number of UDP, which the checksum covers.
pub const UDP: u32 = 17;

/// Frame sizes in bytes, without the CRC: one, or a range that is stepped through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes(Dial<u32>);

impl Sizes {
    const SHORTEST: u32 = 16;
    const LONGEST: u32 = 65536;

    /// Both ends are 16 to 65536.
    pub fn new(shortest: u32, longest: u32) -> Result<Sizes> {
        if shortest < Self::SHORTEST || longest > Self::LONGEST || shortest > longest {
            return Err(Error::Value(format!(
                "frame size {shortest}-{longest} is not possible; give a size or a range from {} \
                 to {} bytes, without the CRC",
                Self::SHORTEST,
                Self::LONGEST
            )));
        }
        Ok(Sizes(Dial::new(shortest, longest)))
    }

    pub fn shortest(&self) -> usize {
        self.0.first as usize
    }

    pub fn longest(&self) -> usize {
        self.0.last as usize
    }
}

impl FromStr for Sizes {
    type Err = Error;

    /// `60` or `64-1514`.
    fn from_str(text: &str) -> Result<Sizes> {
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        match (low.parse(), high.parse()) {
            (Ok(shortest), Ok(longest)) => Sizes::new(shortest, longest),
            _ => Err(Error::Value(format!("`{text}` is not a size; write 60 or 64-1514"))),
        }
    }
}

/// The shortest frame of a family that a receiver can verify.
pub fn shortest_marked(family: Family) -> usize {
    headers_len(family) + MARK_LEN
}

fn headers_len(family: Family) -> usize {
    ETHERNET_LEN + ip_len(family) + UDP_LEN
}

fn ip_len(family: Family) -> usize {
    match family {
        Family::V4 => 20,
        Family::V6 => 40,
    }
}

/// What a generator sends.
#[derive(Clone, Debug)]
pub struct Spec {
    pub src_mac: Mac,
    pub dst_mac: Mac,
    /// Source and destination are of one family.
    pub src: Endpoints,
    pub dst: Endpoints,
    pub sizes: Sizes,
    /// Tells this generator from others; see [`crate::payload`].
    pub stream: u32,
}

/// Where the changing fields of a family's frames are, in bytes from the start.
struct Layout {
    ip_length: usize,
    src: usize,
    dst: usize,
    udp: usize,
    payload: usize,
}

impl Layout {
    fn of(family: Family) -> Layout {
        let udp = ETHERNET_LEN + ip_len(family);
        let payload = udp + UDP_LEN;
        match family {
            Family::V4 => Layout { ip_length: 16, src: 26, dst: 30, udp, payload },
            Family::V6 => Layout { ip_length: 18, src: 22, dst: 38, udp, payload },
        }
    }
}

/// Where the IPv4 header keeps its checksum.
const IPV4_CHECKSUM: usize = 24;
/// Where the mark keeps the sequence number.
const SEQUENCE_AT: usize = 8;

/// A frame to copy out: its bytes, and what then goes over them.
///
/// What changes with every frame is kept apart: a wide copy of bytes that were written singly a
/// moment ago has to wait for those writes, and for all before them, to reach the cache.
pub struct Frame<'a> {
    pub bytes: &'a [u8],
    pub number: Option<Number>,
}

/// Two fields of a frame that its bytes do not have yet.
pub struct Number {
    pub checksum_at: usize,
    pub checksum: [u8; 2],
    pub sequence_at: usize,
    pub sequence: [u8; 8],
}

/// Makes one frame after the other.
///
/// Frames too short for the headers and the mark are cut off: they go out, and a receiver counts
/// them as foreign.
pub struct Builder {
    spec: Spec,
    layout: Layout,
    frame: Box<[u8]>,
    pattern: Pattern,
    sequence: u64,
    /// The size that `frame`'s length fields say.
    size: usize,
    /// Partial sums of: the addresses; addresses and ports; what depends on the size.
    address_sum: u32,
    flow_sum: u32,
    size_sum: u32,
    /// The IPv4 header's sum without addresses, length and checksum.
    ip_sum: u32,
}

impl Builder {
    /// Fails if the source is IPv4 and the destination IPv6, or the other way round.
    pub fn new(spec: Spec) -> Result<Builder> {
        let family = spec.src.family;
        if family != spec.dst.family {
            return Err(Error::Value(
                "source and destination must both be IPv4 or both IPv6; give --src and --dst of \
                 one kind"
                    .into(),
            ));
        }
        let pattern = Pattern::new();
        let frame = template(&spec, &pattern);
        // A constant of the header: everything but the two addresses, the length (bytes 16 and
        // 17) and the checksum.
        let ip_sum = sum(&frame[14..16]) + sum(&frame[18..IPV4_CHECKSUM]);
        let mut builder = Builder {
            layout: Layout::of(family),
            frame,
            pattern,
            sequence: 0,
            size: 0,
            address_sum: 0,
            flow_sum: 0,
            size_sum: 0,
            ip_sum,
            spec,
        };
        builder.set_flow();
        Ok(builder)
    }

    /// The next frame. It stays valid until the next call.
    pub fn build(&mut self) -> Frame<'_> {
        if self.sequence != 0 {
            self.spec.sizes.0.step();
            self.step_flow();
        }
        let size = self.spec.sizes.0.now as usize;
        if size != self.size {
            self.set_size(size);
        }
        let number = self.number();
        self.sequence += 1;
        Frame { bytes: &self.frame[..size], number }
    }

    /// The length of the longest frame, in bytes.
    pub fn longest(&self) -> usize {
        self.spec.sizes.longest()
    }

    /// The destination moves on when the source has been through its range.
    fn step_flow(&mut self) {
        let (src, dst) = (&mut self.spec.src, &mut self.spec.dst);
        if src.is_fixed() && dst.is_fixed() {
            return;
        }
        if src.step() {
            dst.step();
        }
        self.set_flow();
    }

    /// Writes addresses and ports, and the IPv4 checksum that covers the addresses.
    fn set_flow(&mut self) {
        let Layout { src, dst, udp, .. } = self.layout;
        let (from, to) = (&self.spec.src, &self.spec.dst);
        let skip = match from.family {
            Family::V4 => 12,
            Family::V6 => 0,
        };
        let frame = &mut self.frame;
        frame[src..dst].copy_from_slice(&from.address.now.to_be_bytes()[skip..]);
        frame[dst..udp].copy_from_slice(&to.address.now.to_be_bytes()[skip..]);
        frame[udp..udp + 2].copy_from_slice(&from.port.now.to_be_bytes());
        frame[udp + 2..udp + 4].copy_from_slice(&to.port.now.to_be_bytes());
        self.address_sum = sum(&frame[src..udp]);
        self.flow_sum = self.address_sum + sum(&frame[udp..udp + 4]);
        self.set_ip_checksum();
    }

    /// Writes the length fields. A frame too short for its headers claims to be an empty datagram.
    fn set_size(&mut self, size: usize) {
        let Layout { ip_length, udp, payload, .. } = self.layout;
        let udp_len = size.saturating_sub(udp).max(UDP_LEN) as u16;
        let ip_length_value = match self.spec.src.family {
            Family::V4 => 20 + udp_len,
            Family::V6 => udp_len,
        };
        self.frame[ip_length..ip_length + 2].copy_from_slice(&ip_length_value.to_be_bytes());
        self.frame[udp + 4..udp + 6].copy_from_slice(&udp_len.to_be_bytes());
        let filler = size.saturating_sub(payload + MARK_LEN);
        let mark_head = sum(&self.frame[payload..payload + SEQUENCE_AT]);
        self.size_sum =
            UDP + 2 * u32::from(udp_len) + mark_head + self.pattern.sum(self.spec.stream, filler);
        self.size = size;
        self.set_ip_checksum();
    }

    fn set_ip_checksum(&mut self) {
        if self.spec.src.family == Family::V4 {
            let at = self.layout.ip_length;
            let total = self.ip_sum + self.address_sum + sum(&self.frame[at..at + 2]);
            self.frame[IPV4_CHECKSUM..IPV4_CHECKSUM + 2]
                .copy_from_slice(&(!fold(total)).to_be_bytes());
        }
    }

    /// The sequence number and the UDP checksum, which covers it. A frame that is cut off gets
    /// what there is room for at once.
    fn number(&mut self) -> Option<Number> {
        let Layout { udp, payload, .. } = self.layout;
        let sequence = self.sequence.to_be_bytes();
        let (checksum_at, sequence_at) = (udp + 6, payload + SEQUENCE_AT);
        if self.size >= payload + MARK_LEN {
            let checksum = checksum(self.flow_sum + self.size_sum + sum(&sequence));
            return Some(Number { checksum_at, checksum, sequence_at, sequence });
        }
        self.frame[sequence_at..payload + MARK_LEN].copy_from_slice(&sequence);
        let udp_len = self.size.saturating_sub(udp).max(UDP_LEN) as u32;
        let cut = sum(&self.frame[payload..self.size.max(payload)]);
        let checksum = checksum(self.flow_sum + UDP + 2 * udp_len + cut);
        self.frame[checksum_at..checksum_at + 2].copy_from_slice(&checksum);
        None
    }
}

/// RFC 768: a checksum of zero means that there is none, so zero is sent as its twin.
fn checksum(total: u32) -> [u8; 2] {
    match !fold(total) {
        0 => [0xff; 2],
        checksum => checksum.to_be_bytes(),
    }
}

/// A frame of the largest size, whose variable fields are right for no size yet.
fn template(spec: &Spec, pattern: &Pattern) -> Box<[u8]> {
    let headers = headers_len(spec.src.family);
    let filler = spec.sizes.longest().saturating_sub(headers + MARK_LEN);
    let mut payload = Mark { stream: spec.stream, sequence: 0 }.to_bytes().to_vec();
    payload.extend_from_slice(pattern.bytes(spec.stream, filler));

    let ethernet = PacketBuilder::ethernet2(spec.src_mac.0, spec.dst_mac.0);
    let packet = match spec.src.family {
        Family::V4 => ethernet.ipv4([0; 4], [0; 4], TTL),
        Family::V6 => ethernet.ipv6([0; 16], [0; 16], TTL),
    }
    .udp(0, 0);
    let mut frame = Vec::with_capacity(headers + payload.len());
    packet.write(&mut frame, &payload).expect("a vector takes every frame of at most 65536 bytes");
    frame.into()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::reading::{Reading, read};
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    pub fn spec(src: &str, dst: &str, sizes: &str) -> Spec {
        Spec {
            src_mac: Mac([2, 0, 0, 0, 0, 1]),
            dst_mac: Mac::BROADCAST,
            src: src.parse().unwrap(),
            dst: dst.parse().unwrap(),
            sizes: sizes.parse().unwrap(),
            stream: 77,
        }
    }

    /// Parses a frame with an independent parser and checks lengths and both checksums.
    fn check(frame: &[u8]) -> (String, u16, String, u16) {
        let packet = SlicedPacket::from_ethernet(frame).unwrap();
        let Some(TransportSlice::Udp(udp)) = packet.transport else { panic!("not UDP") };
        let header = udp.to_header();
        assert_eq!(usize::from(header.length), UDP_LEN + udp.payload().len());
        let (src, dst, checksum) = match packet.net.unwrap() {
            NetSlice::Ipv4(ip) => {
                let ip = ip.header().to_header();
                assert_eq!(usize::from(ip.total_len), frame.len() - ETHERNET_LEN);
                assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                let right = header.calc_checksum_ipv4(&ip, udp.payload()).unwrap();
                (format!("{:?}", ip.source), format!("{:?}", ip.destination), right)
            }
            NetSlice::Ipv6(ip) => {
                let ip = ip.header().to_header();
                assert_eq!(usize::from(ip.payload_length), frame.len() - 54);
                let right = header.calc_checksum_ipv6(&ip, udp.payload()).unwrap();
                (format!("{:?}", ip.source), format!("{:?}", ip.destination), right)
            }
            NetSlice::Arp(_) => panic!("not IP"),
        };
        assert_eq!(header.checksum, right_or_twin(checksum));
        assert_ne!(header.checksum, 0);
        (src, header.source_port, dst, header.destination_port)
    }

    fn right_or_twin(checksum: u16) -> u16 {
        if checksum == 0 { 0xffff } else { checksum }
    }

    impl Frame<'_> {
        pub fn to_vec(&self) -> Vec<u8> {
            let mut whole = self.bytes.to_vec();
            if let Some(number) = &self.number {
                whole[number.checksum_at..][..2].copy_from_slice(&number.checksum);
                whole[number.sequence_at..][..8].copy_from_slice(&number.sequence);
            }
            whole
        }
    }

    #[test]
    fn every_size_parses_and_verifies() {
        let pattern = Pattern::new();
        for (src, dst, first) in [("10.0.0.1", "10.1.0.1", 42), ("fd00::1", "fd00::2", 62)] {
            let mut builder = Builder::new(spec(src, dst, &format!("{first}-2100"))).unwrap();
            let family = builder.spec.src.family;
            for (sequence, size) in (first..=2100).chain(first..=first + 3).enumerate() {
                let frame = &builder.build().to_vec()[..];
                assert_eq!(frame.len(), size);
                check(frame);
                let wanted = if size >= shortest_marked(family) {
                    Reading::Good(Mark { stream: 77, sequence: sequence as u64 })
                } else {
                    Reading::Foreign
                };
                assert_eq!(read(frame, &pattern), wanted, "size {size}");
            }
        }
    }

    #[test]
    fn the_largest_frames_verify() {
        let pattern = Pattern::new();
        for (src, dst) in [("10.0.0.1", "10.1.0.1"), ("fd00::1", "fd00::2")] {
            let mut builder = Builder::new(spec(src, dst, "65535-65536")).unwrap();
            for _ in 0..4 {
                let frame = &builder.build().to_vec()[..];
                check(frame);
                assert!(matches!(read(frame, &pattern), Reading::Good(_)));
            }
        }
    }

    #[test]
    fn cut_frames_have_the_size_asked_for() {
        let mut builder = Builder::new(spec("10.0.0.1", "10.1.0.1", "16-41")).unwrap();
        for size in 16..=41 {
            assert_eq!(builder.build().bytes.len(), size);
        }
    }

    #[test]
    fn flows_step_through_the_source_then_the_destination() {
        let mut builder =
            Builder::new(spec("10.0.0.1:1-10.0.0.2:2", "10.1.0.1:9-10.1.0.2:9", "60")).unwrap();
        let seen: Vec<_> = (0..9).map(|_| check(&builder.build().to_vec())).collect();
        let short: Vec<_> = seen
            .iter()
            .map(|(src, sport, dst, _)| (src.chars().nth(11), *sport, dst.chars().nth(11)))
            .collect();
        let want = |s, p, d| (Some(s), p, Some(d));
        assert_eq!(
            short,
            [
                want('1', 1, '1'),
                want('1', 2, '1'),
                want('2', 1, '1'),
                want('2', 2, '1'),
                want('1', 1, '2'),
                want('1', 2, '2'),
                want('2', 1, '2'),
                want('2', 2, '2'),
                want('1', 1, '1'),
            ]
        );
    }

    #[test]
    fn zero_checksum_is_sent_as_its_twin() {
        // Over 65536 consecutive sequence numbers every checksum comes up, zero too.
        let mut builder = Builder::new(spec("10.0.0.1", "10.1.0.1", "60")).unwrap();
        let mut twins = 0;
        for _ in 0..=65536 {
            let frame = &builder.build().to_vec()[..];
            let checksum = u16::from_be_bytes([frame[40], frame[41]]);
            assert_ne!(checksum, 0);
            twins += u32::from(checksum == 0xffff);
        }
        assert!(twins >= 1);
    }

    #[test]
    fn bad_requests_are_refused() {
        for bad in ["15", "65537", "100-99", "", "60-", "big"] {
            assert!(bad.parse::<Sizes>().is_err(), "{bad}");
        }
        assert!("16-65536".parse::<Sizes>().is_ok());
        assert!(Builder::new(spec("10.0.0.1", "fd00::1", "60")).is_err());
    }

    proptest! {
        #[test]
        fn any_spec_parses_back(
            src in any::<[u8; 4]>(), dst in any::<[u8; 16]>(), six in any::<bool>(),
            ports in any::<(u16, u16)>(), size in 62u32..1600, stream in any::<u32>(),
        ) {
            let (from, to) = if six {
                let dst = std::net::Ipv6Addr::from(dst);
                (format!("[fd00::1]:{}", ports.0), format!("[{dst}]:{}", ports.1))
            } else {
                let src = std::net::Ipv4Addr::from(src);
                (format!("{src}:{}", ports.0), format!("10.0.0.1:{}", ports.1))
            };
            let mut builder =
                Builder::new(Spec { stream, ..spec(&from, &to, &size.to_string()) }).unwrap();
            for _ in 0..3 {
                let (_, source, _, destination) = check(&builder.build().to_vec());
                prop_assert_eq!((source, destination), ports);
            }
        }
    }
}
