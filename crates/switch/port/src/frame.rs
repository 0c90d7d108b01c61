//! A packet on its way through the bridge.
#![expect(
    clippy::indexing_slicing,
    reason = "a frame is made of pieces that were pushed before it, and pieces are taken off only behind the last frame"
)]

use ringway_abi::{NS_INDIRECT, NS_MOREFRAG};
use ringway_mirror::Shown;
use ringway_region::{Buf, RingView};

use crate::port::PortIndex;

/// Bytes of a packet that the bridge looks at; they are read once, and what was read is what
/// the receiver gets, whatever the sender does to its buffer meanwhile.
pub const HEADER: usize = 16;

/// Bytes of the pieces that frames of interfaces come in: what the buffers of other ports hold.
pub(crate) const PIECE: u32 = 2048;

/// Bytes of the first where that begins with a virtio-net header.
const HEADED_PIECE: u32 = PIECE - 64;

/// Shortest frame that has an Ethernet header.
pub const SHORTEST: usize = 14;

/// One packet: its pieces are `count` buffers of the [`Burst`] from `first`.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub first: u16,
    pub count: u8,
    /// Pieces that are empty because their slots were wrong.
    pub bad_slots: u8,
    /// Slots of the burst before the packet's own; not known of a [`BadSlot`](FrameStatus::BadSlot)
    /// or [`TooLong`](FrameStatus::TooLong).
    pub start: u16,
    pub status: FrameStatus,
    /// Flags of the first slot.
    pub flags: u16,
    /// The VLAN that it belongs to, if the bridge looks at that.
    pub vid: u16,
    /// The receiver gets the header, then the first piece from this many bytes behind it on.
    pub skip: i8,
    /// Bytes altogether, with the virtio-net header.
    pub len: u32,
    /// The bytes that the bridge decides by, as two little-endian words; zero past the end.
    pub header: [u64; 2],
}

const _: () = assert!(size_of::<Frame>() == 32);

/// Whether a packet may go on. One that may not is counted when its turn comes, and its slots
/// are given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameStatus {
    Fine,
    BadSlot,
    TooLong,
    TooShort,
    Vlan,
    Spoofed,
    OverRate,
    Denied,
    BadSource,
    /// The switch's own, with which it has found a loop.
    CameBack,
}

impl Frame {
    /// Destination address, in the order of its bytes.
    #[inline]
    pub fn dst(&self) -> u64 {
        self.header[0] & 0xffff_ffff_ffff
    }

    /// Source address.
    #[inline]
    pub fn src(&self) -> u64 {
        self.header[0] >> 48 | (self.header[1] & 0xffff_ffff) << 16
    }

    /// The first bytes of the Ethernet frame as they were read.
    #[inline]
    pub fn header(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.header[0].to_le_bytes());
        bytes[8..].copy_from_slice(&self.header[1].to_le_bytes());
        bytes
    }
}

impl Frame {
    /// Reads the Ethernet header, which begins at `at` and has `len` bytes from there in its
    /// piece.
    #[inline]
    fn read_header(&mut self, buf: &Buf<'_>, at: u32, len: u32) {
        let raw = buf.read::<HEADER>(at as usize).unwrap_or_else(|| {
            let mut short = [0; HEADER];
            if let Some(buf) = buf.skip(at) {
                buf.copy_to(HEADER, &mut short);
            }
            short
        });
        let (a, b) = (&raw[..8], &raw[8..]);
        let word = |half: &[u8]| u64::from_le_bytes(half.try_into().unwrap_or([0; 8]));
        self.header = [word(a), word(b)];
        if len < HEADER as u32 {
            self.read_short(len);
        }
    }

    /// The piece with the Ethernet header is shorter than what was read.
    #[cold]
    fn read_short(&mut self, len: u32) {
        if len == 0 && self.flags & NS_INDIRECT != 0 {
            // The header was fetched from the program's memory, and what follows could not be: it
            // goes where it says, empty (S-VALE-9).
            return;
        }
        // What else is in the buffer is not the receiver's to see.
        self.header[1] &= !0 >> (8 * (HEADER as u32 - len.max(9)));
        if (len as usize) < SHORTEST {
            (self.status, self.len) = (FrameStatus::TooShort, 0);
        }
    }

    /// The frame with another header in place of its own and the `skip` bytes behind.
    pub fn edited(&self, header: [u8; HEADER], skip: i8) -> Frame {
        let (a, b) = (&header[..8], &header[8..]);
        let word = |half: &[u8]| u64::from_le_bytes(half.try_into().unwrap_or([0; 8]));
        let len = self.len.saturating_add_signed(-i32::from(skip));
        Frame { header: [word(a), word(b)], skip, len, ..*self }
    }

