//! What a virtio-net header asks for, done: the frame, or its segments, need no header then.

use crate::{
    Error, Gso, Header, MAX_FRAME, Segments,
    checksum::{finish_nonzero, sum},
    segment::{Limit, MAX_DATAGRAMS, segment},
};

/// Where the result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// In the frame itself.
    InPlace,
    /// In the memory for segments.
    Segments(Segments),
}

/// Does what `header` asks for to the `frame` behind it (S-VHDR-3): completes its checksum in
/// place, or writes it in segments of up to `max_frame` bytes to `out`.
///
/// Segments are as long as the receiver takes them, like netmap's: `gso_size` counts for
/// [`Gso::UdpL4`](crate::Gso::UdpL4) only. `out` of twice [`MAX_FRAME`] is enough for the
/// segments of any frame if their payload is no shorter than their headers.
///
/// Errors: every [`Error`] means that the frame is to be dropped. It may have been changed.
pub fn consume(
    header: &Header,
    frame: &mut [u8],
    max_frame: usize,
    out: &mut [u8],
) -> Result<Output, Error> {
    consume_pieces(header, frame, frame.len(), max_frame, out)
}

/// As [`consume`], but its segments are as long as `gso_size` says: as the stack that made it one
/// frame had them, or would have sent them. Only where that is less than the headers they are as
/// long as these.
pub fn consume_as_sent(header: &Header, frame: &mut [u8], out: &mut [u8]) -> Result<Output, Error> {
    let payload = Some(header.gso_size.into());
    finish(header, frame, frame.len(), Limit { frame: MAX_FRAME, payload }, out)
}

/// As [`consume`], for a frame that came in pieces, of which the first had `first` bytes: it is
/// segmented only if that has all of its headers, as netmap has it.
pub fn consume_pieces(
    header: &Header,
    frame: &mut [u8],
    first: usize,
    max_frame: usize,
    out: &mut [u8],
) -> Result<Output, Error> {
    finish(header, frame, first, Limit { frame: max_frame, payload: None }, out)
}

fn finish(
    header: &Header,
    frame: &mut [u8],
    first: usize,
    limit: Limit,
    out: &mut [u8],
) -> Result<Output, Error> {
    if frame.len() > MAX_FRAME {
        return Err(Error::NoRoom);
    }
    if let Some(gso) = header.gso()? {
        return segment(frame, first, gso, limit, out).map(Output::Segments);
    }
    if let Some((start, at)) = header.checksum() {
        // The field holds the sum of the pseudo header, and is summed with the rest.
        let checksum = finish_nonzero(sum(frame.get(start..).ok_or(Error::BadChecksum)?));
        frame.get_mut(at..at + 2).ok_or(Error::BadChecksum)?.copy_from_slice(&checksum);
    }
    Ok(Output::InPlace)
}

/// Ethernet with two tags, IPv4 and TCP with all their options.
const LONGEST_HEADERS: usize = 14 + 2 * 4 + 60 + 60;

/// Ethernet, IPv4 and UDP.
const SHORTEST_HEADERS: usize = 14 + 20 + 8;

/// How many frames [`consume`] makes of one of `len` bytes, at least, without a look at it.
///
/// # Errors
/// Those of [`consume`] that the header alone tells.
pub fn least_frames(header: &Header, len: usize, max_frame: usize) -> Result<usize, Error> {
    let (step, most) = match header.gso()? {
        None => return Ok(1),
        Some(Gso::UdpL4(size)) => (size.into(), MAX_DATAGRAMS),
        Some(_) => (max_frame.saturating_sub(SHORTEST_HEADERS).max(1), usize::MAX),
    };
    let least = len.saturating_sub(LONGEST_HEADERS).div_ceil(step).max(1);
    if least > most { Err(Error::TooMany) } else { Ok(least) }
}

/// How many frames [`consume`] can make of one of `len` bytes, at most.
pub fn most_frames(header: &Header, len: usize, max_frame: usize) -> usize {
    let step = match header.gso() {
        Ok(None) | Err(_) => return 1,
        Ok(Some(Gso::UdpL4(size))) => size.into(),
        Ok(Some(_)) => max_frame.min(0xffff).saturating_sub(LONGEST_HEADERS).max(1),
    };
    len.div_ceil(step).max(1)
}
