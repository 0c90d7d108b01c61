//! The Internet checksum (RFC 1071) as partial sums that can be added in any order.

/// Sums the big-endian 16-bit words of `bytes`; an odd last byte counts as the high half of a
/// word. Partial sums add up as long as each piece but the last has an even length.
pub fn sum(bytes: &[u8]) -> u32 {
    let (words, odd) = bytes.as_chunks::<2>();
    let whole: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    whole + odd.first().map_or(0, |byte| u32::from(*byte) << 8)
}

/// Folds a partial sum to 16 bits. A message that holds its own right checksum folds to 0xffff.
pub fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_1071_example() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(sum(&bytes), 0x2ddf0);
        assert_eq!(fold(sum(&bytes)), 0xddf2);
    }

    #[test]
    fn pieces_add_up() {
        let bytes: Vec<u8> = (0..=200).collect();
        assert_eq!(sum(&bytes[..64]) + sum(&bytes[64..]), sum(&bytes));
    }

    #[test]
    fn largest_frame_does_not_overflow() {
        assert_eq!(fold(sum(&vec![0xff; 65536])), 0xffff);
    }
}
