//! What the stack at the other end of a veth pair left to hardware that is not there.
//!
//! It trusts that nothing is damaged between two memories, and leaves checksums to the device that
//! sends the frame on a wire. That is us now, or what we give the frame to.

use ringway_region::Buf;
use ringway_vnet::{
    BEGINNING, PartialCsum,
    checksum::{finish_nonzero, sum},
};

/// Computes the checksum of a frame that lies in these pieces, if that is partial. The frame may
/// say anything, and change meanwhile: that costs its sender the checksum.
#[inline]
pub(crate) fn finish<'a>(pieces: impl Iterator<Item = Buf<'a>> + Clone) {
    let Some(first) = pieces.clone().next() else { return };
    let mut beginning = [0; BEGINNING];
    let read = first.copy_to(BEGINNING, &mut beginning);
    if let Some(partial_csum) = PartialCsum::find(&beginning[..read]) {
        complete(pieces, &first, partial_csum);
    }
}

/// Bytes copied out at a time; even, so that the sums of blocks add up.
const BLOCK: usize = 512;

fn complete<'a>(pieces: impl Iterator<Item = Buf<'a>>, first: &Buf<'a>, partial_csum: PartialCsum) {
    let PartialCsum { mut start, len, at } = partial_csum;
    let (mut left, mut total) = (len, 0);
    let (mut block, mut filled) = ([0; BLOCK], 0);
    for piece in pieces {
        let skipped = start.min(piece.size() as usize);
        start -= skipped;
        let mut rest = piece.skip(skipped as u32);
        while let Some(from) = rest.filter(|rest| rest.size() > 0 && left > 0) {
            let copied = from.copy_to(left, &mut block[filled..]);
            (left, filled) = (left - copied, filled + copied);
            if filled == BLOCK {
                total += sum(&block);
                filled = 0;
            }
            rest = from.skip(copied as u32);
        }
    }
    total += sum(&block[..filled]);
    // A frame that says that it is longer than it is, is none that a stack sends.
    if left == 0 {
        first.store(at, finish_nonzero(total));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringway_testkit::datagram;

    /// With an odd number of bytes: as its sender left it, and as it should be.
    fn frames() -> [Vec<u8>; 2] {
        let payload: Vec<u8> = (0..1337u32).map(|i| (i * 7) as u8).collect();
        datagram(&payload)
    }

    /// Wherever the pieces end.
    #[test]
    fn a_frame_in_pieces() {
        let [left, whole] = frames();
        for cut in [left.len(), left.len() - 1, 1000, 777, 101, 43, 42] {
            for second in [1, 2, 511, 513] {
                let mut bytes = left.clone();
                let (first, rest) = bytes.split_at_mut(cut);
                let pieces = [first].into_iter().chain(rest.chunks_mut(second));
                let pieces: Vec<_> = pieces.map(Buf::of).collect();
                finish(pieces.iter().copied());
                finish(pieces.into_iter());
                assert!(bytes == whole, "cut at {cut} and every {second}");
            }
        }
    }

    #[test]
    fn what_is_cut_off_is_left_alone() {
        let [left, _] = frames();
        for length in 0..left.len() {
            let mut bytes = left[..length].to_vec();
            finish([Buf::of(&mut bytes)].into_iter());
            assert!(bytes == left[..length]);
        }
    }
}
