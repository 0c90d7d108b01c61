//! The packets that `pkt-gen` sends.

use super::options::{Options, how};
use crate::checksum::sum;
use crate::endpoint::{Endpoints, Mac, RangeCounter};
use crate::error::Result;
use crate::frame::step;
use crate::template::{Template, headers_len};
use ringway_file::Frames;

/// Fills payloads, over and over.
const TEXT: &[u8] = b"Ringway pkt-gen: a packet for whoever takes it.\n";

/// One packet after the other, each with its virtio-net header in front.
pub struct Packet {
    source: Source,
    /// Header and frame, as they go out.
    whole: Vec<u8>,
    header: usize,
}

enum Source {
    Built(Box<Built>),
    /// A frame of a capture, as it is.
    Captured,
}

struct Built {
    template: Template,
    /// `sums[n]`: partial sum of the first `n` words of the payload.
    sums: Vec<u32>,
    src: Endpoints,
    dst: Endpoints,
    random: Random,
    random_src: bool,
    random_dst: bool,
    shortest: Option<usize>,
    longest: usize,
}

impl Packet {
    pub fn new(options: &Options, src_mac: Mac, header: usize) -> Result<Packet> {
        if let Some(file) = &options.capture {
            let mut whole = vec![0; header];
            whole.extend_from_slice(Frames::load(file)?.get(0));
            return Ok(Packet { source: Source::Captured, whole, header });
        }
        let family = options.src.family;
        // Room for the sequence numbers and times that some modes put there, cut off or not.
        let room = options.size.saturating_sub(headers_len(family)).max(16);
        let payload: Vec<u8> = TEXT.iter().copied().cycle().take(room).collect();
        let words = payload.as_chunks::<2>().0.iter();
        let sums = std::iter::once(0).chain(words.scan(0, |total, word| {
            *total += sum(word);
            Some(*total)
        }));
        let mut built = Built {
            template: Template::new(src_mac, options.dst_mac, family, &payload),
            sums: sums.collect(),
            src: options.src.clone(),
            dst: options.dst.clone(),
            random: Random::new(),
            random_src: options.how & how::RANDOM_SRC != 0,
            random_dst: options.how & how::RANDOM_DST != 0,
            shortest: options.shortest,
            longest: options.size,
        };
        built.template.set_flow(&built.src, &built.dst);
        built.template.set_size(options.size);
        let mut packet = Packet { source: Source::Built(Box::new(built)), whole: vec![], header };
        packet.begin_with(&[]);
        Ok(packet)
    }

    /// Whether packets differ from each other.
    pub fn changes(&self) -> bool {
        match &self.source {
            Source::Captured => false,
            Source::Built(built) => {
                let fixed = built.src.is_fixed() && built.dst.is_fixed();
                !fixed || built.random_src || built.random_dst || built.shortest.is_some()
            }
        }
    }

    /// Header and frame of the packet at hand.
    pub fn bytes(&self) -> &[u8] {
        &self.whole
    }

    /// Bytes of its frame.
    pub fn frame_len(&self) -> usize {
        self.whole.len() - self.header
    }

    /// Goes on to the next.
    pub fn step(&mut self) {
        if let Source::Built(built) = &mut self.source {
            built.step();
            self.begin_with(&[]);
        }
    }

    /// Begins the payload with these bytes, an even number of at most 16.
    pub fn begin_with(&mut self, start: &[u8]) {
        let Source::Built(built) = &mut self.source else { return };
        built.begin_with(start);
        self.whole.clear();
        self.whole.resize(self.header, 0);
        self.whole.extend_from_slice(built.template.bytes());
    }
}

impl Built {
    fn step(&mut self) {
        if self.random_src {
            self.random.spin(&mut self.src);
        }
        if self.random_dst {
            self.random.spin(&mut self.dst);
        }
        let random = self.random_src || self.random_dst;
        if random || step(&mut self.src, &mut self.dst) {
            self.template.set_flow(&self.src, &self.dst);
        }
        if let Some(least) = self.shortest {
            let span = (self.longest - least).max(1) as u64;
            self.template.set_size(least + (self.random.next() % span) as usize);
        }
    }

