//! The ring of blocks that the kernel fills (TPACKET_V3, `Documentation/networking/packet_mmap.rst`).
//!
//! ```text
//!   block   | status | frames, first | header | vnet | frame ... | header | vnet | frame ... |
//!                                    ^ offset          next ------^
//! ```
//!
//! The virtio-net header (vnet) is there if the socket has asked for it, as those of ports do; a listener's does not.
//!
//! The status says whose the block is: the kernel's, or the program's. Other holders of the socket may
//! have the same memory mapped, and write to it. So everything is read once and bounded by the block;
//! offsets only ever grow within a block, so that every walk ends.

use std::io;
use std::mem::offset_of;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{tpacket_hdr_v1, tpacket3_hdr};
use ringway_region::Buf;
use ringway_vnet::Header;

use crate::sys::RingMemory;

/// Sizes of a ring of blocks, which travel with the descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes, a multiple of the page size.
    pub block_size: u32,
    pub blocks: u32,
}

impl Geometry {
    /// A block holds the longest frame that the kernel makes, 64 KiB of data. With a block a
    /// millisecond, a program may look away for as many of them.
    pub const DEFAULT: Geometry = Geometry { block_size: 128 << 10, blocks: 64 };

    /// What the kernel is asked for, to keep a block that is not full for so many milliseconds.
    pub fn ring(self, patience_ms: u32) -> libc::tpacket_req3 {
        let Geometry { block_size, blocks } = self;
        let frame = 2048;
        libc::tpacket_req3 {
            tp_block_size: block_size,
            tp_block_nr: blocks,
            // Of no consequence in blocks, but that the numbers agree.
            tp_frame_size: frame,
            tp_frame_nr: block_size / frame * blocks,
            tp_retire_blk_tov: patience_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        }
    }

    /// Both halves of a [`BlockCursor`] fit 16 bits.
    fn is_sound(self) -> bool {
        let Geometry { block_size, blocks } = self;
        block_size.is_multiple_of(4096)
            && (1..=MAX_BLOCK).contains(&block_size)
            && (1..=1 << 16).contains(&blocks)
    }
}

/// Frames begin at multiples of this many bytes.
const ALIGNMENT: u32 = 8;
const MAX_BLOCK: u32 = ALIGNMENT << 16;

/// Of `tpacket_block_desc`, from the start of a block.
const BLOCK_HEADER: usize = offset_of!(libc::tpacket_block_desc, hdr);
const STATUS: usize = BLOCK_HEADER + offset_of!(tpacket_hdr_v1, block_status);
const FRAMES: usize = BLOCK_HEADER + offset_of!(tpacket_hdr_v1, num_pkts);
const FIRST: usize = BLOCK_HEADER + offset_of!(tpacket_hdr_v1, offset_to_first_pkt);

/// Of a frame's status (`TP_STATUS_TS_RAW_HARDWARE`).
const TS_RAW_HARDWARE: u32 = 1 << 31;

const FRAME_HEADER: usize = size_of::<tpacket3_hdr>();
/// Where it says which way a frame went: in the `sockaddr_ll` behind its header.
const DIRECTION: usize = FRAME_HEADER + offset_of!(libc::sockaddr_ll, sll_pkttype);
/// Both addresses of a frame: the tag's place is behind them.
const ADDRESSES: usize = 12;
const TAG: usize =
    offset_of!(tpacket3_hdr, hv1) + offset_of!(libc::tpacket_hdr_variant1, tp_vlan_tci);

const _: () = {
    assert!(STATUS == 8 && FRAMES == 12 && FIRST == 16);
    assert!(FRAME_HEADER == 48 && TAG == 32);
};

/// Where the program is in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCursor {
    block: u32,
    /// Of the next frame's header; 0: the block has not been looked at yet.
    offset: u32,
}

impl BlockCursor {
    /// Bytes from the start of its block.
    pub fn offset(self) -> u32 {
        self.offset
    }

    /// As one word, 0 for the start of the ring.
    pub fn mark(self) -> u32 {
        (self.block << 16) | (self.offset / ALIGNMENT)
    }
}

/// What is at a place.
pub enum Found<'a> {
    /// The kernel has not filled the block yet.
    Nothing,
    /// Nothing more in this block.
    End,
    Frame(Captured<'a>),
}

/// A frame as the kernel has left it.
pub struct Captured<'a> {
    pub data: Buf<'a>,
    /// What is to be done yet to checksum and length.
    pub header: Header,
    /// The VLAN tag that was taken out of it.
    pub tag: Option<[u8; 4]>,
    /// Whether `data` is all of it.
    pub whole: bool,
    /// When it was received, in nanoseconds, and whether the hardware says so, or else the kernel.
    pub time: u64,
    pub by_hardware: bool,
    /// Offset of the next one in the block; 0 for the last.
    pub next: u32,
}

