//! What a virtio-net header asks for, done: the frame, or its segments, need no header then.

use crate::{
    Error, Gso, Header, MAX_FRAME, Segments,
    checksum::{Crc32c, finish_nonzero, sum},
    layers::{Layers, Network, SCTP_CHECKSUM, SCTP_HEADER, carries_sctp},
    segment::{Limit, MAX_DATAGRAMS, Way, cut, protocol, segment},
    tunnel::{Outers, find},
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
    let limit = Limit { frame: MAX_FRAME, payload: Some(header.gso_size.into()) };
    if let Some((gso, layers, outers)) = inside(header, frame)? {
        let way = Way::of(header, gso);
        return cut(frame, layers, &outers, way, limit, out).map(Output::Segments);
    }
    finish(header, frame, frame.len(), limit, out)
}

/// The headers of a frame that is to be cut and is in a tunnel. The checksum of what is inside is what such a header has.
fn inside(header: &Header, frame: &[u8]) -> Result<Option<(Gso, Layers, Outers)>, Error> {
    let Some((gso, (transport, _))) = header.gso()?.zip(header.checksum()) else { return Ok(None) };
    let is_tunnel = Network::find(frame).is_some_and(|outer| outer.transport < transport);
    let found = if is_tunnel { find(frame, protocol(gso), transport) } else { None };
    Ok(found.filter(|_| frame.len() <= MAX_FRAME).map(|(layers, outers)| (gso, layers, outers)))
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
        return segment(frame, first, header, gso, limit, out).map(Output::Segments);
    }
    if let Some((start, at)) = header.checksum() {
        if let Some(ip) = carries_sctp(frame, (start, at)) {
            finish_sctp(frame, ip).ok_or(Error::BadChecksum)?;
            return Ok(Output::InPlace);
        }
        // The field holds the sum of the pseudo header, and is summed with the rest.
        let checksum = finish_nonzero(sum(frame.get(start..).ok_or(Error::BadChecksum)?));
        frame.get_mut(at..at + 2).ok_or(Error::BadChecksum)?.copy_from_slice(&checksum);
    }
    Ok(Output::InPlace)
}

/// Completes the checksum of SCTP, as Linux does (`skb_crc32c_csum_help`): of what IP has, without padding behind it.
#[cold]
fn finish_sctp(frame: &mut [u8], ip: Network) -> Option<()> {
    let length = ip.length(frame).filter(|length| *length >= SCTP_HEADER)?;
    let packet = frame.get_mut(ip.transport..)?.get_mut(..length)?;
    packet[SCTP_CHECKSUM..SCTP_HEADER].fill(0);
    let mut crc = Crc32c::new();
    crc.add(packet);
    packet[SCTP_CHECKSUM..SCTP_HEADER].copy_from_slice(&crc.finish());
    Some(())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn header(gso_type: u8, gso_size: u16) -> Header {
        Header { gso_type, gso_size, ..Header::default() }
    }

    const NONE: Header = Header {
        flags: 0,
        gso_type: 0,
        hdr_len: 0,
        gso_size: 0,
        csum_start: 0,
        csum_offset: 0,
        num_buffers: 0,
    };

    /// Each number of frames up to the longest frame that makes no more.
    #[test]
    fn at_least_what_remains_without_the_longest_headers() {
        let (tcp, datagrams) = (header(1, 0), header(5, 100));
        let cases = [
            (NONE, 65535, 1514, Ok(1)),
            (header(2, 0), 100, 1514, Err(Error::BadHeader)),
            (tcp, 0, 1514, Ok(1)),
            (tcp, 142 + 1472, 1514, Ok(1)),
            (tcp, 142 + 1472 + 1, 1514, Ok(2)),
            (tcp, 142 + 2 * 1472, 1514, Ok(2)),
            (tcp, 142 + 2 * 1472 + 1, 1514, Ok(3)),
            (tcp, 142 + 5, 44, Ok(3)),
            (tcp, 142 + 5, 43, Ok(5)),
            (tcp, 142 + 5, 0, Ok(5)),
            (datagrams, 142 + 100, 1514, Ok(1)),
            (datagrams, 142 + 101, 1514, Ok(2)),
            (datagrams, 142 + 100 * MAX_DATAGRAMS, 1514, Ok(MAX_DATAGRAMS)),
            (datagrams, 142 + 100 * MAX_DATAGRAMS + 1, 1514, Err(Error::TooMany)),
            (tcp, 142 + MAX_DATAGRAMS + 1, 43, Ok(MAX_DATAGRAMS + 1)),
        ];
        for (n, (header, len, max_frame, expected)) in cases.into_iter().enumerate() {
            assert_eq!(least_frames(&header, len, max_frame), expected, "case {n}");
        }
    }

    #[test]
    fn at_most_what_there_would_be_without_headers() {
        let (tcp, datagrams) = (header(1, 0), header(5, 100));
        let cases = [
            (NONE, 65535, 1514, 1),
            (header(2, 0), 65535, 1514, 1),
            (tcp, 0, 1514, 1),
            (tcp, 1372, 1514, 1),
            (tcp, 1373, 1514, 2),
            (tcp, 5, 142, 5),
            (tcp, 5, 144, 3),
            (tcp, 0xffff - 142, 1 << 20, 1),
            (tcp, 0xffff - 141, 1 << 20, 2),
            (datagrams, 0, 1514, 1),
            (datagrams, 100, 1514, 1),
            (datagrams, 101, 1514, 2),
        ];
        for (n, (header, len, max_frame, expected)) in cases.into_iter().enumerate() {
            assert_eq!(most_frames(&header, len, max_frame), expected, "case {n}");
        }
    }
}
