//! PartialCsum checksums, found without being told of.
//!
//! A stack that leaves a checksum to the hardware stores the sum of the pseudo header in its place.
//! On its way through a veth pair the frame loses the note that says so. What is stored still tells:
//! it is a finished checksum by chance alone, and then finishing it again gives the same. SCTP has zeros there: its
//! checksum has no pseudo header.

use crate::checksum::{finish, sum};
use crate::layers::{Network, Protocol, SCTP, SCTP_CHECKSUM, SCTP_HEADER};

/// Bytes at the beginning of a frame that are enough to know: Ethernet with two tags, IPv4 with all
/// its options, TCP up to its checksum.
pub const BEGINNING: usize = 14 + 2 * 4 + 60 + 18;

/// What is left to do: sum up `len` bytes from `start` on, and store the result at `at`. All count
/// from the frame's first byte; `at` is inside what is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialCsum {
    pub start: usize,
    pub len: usize,
    pub at: usize,
    /// It is SCTP's [`Crc32c`](crate::checksum::Crc32c), of 4 bytes.
    pub is_crc: bool,
}

impl PartialCsum {
    /// Looks at the [`BEGINNING`] of a frame, or at all of one that is shorter. `None`: it is
    /// finished, or not TCP, UDP or SCTP over IP, or a fragment.
    #[inline]
    pub fn find(beginning: &[u8]) -> Option<PartialCsum> {
        let network = Network::find(beginning)?;
        let Network { v6, ip, transport: start, carries } = network;
        let protocol = [Protocol::Tcp, Protocol::Udp].into_iter().find(|p| p.number() == carries);
        let Some(protocol) = protocol else { return PartialCsum::find_sctp(beginning, network) };
        let at = start + protocol.checksum();
        let stored = beginning.get(at..)?.first_chunk::<2>()?;
        let len = network.length(beginning)?;
        let addresses = beginning.get(if v6 { ip + 8..ip + 40 } else { ip + 12..ip + 20 })?;
        let pseudo = sum(addresses) + sum(&[0, carries]) + sum(&(len as u16).to_be_bytes());
        let is_sum = finish(pseudo).map(|byte| !byte) == *stored;
        let is_crc = false;
        (is_sum && at + 2 <= start + len).then_some(PartialCsum { start, len, at, is_crc })
    }

    #[cold]
    fn find_sctp(beginning: &[u8], ip: Network) -> Option<PartialCsum> {
        let (start, at) = (ip.transport, ip.transport + SCTP_CHECKSUM);
        let is_zero = beginning.get(at..start + SCTP_HEADER)?.iter().all(|byte| *byte == 0);
        let len = ip.length(beginning).filter(|len| *len >= SCTP_HEADER)?;
        let is_left = ip.carries == SCTP && is_zero;
        is_left.then_some(PartialCsum { start, len, at, is_crc: true })
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    use super::*;
    use crate::checksum::finish_nonzero;

    /// A finished frame.
    fn frame(v6: bool, tcp: bool, tags: usize, payload: &[u8]) -> Vec<u8> {
        let ethernet = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let mut bytes = Vec::new();
        let ip = match v6 {
            false => ethernet.ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64),
            true => ethernet.ipv6([0xfd; 16], [0xfe; 16], 64),
        };
        match tcp {
            true => ip.tcp(7, 9, 1, 512).write(&mut bytes, payload).unwrap(),
            false => ip.udp(7, 9).write(&mut bytes, payload).unwrap(),
        }
        for _ in 0..tags {
            bytes.splice(12..12, [0x81, 0, 0, 5]);
        }
        bytes
    }

    /// Where the checksum is, and what it is to be, by a library that knows.
    fn checksum(frame: &[u8]) -> [u8; 2] {
        let parsed = SlicedPacket::from_ethernet(frame).unwrap();
        match parsed.transport.unwrap() {
            TransportSlice::Tcp(tcp) => tcp.checksum(),
            TransportSlice::Udp(udp) => udp.checksum(),
            _ => unreachable!(),
        }
        .to_be_bytes()
    }

    /// Zero and all ones are one value of the checksum. TCP's may be written either way, and UDP's
    /// as ones alone; who finishes one does not look at the protocol.
    fn stored(checksum: [u8; 2]) -> [u8; 2] {
        if checksum == [0; 2] { [0xff; 2] } else { checksum }
    }

    /// As likely as any other checksum of TCP, so one frame in 65 536 has it.
    #[test]
    fn a_checksum_of_zero_is_finished_as_ones() {
        for tcp in [false, true] {
            let word = checksum(&frame(false, tcp, 0, &[0, 0]));
            let mut left = frame(false, tcp, 0, &word);
            assert_eq!(checksum(&left), if tcp { [0; 2] } else { [0xff; 2] });
            let (at, len) = if tcp { (50, 22) } else { (40, 10) };
            let pseudo = sum(&left[26..34]) + sum(&[0, if tcp { 6 } else { 17 }]) + sum(&[0, len]);
            left[at..at + 2].copy_from_slice(&finish(pseudo).map(|byte| !byte));
            assert_eq!(finish_nonzero(sum(&left[34..])), [0xff; 2]);
        }
    }

