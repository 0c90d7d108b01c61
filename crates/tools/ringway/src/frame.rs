//! Builds test frames: Ethernet, IPv4 or IPv6, UDP, and the payload that a receiver can verify.
//!
//! A template is built once; each frame then costs a few stores into it. Both checksums are put
//! together from partial sums that are known beforehand, so no frame is ever added up.

use crate::checksum::sum;
use crate::endpoint::{Endpoints, Family, Mac, RangeCounter};
use crate::error::{Error, Result};
use crate::payload::{MARK_LEN, Mark, Pattern};
use crate::template::{Template, headers_len};
use std::str::FromStr;

/// Frame sizes in bytes, without the CRC: one, or a range that is stepped through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes(RangeCounter<u32>);

impl Sizes {
    const SHORTEST: u32 = 16;
    const LONGEST: u32 = 65536;

    /// Both ends are 16 to 65536.
    pub fn new(shortest: u32, longest: u32) -> Result<Sizes> {
        if shortest < Self::SHORTEST || longest > Self::LONGEST || shortest > longest {
            let size = match shortest == longest {
                true => shortest.to_string(),
                false => format!("{shortest}-{longest}"),
            };
            return Err(Error::Value(format!(
                "frame size {size} is not possible; give a size or a range from {} \
                 to {} bytes, without the CRC",
                Self::SHORTEST,
                Self::LONGEST
            )));
        }
        Ok(Sizes(RangeCounter::new(shortest, longest)))
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
    template: Template,
    pattern: Pattern,
    sequence: u64,
    /// The partial sum of a marked payload, without its sequence number.
    payload_sum: u32,
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
        let filler = spec.sizes.longest().saturating_sub(headers_len(family) + MARK_LEN);
        let mut payload = Mark { stream: spec.stream, sequence: 0 }.to_bytes().to_vec();
        payload.extend_from_slice(pattern.bytes(spec.stream, filler));
        let mut template = Template::new(spec.src_mac, spec.dst_mac, family, &payload);
        template.set_flow(&spec.src, &spec.dst);
        Ok(Builder { spec, template, pattern, sequence: 0, payload_sum: 0 })
    }

    /// The next frame. It stays valid until the next call.
    pub fn build(&mut self) -> Frame<'_> {
        if self.sequence != 0 {
            self.spec.sizes.0.step();
            self.step_flow();
        }
        let size = self.spec.sizes.0.now as usize;
        if size != self.template.size() {
            self.set_size(size);
        }
        let number = self.number();
        self.sequence += 1;
        Frame { bytes: self.template.bytes(), number }
    }

    /// The length of the longest frame, in bytes.
    pub fn longest(&self) -> usize {
        self.spec.sizes.longest()
    }

    /// The length of the shortest frame.
    pub fn shortest(&self) -> usize {
        self.spec.sizes.shortest()
    }

    /// The destination moves on when the source has been through its range.
    fn step_flow(&mut self) {
        let (src, dst) = (&mut self.spec.src, &mut self.spec.dst);
        if step(src, dst) {
            self.template.set_flow(src, dst);
        }
    }

    fn set_size(&mut self, size: usize) {
        self.template.set_size(size);
        let (head, _) = self.template.payload().split_at(SEQUENCE_AT);
        let filler = size.saturating_sub(self.template.payload_at() + MARK_LEN);
        self.payload_sum = sum(head) + self.pattern.sum(self.spec.stream, filler);
    }

    /// The sequence number and the UDP checksum, which covers it. A frame that is cut off gets
    /// what there is room for at once.
    fn number(&mut self) -> Option<Number> {
        let sequence = self.sequence.to_be_bytes();
        let payload = self.template.payload_at();
        if self.template.size() >= payload + MARK_LEN {
            let checksum = self.template.checksum(self.payload_sum + sum(&sequence));
            let (checksum_at, sequence_at) = (self.template.checksum_at(), payload + SEQUENCE_AT);
            return Some(Number { checksum_at, checksum, sequence_at, sequence });
        }
        let there = self.template.size().saturating_sub(payload);
        self.template.payload_mut()[SEQUENCE_AT..MARK_LEN].copy_from_slice(&sequence);
        let cut = sum(&self.template.payload()[..there]);
        self.template.set_checksum(cut);
        None
    }
}

/// Steps the source, and the destination when the source has been through its range; false if
/// there is only one flow.
pub fn step(src: &mut Endpoints, dst: &mut Endpoints) -> bool {
    if src.is_fixed() && dst.is_fixed() {
        return false;
    }
    if src.step() {
        dst.step();
    }
    true
}

impl Frame<'_> {
    /// All of it in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut whole = self.bytes.to_vec();
        if let Some(number) = &self.number {
            whole[number.checksum_at..][..2].copy_from_slice(&number.checksum);
            whole[number.sequence_at..][..8].copy_from_slice(&number.sequence);
        }
        whole
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::frame_check::{FrameCheck, read};
    use crate::template::{ETHERNET_LEN, UDP_LEN};
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
                    FrameCheck::Good(Mark { stream: 77, sequence: sequence as u64 })
                } else {
                    FrameCheck::Foreign
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
                assert!(matches!(read(frame, &pattern), FrameCheck::Good(_)));
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
