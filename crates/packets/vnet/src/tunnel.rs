//! Where the headers are in a frame whose TCP or UDP is inside of a tunnel: the kernel cuts such frames for hardware that
//! cannot, and so does [`consume_as_sent`](crate::consume_as_sent).
//!
//! VXLAN, Geneve, GUE and FOU have no numbers of their own, only ports that anybody may choose. A virtio-net header says
//! where the inner checksum begins, so what leads there is what it is.

use crate::{
    checksum::{finish, finish_nonzero, sum},
    layers::{Layers, Network, Protocol},
};

/// Headers outside of the innermost IP: as many as the kernel nests, and some more.
const DEPTH: usize = 6;

/// Bytes of the headers of UDP, and of VXLAN and Geneve without options.
const UDP: usize = 8;
const FIXED: usize = 8;
/// Bytes of GUE without options, and of GRE.
const SHORT: usize = 4;

/// Ethernet in Geneve and GRE (RFC 7637, RFC 8926).
const ETHERNET: u16 = 0x6558;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// A header that has a length or a checksum of what follows; where it begins.
#[derive(Clone, Copy, Debug)]
enum Outer {
    Ip(Network),
    /// Behind this IP.
    Udp(Network),
    /// With a checksum.
    Gre(usize),
}

/// The headers around the innermost IP, in their order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outers {
    headers: [Option<Outer>; DEPTH],
    count: usize,
}

/// A path through the headers of a frame to the checksum that its virtio-net header names.
struct Path<'f> {
    frame: &'f [u8],
    protocol: Protocol,
    /// Where `protocol` begins.
    transport: usize,
    outers: Outers,
}

/// The inner headers of `protocol`, which begins at `transport`, and those around them. `None`: there is no tunnel that is
/// known, or an odd one.
#[cold]
#[inline(never)]
pub(crate) fn find(frame: &[u8], protocol: Protocol, transport: usize) -> Option<(Layers, Outers)> {
    let mut path = Path { frame, protocol, transport, outers: Outers::default() };
    let layers = path.ethernet(0)?;
    Some((layers, path.outers))
}

impl Path<'_> {
    fn byte(&self, at: usize) -> Option<usize> {
        self.frame.get(at).copied().map(usize::from)
    }

    fn word(&self, at: usize) -> Option<u16> {
        Some((self.byte(at)? << 8 | self.byte(at + 1)?) as u16)
    }

    /// Ethernet begins at `at`.
    #[cold]
    fn ethernet(&mut self, at: usize) -> Option<Layers> {
        let network = Network::find(self.frame.get(at..)?)?;
        self.behind(network.moved(at))
    }

    /// IP begins at `at`.
    #[cold]
    fn ip(&mut self, at: usize) -> Option<Layers> {
        let network = Network::at(self.frame, at)?;
        self.behind(network)
    }

    #[cold]
    fn behind(&mut self, ip: Network) -> Option<Layers> {
        let at = ip.transport;
        if at == self.transport {
            return Layers::behind(self.frame, ip, self.protocol);
        }
        if at > self.transport {
            return None;
        }
        let before = self.outers;
        self.add(Outer::Ip(ip))?;
        let found = match ip.carries {
            4 | 41 => self.ip(at),
            17 => self.udp(ip),
            47 => self.gre(at),
            _ => None,
        };
        if found.is_none() {
            self.outers = before;
        }
        found
    }

    fn udp(&mut self, ip: Network) -> Option<Layers> {
        self.add(Outer::Udp(ip))?;
        let at = ip.transport + UDP;
        let options = |byte: usize, mask| (byte & mask) * 4;
        let first = self.byte(at)?;
        // FOU, GUE, Geneve, and VXLAN and its extension.
        self.ip(at)
            .or_else(|| self.ip(at + SHORT + options(first, 0x1f)))
            .or_else(|| self.of_type(at + 2, at + FIXED + options(first, 0x3f)))
            .or_else(|| self.ethernet(at + FIXED))
            .or_else(|| self.ip(at + FIXED))
    }

    /// RFC 2784 and 2890.
    fn gre(&mut self, at: usize) -> Option<Layers> {
        let flags = self.byte(at)?;
        let optional = [0x80, 0x20, 0x10].into_iter().filter(|flag| flags & flag != 0).count();
        if flags & 0x80 != 0 {
            self.add(Outer::Gre(at))?;
        }
        self.of_type(at + 2, at + SHORT + 4 * optional)
    }

    /// What the type at `named` says begins at `at`.
    fn of_type(&mut self, named: usize, at: usize) -> Option<Layers> {
        match self.word(named)? {
            ETHERNET => self.ethernet(at),
            IPV4 | IPV6 => self.ip(at),
            _ => None,
        }
    }

    fn add(&mut self, header: Outer) -> Option<()> {
        *self.outers.headers.get_mut(self.outers.count)? = Some(header);
        self.outers.count += 1;
        Some(())
    }
}

