//! Reads a received frame and says whether a generator sent exactly these bytes.

use crate::checksum::{fold, sum};
use crate::payload::{MARK_LEN, Mark, Pattern};
use crate::template::{ETHERNET_LEN, UDP, UDP_LEN};

/// A test frame as a receiver finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameCheck {
    /// Every byte that a generator determines is as it was sent.
    Good(Mark),
    /// A generator's frame, but damaged: cut short, a wrong checksum, or a wrong pattern.
    Corrupt,
    /// Not from a generator, or too short to tell.
    Foreign,
}

/// Reads a received frame. The frame may be longer than the packet in it (Ethernet padding).
pub fn read(frame: &[u8], pattern: &Pattern) -> FrameCheck {
    let Some(udp) = find_udp(frame) else { return FrameCheck::Foreign };
    let Some((mark, _)) = frame.get(udp.at + UDP_LEN..).and_then(Mark::split) else {
        return FrameCheck::Foreign;
    };
    let header = &frame[udp.at..udp.at + UDP_LEN];
    let udp_len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let end = udp.at + udp_len;
    let filler_at = udp.at + UDP_LEN + MARK_LEN;
    if end < filler_at || end > frame.len() || fold(udp.ip_header_sum) != 0xffff {
        return FrameCheck::Corrupt;
    }
    let filler = &frame[filler_at..end];
    let total = udp.address_sum
        + UDP
        + udp_len as u32
        + sum(&frame[udp.at..filler_at])
        + pattern.sum(mark.stream, filler.len());
    if fold(total) == 0xffff && filler == pattern.bytes(mark.stream, filler.len()) {
        FrameCheck::Good(mark)
    } else {
        FrameCheck::Corrupt
    }
}

/// Where the UDP header of a received frame is, and what its checksum needs to know of the rest.
struct Udp {
    at: usize,
    address_sum: u32,
    /// 0xffff for IPv6, which has no header checksum.
    ip_header_sum: u32,
}

fn find_udp(frame: &[u8]) -> Option<Udp> {
    let ethertype = frame.get(12..14)?;
    let first = *frame.get(ETHERNET_LEN)?;
    match (ethertype, first >> 4) {
        ([0x08, 0x00], 4) => {
            let at = ETHERNET_LEN + 4 * usize::from(first & 15);
            let header = frame.get(ETHERNET_LEN..at).filter(|header| header.len() >= 20)?;
            (u32::from(header[9]) == UDP).then(|| Udp {
                at,
                address_sum: sum(&header[12..20]),
                ip_header_sum: sum(header),
            })
        }
        ([0x86, 0xdd], 6) => {
            let header = frame.get(ETHERNET_LEN..ETHERNET_LEN + 40)?;
            (u32::from(header[6]) == UDP).then(|| Udp {
                at: ETHERNET_LEN + 40,
                address_sum: sum(&header[8..40]),
                ip_header_sum: 0xffff,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::tests::spec;
    use crate::frame::{Builder, Spec};
    use proptest::prelude::*;

    #[test]
    fn every_flipped_bit_that_a_generator_determines_is_noticed() {
        let pattern = Pattern::new();
        for (src, dst) in [("10.0.0.1", "10.1.0.1"), ("fd00::1", "fd00::2")] {
            let mut builder = Builder::new(spec(src, dst, "96")).unwrap();
            let good = builder.build().to_vec();
            let whole = read(&good, &pattern);
            assert!(matches!(whole, FrameCheck::Good(_)));
            // IPv6 has no checksum over traffic class, flow label, payload length and hop limit.
            let uncovered: &[usize] =
                if src == "fd00::1" { &[14, 15, 16, 17, 18, 19, 21] } else { &[] };
            for at in (ETHERNET_LEN..good.len()).filter(|at| !uncovered.contains(at)) {
                for bit in 0..8 {
                    let mut bad = good.clone();
                    bad[at] ^= 1 << bit;
                    assert_ne!(read(&bad, &pattern), whole, "byte {at} bit {bit}");
                }
            }
            assert_eq!(read(&good[..95], &pattern), FrameCheck::Corrupt);
            let mut padded = good.clone();
            padded.push(0);
            assert_eq!(read(&padded, &pattern), whole);
        }
    }

    #[test]
    fn the_payload_of_another_stream_is_corrupt() {
        let pattern = Pattern::new();
        let ours = spec("10.0.0.1", "10.1.0.1", "256");
        let theirs = Spec { stream: 78, ..ours.clone() };
        let mut mixed = Builder::new(ours).unwrap().build().to_vec();
        mixed[128..].copy_from_slice(&Builder::new(theirs).unwrap().build().to_vec()[128..]);
        assert_eq!(read(&mixed, &pattern), FrameCheck::Corrupt);
    }

    proptest! {
        #[test]
        fn reading_any_bytes_is_safe(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            read(&bytes, &Pattern::new());
        }
    }
}
