//! Between ports whose virtio-net headers differ (S-VHDR-3).
//!
//! A packet is changed in private memory, and every byte of it is read from the sender's region
//! once: what was checked is what is delivered. Pieces that need no change go straight from
//! sender to receiver.

use std::{iter, mem};

use ringway_abi::NETMAP_MAX_FRAGS;
use ringway_fastpath::SEGMENT_HEADERS;
use ringway_region::Buf;
use ringway_vnet::{
    Error, Header, MAX_FRAME, Output, consume_as_sent, consume_pieces, for_kernel, least_frames,
    most_frames,
};

use crate::{bridge_port::BridgePort, budget::Budget, config::PortConfig, vlan::PortVlans};
use ringway_switch_port::{Burst, Delivered, Drops, Frame, Room, Source};

/// Bytes of a buffer, as most regions have them.
const BUFFER: usize = 2048;

/// Gives packets the header of the receiver. Ports that do not need it do not pay for it.
#[derive(Default)]
pub(crate) struct Converter {
    memory: Option<Memory>,
    /// An empty burst, kept for its allocations.
    spare: Burst<'static>,
}

/// Private memory.
struct Memory {
    /// What of a packet is changed.
    packet: Box<[u8]>,
    segments: Box<[u8]>,
}

impl Converter {
    /// Delivers the packets of `run` to receive ring `ring` of `to`, with its header. Packets
    /// that the sender has got wrong count in `drops`, all others with the receiver. What is done is
    /// charged to the sender's turn, but for what is delivered.
    #[inline(never)]
    pub fn deliver(
        &mut self,
        to: &mut BridgePort,
        ring: usize,
        run: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
        budget: &mut Budget,
    ) -> Delivered {
        let memory = self.memory.get_or_insert_with(|| Memory {
            packet: vec![0; Header::LONG + MAX_FRAME].into(),
            segments: vec![0; 2 * MAX_FRAME].into(),
        });
        let source = Source { header_len: to.config.header_len, ..burst.source };
        let of_kernel = Source { header_len: Header::SHORT as u8, ..burst.source };
        let takes_whole = to.takes_whole(burst);
        let mut delivered = Delivered::default();
        for frame in run {
            if takes_whole {
                let mut whole = mem::take(&mut self.spare).recycle(of_kernel);
                whole.serial = burst.serial;
                let first = keep_whole(frame, burst, to.config.max_frame, memory, &mut whole);
                if let Some(bytes) = first {
                    budget.charge(Delivered { packets: 1, bytes }, 1);
                    delivered += to.port.deliver(ring, &whole.frames, &whole, &mut to.totals.drops);
                }
                self.spare = whole.recycle(source);
                if first.is_some() {
                    continue;
                }
            }
            // Nothing is done for what is refused or finds no room.
            let Ok(least) = least_slots(&to.config, frame, burst) else {
                drops.bad_offload += 1;
                continue;
            };
            if !to.port.has_room(ring, least, burst) {
                to.totals.drops.ring_full += 1;
                continue;
            }
            let mut converted = mem::take(&mut self.spare).recycle(source);
            converted.serial = burst.serial;
            let outcome = convert(frame, burst, to, memory, &mut converted);
            // Read, summed, and written, whatever comes of it.
            let made = converted.frames.iter().map(|frame| u64::from(frame.len)).sum::<u64>();
            let packets = converted.frames.len() as u64 + 1;
            budget.charge(Delivered { packets, bytes: u64::from(frame.len) + 2 * made }, 1);
            match outcome {
                Ok(()) if to.fits(ring, &converted) => {
                    delivered +=
                        to.port.deliver(ring, &converted.frames, &converted, &mut to.totals.drops);
                }
                Ok(()) => to.totals.drops.ring_full += 1,
                Err(Error::NoRoom) => to.totals.drops.too_long += 1,
                Err(_) => drops.bad_offload += 1,
            }
            self.spare = converted.recycle(source);
        }
        delivered
    }
}

impl BridgePort {
    /// Whether the segments of one packet could all be delivered: it is all or nothing.
    fn fits(&mut self, ring: usize, converted: &Burst<'_>) -> bool {
        let slots = converted.pieces.len();
        converted.frames.len() <= 1 || self.port.has_room(ring, slots as u32, converted)
    }

    /// Whether the kernel does for it what the headers of `burst` ask for. Its monitors see what a wire would
    /// have.
    fn takes_whole(&self, burst: &Burst<'_>) -> bool {
        burst.source.header_len != 0 && self.copies == 1 && self.port.takes_headers()
    }
}

/// Adds to `converted` what `to` is to receive of a packet.
fn convert<'a>(
    frame: &Frame,
    burst: &Burst<'a>,
    to: &BridgePort,
    memory: &'a mut Memory,
    converted: &mut Burst<'a>,
) -> Result<(), Error> {
    match converted.source.header_len {
        0 => strip(frame, burst, to.config.max_frame, memory, converted),
        _ => exchange(frame, burst, memory, converted),
    }
}

