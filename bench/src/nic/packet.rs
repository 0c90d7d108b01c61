//! The packet that all senders send: UDP from and to an address that nobody has, like testpmd's.

/// An Ethernet, an IPv4 and a UDP header.
const HEADERS: usize = 14 + 20 + 8;

/// Nobody's address: the stack drops what it receives, first thing.
const TO: [u8; 6] = [2, 0, 0, 0, 0, 0];
const FROM: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// The discard service.
const PORT: u16 = 9;

/// A packet of `size` bytes, at least 42, without the frame check sequence. Each `flow` has a port that it comes from.
pub fn packet(size: u16, flow: u16) -> Vec<u8> {
    let length = |without: u16| (size - without).to_be_bytes();
    let mut ip = [0; 20];
    (ip[0], ip[8], ip[9]) = (0x45, 64, 17);
    ip[2..4].copy_from_slice(&length(14));
    // 198.18.0.0/15 is for benchmarks (RFC 2544).
    ip[12..16].copy_from_slice(&[198, 18, 0, 1]);
    ip[16..20].copy_from_slice(&[198, 18, 0, 2]);
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum);

    let [udp_high, udp_low] = length(14 + 20);
    let [from_high, from_low] = PORT.wrapping_add(flow).to_be_bytes();
    let [to_high, to_low] = PORT.to_be_bytes();
    let udp = [from_high, from_low, to_high, to_low, udp_high, udp_low, 0, 0];
    let mut packet = [&TO[..], &FROM, &[8, 0], &ip, &udp].concat();
    debug_assert_eq!(packet.len(), HEADERS);
    packet.resize(size.into(), 0x5a);
    packet
}

/// The internet checksum (RFC 1071).
fn checksum(header: &[u8; 20]) -> [u8; 2] {
    let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    (!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_its_lengths_and_its_checksum() {
        let packet = packet(64, 0);
        assert_eq!(packet.len(), 64);
        assert_eq!(packet[16..18], [0, 50]);
        assert_eq!(packet[38..40], [0, 30]);
        let header = packet[14..34].try_into().unwrap();
        assert_eq!(checksum(header), [0, 0]);
    }
}
