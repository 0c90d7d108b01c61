//! One block of the ring, and the headers of its frames.

use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::tpacket3_hdr;
use ringway_region::Buf;

/// Frames begin at multiples of this many bytes.
pub const ALIGNMENT: u32 = 8;

/// Of a frame's status (`TP_STATUS_TS_RAW_HARDWARE`).
const TS_RAW_HARDWARE: u32 = 1 << 31;

const FRAME_HEADER: usize = size_of::<tpacket3_hdr>();
/// Where it says which way a frame went: in the `sockaddr_ll` behind its header.
const DIRECTION: usize = FRAME_HEADER + offset_of!(libc::sockaddr_ll, sll_pkttype);
/// Both addresses of a frame: the tag's place is behind them.
const ADDRESSES: usize = 12;
const TAG: usize =
    offset_of!(tpacket3_hdr, hv1) + offset_of!(libc::tpacket_hdr_variant1, tp_vlan_tci);
/// What is looked at of a header, and of the `sockaddr_ll`: up to the word with the direction.
const WORDS: usize = DIRECTION / 4 + 1;

const _: () = assert!(FRAME_HEADER == 48 && TAG == 32);

/// Where the program is in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCursor {
    pub block: u32,
    /// Of the next frame's header; 0: the block has not been looked at yet.
    pub offset: u32,
}

impl BlockCursor {
    /// As one word, 0 for the start of the ring.
    pub fn mark(self) -> u32 {
        (self.block << 16) | (self.offset / ALIGNMENT)
    }
}

/// A block of the ring: what its frames are read by.
#[derive(Clone, Copy)]
pub struct Block<'a>(Buf<'a>);

impl<'a> Block<'a> {
    #[inline]
    pub fn new(memory: Buf<'a>) -> Block<'a> {
        Block(memory)
    }

    /// A word of the block's own header.
    #[inline]
    pub fn word(self, at: usize) -> u32 {
        self.0.read(at).map_or(0, u32::from_ne_bytes)
    }

    /// The header at `place`, which is in this block; `None` if there is none.
    #[inline]
    pub fn header(self, place: BlockCursor) -> Option<FrameHeader<'a>> {
        if place.offset == NOWHERE {
            return None;
        }
        let words = Words(self.0.words(place.offset)?);
        let stride = words.word(offset_of!(tpacket3_hdr, tp_next_offset));
        Some(FrameHeader {
            words,
            start: place.offset + u32::from(words.half(offset_of!(tpacket3_hdr, tp_mac))),
            captured: words.word(offset_of!(tpacket3_hdr, tp_snaplen)),
            length: words.word(offset_of!(tpacket3_hdr, tp_len)),
            next: self.sound(place.offset, stride),
            stride,
            status: words.word(offset_of!(tpacket3_hdr, tp_status)),
        })
    }

