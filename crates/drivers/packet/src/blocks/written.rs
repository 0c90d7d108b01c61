//! Blocks as the kernel writes them, for tests that need no kernel.

use super::*;

/// A frame, and what stands in front of it.
#[derive(Clone, Debug)]
pub struct Laid {
    pub bytes: Vec<u8>,
    pub header: Header,
    /// Bits of `TP_STATUS_*`.
    pub status: u32,
    pub tag: Option<[u8; 4]>,
    /// Bytes of it that were not captured.
    pub missing: u32,
    /// Behind the third second.
    pub nanoseconds: u32,
}

impl Laid {
    pub fn plain(bytes: Vec<u8>) -> Laid {
        let header = Header::default();
        Laid { bytes, header, status: 0, tag: None, missing: 0, nanoseconds: 0 }
    }
}

/// A ring that no kernel fills.
pub fn ring(geometry: Geometry) -> Blocks {
    let Geometry { block_size, blocks } = geometry;
    Blocks { memory: RingMemory::private(block_size, blocks), geometry }
}

/// Fills a block of the ring, and hands it over.
pub fn lay(blocks: &Blocks, block: u32, frames: &[Laid]) {
    const FIRST_FRAME: u32 = 48;
    const DATA: u32 = 96;
    let memory = blocks.memory.block(block);
    let word = |at: u32, value: u32| assert!(memory.store(at as usize, value.to_ne_bytes()));
    word(FIRST as u32, FIRST_FRAME);
    word(FRAMES as u32, frames.len() as u32);
    let mut at = FIRST_FRAME;
    for (i, frame) in (1..).zip(frames) {
        let Laid { bytes, header, status, tag, missing, nanoseconds } = frame;
        let (start, captured) = (at + DATA, bytes.len() as u32);
        let behind = (start + captured).next_multiple_of(ALIGNMENT);
        let next = if i < frames.len() { behind - at } else { 0 };
        let tagged = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        let status = status | if tag.is_some() { tagged } else { 0 };
        let words = [next, 3, *nanoseconds, captured, captured + missing, status];
        (0..).zip(words).for_each(|(i, value)| word(at + 4 * i, value));
        assert!(memory.store(at as usize + 24, (DATA as u16).to_ne_bytes()));
        let [a, b, c, d] = tag.unwrap_or_default();
        word(at + 32, u16::from_be_bytes([c, d]).into());
        word(at + 36, u16::from_be_bytes([a, b]).into());
        let header: [u8; Header::SHORT] = *header.emit().first_chunk().unwrap();
        assert!(memory.store(start as usize - header.len(), header));
        assert_eq!(memory.write(start as usize, bytes), bytes.len());
        at = behind;
    }
    let place = BlockCursor { block, offset: 0 };
    blocks.status(place).store(libc::TP_STATUS_USER, Ordering::Release);
}
