//! Frames: a buffer's address, and what is in it.

/// How the bytes of a frame lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// In one buffer, at an offset below 512, fewer than 2^20.
    Contiguous,
    /// In one buffer from its start, fewer than 2^29.
    LongContiguous,
    /// In buffers that a table in the first one lists, at an offset.
    ScatterGather,
    /// The same, with a long length and no offset.
    LongScatterGather,
    /// Several frames, listed in a table.
    Compound,
    /// None that is known.
    Other,
}

/// A frame in 16 bytes, as numbers in the host's order.
///
/// ```text
///   buffer   63-62 kind   61-56 -   55-48 pool   47-40 -   39-0 address
///   shape    31-29 format   28-20 offset   19-0 length      (or 28-0 length)
///   command  for the receiver; as a status on the way back
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Frame {
    /// Pool and address.
    pub buffer: u64,
    /// Format, offset and length.
    pub shape: u32,
    /// For the receiver.
    pub command: u32,
}

const ADDRESS: u64 = (1 << 40) - 1;
const SHORT: u32 = (1 << 20) - 1;
const LONG: u32 = (1 << 29) - 1;

impl Frame {
    /// A frame in one buffer. What does not fit its field is cut.
    pub fn contiguous(pool: u8, address: u64, offset: u16, length: u32) -> Frame {
        let buffer = u64::from(pool) << 48 | address & ADDRESS;
        let shape = u32::from(offset & 0x1ff) << 20 | length & SHORT;
        Frame { buffer, shape, command: 0 }
    }

    /// A frame in several buffers, which a table at the offset of this one lists. What does not fit its field is cut.
    pub fn scattered(pool: u8, address: u64, offset: u16, length: u32) -> Frame {
        let frame = Frame::contiguous(pool, address, offset, length);
        Frame { shape: 4 << 29 | frame.shape, ..frame }
    }

    /// The buffer's address, below 2^40.
    pub fn address(&self) -> u64 {
        self.buffer & ADDRESS
    }

    /// The pool that the buffer belongs to.
    pub fn pool(&self) -> u8 {
        (self.buffer >> 48) as u8
    }

    /// How the bytes lie.
    pub fn format(&self) -> Format {
        match self.shape >> 29 {
            0 => Format::Contiguous,
            1 => Format::Compound,
            2 => Format::LongContiguous,
            4 => Format::ScatterGather,
            6 => Format::LongScatterGather,
            _ => Format::Other,
        }
    }

    /// Bytes between the buffer's start and the frame's.
    pub fn offset(&self) -> u16 {
        match self.format() {
            Format::Contiguous | Format::ScatterGather => (self.shape >> 20 & 0x1ff) as u16,
            _ => 0,
        }
    }

    /// Bytes of the frame, or the weight that it has in a congestion group.
    #[inline]
    pub fn length(&self) -> u32 {
        // Formats with bit 0 or 1 have the long length.
        if self.shape >> 29 & 0b011 == 0 { self.shape & SHORT } else { self.shape & LONG }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_their_places() {
        let frame = Frame::contiguous(9, 0x12_3456_7890, 0x155, 0xfedcb);
        assert_eq!(frame.buffer, 0x0009_0012_3456_7890);
        assert_eq!(frame.shape, 0x155f_edcb);
        assert_eq!((frame.pool(), frame.address()), (9, 0x12_3456_7890));
        assert_eq!((frame.offset(), frame.length()), (0x155, 0xfedcb));
        assert_eq!(frame.format(), Format::Contiguous);
        let long = Frame { shape: 2 << 29 | 0x1fff_ffff, ..frame };
        assert_eq!((long.format(), long.offset()), (Format::LongContiguous, 0));
        assert_eq!(long.length(), 0x1fff_ffff);
        let compound = Frame { shape: 1 << 29 | 7 << 20, ..frame };
        assert_eq!((compound.format(), compound.length()), (Format::Compound, 7 << 20));
    }
}
