//! A frame that stays whole: its receiver does what the header asks for, and is told nothing wrong.

use crate::{
    Gso, Header,
    checksum::finish,
    header::{GSO_ECN, GSO_TCPV4, GSO_TCPV6, NEEDS_CSUM},
    layers::{Layers, Network, Protocol, carries_sctp},
};

/// Bytes of an Ethernet header without tags.
const ETHERNET: usize = 14;

/// Whether `header` says of the frame that begins with `begin` what the frame itself says: then
/// any receiver with headers can do what it asks for. A header has no words for the headers inside
/// of a tunnel.
pub fn is_expressible(header: &Header, begin: &[u8]) -> bool {
    let protocol = match header.gso() {
        Err(_) => return false,
        // A receiver takes the checksum for the internet's: SCTP's is another.
        Ok(None) => {
            return header.checksum().is_none_or(|(start, at)| {
                at + 2 <= begin.len() && carries_sctp(begin, (start, at)).is_none()
            });
        }
        Ok(Some(Gso::TcpV4 | Gso::TcpV6)) => Protocol::Tcp,
        Ok(Some(Gso::Udp | Gso::UdpL4(_))) => Protocol::Udp,
    };
    let Ok(layers) = Layers::find(begin, protocol) else { return false };
    let is_family = match header.gso() {
        Ok(Some(Gso::TcpV4)) => !layers.network.v6,
        Ok(Some(Gso::TcpV6)) => layers.network.v6,
        _ => true,
    };
    let sums = Some((layers.network.transport, layers.network.transport + protocol.checksum()));
    is_family && header.gso_size > 0 && header.checksum() == sums
}

/// The header with which Linux sends a frame of `length` bytes that begins with `begin`, in frames
/// of up to `max_frame` bytes. Lengths and the sum of the pseudo header are made right in `begin`.
/// `as_sent`: the frame came in segments of `gso_size`, and is not cut into shorter ones.
///
/// `None`: the frame is to be finished by [`consume`](crate::consume), as the kernel might refuse
/// it, or lose it without a word. It is not changed then.
pub fn for_kernel(
    header: &Header,
    begin: &mut [u8],
    length: usize,
    max_frame: usize,
    as_sent: bool,
) -> Option<Header> {
    match header.gso().ok()? {
        None => {
            let (start, at) = header.checksum()?;
            let ip =
                Network::find(begin).filter(|ip| ip.ip == ETHERNET && ip.transport == start)?;
            let protocol = [Protocol::Tcp, Protocol::Udp]
                .into_iter()
                .find(|protocol| protocol.number() == ip.carries)?;
            let fits =
                at == start + protocol.checksum() && at + 2 <= begin.len() && length <= max_frame;
            let csum_offset = header.csum_offset;
            fits.then(|| Header {
                flags: NEEDS_CSUM,
                csum_start: header.csum_start,
                csum_offset,
                ..Header::default()
            })
        }
        Some(gso @ (Gso::TcpV4 | Gso::TcpV6)) => {
            let layers = Layers::find(begin, Protocol::Tcp).ok()?;
            let room = max_frame.checked_sub(layers.payload).filter(|room| *room > 0)?;
            let asked = usize::from(header.gso_size);
            let is_other = |(start, _)| start != layers.network.transport;
            let is_odd = layers.network.ip != ETHERNET
                || header.checksum().is_some_and(is_other)
                || layers.network.v6 != (gso == Gso::TcpV6)
                || length - layers.network.ip > 0xffff
                || as_sent && !(1..=room).contains(&asked);
            if is_odd {
                return None;
            }
            let size = if asked == 0 { room } else { asked.min(room) };
            set_lengths(begin, &layers, length);
            let checksum = Header {
                flags: NEEDS_CSUM,
                hdr_len: layers.payload as u16,
                csum_start: layers.network.transport as u16,
                csum_offset: Protocol::Tcp.checksum() as u16,
                ..Header::default()
            };
            if length - layers.payload <= size {
                return Some(checksum);
            }
            let kind = if layers.network.v6 { GSO_TCPV6 } else { GSO_TCPV4 };
            let gso_type = kind | header.gso_type & GSO_ECN;
            Some(Header { gso_type, gso_size: size as u16, ..checksum })
        }
        // Not every kernel takes such, nor as many datagrams.
        Some(Gso::Udp | Gso::UdpL4(_)) => None,
    }
}