    /// Copies a piece of the frame, of `len` bytes in the sender's buffer, as the receiver is to have
    /// it; returns its bytes there, or `None` if there are more than `to` holds. If it is the first,
    /// `begin` says where in it the Ethernet header is, which is written as it was looked at: whole,
    /// if `to` has room for that, and zero past the end.
    #[inline]
    pub fn copy_piece(
        &self,
        begin: Option<u32>,
        from: &Buf<'_>,
        len: u32,
        to: &Buf<'_>,
    ) -> Option<u32> {
        let moved = begin.is_some() && self.skip != 0;
        let there = if moved { self.moved_len(len) } else { len };
        // A slot's length has 16 bits.
        if there > to.size().min(u16::MAX.into()) {
            return None;
        }
        if moved {
            self.copy_moved(from, len, to);
        } else {
            to.copy_from(from, len as usize);
        }
        if let Some(begin) = begin
            && !to.store(begin as usize, self.header())
        {
            self.write_header(begin, to);
        }
        Some(there)
    }

    /// The first piece as two, where the tag that the receiver gets makes it longer than the `room` of its slot:
    /// what fills that, and the few bytes that the tag has pushed out, for a slot of their own. `None` if it would not fit
    /// without the tag, either.
    pub fn cut<'a>(&self, (from, len): Piece<'a>, room: u32) -> Option<[Piece<'a>; 2]> {
        // The tag is within the first bytes, which are not cut.
        if len > room || room < HEADER as u32 {
            return None;
        }
        let behind = self.moved_len(len).checked_sub(room).filter(|bytes| *bytes > 0)?;
        let at = len.checked_sub(behind)?;
        Some([(from, at), (from.skip(at)?, behind)])
    }

    /// Bytes that the receiver gets of the first piece.
    #[inline]
    pub fn moved_len(&self, len: u32) -> u32 {
        len.saturating_add_signed(-i32::from(self.skip))
    }

    #[cold]
    #[inline(never)]
    fn write_header(&self, begin: u32, to: &Buf<'_>) {
        to.write(begin as usize, &self.header());
    }

    #[cold]
    #[inline(never)]
    fn copy_moved(&self, from: &Buf<'_>, len: u32, to: &Buf<'_>) {
        let begin = (HEADER as u32).saturating_add_signed(self.skip.into());
        if let (Some(from), Some(to)) = (from.skip(begin), to.skip(HEADER as u32)) {
            to.copy_from(&from, len.saturating_sub(begin) as usize);
        }
    }
}

/// Whether an address names a group. The first bit on the wire is the lowest of the first
/// byte.
#[inline]
pub fn is_group(mac: u64) -> bool {
    mac & 1 != 0
}

/// Whether no machine sends with such an address: it is a group's, or zero.
#[inline]
pub fn is_no_source(mac: u64) -> bool {
    is_group(mac) || mac == 0
}

/// The last four bits of an address that a bridge keeps to the link on which it came: those of
/// 01:80:c2:00:00:00 to 0f (IEEE 802.1D, table 7-10).
#[inline]
pub fn link_local(mac: u64) -> Option<u8> {
    let last = (mac >> 40) as u8;
    (mac & 0xf0ff_ffff_ffff == 0x0000_00c2_8001).then_some(last & 0xf)
}

/// Where a burst is from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Source {
    pub port: PortIndex,
    pub ring: usize,
    /// Bytes of virtio-net header in front of each of its frames.
    pub header_len: u8,
    /// The headers are the kernel's: of a frame there were, or would be, segments of `gso_size`.
    pub as_sent: bool,
}

/// A buffer with the bytes used in it.
pub type Piece<'a> = (Buf<'a>, u32);

/// The packets that one port has sent, as far as one look at it has found.
#[derive(Debug, Default)]
pub struct Burst<'a> {
    pub source: Source,
    /// Differs from that of every other burst of the bridge.
    pub serial: u64,
    pub pieces: Vec<(Buf<'a>, u32)>,
    pub frames: Vec<Frame>,
    /// Bytes after which no more packets are to be added, where a port can leave them for later.
    pub limit: u32,
    /// What each packet counts for in that besides its bytes.
    pub per_frame: u32,
    /// Some packet's virtio-net header has a piece of its own: the Ethernet header is in the
    /// next.
    pub apart: bool,
    /// Whether the buffers of its slots may change hands.
    pub swaps: bool,
    /// If they may, and the port has such slots.
    pub slots: Option<TxSlots<'a>>,
}

