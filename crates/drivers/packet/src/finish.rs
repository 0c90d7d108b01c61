//! What the kernel left undone in a frame, because hardware would do it: the VLAN tag taken out, the
//! checksum not computed, many frames in one.

use std::{slice::ChunksMut, sync::Mutex};

use ringway_region::Buf;
use ringway_vnet::{MAX_FRAME, Output, consume_as_sent};

use crate::blocks::Captured;

/// Bytes of the two addresses, behind which a tag stands.
const ADDRESSES: u32 = 12;

/// Bytes in which any frame can be finished: itself, and what it is cut into.
pub const ROOM: usize = 3 * MAX_FRAME;

/// The pieces of a frame, its tag among them. `tag` is memory for it.
#[inline]
pub fn pieces<'a>(frame: &Captured<'a>, tag: &'a mut [u8; 4]) -> [Option<Buf<'a>>; 3] {
    let whole = [Some(frame.data), None, None];
    let Some(bytes) = frame.tag else { return whole };
    let parts = frame.data.part(0, ADDRESSES).zip(frame.data.skip(ADDRESSES));
    let Some((addresses, rest)) = parts else { return whole };
    *tag = bytes;
    [Some(addresses), Some(Buf::of(tag)), Some(rest)]
}

/// Finishes a frame in `memory` of [`ROOM`] bytes or more. Returns the finished frame, or those that
/// it consists of, each as long as it was, or would have been, on the wire, and the memory that is
/// left. `None` if no frame can be made of it.
///
/// The kernel wrote the header, but others may have since: it may say anything.
#[cold]
pub fn finish<'m>(
    frame: &Captured<'_>,
    memory: &'m mut [u8],
) -> Option<(ChunksMut<'m, u8>, &'m mut [u8])> {
    let mut tag = [0; 4];
    let mut length = 0;
    for piece in pieces(frame, &mut tag).into_iter().flatten() {
        length += piece.copy_to(piece.size() as usize, &mut memory[length..]);
    }
    let (copy, rest) = memory.split_at_mut(length);
    let header = frame.header.shifted(if frame.tag.is_some() { 4 } else { 0 });
    Some(match consume_as_sent(&header, copy, rest).ok()? {
        Output::InPlace => (copy.chunks_mut(length.max(1)), rest),
        Output::Segments(segments) => {
            let (used, rest) = rest.split_at_mut(segments.bytes());
            (segments.frames(used), rest)
        }
    })
}

/// Memory to finish frames in, made when there is one to finish.
#[derive(Debug, Default)]
pub struct OffloadScratch(Mutex<Vec<u8>>);

impl OffloadScratch {
    /// [Finishes](finish) a frame, and gives what it consists of to `each`. False if no frame can be
    /// made of it.
    #[cold]
    pub fn finish(&self, frame: &Captured<'_>, each: impl FnMut(Buf<'_>)) -> bool {
        // A thread that holds the lock may have been lost by a fork: there is other memory.
        let mut memory = self
            .0
            .try_lock()
            .map_or_else(|_| Vec::new(), |mut memory| std::mem::take(&mut *memory));
        memory.resize(ROOM, 0);
        let made = finish(frame, &mut memory);
        let good = made.map(|(frames, _)| frames.map(Buf::of).for_each(each)).is_some();
        if let Ok(mut place) = self.0.try_lock() {
            *place = memory;
        }
        good
    }
}