/// Puts the lengths of a TCP frame of `length` bytes into its headers, and its pseudo header's sum.
fn set_lengths(begin: &mut [u8], layers: &Layers, length: usize) {
    let Layers { network, protocol, .. } = layers;
    network.set_length(begin, length, 0);
    let seed = finish(network.pseudo_sum(begin, *protocol, length - network.transport));
    let at = network.transport + protocol.checksum();
    begin[at..at + 2].copy_from_slice(&seed.map(|byte| !byte));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Output, checksum::sum, consume_as_sent};

    /// TCP over IPv4 with lengths and sums that say nothing.
    fn frame(payload: usize) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 0];
        frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        frame.extend([0, 7, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        frame.extend((0..payload).map(|i| i as u8));
        frame
    }

    const TCP: Header = Header {
        flags: 1,
        gso_type: 1,
        hdr_len: 54,
        gso_size: 1448,
        csum_start: 34,
        csum_offset: 16,
        num_buffers: 0,
    };

    #[test]
    fn tcp_goes_to_the_kernel_whole_with_its_lengths() {
        let mut begin = frame(10_000);
        let length = begin.len();
        let header = for_kernel(&TCP, &mut begin, length, 1514, true).unwrap();
        assert_eq!(header, TCP);
        assert_eq!(begin[16..18], ((length - 14) as u16).to_be_bytes());
        assert_eq!(finish(sum(&begin[14..34])), [0, 0], "the sum of IP's header");
        let pseudo = [&begin[26..34], &[0, 6], &((length - 34) as u16).to_be_bytes()].concat();
        assert_eq!(finish(sum(&pseudo)).map(|byte| !byte), begin[50..52]);
        // The same segments as of the frame that came.
        let (mut before, mut room) = (frame(10_000), [vec![0; 131_072], vec![0; 131_072]]);
        let [one, other] = &mut room;
        let made = consume_as_sent(&TCP, &mut before, one).unwrap();
        assert_eq!(consume_as_sent(&header, &mut begin, other), Ok(made));
        assert!(matches!(made, Output::Segments(_)) && one == other);
    }

    #[test]
    fn the_longest_segment_is_the_receivers() {
        let of = |gso_size, max_frame, as_sent| {
            let mut begin = frame(4000);
            let length = begin.len();
            let header = Header { gso_size, ..TCP };
            for_kernel(&header, &mut begin, length, max_frame, as_sent).map(|h| h.gso_size)
        };
        assert_eq!(of(2000, 1514, false), Some(1460));
        assert_eq!(of(0, 1514, false), Some(1460));
        assert_eq!(of(100, 1514, false), Some(100));
        assert_eq!(of(1460, 1514, true), Some(1460));
        assert_eq!([of(1461, 1514, true), of(0, 1514, true), of(9, 54, false)], [None; 3]);
        assert_eq!(of(4000, 9000, false), Some(0), "one segment is no segmentation");
    }

    /// What is odd in any field is finished in software, and expressible to nobody.
    #[test]
    fn a_header_that_contradicts_its_frame_is_not_passed_on() {
        let odd = [
            Header { flags: 4, ..TCP },
            Header { gso_type: 2, ..TCP },
            Header { gso_type: 4, ..TCP },
            Header { gso_type: 5, ..TCP },
            Header { gso_type: 3, ..TCP },
            Header { gso_type: 0, csum_start: 65_000, ..TCP },
        ];
        for header in odd {
            let mut begin = frame(4000);
            assert!(!is_expressible(&header, &begin), "{header:?}");
            let length = begin.len();
            assert_eq!(for_kernel(&header, &mut begin, length, 1514, false), None, "{header:?}");
            assert_eq!(begin, frame(4000), "not changed");
        }
        for header in [Header { csum_start: 35, ..TCP }, Header { gso_size: 0, ..TCP }] {
            assert!(!is_expressible(&header, &frame(4000)), "{header:?}");
        }
        assert!(is_expressible(&TCP, &frame(4000)));
        assert!(is_expressible(&Header { gso_type: 0, csum_start: 84, ..TCP }, &frame(4000)));
    }

    #[test]
    fn a_sum_alone_is_the_kernels_where_it_is_tcps_or_udps() {
        let sum = Header { gso_type: 0, gso_size: 0, hdr_len: 0, ..TCP };
        let of = |header: Header, length| {
            for_kernel(&header, &mut frame(length - 54), length, 1514, false)
        };
        assert_eq!(of(sum, 1514), Some(sum));
        assert_eq!(of(sum, 1515), None, "longer than the interface sends");
        assert_eq!(of(Header { csum_start: 33, ..sum }, 100), None);
        assert_eq!(of(Header { csum_offset: 6, ..sum }, 100), None);
        assert_eq!(of(Header { flags: 0, ..sum }, 100), None, "nothing to do");
    }
}
