//! A large frame into many: the headers of the first before each piece of the payload, with
//! lengths, IP identification, TCP sequence and flags, and checksums made right.

use std::slice::ChunksMut;

use crate::{
    Error, Gso, Header,
    checksum::{finish, finish_nonzero, sum},
    header::GSO_ECN,
    layers::{Layers, Network, Protocol},
    tunnel::Outers,
};

/// TCP flags that belong to the end of the data: FIN and PSH.
const LAST_ONLY: u8 = 0x01 | 0x08;
/// That of the answer to a congestion signal, which is given once: CWR (RFC 3168). In a connection with accurate ECN
/// (RFC 9768) each segment has it.
const FIRST_ONLY: u8 = 0x80;

/// UDP datagrams of one frame at most: Linux puts no more into one, however short they are
/// (`UDP_MAX_SEGMENTS` in its `include/linux/udp.h`, 64 before 6.9).
pub const MAX_DATAGRAMS: usize = 128;

/// Segments, one behind the other in the memory that they were written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Bytes of each but the last, which may be shorter.
    size: usize,
    /// Bytes of all together.
    total: usize,
}

impl Segments {
    /// Bytes of all together.
    pub fn bytes(&self) -> usize {
        self.total
    }

    /// The frames in `out`, which has to be the memory that they were written to.
    pub fn frames<'a>(&self, out: &'a mut [u8]) -> ChunksMut<'a, u8> {
        out[..self.total].chunks_mut(self.size)
    }
}

/// How long segments may be, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// With their headers.
    pub frame: usize,
    /// Without; `None`: as long as the frame allows.
    pub payload: Option<usize>,
}

/// What is cut, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    gso: Gso,
    /// The answer to a congestion signal is given once; else that flag is a bit of a counter, as in accurate ECN.
    answers_once: bool,
}

impl Way {
    /// As `header` says.
    pub fn of(header: &Header, gso: Gso) -> Way {
        Way { gso, answers_once: header.gso_type & GSO_ECN != 0 }
    }
}

/// The protocol of what is cut.
pub(crate) fn protocol(gso: Gso) -> Protocol {
    match gso {
        Gso::TcpV4 | Gso::TcpV6 => Protocol::Tcp,
        Gso::Udp | Gso::UdpL4(_) => Protocol::Udp,
    }
}

/// Writes `frame`, whose headers are among its `first` bytes, to `out` in segments of up to
/// `limit`. Nothing is promised about `out` when that fails.
pub(crate) fn segment(
    frame: &[u8],
    first: usize,
    header: &Header,
    gso: Gso,
    limit: Limit,
    out: &mut [u8],
) -> Result<Segments, Error> {
    let layers = Layers::find(frame.get(..first).unwrap_or(frame), protocol(gso))?;
    // That of other headers, such as those inside of a tunnel that is not known.
    if header.checksum().is_some_and(|(start, _)| start != layers.network.transport) {
        return Err(Error::BadFrame);
    }
    cut(frame, layers, &Outers::default(), Way::of(header, gso), limit, out)
}

/// The same of a frame with these headers.
pub(crate) fn cut(
    frame: &[u8],
    layers: Layers,
    outers: &Outers,
    way: Way,
    limit: Limit,
    out: &mut [u8],
) -> Result<Segments, Error> {
    let gso = way.gso;
    let Network { v6, ip, .. } = layers.network;
    if v6 && gso == Gso::TcpV4 || !v6 && gso == Gso::TcpV6 {
        return Err(Error::BadFrame);
    }
    let (headers, payload) = frame.split_at(layers.payload);
    // Neither IP's lengths nor the receiver must overflow.
    let too_many = |size: u16| payload.len() > usize::from(size) * MAX_DATAGRAMS;
    if matches!(gso, Gso::UdpL4(size) if too_many(size)) {
        return Err(Error::TooMany);
    }
    let room = limit.frame.min(ip + 0xffff).saturating_sub(headers.len());
    let step = match gso {
        Gso::UdpL4(size) if usize::from(size) > room => return Err(Error::NoRoom),
        Gso::UdpL4(size) => size.into(),
        // No shorter than the headers, lest `out` be too small.
        _ => limit.payload.map_or(room, |payload| payload.max(headers.len()).min(room)),
    };
    if step == 0 {
        return Err(Error::NoRoom);
    }
    // A frame without payload is a segment too.
    let count = payload.len().div_ceil(step).max(1);
    let total = count * headers.len() + payload.len();
    let out = out.get_mut(..total).ok_or(Error::NoRoom)?;
    let size = headers.len() + step;
    for (i, segment) in out.chunks_mut(size).enumerate() {
        let (to_headers, to_payload) = segment.split_at_mut(headers.len());
        to_headers.copy_from_slice(headers);
        to_payload.copy_from_slice(&payload[i * step..][..to_payload.len()]);
        let keeps_answer = i == 0 || !way.answers_once;
        let place = Place { index: i, offset: i * step, last: i + 1 == count, keeps_answer };
        fix(segment, &layers, place);
        outers.fix(segment, i);
    }
    Ok(Segments { size, total })
}

/// Which segment it is.
struct Place {
    index: usize,
    /// Of its payload in the payload of all.
    offset: usize,
    last: bool,
    /// It has the answer to a congestion signal, if the frame has.
    keeps_answer: bool,
}

/// Makes the headers of a segment, which are those of the large frame, its own.
fn fix(segment: &mut [u8], layers: &Layers, place: Place) {
    layers.network.set_length(segment, segment.len(), place.index);
    let (before, transport) = segment.split_at_mut(layers.network.transport);
    let length = transport.len();
    match layers.protocol {
        Protocol::Tcp => {
            let sequence =
                u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
            put(transport, 4, &sequence.wrapping_add(place.offset as u32).to_be_bytes());
            if !place.last {
                transport[13] &= !LAST_ONLY;
            }
            if !place.keeps_answer {
                transport[13] &= !FIRST_ONLY;
            }
        }
        Protocol::Udp => put(transport, 4, &(length as u16).to_be_bytes()),
    }
    let at = layers.protocol.checksum();
    put(transport, at, &[0, 0]);
    let sum = layers.network.pseudo_sum(before, layers.protocol, length) + sum(transport);
    let checksum = match layers.protocol {
        Protocol::Tcp => finish(sum),
        Protocol::Udp => finish_nonzero(sum),
    };
    put(transport, at, &checksum);
}

fn put(to: &mut [u8], at: usize, bytes: &[u8]) {
    to[at..at + bytes.len()].copy_from_slice(bytes);
}