    fn begin_with(&mut self, start: &[u8]) {
        self.template.payload_mut()[..start.len()].copy_from_slice(start);
        let len = self.template.size().saturating_sub(self.template.payload_at());
        let payload = self.template.payload();
        let total = if len >= start.len() {
            let odd = if len % 2 == 1 { u32::from(payload[len - 1]) << 8 } else { 0 };
            sum(start) + self.sums[len / 2] - self.sums[start.len() / 2] + odd
        } else {
            sum(&start[..len])
        };
        self.template.set_checksum(total);
    }
}

/// SplitMix64: good enough to spread packets, and nothing to depend on.
struct Random(u64);

impl Random {
    fn new() -> Random {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Random(now.map_or(0, |now| now.as_nanos() as u64) ^ u64::from(std::process::id()) << 32)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let n = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^ n >> 31
    }

    /// Any address and any port.
    fn spin(&mut self, ends: &mut Endpoints) {
        let high = u128::from(self.next()) << 64;
        let any = RangeCounter::new(0, u128::MAX);
        ends.address = RangeCounter { now: high | u128::from(self.next()), ..any };
        ends.port = RangeCounter { now: self.next() as u16, ..RangeCounter::new(0, u16::MAX) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::{Parsed, parse};
    use super::*;
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};

    fn packet(line: &str, header: usize) -> Packet {
        let args = line.split(' ').map(String::from).collect();
        let Parsed::Run(options) = parse(args) else { panic!("{line}") };
        Packet::new(&options, Mac([2, 0, 0, 0, 0, 1]), header).unwrap()
    }

    /// Parses a frame with an independent parser, and checks what it carries.
    fn check(frame: &[u8]) -> (u16, Vec<u8>) {
        let parsed = SlicedPacket::from_ethernet(frame).unwrap();
        let Some(TransportSlice::Udp(udp)) = parsed.transport else { panic!("not UDP") };
        let header = udp.to_header();
        let right = match parsed.net.unwrap() {
            NetSlice::Ipv4(ip) => {
                let ip = ip.header().to_header();
                assert!(ip.dont_fragment);
                assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                header.calc_checksum_ipv4(&ip, udp.payload())
            }
            NetSlice::Ipv6(ip) => {
                header.calc_checksum_ipv6(&ip.header().to_header(), udp.payload())
            }
            NetSlice::Arp(_) => panic!("not IP"),
        };
        let right = right.unwrap();
        assert_eq!(header.checksum, if right == 0 { 0xffff } else { right });
        (header.source_port, udp.payload().to_vec())
    }

    #[test]
    fn frames_are_valid_whatever_changes() {
        for line in [
            "-i null",
            "-i null -l 61",
            "-i null -6 -l 1514",
            "-i null -l 1514 -l 64",
            "-i null -z -Z -6 -l 99",
            "-i null -s 10.0.0.1:5-10.0.0.2:9 -zl 65",
        ] {
            let mut packet = packet(line, 0);
            for _ in 0..100 {
                check(packet.bytes());
                packet.step();
            }
        }
    }

    #[test]
    fn the_start_of_the_payload_can_be_replaced() {
        let mut packet = packet("-i null -l 77", 10);
        packet.begin_with(&[1, 2, 3, 4]);
        assert_eq!(packet.bytes()[..10], [0; 10]);
        assert_eq!(packet.frame_len(), 77);
        let (_, payload) = check(&packet.bytes()[10..]);
        assert_eq!(payload[..4], [1, 2, 3, 4]);
        assert_eq!(payload[4..], TEXT[4..payload.len()]);
    }

    #[test]
    fn ranges_step_ports_first() {
        let mut packet = packet("-i null -s 10.0.0.1:5-10.0.0.2:6", 0);
        assert!(packet.changes());
        let ports: Vec<_> = (0..4)
            .map(|_| {
                let (port, _) = check(packet.bytes());
                packet.step();
                port
            })
            .collect();
        assert_eq!(ports, [5, 6, 5, 6]);
    }

    #[test]
    fn random_sizes_stay_below_the_first() {
        let mut packet = packet("-i null -l 64 -l 62", 0);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..100 {
            packet.step();
            seen.insert(packet.frame_len());
        }
        assert_eq!(seen, [62, 63].into());
    }
}