/// What stands in front of a frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameHeader {
    /// Where the frame begins in its block, and how much of it is there.
    start: u32,
    pub captured: u32,
    /// Bytes that it has.
    pub length: u32,
    /// See [`Captured`].
    pub time: u64,
    by_hardware: bool,
    pub tag: Option<[u8; 4]>,
    pub next: u32,
}

/// The ring, mapped.
#[derive(Debug)]
pub struct Blocks {
    memory: RingMemory,
    geometry: Geometry,
}

impl Blocks {
    /// Maps the ring of a socket. EINVAL when the socket has none of this size.
    pub fn map(socket: BorrowedFd<'_>, geometry: Geometry) -> io::Result<Blocks> {
        if !geometry.is_sound() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let memory = RingMemory::map(socket, geometry.block_size, geometry.blocks)?;
        Ok(Blocks { memory, geometry })
    }

    /// The place of a mark, whatever number it is.
    pub fn place(&self, mark: u32) -> BlockCursor {
        let (block, offset) = (mark >> 16, (mark & 0xffff) * ALIGNMENT);
        match block < self.geometry.blocks && offset < self.geometry.block_size {
            true => BlockCursor { block, offset },
            false => BlockCursor { block: 0, offset: 0 },
        }
    }

    /// The start of the block behind that of `place`.
    pub fn next_block(&self, place: BlockCursor) -> BlockCursor {
        let block = place.block + 1;
        BlockCursor { block: if block == self.geometry.blocks { 0 } else { block }, offset: 0 }
    }

    /// Gives the block of `place` back to the kernel.
    pub fn give_back(&self, place: BlockCursor) {
        self.status(place).store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }

    /// Steps into the block of `place`, if that has yet to be done. Sets `losing` if the kernel had
    /// dropped frames by the time it was full.
    #[inline]
    pub fn enter(&self, place: &mut BlockCursor, losing: &mut bool) -> bool {
        if place.offset != 0 {
            return true;
        }
        let status = self.status(*place).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return false;
        }
        *losing |= status & libc::TP_STATUS_LOSING != 0;
        let block = self.block(*place);
        let word = |at| block.read(at).map_or(0, u32::from_ne_bytes);
        place.offset = match self.sound(0, word(FIRST)) {
            first if first != 0 && word(FRAMES) != 0 => first,
            _ => NOWHERE,
        };
        true
    }

    /// What is at `place`.
    #[inline]
    pub fn look(&self, place: &mut BlockCursor, losing: &mut bool) -> Found<'_> {
        if !self.enter(place, losing) {
            return Found::Nothing;
        }
        if place.offset == NOWHERE {
            return Found::End;
        }
        self.frame(*place).map_or(Found::End, Found::Frame)
    }

    /// The place of the next frame.
    #[inline]
    pub fn behind(&self, place: BlockCursor, next: u32) -> BlockCursor {
        BlockCursor { offset: if next == 0 { NOWHERE } else { next }, ..place }
    }

    /// The header at `place`; `None` if there is none.
    #[inline]
    pub fn header(&self, place: BlockCursor) -> Option<FrameHeader> {
        if place.offset == NOWHERE {
            return None;
        }
        let words = self.memory.words::<{ FRAME_HEADER / 4 }>(place.block, place.offset)?;
        let word = |at: usize| words[at / 4].load(Ordering::Relaxed);
        let half = |at: usize| {
            let [a, b, c, d] = word(at).to_ne_bytes();
            u16::from_ne_bytes(if at.is_multiple_of(4) { [a, b] } else { [c, d] })
        };
        let status = word(offset_of!(tpacket3_hdr, tp_status));
        let tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
            let named = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            let kind = if named { half(TAG + 4) } else { libc::ETH_P_8021Q as u16 };
            let [a, b] = kind.to_be_bytes();
            let [c, d] = (word(TAG) as u16).to_be_bytes();
            [a, b, c, d]
        });
        Some(FrameHeader {
            start: place.offset + u32::from(half(offset_of!(tpacket3_hdr, tp_mac))),
            captured: word(offset_of!(tpacket3_hdr, tp_snaplen)),
            length: word(offset_of!(tpacket3_hdr, tp_len)),
            time: u64::from(word(offset_of!(tpacket3_hdr, tp_sec))) * 1_000_000_000
                + u64::from(word(offset_of!(tpacket3_hdr, tp_nsec))),
            by_hardware: status & TS_RAW_HARDWARE != 0,
            tag,
            next: self.sound(place.offset, word(offset_of!(tpacket3_hdr, tp_next_offset))),
        })
    }

    /// What was captured of a frame of the block of `place`.
    #[inline]
    pub fn data(&self, place: BlockCursor, header: &FrameHeader) -> Option<Buf<'_>> {
        self.block(place).part(header.start, header.captured)
    }

    #[inline]
    fn frame(&self, place: BlockCursor) -> Option<Captured<'_>> {
        let frame = self.header(place)?;
        let block = self.block(place);
        let before = frame.start.checked_sub(Header::SHORT as u32)?;
        Some(Captured {
            data: self.data(place, &frame)?,
            header: Header::parse(&block.read::<{ Header::SHORT }>(before as usize)?)?,
            tag: frame.tag,
            time: frame.time,
            by_hardware: frame.by_hardware,
            whole: frame.captured == frame.length,
            next: frame.next,
        })
    }

    /// Whether the frame at `place` was sent by this machine.
    #[inline]
    pub fn is_outgoing(&self, place: BlockCursor) -> bool {
        self.block(place).read(place.offset as usize + DIRECTION) == Some([libc::PACKET_OUTGOING])
    }

    /// Puts a VLAN tag back into a frame of the block of `place`: its addresses move to the front, where the
    /// socket has had [`ROOM_FOR_TAG`] left free. `None` if this is no frame with addresses.
    #[cold]
    pub fn put_tag(&self, place: BlockCursor, header: &FrameHeader) -> Option<Buf<'_>> {
        let front = header.start.checked_sub(ROOM_FOR_TAG)?;
        let frame = self.block(place).part(front, header.captured.checked_add(ROOM_FOR_TAG)?)?;
        let addresses: [u8; ADDRESSES] = frame.read(ROOM_FOR_TAG as usize)?;
        frame.store(0, addresses);
        frame.store(ADDRESSES, header.tag?);
        Some(frame)
    }

    /// Asks memory for the header of the frame `by` bytes behind `place`.
    #[inline]
    pub fn prefetch(&self, place: BlockCursor, by: u32) {
        if let Some(header) = self.block(place).skip(place.offset.saturating_add(by)) {
            header.prefetch();
        }
    }

    /// The offset `by` bytes behind `from`, if a header may be there; else 0.
    #[inline]
    fn sound(&self, from: u32, by: u32) -> u32 {
        let fits =
            |at: &u32| by != 0 && at.is_multiple_of(ALIGNMENT) && *at < self.geometry.block_size;
        from.checked_add(by).filter(fits).unwrap_or(0)
    }

    #[inline]
    fn block(&self, place: BlockCursor) -> Buf<'_> {
        self.memory.block(place.block)
    }

    #[inline]
    fn status(&self, place: BlockCursor) -> &AtomicU32 {
        self.memory.word(place.block, STATUS as u32)
    }
}