/// Puts the receiver's header in place of the sender's: the same if they are of one length, what
/// both have if not, zeros if the sender has none. The packet stays in as many pieces.
fn exchange<'a>(
    frame: &Frame,
    burst: &Burst<'a>,
    memory: &'a mut Memory,
    converted: &mut Burst<'a>,
) -> Result<(), Error> {
    let [from, to] = [burst, converted].map(|burst| usize::from(burst.source.header_len));
    let common = if from == to { to } else { from.min(Header::SHORT) };
    let mut memory = &mut memory.packet[..];
    let ((first, len), others) = burst.behind_header(frame).ok_or(Error::BadFrame)?;
    let begins = len > 0 || others.is_empty() || from == 0;
    let there = if begins { frame.moved_len(len) } else { 0 };
    let slot = memory.split_off_mut(..to + there as usize).ok_or(Error::NoRoom)?;
    let (header, begin) = slot.split_at_mut(to);
    header.fill(0);
    let (start, _) = burst.pieces(frame).first().ok_or(Error::BadFrame)?;
    start.copy_to(common, header);
    if let Some(moved) = Header::parse(header).filter(|_| frame.skip != 0) {
        let moved = moved.shifted(-frame.skip).emit();
        header.iter_mut().zip(moved).take(common).for_each(|(to, byte)| *to = byte);
    }
    if begins {
        copy_begin(frame, &first, len, begin)?;
    }
    let room = BUFFER.max(start.size() as usize);
    push_begin(converted, slot, len, room);
    let mut others = others.iter();
    if !begins && let Some((buf, len)) = others.next() {
        let there = frame.moved_len(*len) as usize;
        let begin = memory.split_off_mut(..there).ok_or(Error::NoRoom)?;
        copy_begin(frame, buf, *len, begin)?;
        push_begin(converted, begin, *len, room);
    }
    for &(buf, len) in others {
        converted.push(buf, len);
    }
    if converted.pieces.len() > NETMAP_MAX_FRAGS as usize {
        return Err(Error::NoRoom);
    }
    converted.end_converted(frame, 0);
    Ok(())
}

/// Adds the piece that a packet begins with, `len` bytes of which are the sender's, from a buffer with this `room`. What a
/// longer header or a tag makes longer than that goes on in a piece of its own.
fn push_begin<'a>(converted: &mut Burst<'a>, piece: &'a mut [u8], len: u32, room: usize) {
    if piece.len() <= room || piece.len() <= len as usize {
        converted.push_private(piece);
        return;
    }
    let (piece, rest) = piece.split_at_mut(len as usize);
    converted.push_private(piece);
    converted.push_private(rest);
}

/// Adds a packet to `whole` as the kernel sends it, if it can; returns how much of it was looked at.
fn keep_whole<'a>(
    frame: &Frame,
    burst: &Burst<'a>,
    max_frame: u32,
    memory: &'a mut Memory,
    whole: &mut Burst<'a>,
) -> Option<u64> {
    let ((first, len), others) = burst.behind_header(frame)?;
    let header = header_of(frame, burst).filter(|header| len > 0 && !header.is_plain())?;
    let there = frame.moved_len(len) as usize;
    let slot = memory.packet.get_mut(..Header::SHORT + there)?;
    let (to_header, begin) = slot.split_at_mut(Header::SHORT);
    copy_begin(frame, &first, len, begin).ok()?;
    let length = there + others.iter().map(|(_, len)| *len as usize).sum::<usize>();
    let (header, as_sent) = (header.shifted(-frame.skip), burst.source.as_sent);
    let header = for_kernel(&header, begin, length, max_frame as usize, as_sent)?;
    to_header.copy_from_slice(&header.emit()[..Header::SHORT]);
    whole.push_private(slot);
    for &(buf, len) in others {
        whole.push(buf, len);
    }
    whole.end_converted(frame, 0);
    Some(there as u64)
}

/// The sender's header.
fn header_of(frame: &Frame, burst: &Burst<'_>) -> Option<Header> {
    let (start, _) = burst.pieces(frame).first()?;
    start.read::<{ Header::SHORT }>(0).and_then(|raw| Header::parse(&raw))
}

/// Into how many more frames than one a frame of `burst` is to be cut: about, for it may have other headers.
pub(crate) fn further_segments(frame: &Frame, burst: &Burst<'_>) -> u32 {
    let size = match header_of(frame, burst) {
        Some(header) if !header.is_plain() => u32::from(header.gso_size),
        _ => return 0,
    };
    let headers = u32::from(burst.source.header_len) + SEGMENT_HEADERS;
    frame.len.saturating_sub(headers + 1).checked_div(size).unwrap_or(0)
}

