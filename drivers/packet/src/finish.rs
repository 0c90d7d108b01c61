//! What the kernel left undone in a frame, because hardware would do it: the VLAN tag taken out, the
//! checksum not computed, many frames in one.

use std::sync::Mutex;

use ringway_region::Buf;
use ringway_vnet::{MAX_FRAME, Output, consume};

use crate::blocks::Captured;

/// Bytes of the two addresses, behind which a tag stands.
const ADDRESSES: u32 = 12;

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

/// Memory to finish frames in, made when there is one to finish.
#[derive(Debug, Default)]
pub struct Workshop(Mutex<Vec<u8>>);

impl Workshop {
    /// Gives to `each` the finished frame, or those that it consists of, each of up to `max_frame`
    /// bytes, until `each` says that it is enough. False if no frame can be made of it.
    ///
    /// The kernel wrote the header, but others may have since: it may say anything.
    #[cold]
    pub fn finish(
        &self,
        frame: &Captured<'_>,
        max_frame: usize,
        mut each: impl FnMut(Buf<'_>) -> bool,
    ) -> bool {
        // Whoever is in the way was forked away, or is: there is other memory.
        let mut memory = self
            .0
            .try_lock()
            .map_or_else(|_| Vec::new(), |mut memory| std::mem::take(&mut *memory));
        memory.resize(3 * MAX_FRAME, 0);
        let (copy, out) = memory.split_at_mut(MAX_FRAME);
        let mut tag = [0; 4];
        let mut length = 0;
        for piece in pieces(frame, &mut tag).into_iter().flatten() {
            length += piece.copy_to(piece.size() as usize, &mut copy[length..]);
        }
        let copy = &mut copy[..length];
        let header = frame.header.shifted(if frame.tag.is_some() { 4 } else { 0 });
        let made = consume(&header, copy, max_frame, out);
        match made {
            Ok(Output::InPlace) => {
                each(Buf::of(copy));
            }
            Ok(Output::Segments(segments)) => {
                segments.frames(out).all(|segment| each(Buf::of(segment)));
            }
            Err(_) => {}
        }
        if let Ok(mut place) = self.0.try_lock() {
            *place = memory;
        }
        made.is_ok()
    }
}