/// Offset in a block that has no more frames: not that of any frame, for the block's own header is
/// there.
const NOWHERE: u32 = ALIGNMENT;

/// Bytes that [`Blocks::put_tag`] needs in front of a frame (`PACKET_RESERVE`).
pub const ROOM_FOR_TAG: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GEOMETRY: Geometry = Geometry { block_size: 4096, blocks: 3 };

    /// A ring that no kernel fills.
    fn private() -> Blocks {
        let Geometry { block_size, blocks } = GEOMETRY;
        Blocks { memory: RingMemory::private(block_size, blocks), geometry: GEOMETRY }
    }

    proptest! {
        /// Whatever stands in the memory, a walk stays inside and ends.
        #[test]
        fn hostile_blocks(words: Vec<(u16, u32)>, mark: u32, small in 0u32..600) {
            let blocks = private();
            let mut place = blocks.place(mark);
            let block = blocks.block(place);
            let at = |at: u16| usize::from(at) % 1024 * 4;
            for (offset, word) in words {
                block.store(at(offset), word.to_ne_bytes());
                // Numbers that are not far off are the ones that lead somewhere.
                block.store(at(offset.rotate_left(3)), (word % 600).to_ne_bytes());
            }
            block.store(FIRST, small.to_ne_bytes());
            blocks.status(place).store(libc::TP_STATUS_USER, Ordering::Relaxed);
            let mut steps = 0;
            while let Found::Frame(frame) = blocks.look(&mut place, &mut false) {
                prop_assert!(frame.data.size() <= GEOMETRY.block_size);
                place = blocks.behind(place, frame.next);
                prop_assert_eq!(blocks.place(place.mark()), place);
                steps += 1;
                prop_assert!(steps <= GEOMETRY.block_size / ALIGNMENT);
            }
            place.offset = 0;
            while blocks.enter(&mut place, &mut false)
                && let Some(header) = blocks.header(place)
            {
                let tagged = FrameHeader { tag: Some([1, 2, 3, 4]), ..header };
                for data in [blocks.data(place, &header), blocks.put_tag(place, &tagged)] {
                    prop_assert!(data.is_none_or(|data| data.size() <= GEOMETRY.block_size));
                }
                place = blocks.behind(place, header.next);
            }
        }
    }

    #[test]
    fn places_are_words() {
        let blocks = private();
        let start = blocks.place(0);
        assert_eq!(blocks.next_block(blocks.next_block(blocks.next_block(start))), start);
        assert_eq!(blocks.place(3 << 16), start);
        assert_eq!(blocks.place(512), start);
        assert_eq!(blocks.place((1 << 16) | 511).mark(), (1 << 16) | 511);
    }
}
