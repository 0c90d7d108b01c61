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

#[cfg(test)]
pub(crate) mod written;

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

    /// A frame as the kernel writes it, at `at` in a block: `tpacket3_hdr`, `sockaddr_ll`, a virtio-net
    /// header and the data.
    #[derive(Clone, Copy, Debug)]
    struct Written {
        at: u32,
        next: u32,
        /// From the header to the data.
        mac: u16,
        captured: u32,
        length: u32,
        status: u32,
        tci: u16,
        tpid: u16,
        packet_type: u8,
    }

    const PLAIN: Written = Written {
        at: 48,
        next: 0,
        mac: 96,
        captured: 60,
        length: 60,
        status: libc::TP_STATUS_USER,
        tci: 0,
        tpid: 0,
        packet_type: libc::PACKET_OTHERHOST,
    };

    const TAGGED: Written = Written {
        status: libc::TP_STATUS_USER | libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID,
        tci: 0x6007,
        tpid: 0x88a8,
        ..PLAIN
    };

    const VNET: [u8; 10] = [1, 5, 3, 0, 5, 0, 7, 0, 9, 0];
    const TIME: [u32; 2] = [3, 999_999_999];

    fn data(len: u32) -> Vec<u8> {
        (0..len).map(|i| i as u8 + 1).collect()
    }

    /// Writes frames, and hands the block over.
    fn fill(blocks: &Blocks, place: BlockCursor, status: u32, first: u32, frames: &[Written]) {
        let block = blocks.memory.block(place.block);
        let word = |at: u32, value: u32| assert!(block.store(at as usize, value.to_ne_bytes()));
        word(FIRST as u32, first);
        word(FRAMES as u32, frames.len() as u32);
        for frame in frames {
            let Written { at, next, mac, captured, length, status, tci, tpid, packet_type } =
                *frame;
            let [seconds, nanoseconds] = TIME;
            let words = [next, seconds, nanoseconds, captured, length, status];
            (0..).zip(words).for_each(|(i, value)| word(at + 4 * i, value));
            assert!(block.store(at as usize + 24, mac.to_ne_bytes()));
            word(at + 32, tci.into());
            assert!(block.store(at as usize + 36, tpid.to_ne_bytes()));
            assert!(block.store(at as usize + 58, [packet_type]));
            let start = (at + u32::from(mac)) as usize;
            assert!(block.store(start - VNET.len(), VNET));
            block.write(start, &data(captured));
        }
        blocks.status(place).store(status, Ordering::Relaxed);
    }

    fn bytes(buf: Buf<'_>) -> Vec<u8> {
        let mut bytes = vec![0; buf.size() as usize];
        buf.copy_to(bytes.len(), &mut bytes);
        bytes
    }

    #[test]
    fn frames_are_as_the_kernel_wrote_them() {
        let blocks = private();
        for block in 0..GEOMETRY.blocks {
            let (mut place, mut losing) = (BlockCursor { block, offset: 0 }, false);
            assert!(matches!(blocks.look(&mut place, &mut losing), Found::Nothing));
            assert!(!blocks.is_filled(place));
            let frames = [
                Written { next: 400, ..PLAIN },
                Written { at: 448, next: 1000, captured: 50, length: 70, ..TAGGED },
                Written { at: 1448, status: 1 << 31 | libc::TP_STATUS_VLAN_VALID, ..TAGGED },
            ];
            fill(&blocks, place, libc::TP_STATUS_USER, 48, &frames);
            assert!(blocks.is_filled(place));
            for written in frames {
                let Found::Frame(frame) = blocks.look(&mut place, &mut losing) else {
                    panic!("{written:?} is not found");
                };
                assert_eq!(place, BlockCursor { block, offset: written.at });
                assert_eq!(bytes(frame.data), data(written.captured));
                assert_eq!(frame.header, Header::parse(&VNET).unwrap());
                assert_eq!(frame.whole, written.captured == written.length);
                assert_eq!(frame.time, 3_999_999_999);
                assert_eq!(frame.by_hardware, written.at == 1448);
                let expected = match written.at {
                    448 => Some([0x88, 0xa8, 0x60, 0x07]),
                    1448 => Some([0x81, 0x00, 0x60, 0x07]),
                    _ => None,
                };
                assert_eq!(frame.tag, expected);
                let next = if written.next == 0 { 0 } else { written.at + written.next };
                assert_eq!(frame.next, next);
                let header = blocks.block(place).header(place).unwrap();
                assert_eq!((header.length, header.stride), (written.length, written.next));
                assert_eq!(header.status(), written.status);
                assert_eq!(header.words().time(), TIME);
                place = blocks.behind(place, frame.next);
            }
            assert!(matches!(blocks.look(&mut place, &mut losing), Found::End));
            assert!(!losing);
            blocks.give_back(place);
            assert!(!blocks.is_filled(place));
            assert_eq!(blocks.next_block(place).block, (block + 1) % GEOMETRY.blocks);
        }
    }

    #[test]
    fn a_block_says_how_it_was_handed_over() {
        let blocks = private();
        let start = blocks.place(0);
        for (status, is_full, is_losing) in [
            (0, true, false),
            (libc::TP_STATUS_BLK_TMO, false, false),
            (libc::TP_STATUS_LOSING, true, true),
            (libc::TP_STATUS_LOSING | libc::TP_STATUS_BLK_TMO, false, true),
        ] {
            fill(&blocks, start, libc::TP_STATUS_USER | status, 48, &[PLAIN]);
            let (mut place, mut losing) = (start, false);
            assert!(blocks.enter(&mut place, &mut losing));
            assert_eq!((blocks.is_full(place), losing), (is_full, is_losing), "{status:x}");
            // What was said once stays.
            losing = true;
            assert!(blocks.enter(&mut place, &mut losing) && losing);
            blocks.status(start).store(status, Ordering::Relaxed);
            let mut place = start;
            assert!(!blocks.enter(&mut place, &mut losing) && place == start);
        }
    }

    /// A block without frames, or whose first one is no place for a frame.
    #[test]
    fn what_leads_nowhere_is_the_end() {
        let blocks = private();
        let start = blocks.place(0);
        let finds = |first, frames: &[Written]| {
            fill(&blocks, start, libc::TP_STATUS_USER, first, frames);
            let mut place = start;
            let found = blocks.look(&mut place, &mut false);
            matches!(found, Found::Frame(_))
        };
        assert!(finds(48, &[PLAIN]));
        assert!(!finds(48, &[]));
        for first in [0, 4, 44, 52, 4092, 4096, 1 << 20, u32::MAX - 7] {
            assert!(!finds(first, &[PLAIN]), "{first}");
        }
        let longest = 4096 - 144;
        for (captured, is_there) in [(longest, true), (longest + 1, false), (u32::MAX, false)] {
            fill(&blocks, start, libc::TP_STATUS_USER, 48, &[PLAIN]);
            let at = 48 + 12;
            blocks.memory.block(0).store(at, captured.to_ne_bytes());
            let mut place = start;
            let found = matches!(blocks.look(&mut place, &mut false), Found::Frame(_));
            assert_eq!(found, is_there, "{captured}");
        }
    }

    /// Offsets grow, and stay inside.
    #[test]
    fn a_stride_is_sound_if_a_header_may_be_there() {
        let blocks = private();
        let block = blocks.block(blocks.place(0));
        for (from, by, expected) in [
            (48, 0, 0),
            (48, 8, 56),
            (48, 12, 0),
            (48, 4040, 4088),
            (48, 4048, 0),
            (48, u32::MAX, 0),
            (48, u32::MAX - 47, 0),
            (0, 4088, 4088),
            (0, 4096, 0),
            (4088, 8, 0),
        ] {
            assert_eq!(block.sound(from, by), expected, "{from} + {by}");
        }
    }

    /// What is looked at of a header has to be in the block: 60 bytes.
    #[test]
    fn a_header_lies_in_its_block() {
        let blocks = private();
        let start = blocks.place(0);
        for (offset, is_there) in [(48, true), (4032, true), (4040, false), (NOWHERE, false)] {
            let place = BlockCursor { offset, ..start };
            assert_eq!(blocks.block(place).header(place).is_some(), is_there, "{offset}");
        }
    }

    #[test]
    fn a_tag_comes_back_behind_the_addresses() {
        let blocks = private();
        let start = blocks.place(0);
        let header = |frame: Written| {
            fill(&blocks, start, libc::TP_STATUS_USER, 48, &[frame]);
            let place = BlockCursor { offset: 48, ..start };
            (blocks.block(place), blocks.block(place).header(place).unwrap())
        };
        let (block, plain) = header(PLAIN);
        assert!(!plain.is_tagged() && plain.is_whole() && block.put_tag(plain).is_none());
        let (block, tagged) = header(TAGGED);
        assert!(tagged.is_tagged());
        let frame = bytes(block.put_tag(tagged).unwrap());
        let untagged = data(60);
        assert_eq!(frame, [&untagged[..12], &[0x88, 0xa8, 0x60, 0x07], &untagged[12..]].concat());
        for (captured, is_frame) in [(12, true), (11, false), (0, false)] {
            let (block, short) = header(Written { captured, ..TAGGED });
            assert_eq!(block.put_tag(short).map(|frame| frame.size()), is_frame.then_some(16));
        }
    }

    #[test]
    fn a_frame_says_which_way_it_went() {
        let blocks = private();
        let start = blocks.place(0);
        for packet_type in 0..=7 {
            fill(&blocks, start, libc::TP_STATUS_USER, 48, &[Written { packet_type, ..PLAIN }]);
            let place = BlockCursor { offset: 48, ..start };
            let words = blocks.block(place).header(place).unwrap().words();
            assert_eq!(words.is_outgoing(), packet_type == libc::PACKET_OUTGOING);
        }
    }

    #[test]
    fn rings_are_pages_that_a_mark_can_name() {
        for (block_size, blocks, expected) in [
            (4096, 1, true),
            (128 << 10, 64, true),
            (512 << 10, 1 << 16, true),
            (0, 1, false),
            (4095, 1, false),
            (6144, 1, false),
            ((512 << 10) + 4096, 1, false),
            (4096, 0, false),
            (4096, (1 << 16) + 1, false),
        ] {
            assert_eq!(
                Geometry { block_size, blocks }.is_sound(),
                expected,
                "{block_size} {blocks}"
            );
        }
        assert_eq!(Geometry::DEFAULT, Geometry { block_size: 131_072, blocks: 64 });
        let ring = Geometry { block_size: 8192, blocks: 3 }.ring(7);
        let sizes = [ring.tp_block_size, ring.tp_block_nr, ring.tp_frame_size, ring.tp_frame_nr];
        assert_eq!(sizes, [8192, 3, 2048, 12]);
        assert_eq!((ring.tp_retire_blk_tov, ring.tp_sizeof_priv), (7, 0));
        assert_eq!(private().count(), 3);
    }
}
