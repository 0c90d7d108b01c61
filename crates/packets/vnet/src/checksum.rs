//! The internet checksum (RFC 1071), and SCTP's, which is another: CRC32c (RFC 9260, appendix A).
//!
//! Sums are of words in the machine's byte order: the ones' complement sum does not mind, as
//! long as the result is stored in the same order. They are folded once, at the end.

/// The unfolded sum of `bytes`, which count as padded with a zero to an even length. Sums of
/// pieces add up if all but the last have an even length.
pub fn sum(bytes: &[u8]) -> u64 {
    // 32 bits at a time into 64: no carry is lost in 16 GiB, and the loop becomes vectors.
    let (words, rest) = bytes.as_chunks::<4>();
    let sum: u64 = words.iter().map(|&word| u64::from(u32::from_ne_bytes(word))).sum();
    let last = match *rest {
        [a] => [a, 0, 0, 0],
        [a, b] => [a, b, 0, 0],
        [a, b, c] => [a, b, c, 0],
        _ => [0; 4],
    };
    sum + u64::from(u32::from_ne_bytes(last))
}

/// The checksum of a sum, as it is stored.
pub fn finish(sum: u64) -> [u8; 2] {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    // Two halves of 32 bits make 0x1_ffff_fffe at most, so this is 0x1_fffe at most: one more carry, and no other.
    let sum = (sum & 0xffff) + (sum >> 16);
    (!(sum as u16)).to_ne_bytes()
}

/// The same where zero means that there is no checksum, as in UDP: the other way to write zero
/// takes its place.
pub fn finish_nonzero(sum: u64) -> [u8; 2] {
    match finish(sum) {
        [0, 0] => [0xff; 2],
        checksum => checksum,
    }
}

static CRC32C: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);

/// SCTP's checksum of a packet, which has zeros in the place of the checksum, from one piece to the next.
pub struct Crc32c(crc::Digest<'static, u32>);

impl Crc32c {
    /// Of nothing yet.
    #[expect(clippy::new_without_default, reason = "there is no use for a default")]
    pub fn new() -> Crc32c {
        Crc32c(CRC32C.digest())
    }

    /// Goes on with a piece.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum, as it is stored.
    pub fn finish(self) -> [u8; 4] {
        self.0.finalize().to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As the RFC defines it, with network byte order and one carry at a time.
    fn by_the_book(bytes: &[u8]) -> u16 {
        let mut sum = 0u16;
        for pair in bytes.chunks(2) {
            let word = u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]);
            let (wrapped, carry) = sum.overflowing_add(word);
            sum = wrapped + u16::from(carry);
        }
        !sum
    }

    proptest! {
        #[test]
        fn is_that_of_the_rfc(bytes in proptest::collection::vec(any::<u8>(), 0..3000), cut: prop::sample::Index) {
            let cut = cut.index(bytes.len() + 1) & !1;
            let parts = sum(&bytes[..cut]) + sum(&bytes[cut..]);
            prop_assert_eq!(finish(sum(&bytes)), by_the_book(&bytes).to_be_bytes());
            prop_assert_eq!(finish(parts), finish(sum(&bytes)));
        }
    }

    #[test]
    fn carries_run_through() {
        for sum in [u64::MAX, u64::from(u32::MAX), 0xffff_0000_ffff, 0x1_0000_fffe_ffff] {
            // A sum that is not zero stays so: all ones is its zero.
            let expected = match (sum % 0xffff) as u16 {
                0 => 0,
                remainder => !remainder,
            };
            assert_eq!(u16::from_ne_bytes(finish(sum)), expected, "{sum:x}");
        }
        assert_eq!((finish(0), finish_nonzero(0)), ([0xff; 2], [0xff; 2]));
        assert_eq!((finish(0xffff), finish_nonzero(0xffff)), ([0; 2], [0xff; 2]));
    }

    /// The example of the RFC's section 3.
    #[test]
    fn example_of_the_rfc() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(finish(sum(&bytes)), (!0xddf2u16).to_be_bytes());
    }

    /// The check value of the catalogue of CRCs, and the first example of RFC 3720, appendix B.4, which is stored so.
    #[test]
    fn known_crcs() {
        let of = |pieces: &[&[u8]]| {
            let mut crc = Crc32c::new();
            pieces.iter().for_each(|piece| crc.add(piece));
            crc.finish()
        };
        assert_eq!(of(&[b"123456789"]), 0xe306_9283u32.to_le_bytes());
        assert_eq!(of(&[b"1234", b"", b"56789"]), 0xe306_9283u32.to_le_bytes());
        assert_eq!(of(&[&[0; 32]]), [0xaa, 0x36, 0x91, 0x8a]);
    }
}