impl Outers {
    /// Makes the lengths and checksums of segment number `index` right, whose inner headers are.
    #[inline]
    pub fn fix(&self, segment: &mut [u8], index: usize) {
        if self.count > 0 {
            self.fix_all(segment, index);
        }
    }

    #[cold]
    #[inline(never)]
    fn fix_all(&self, segment: &mut [u8], index: usize) {
        // Checksums are of what follows, so the innermost is first.
        for outer in self.headers[..self.count].iter().rev().flatten() {
            match outer {
                Outer::Ip(ip) => {
                    ip.set_length(segment, segment.len(), index);
                }
                Outer::Udp(ip) => fix_udp(segment, ip),
                Outer::Gre(at) => {
                    segment[at + 4..at + 6].fill(0);
                    let checksum = finish(sum(&segment[*at..]));
                    segment[at + 4..at + 6].copy_from_slice(&checksum);
                }
            }
        }
    }
}

/// No checksum stays none.
fn fix_udp(segment: &mut [u8], ip: &Network) {
    let (before, udp) = segment.split_at_mut(ip.transport);
    let length = udp.len();
    udp[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    if udp[6..8] != [0, 0] {
        udp[6..8].fill(0);
        let all = ip.pseudo_sum(before, Protocol::Udp, length) + sum(udp);
        udp[6..8].copy_from_slice(&finish_nonzero(all));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Header, MAX_FRAME, Output, consume_as_sent};
    use proptest::{collection::vec, prelude::*};

    /// IP's header in front of `inside`, without length and checksum.
    fn ip(v6: bool, carries: u8, inside: Vec<u8>) -> Vec<u8> {
        let mut header = match v6 {
            true => vec![0x60, 0, 0, 0, 0, 0, carries, 64],
            false => vec![0x45, 0, 0, 0, 0xff, 0xfe, 0, 0, 64, carries, 0, 0],
        };
        header.extend((0..if v6 { 32 } else { 8 }).map(|i| 10 + i));
        [header, inside].concat()
    }

    fn ethernet(v6: bool, inside: Vec<u8>) -> Vec<u8> {
        let kind = if v6 { IPV6 } else { IPV4 };
        [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &kind.to_be_bytes(), &inside].concat()
    }

    fn udp(checksum: u8, shim: &[u8], inside: Vec<u8>) -> Vec<u8> {
        [&[0, 7, 0, 9, 0, 0, checksum, 0], shim, &inside].concat()
    }

    fn tcp(v6: bool) -> Vec<u8> {
        let mut bytes = vec![0, 7, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0];
        bytes.extend((0..5000).map(|i| i as u8));
        ip(v6, 6, bytes)
    }

    /// The packets of tunnels, and whether the outer and the inner IP have version 6.
    fn tunnels() -> Vec<(&'static str, bool, bool, Vec<u8>)> {
        let vxlan = [8, 0, 0, 0, 0, 0, 7, 0];
        let geneve = [1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 0];
        let gre = [0xa0, 0, 0x65, 0x58, 0, 0, 0, 0, 0, 0, 0, 7];
        let of = |shim: &[u8], inside: Vec<u8>| [shim, &inside].concat();
        let vxlan_of = |sum, v6| udp(sum, &vxlan, ethernet(v6, tcp(v6)));
        vec![
            ("VXLAN", false, false, ip(false, 17, vxlan_of(0, false))),
            ("VXLAN with sums", true, true, ip(true, 17, vxlan_of(1, true))),
            ("Geneve", false, true, ip(false, 17, udp(1, &geneve, ethernet(true, tcp(true))))),
            ("FOU", false, false, ip(false, 17, udp(0, &[], tcp(false)))),
            ("GUE", true, false, ip(true, 17, udp(1, &[0, 4, 0, 0], tcp(false)))),
            ("GRE", false, false, ip(false, 47, of(&gre, ethernet(false, tcp(false))))),
            ("GRE of IP", true, false, ip(true, 47, of(&[0, 0, 8, 0], tcp(false)))),
            ("IP in IP", false, false, ip(false, 4, tcp(false))),
            ("6 in 4", false, true, ip(false, 41, tcp(true))),
            ("twice", false, false, ip(false, 4, ip(false, 17, vxlan_of(1, false)))),
        ]
    }

    /// Whether all lengths and checksums from IP on are right, found by what they say, in a frame without padding.
    fn check_ip(at: usize, frame: &[u8], checked: &mut usize) {
        let bytes = &frame[at..];
        let v6 = bytes[0] >> 4 == 6;
        let word = |at: usize| usize::from(bytes[at]) << 8 | usize::from(bytes[at + 1]);
        let (behind, carries, addresses) = match v6 {
            true => (40, bytes[6], &bytes[8..40]),
            false => (20, bytes[9], &bytes[12..20]),
        };
        assert_eq!(word(if v6 { 4 } else { 2 }), bytes.len() - if v6 { 40 } else { 0 });
        assert!(v6 || finish(sum(&bytes[..20])) == [0, 0], "IP's checksum");
        let inside = &bytes[behind..];
        let pseudo =
            sum(addresses) + sum(&(inside.len() as u32).to_be_bytes()) + sum(&[0, carries]);
        *checked += 1;
        match carries {
            6 => assert_eq!(finish(pseudo + sum(inside)), [0, 0], "TCP's checksum"),
            4 | 41 => check_ip(at + behind, frame, checked),
            17 => {
                assert_eq!(word(behind + 4), inside.len());
                let has_sum = inside[6..8] != [0, 0];
                assert!(!has_sum || finish(pseudo + sum(inside)) == [0, 0], "UDP's checksum");
                let shim = match inside[8] {
                    8 => 8 + 14,
                    1 => 12 + 14,
                    0 => 4,
                    _ => 0,
                };
                check_ip(at + behind + 8 + shim, frame, checked);
            }
            47 if inside[0] == 0 => check_ip(at + behind + 4, frame, checked),
            47 => {
                assert_eq!(finish(sum(inside)), [0, 0], "GRE's checksum");
                check_ip(at + behind + 12 + 14, frame, checked);
            }
            other => panic!("IP carries {other}"),
        }
    }

    #[test]
    fn segments_have_headers_of_their_own_all_the_way() {
        for (name, v6, inner_v6, packet) in tunnels() {
            let mut frame = ethernet(v6, packet);
            let start = frame.len() - 5020;
            let header = Header {
                flags: 1,
                gso_type: if inner_v6 { 4 } else { 1 },
                gso_size: 1000,
                csum_start: start as u16,
                csum_offset: 16,
                ..Header::default()
            };
            let mut out = vec![0; 2 * MAX_FRAME];
            let made = consume_as_sent(&header, &mut frame, &mut out);
            let Ok(Output::Segments(segments)) = made else { panic!("{name}: {made:?}") };
            let mut payload = Vec::new();
            for (i, segment) in segments.frames(&mut out).enumerate() {
                let mut checked = 0;
                check_ip(14, segment, &mut checked);
                assert!(checked >= 2, "{name}");
                let tcp = &segment[start..];
                assert_eq!(tcp[4..8], (1 + 1000 * i as u32).to_be_bytes(), "{name}");
                assert_eq!(tcp[13], if i == 4 { 0x18 } else { 0x10 }, "{name}");
                payload.extend_from_slice(&tcp[20..]);
            }
            assert!(payload == frame[start + 20..], "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Nearly good frames with headers that say anything: no panic, and no more than there is room for.
        #[test]
        fn spoiled_tunnels(
            which in 0usize..10, spoilt in vec((0usize..160, any::<u8>()), 0..4), cut_off in 0usize..200,
            near in -4i32..5, gso_type in 0u8..6, gso_size in any::<u16>()
        ) {
            let (_, v6, _, packet) = tunnels().swap_remove(which);
            let mut frame = ethernet(v6, packet);
            let start = (frame.len() - 5020).saturating_add_signed(near as isize);
            for (at, byte) in spoilt {
                frame[at] = byte;
            }
            // To within the headers, too.
            if cut_off < 160 {
                frame.truncate(cut_off);
            }
            let header =
                Header { flags: 1, gso_type, gso_size, csum_start: start as u16, ..Header::default() };
            let (length, mut out) = (frame.len(), vec![0; 2 * MAX_FRAME]);
            if let Ok(Output::Segments(segments)) = consume_as_sent(&header, &mut frame, &mut out) {
                prop_assert!(segments.bytes() >= length && segments.frames(&mut out).count() <= length);
            }
        }
    }

    /// What leads elsewhere than the header says is not cut.
    #[test]
    fn a_header_that_names_no_inner_transport_is_refused() {
        for (name, v6, _, packet) in tunnels() {
            let frame = ethernet(v6, packet);
            let start = frame.len() - 5020;
            for wrong in [15, start - 1, start + 1, frame.len() - 1, 0xffff] {
                let header = Header {
                    flags: 1,
                    gso_type: 1,
                    gso_size: 1000,
                    csum_start: wrong as u16,
                    csum_offset: 16,
                    ..Header::default()
                };
                let mut out = vec![0; 2 * MAX_FRAME];
                let made = consume_as_sent(&header, &mut frame.clone(), &mut out);
                assert!(made.is_err(), "{name}, {wrong}: {made:?}");
            }
        }
    }
}