/// The slots that a burst was found in.
#[derive(Clone, Copy, Debug)]
pub struct TxSlots<'a> {
    pub ring: &'a RingView,
    /// The first of them.
    pub at: u32,
}

impl<'a> Burst<'a> {
    /// Adds a piece of the packet that the next [`end_frame`](Self::end_frame) closes.
    /// Returns false if `len` exceeds the buffer; nothing is added then.
    #[inline]
    pub fn push(&mut self, buf: Buf<'a>, len: u32) -> bool {
        let fits = len <= buf.size();
        if fits {
            buf.prefetch();
            self.pieces.push((buf, len));
        }
        fits
    }

    /// Adds all of a buffer to the packet that the next [`end_frame`](Self::end_frame) closes, in pieces
    /// of up to 2048 bytes: so it fits the buffers of any port.
    #[inline]
    pub fn push_in_pieces(&mut self, buf: Buf<'a>) {
        let mut rest = buf;
        while rest.size() > PIECE
            && let Some((piece, behind)) = rest.part(0, PIECE).zip(rest.skip(PIECE))
        {
            self.push(piece, PIECE);
            rest = behind;
        }
        self.push(rest, rest.size());
    }

    /// The same with a virtio-net header in front, whose length the burst's source says. The first piece
    /// is shorter, so that a longer header, or a tag, has room beside it.
    #[inline]
    pub fn push_headed(&mut self, buf: Buf<'a>) {
        match buf.part(0, HEADED_PIECE).zip(buf.skip(HEADED_PIECE)) {
            Some((first, rest)) if rest.size() > 0 => {
                self.push(first, HEADED_PIECE);
                self.push_in_pieces(rest);
            }
            _ => drop(self.push(buf, buf.size())),
        }
    }

    /// Adds an empty piece to a packet that has one already.
    #[cold]
    pub fn push_empty(&mut self) {
        if let Some(&(buf, _)) = self.pieces.last() {
            self.pieces.push((buf, 0));
        }
    }

    /// Makes a packet of the pieces since the last one.
    #[inline]
    pub fn end_frame(&mut self) {
        self.close(0, 0, 0, FrameStatus::Fine);
    }

    /// As [`end_frame`](Self::end_frame), with what the slots said.
    #[inline]
    pub fn close(&mut self, start: u16, flags: u16, bad_slots: u8, status: FrameStatus) {
        let first = self.frames.last().map_or(0, |f| f.first + u16::from(f.count));
        let count = (self.pieces.len() - usize::from(first)) as u8;
        let header = [0; 2];
        self.frames.push(Frame {
            first,
            count,
            bad_slots,
            start,
            status,
            flags,
            vid: 0,
            skip: 0,
            len: 0,
            header,
        });
    }

    /// Adds a piece that no other process can reach.
    pub fn push_private(&mut self, bytes: &'a mut [u8]) {
        let buf = Buf::of(bytes);
        self.pieces.push((buf, buf.size()));
    }

    /// Makes a packet of the pieces since the last one, with the Ethernet header of `like`.
    pub fn end_converted(&mut self, like: &Frame, skip: i8) {
        self.end_frame();
        if let Some(frame) = self.frames.last_mut() {
            let pieces = &self.pieces[frame.first.into()..];
            let len: u32 = pieces.iter().map(|(_, len)| len).sum();
            frame.len = len.saturating_add_signed(-i32::from(skip));
            (frame.header, frame.skip) = (like.header, skip);
        }
    }