/// How many slots a frame of `burst` takes at a port with these settings, at least.
fn least_slots(to: &PortConfig, frame: &Frame, burst: &Burst<'_>) -> Result<u32, Error> {
    if to.header_len != 0 || burst.source.header_len == 0 {
        return Ok(1);
    }
    // Segments take no fewer slots than the frame, but for the header.
    if burst.source.as_sent {
        return Ok(u32::from(frame.count).saturating_sub(1).max(1));
    }
    let header = header_of(frame, burst).ok_or(Error::BadHeader)?;
    let least = least_frames(&header, frame.len as usize, to.max_frame as usize)?;
    Ok(u32::try_from(least).unwrap_or(u32::MAX))
}

/// Tells how many slots a frame of `burst` takes at a port with these settings, at most: one with a
/// header, where there is none, may become many.
pub(crate) fn most_slots<'a>(
    to: &PortConfig,
    vlans: &'a PortVlans,
    burst: &'a Burst<'_>,
    room: Room,
) -> impl Fn(&Frame) -> u32 + use<'a> {
    let max_frame = (to.header_len == 0 && burst.source.header_len != 0).then_some(to.max_frame);
    let is_longer = to.header_len > burst.source.header_len;
    move |frame| {
        // A header may take a slot more, and so may a tag.
        let more = is_longer || vlans.may_push_out(frame, burst, room.bytes);
        let pieces = u32::from(frame.count) + u32::from(more);
        let Some(max_frame) = max_frame else { return pieces };
        let Some(header) = header_of(frame, burst) else { return pieces };
        let segments = most_frames(&header, frame.len as usize, max_frame as usize) as u32;
        // What may be too much for the ring may also just fit.
        segments.min(room.slots).max(pieces)
    }
}

/// Takes the sender's header away, and does what it asks for.
fn strip<'a>(
    frame: &Frame,
    burst: &Burst<'a>,
    max_frame: u32,
    memory: &'a mut Memory,
    converted: &mut Burst<'a>,
) -> Result<(), Error> {
    let (first, others) = burst.behind_header(frame).ok_or(Error::BadFrame)?;
    let pieces = iter::once(first).filter(|(_, len)| *len > 0).chain(others.iter().copied());
    let header = header_of(frame, burst).ok_or(Error::BadHeader)?;
    if header.is_plain() {
        pieces.for_each(|(buf, len)| {
            converted.push(buf, len);
        });
        converted.end_converted(frame, frame.skip);
        return Ok(());
    }
    let header = header.shifted(-frame.skip);
    // The frame's tag may go or come: as long as the pieces are, but for that.
    let length = |(i, (_, len)): (usize, (Buf<'_>, u32))| {
        (if i == 0 { frame.moved_len(len) } else { len }) as usize
    };
    let total = pieces.clone().enumerate().map(length).sum();
    let packet = memory.packet.get_mut(..total).ok_or(Error::NoRoom)?;
    let mut rest = &mut *packet;
    for (i, (buf, len)) in pieces.clone().enumerate() {
        let to = rest.split_off_mut(..length((i, (buf, len)))).ok_or(Error::NoRoom)?;
        if i == 0 {
            copy_begin(frame, &buf, len, to)?;
        } else {
            buf.copy_to(to.len(), to);
        }
    }
    let begin = pieces.clone().enumerate().next().map_or(0, length);
    let (as_sent, segments) = (burst.source.as_sent, &mut memory.segments);
    let output = if as_sent {
        consume_as_sent(&header, packet, segments)
    } else {
        consume_pieces(&header, packet, begin, max_frame as usize, segments)
    };
    match output? {
        Output::InPlace => {
            let (start, _) = burst.pieces(frame).first().ok_or(Error::BadFrame)?;
            let room = BUFFER.max(start.size() as usize);
            let mut rest = packet;
            for (i, piece) in pieces.enumerate() {
                let to = rest.split_off_mut(..length((i, piece))).ok_or(Error::NoRoom)?;
                match piece {
                    (_, len) if i == 0 => push_begin(converted, to, len, room),
                    _ => converted.push_private(to),
                }
            }
            converted.end_converted(frame, 0);
        }
        Output::Segments(segments) => {
            for segment in segments.frames(&mut memory.segments) {
                match as_sent {
                    true => converted.push_in_pieces(Buf::of(segment)),
                    false => converted.push_private(segment),
                }
                converted.end_converted(frame, 0);
            }
        }
    }
    Ok(())
}

/// Copies the piece that the frame begins with: its header as it was looked at, whatever stands
/// there now.
fn copy_begin(frame: &Frame, from: &Buf<'_>, len: u32, to: &mut [u8]) -> Result<(), Error> {
    frame.copy_piece(Some(0), from, len, &Buf::of(to)).map(drop).ok_or(Error::NoRoom)
}
