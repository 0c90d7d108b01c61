//! What the stack at the other end of a veth pair left to hardware that is not there.
//!
//! It trusts that nothing is damaged between two memories, and leaves checksums to the device that
//! sends the frame on a wire. That is us now, or what we give the frame to.

use ringway_region::Buf;
use ringway_vnet::{
    BEGINNING, PartialCsum,
    checksum::{Crc32c, finish_nonzero, sum},
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

/// A frame that says that it is longer than it is, is none that a stack sends: it stays as it is.
fn complete<'a>(pieces: impl Iterator<Item = Buf<'a>>, first: &Buf<'a>, partial_csum: PartialCsum) {
    let PartialCsum { start, len, at, is_crc } = partial_csum;
    if is_crc {
        let mut crc = Crc32c::new();
        if each_block(pieces, start, len, |block| crc.add(block)) {
            first.store(at, crc.finish());
        }
        return;
    }
    let mut total = 0;
    if each_block(pieces, start, len, |block| total += sum(block)) {
        first.store(at, finish_nonzero(total));
    }
}

/// Gives `len` bytes from `start` on to `each`, a block at a time. Whether there were as many.
#[inline]
fn each_block<'a>(
    pieces: impl Iterator<Item = Buf<'a>>,
    mut start: usize,
    len: usize,
    mut each: impl FnMut(&[u8]),
) -> bool {
    let mut left = len;
    let (mut block, mut filled) = ([0; BLOCK], 0);
    for piece in pieces {
        let skipped = start.min(piece.size() as usize);
        start -= skipped;
        let mut rest = piece.skip(skipped as u32);
        while let Some(from) = rest.filter(|rest| rest.size() > 0 && left > 0) {
            let copied = from.copy_to(left, &mut block[filled..]);
            (left, filled) = (left - copied, filled + copied);
            if filled == BLOCK {
                each(&block);
                filled = 0;
            }
            rest = from.skip(copied as u32);
        }
    }
    each(&block[..filled]);
    left == 0
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

    /// SCTP's checksum covers what IP has, and no padding.
    #[test]
    fn sctp_in_pieces() {
        let payload: Vec<u8> = (0..1337u32).map(|i| (i * 7) as u8).collect();
        let packet = [&[0, 7, 0, 9, 1, 2, 3, 4, 0, 0, 0, 0], &payload[..]].concat();
        let mut frame = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0].to_vec();
        frame.extend((20 + packet.len() as u16).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 132, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let mut crc = Crc32c::new();
        crc.add(&packet);
        let mut whole = [&frame[..], &packet, &[0xee; 7]].concat();
        let left = whole.clone();
        whole[42..46].copy_from_slice(&crc.finish());
        for cut in [left.len(), 1000, 101, 46] {
            let mut bytes = left.clone();
            let (first, rest) = bytes.split_at_mut(cut);
            let pieces = [first].into_iter().chain(rest.chunks_mut(511));
            let pieces: Vec<_> = pieces.map(Buf::of).collect();
            finish(pieces.iter().copied());
            finish(pieces.into_iter());
            assert!(bytes == whole, "cut at {cut}");
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