    proptest! {
        /// What a stack leaves partial is found, and is then what it would have been; what is
        /// finished is left alone, or would become the same.
        #[test]
        fn what_was_left_is_done(
            v6: bool, tcp: bool, tags in 0..3usize,
            payload in prop::collection::vec(any::<u8>(), 0..1400),
            padding in 0..9usize,
        ) {
            let mut whole = frame(v6, tcp, tags, &payload);
            let expected = stored(checksum(&whole));
            let length = whole.len();
            whole.resize(length + padding, 0xee);
            let done = PartialCsum::find(&whole[..whole.len().min(BEGINNING)]);

            let transport = 14 + 4 * tags + if v6 { 40 } else { 20 };
            let at = transport + if tcp { 16 } else { 6 };
            let addresses = transport - if v6 { 32 } else { 8 };
            let len = (length - transport) as u16;
            let pseudo = sum(&whole[addresses..transport])
                + sum(&[0, if tcp { 6 } else { 17 }])
                + sum(&len.to_be_bytes());
            let mut left = whole.clone();
            left[at..at + 2].copy_from_slice(&finish(pseudo).map(|byte| !byte));

            let found = PartialCsum::find(&left[..left.len().min(BEGINNING)]);
            prop_assert_eq!(found, Some(PartialCsum { start: transport, len: len.into(), at, is_crc: false }));
            let finished = finish_nonzero(sum(&left[transport..length]));
            prop_assert_eq!(finished, expected);
            prop_assert!(done.is_none() || whole == left);
        }

        /// Whatever it is given, it stays inside.
        #[test]
        fn nothing_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..BEGINNING), v6: bool) {
            if bytes.len() > 15 {
                let kind: [u8; 3] = if v6 { [0x86, 0xdd, 0x60] } else { [8, 0, 0x4f] };
                bytes[12..15].copy_from_slice(&kind);
            }
            if let Some(PartialCsum { start, len, at, .. }) = PartialCsum::find(&bytes) {
                prop_assert!(start < at && at + 2 <= start + len && at + 2 <= bytes.len());
            }
        }
    }

    /// Stores the sum of the pseudo header in UDP over IPv4 without tags, for a datagram of `len` bytes.
    fn leave_partial(frame: &mut [u8], len: u16) {
        frame[16..18].copy_from_slice(&(20 + len).to_be_bytes());
        let pseudo = sum(&frame[26..34]) + sum(&[0, 17]) + sum(&len.to_be_bytes());
        frame[40..42].copy_from_slice(&finish(pseudo).map(|byte| !byte));
    }

    /// The checksum covers as many bytes as IP's length field says, which must include the checksum field.
    #[test]
    fn the_checksum_lies_in_what_is_summed() {
        let mut udp = frame(false, false, 0, b"data");
        for (len, is_found) in
            [(12, true), (9, true), (8, true), (7, false), (6, false), (0, false)]
        {
            leave_partial(&mut udp, len);
            let expected = PartialCsum { start: 34, len: len.into(), at: 40, is_crc: false };
            assert_eq!(PartialCsum::find(&udp), is_found.then_some(expected), "{len}");
        }
        udp[16..18].copy_from_slice(&19u16.to_be_bytes());
        assert_eq!(PartialCsum::find(&udp), None, "IP is shorter than its header");
    }

    /// What is cut off before the checksum's end tells nothing.
    #[test]
    fn the_checksum_is_seen_whole() {
        let mut udp = frame(false, false, 0, b"data");
        leave_partial(&mut udp, 12);
        for length in 0..udp.len() {
            assert_eq!(PartialCsum::find(&udp[..length]).is_some(), length >= 42, "{length}");
        }
    }

    /// TCP behind the longest headers before it is known by as many bytes as are asked for, and no less.
    #[test]
    fn the_beginning_is_as_long_as_it_has_to_be() {
        let options = etherparse::Ipv4Options::try_from(&[1; 40][..]).unwrap();
        let mut ip = etherparse::Ipv4Header::new(
            20,
            64,
            etherparse::IpNumber::TCP,
            [192, 0, 2, 1],
            [192, 0, 2, 2],
        )
        .unwrap();
        ip.options = options;
        ip.set_payload_len(20).unwrap();
        let tags = [0x81, 0, 0, 5].repeat(2);
        let mut bytes = [&[2; 12][..], &tags, &[8, 0], &ip.to_bytes(), &[0; 20]].concat();
        let pseudo = sum(&[192, 0, 2, 1, 192, 0, 2, 2]) + sum(&[0, 6]) + sum(&[0, 20]);
        bytes[98..100].copy_from_slice(&finish(pseudo).map(|byte| !byte));
        let found = Some(PartialCsum { start: 82, len: 20, at: 98, is_crc: false });
        assert_eq!(PartialCsum::find(&bytes[..BEGINNING]), found);
        assert_eq!(PartialCsum::find(&bytes[..BEGINNING - 1]), None);
    }

    #[test]
    fn what_has_no_checksum_has_none_to_finish() {
        let mut udp = frame(false, false, 0, b"data");
        udp[40..42].fill(0);
        assert_eq!(PartialCsum::find(&udp), None);
    }
}