    /// What was captured of a frame.
    #[inline]
    pub fn data(self, header: &FrameHeader<'_>) -> Option<Buf<'a>> {
        self.0.part(header.start, header.captured)
    }

    /// The `N` bytes in front of a frame.
    #[inline]
    pub fn in_front<const N: usize>(self, header: &FrameHeader<'_>) -> Option<[u8; N]> {
        self.0.read(header.start.checked_sub(N as u32)? as usize)
    }

    /// Puts a VLAN tag back into a frame, its own: its addresses move to the front, where the socket has had
    /// [`ROOM_FOR_TAG`] left free. `None` if this is no frame with addresses.
    #[cold]
    pub fn put_tag(self, header: FrameHeader<'_>) -> Option<Buf<'a>> {
        self.put(header, header.tag()?)
    }

    /// The same with any tag.
    pub(crate) fn put(self, header: FrameHeader<'_>, tag: [u8; 4]) -> Option<Buf<'a>> {
        let front = header.start.checked_sub(ROOM_FOR_TAG)?;
        let frame = self.0.part(front, header.captured.checked_add(ROOM_FOR_TAG)?)?;
        let addresses: [u8; ADDRESSES] = frame.read(ROOM_FOR_TAG as usize)?;
        frame.store(0, addresses);
        frame.store(ADDRESSES, tag);
        Some(frame)
    }

    /// Asks memory for what is `by` bytes behind `place`.
    #[inline]
    pub fn prefetch(self, place: BlockCursor, by: u64) {
        if let Ok(at) = u32::try_from(u64::from(place.offset) + by)
            && let Some(header) = self.0.skip(at)
        {
            header.prefetch();
        }
    }

    /// The offset `by` bytes behind `from`, which is inside, if a header may be there; else 0.
    #[inline]
    pub fn sound(self, from: u32, by: u32) -> u32 {
        let is_inside = by.wrapping_sub(1) < self.0.size() - 1 - from;
        if is_inside && (from + by).is_multiple_of(ALIGNMENT) { from + by } else { 0 }
    }
}

/// What stands in front of a frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameHeader<'a> {
    words: Words<'a>,
    /// Where the frame begins in its block, and how much of it is there.
    start: u32,
    captured: u32,
    /// Bytes that it has.
    pub length: u32,
    /// See [`Captured`].
    pub next: u32,
    /// Bytes from this header to the next as the kernel says.
    pub stride: u32,
    status: u32,
}

/// The words of a frame's header, and of the address behind it.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a>(&'a [AtomicU32; WORDS]);

impl Words<'_> {
    #[inline]
    fn word(self, at: usize) -> u32 {
        self.0[at / 4].load(Ordering::Relaxed)
    }

    #[inline]
    fn half(self, at: usize) -> u16 {
        let [a, b, c, d] = self.word(at).to_ne_bytes();
        u16::from_ne_bytes(if at.is_multiple_of(4) { [a, b] } else { [c, d] })
    }

    /// When the frame passed, as a time of day: seconds, and nanoseconds.
    #[inline]
    pub fn time(self) -> [u32; 2] {
        [self.word(offset_of!(tpacket3_hdr, tp_sec)), self.word(offset_of!(tpacket3_hdr, tp_nsec))]
    }

    /// Whether the frame was sent by this machine.
    #[inline]
    pub fn is_outgoing(self) -> bool {
        self.word(DIRECTION).to_ne_bytes()[DIRECTION % 4] == libc::PACKET_OUTGOING
    }
}

impl<'a> FrameHeader<'a> {
    pub fn words(&self) -> Words<'a> {
        self.words
    }

    /// Bits of `TP_STATUS_*`.
    #[inline]
    pub fn status(&self) -> u32 {
        self.status
    }

    /// Whether a VLAN tag was taken out of the frame.
    #[inline]
    pub fn is_tagged(&self) -> bool {
        self.status & libc::TP_STATUS_VLAN_VALID != 0
    }

    /// Whether the hardware has said when it was received.
    pub fn is_stamped_by_hardware(&self) -> bool {
        self.status & TS_RAW_HARDWARE != 0
    }

    /// Whether all of the frame was captured.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.captured == self.length
    }

    /// The tag.
    #[inline]
    pub fn tag(&self) -> Option<[u8; 4]> {
        self.is_tagged().then(|| {
            let named = self.status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            let kind = if named { self.words.half(TAG + 4) } else { libc::ETH_P_8021Q as u16 };
            let [a, b] = kind.to_be_bytes();
            let [c, d] = (self.words.word(TAG) as u16).to_be_bytes();
            [a, b, c, d]
        })
    }
}

/// Offset in a block that has no more frames: not that of any frame, for the block's own header is
/// there.
pub const NOWHERE: u32 = ALIGNMENT;

/// Bytes that [`Block::put_tag`] needs in front of a frame (`PACKET_RESERVE`).
pub const ROOM_FOR_TAG: u32 = 4;
