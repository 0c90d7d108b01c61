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

use libc::tpacket_hdr_v1;
use ringway_region::Buf;
use ringway_vnet::Header;

use crate::block::{ALIGNMENT, Block, BlockCursor, NOWHERE};
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

const MAX_BLOCK: u32 = ALIGNMENT << 16;

/// Of `tpacket_block_desc`, from the start of a block.
const BLOCK_HEADER: usize = offset_of!(libc::tpacket_block_desc, hdr);
const STATUS: usize = BLOCK_HEADER + offset_of!(tpacket_hdr_v1, block_status);
const FRAMES: usize = BLOCK_HEADER + offset_of!(tpacket_hdr_v1, num_pkts);
const FIRST: usize = BLOCK_HEADER + offset_of!(tpacket_hdr_v1, offset_to_first_pkt);

const _: () = assert!(STATUS == 8 && FRAMES == 12 && FIRST == 16);

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

    /// Blocks of the ring.
    pub fn count(&self) -> u32 {
        self.geometry.blocks
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

    /// Whether the kernel has filled the block of `place`, and it was not given back since.
    pub fn is_filled(&self, place: BlockCursor) -> bool {
        self.status(place).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Whether the block of `place`, which the kernel has filled, was handed over because it was full, and not
    /// because its time was over.
    pub fn is_full(&self, place: BlockCursor) -> bool {
        self.status(place).load(Ordering::Relaxed) & libc::TP_STATUS_BLK_TMO == 0
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
        let word = |at| block.word(at);
        place.offset = match block.sound(0, word(FIRST)) {
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

    #[inline]
    fn frame(&self, place: BlockCursor) -> Option<Captured<'_>> {
        let block = self.block(place);
        let frame = block.header(place)?;
        let [seconds, nanoseconds] = frame.words().time();
        Some(Captured {
            data: block.data(&frame)?,
            header: Header::parse(&block.in_front::<{ Header::SHORT }>(&frame)?)?,
            tag: frame.tag(),
            time: u64::from(seconds) * 1_000_000_000 + u64::from(nanoseconds),
            by_hardware: frame.is_stamped_by_hardware(),
            whole: frame.is_whole(),
            next: frame.next,
        })
    }

    /// The block of `place`.
    #[inline]
    pub fn block(&self, place: BlockCursor) -> Block<'_> {
        Block::new(self.memory.block(place.block))
    }

    #[inline]
    fn status(&self, place: BlockCursor) -> &AtomicU32 {
        self.memory.word(place.block, STATUS as u32)
    }
}

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
            let block = blocks.memory.block(place.block);
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
            let block = blocks.block(place);
            while blocks.enter(&mut place, &mut false)
                && let Some(header) = block.header(place)
            {
                for data in [block.data(&header), block.put(header, [1, 2, 3, 4])] {
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
