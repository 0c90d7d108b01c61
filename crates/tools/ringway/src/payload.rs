//! What a test frame carries in its UDP payload: a mark, then a pattern.
//!
//! ```text
//!   0        4          8                 16
//!   +--------+----------+------------------+------------------------
//!   | "RWAY" | stream   | sequence number  | pattern of this stream …
//!   +--------+----------+------------------+------------------------
//! ```
//! All numbers are big-endian. The pattern starts at another place for another stream, so a
//! frame put together from two senders' bytes is noticed.

use crate::checksum;

/// Bytes that the mark takes.
pub const MARK_LEN: usize = 16;
const MAGIC: [u8; 4] = *b"RWAY";

/// Pattern bytes that the largest frame needs.
const LONGEST: usize = 65536;
/// Streams are told apart by where their pattern starts, at one of so many even places.
const SHIFTS: usize = 2048;

/// Who sent a frame, and as which of its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// One generator's run. Sequence numbers count within a stream.
    pub stream: u32,
    /// Counts up from 0.
    pub sequence: u64,
}

impl Mark {
    /// The mark as it stands in the payload.
    pub fn to_bytes(self) -> [u8; MARK_LEN] {
        let mut bytes = [0; MARK_LEN];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&self.stream.to_be_bytes());
        bytes[8..].copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }

    /// The mark at the start of `payload`, if there is one, and the pattern after it.
    pub fn split(payload: &[u8]) -> Option<(Mark, &[u8])> {
        let (mark, pattern) = payload.split_first_chunk::<MARK_LEN>()?;
        let (magic, numbers) = mark.split_first_chunk::<4>()?;
        let (stream, sequence) = numbers.split_first_chunk::<4>()?;
        let sequence = u64::from_be_bytes(sequence.try_into().ok()?);
        (*magic == MAGIC)
            .then_some((Mark { stream: u32::from_be_bytes(*stream), sequence }, pattern))
    }
}

/// The pattern of every stream and length, with its checksum known beforehand, so that neither
/// the sender nor the receiver adds up payload bytes.
pub struct Pattern {
    bytes: Box<[u8]>,
    /// `sums[n]`: the plain sum of the first n 16-bit words. 34 816 words cannot overflow it.
    sums: Box<[u32]>,
}

impl Pattern {
    pub fn new() -> Pattern {
        let bytes: Box<[u8]> = (0..(LONGEST + 2 * SHIFTS) as u32).map(scramble).collect();
        let mut total = 0;
        let sums = std::iter::once(0)
            .chain(bytes.as_chunks::<2>().0.iter().map(|word| {
                total += checksum::sum(word);
                total
            }))
            .collect();
        Pattern { bytes, sums }
    }

    /// The first `len` bytes of a stream's pattern; `len` is at most 65536.
    pub fn bytes(&self, stream: u32, len: usize) -> &[u8] {
        let start = shift(stream);
        &self.bytes[start..start + len]
    }

    /// The partial checksum of [`Pattern::bytes`], already folded.
    pub fn sum(&self, stream: u32, len: usize) -> u32 {
        let (start, words) = (shift(stream), len / 2);
        let odd = if len % 2 == 1 { u32::from(self.bytes[start + len - 1]) << 8 } else { 0 };
        let whole = self.sums[start / 2 + words] - self.sums[start / 2];
        u32::from(checksum::fold(whole)) + odd
    }
}

/// Where a stream's pattern starts; even, so that the checksum's words stay whole.
fn shift(stream: u32) -> usize {
    2 * (stream as usize % SHIFTS)
}

/// A byte that does not repeat with any short period (a multiplicative hash of its place).
fn scramble(place: u32) -> u8 {
    (place.wrapping_mul(0x9e37_79b1) >> 24) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_survives_the_wire() {
        let mark = Mark { stream: 0xdead_beef, sequence: u64::MAX - 1 };
        let mut payload = mark.to_bytes().to_vec();
        payload.extend([1, 2, 3]);
        assert_eq!(Mark::split(&payload), Some((mark, &[1, 2, 3][..])));
    }

    #[test]
    fn what_is_not_a_mark_is_none() {
        let bytes = Mark { stream: 1, sequence: 2 }.to_bytes();
        assert_eq!(Mark::split(&bytes[..15]), None);
        for at in 0..4 {
            let mut wrong = bytes;
            wrong[at] ^= 1;
            assert_eq!(Mark::split(&wrong), None);
        }
    }

    #[test]
    fn sums_agree_with_the_bytes() {
        let pattern = Pattern::new();
        for stream in [0, 1, 2047, 2048, u32::MAX] {
            for len in (0..300).chain([1498, 65535, 65536]) {
                let bytes = pattern.bytes(stream, len);
                let plain = checksum::fold(checksum::sum(bytes));
                assert_eq!(checksum::fold(pattern.sum(stream, len)), plain, "{stream} {len}");
            }
        }
    }

    #[test]
    fn streams_differ() {
        let pattern = Pattern::new();
        assert_ne!(pattern.bytes(1, 32), pattern.bytes(2, 32));
    }
}