    /// The same packets in `memory`, which no other process can reach. The headers are yet to be read.
    pub fn private<'b>(&self, memory: &'b mut Vec<u8>) -> Burst<'b> {
        memory.resize(self.pieces.iter().map(|(_, len)| *len as usize).sum(), 0);
        let (mut rest, mut pieces) = (&mut memory[..], Vec::with_capacity(self.pieces.len()));
        for (buf, len) in &self.pieces {
            if let Some(bytes) = rest.split_off_mut(..*len as usize) {
                buf.copy_to(*len as usize, bytes);
                pieces.push((Buf::of(bytes), *len));
            }
        }
        let Burst { source, serial, apart, limit, per_frame, .. } = *self;
        let frames = self.frames.clone();
        let (swaps, slots) = (false, None);
        Burst { source, serial, pieces, frames, limit, per_frame, apart, swaps, slots }
    }

    /// The slots that the first `count` packets came in, but for those of broken packets.
    pub fn slots(&self, count: usize) -> Vec<Shown> {
        let mut slots = Vec::new();
        for frame in self.frames.iter().take(count) {
            for (i, (_, len)) in (1..).zip(self.pieces(frame)) {
                let first = if i == 1 { frame.flags & !NS_MOREFRAG } else { 0 };
                let flags = first | if i < frame.count { NS_MOREFRAG } else { 0 };
                slots.push(Shown { len: *len, flags, time: 0 });
            }
        }
        slots
    }

    /// Takes back the pieces since the last packet.
    pub fn abandon(&mut self) {
        let first = self.frames.last().map_or(0, |f| f.first + u16::from(f.count));
        self.pieces.truncate(first.into());
    }

    /// Reads what the bridge decides by, behind the virtio-net headers. Done after all pieces are
    /// in, so that their first lines have had time to arrive.
    // A part of the worker's loop, also if something rare calls it elsewhere.
    #[inline(always)]
    pub fn read_headers(&mut self) {
        if self.source.header_len != 0 {
            return self.read_headers_behind(self.source.header_len.into());
        }
        for frame in &mut self.frames {
            let pieces = &self.pieces[frame.first.into()..][..frame.count.into()];
            let Some((buf, len)) = pieces.first() else { continue };
            frame.len = pieces.iter().map(|(_, len)| len).sum();
            frame.read_header(buf, 0, *len);
        }
    }

    /// The virtio-net header is whole in the first piece. The Ethernet header begins behind it,
    /// or, where there is nothing behind it, in the second piece (S-VHDR-2).
    #[inline(never)]
    fn read_headers_behind(&mut self, vnet: u32) {
        for frame in &mut self.frames {
            let pieces = &self.pieces[frame.first.into()..][..frame.count.into()];
            frame.len = pieces.iter().map(|(_, len)| len).sum();
            match *pieces {
                [] => {}
                [(_, len), (second, second_len), ..] if len == vnet => {
                    self.apart = true;
                    frame.read_header(&second, 0, second_len);
                }
                [(first, len), ..] if len > vnet => frame.read_header(&first, vnet, len - vnet),
                _ => (frame.status, frame.len) = (FrameStatus::TooShort, 0),
            }
        }
    }

    /// A packet without its virtio-net header: what the first piece has behind that, which may be
    /// nothing, and the other pieces.
    pub fn behind_header(&self, frame: &Frame) -> Option<(Piece<'a>, &[Piece<'a>])> {
        let (&(first, len), others) = self.pieces(frame).split_first()?;
        let vnet = u32::from(self.source.header_len);
        let len = len.checked_sub(vnet)?;
        Some(((first.part(vnet, len)?, len), others))
    }

    /// The piece that the Ethernet frame begins with, from there.
    #[inline]
    pub fn begin(&self, frame: &Frame) -> Option<Piece<'a>> {
        let (first, others) = self.behind_header(frame)?;
        if first.1 > 0 { Some(first) } else { others.first().copied().or(Some(first)) }
    }

    /// Where it is from.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The packets that were added.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// The pieces of a packet: buffers with the bytes used in each.
    #[inline]
    pub fn pieces(&self, frame: &Frame) -> &[(Buf<'a>, u32)] {
        &self.pieces[frame.first.into()..][..frame.count.into()]
    }

    /// Puts a packet together in `to`, which has room for all of its bytes.
    #[inline]
    pub fn gather(&self, frame: &Frame, to: Buf<'_>) {
        let (mut at, begin) = (0, self.source.header_len.into());
        for (from, len) in self.pieces(frame) {
            let Some(to) = to.skip(at) else { break };
            // No piece is longer than a packet may be, and that fits.
            at += frame.copy_piece((at == 0).then_some(begin), from, *len, &to).unwrap_or(0);
        }
    }

    /// Forgets the packets and keeps the allocations, for another port's packets.
    #[expect(clippy::unreachable, reason = "the vector was emptied: there is nothing to map")]
    pub fn recycle<'b>(mut self, source: Source) -> Burst<'b> {
        self.pieces.clear();
        self.frames.clear();
        // Collected in place: an emptied vector keeps its memory and changes its lifetime.
        let pieces = self.pieces.into_iter().map(|_| unreachable!()).collect();
        let (serial, frames, limit) = (self.serial + 1, self.frames, self.limit);
        Burst { source, serial, pieces, frames, limit, ..Burst::default() }
    }
}
