//! A chain of descriptors: the pieces of guest memory that hold one frame, or are to.

use ringway_region::Buf;

use crate::memory::GuestMemory;

/// The chain goes on.
pub(crate) const NEXT: u16 = 1;
/// The device writes; else it reads.
pub(crate) const WRITE: u16 = 2;
/// What it points to is a table of descriptors.
pub(crate) const INDIRECT: u16 = 4;

/// Bytes of a descriptor, in either layout.
pub(crate) const DESCRIPTOR: u32 = 16;

/// Descriptors in a chain, at most: the longest queue there is.
pub(crate) const MAX_CHAIN: u32 = 32_768;

/// Pieces of a chain, at most. A descriptor has several where its memory is in several regions.
pub(crate) const MAX_PIECES: usize = 32_768;

/// A queue that its guest uses as no guest may. It is not looked at until it is set up anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("it offers more descriptors than the queue has")]
    Index,
    #[error("a descriptor's number is behind the end of its table")]
    Descriptor,
    #[error("a chain of descriptors has no end")]
    Endless,
    #[error("the memory of a chain of descriptors is in too many pieces")]
    Pieces,
    #[error("a descriptor points to memory that the machine does not have")]
    Address,
    #[error("a frame to be sent is in memory for receiving, or the other way round")]
    Direction,
    #[error("a table of descriptors is in another, is of no length, or has a part of one")]
    Table,
}

/// A piece of a frame in guest memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'m> {
    pub buf: Buf<'m>,
    /// The guest's address.
    pub at: u64,
}

/// A descriptor, read once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    pub address: u64,
    pub len: u32,
    pub flags: u16,
    /// The next one's number; in packed queues, the buffer's.
    pub number: u16,
}

impl Descriptor {
    /// As a split queue has it, and each table of a split queue.
    #[inline]
    pub fn split(bytes: [u8; 16]) -> Descriptor {
        let (flags, number) = (half(&bytes, 12), half(&bytes, 14));
        Descriptor { flags, number, ..Descriptor::packed(bytes) }
    }

    /// As a packed queue has it.
    #[inline]
    pub fn packed(bytes: [u8; 16]) -> Descriptor {
        let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = bytes;
        Descriptor {
            address: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            len: u32::from_le_bytes([i, j, k, l]),
            flags: half(&bytes, 14),
            number: half(&bytes, 12),
        }
    }
}

#[inline]
fn half(bytes: &[u8; 16], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Which way a queue's frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the machine.
    Out,
    /// To the machine.
    In,
}

/// A chain as it is walked.
pub(crate) struct Walk<'a, 'm> {
    memory: &'m GuestMemory,
    way: Way,
    taken: &'a mut Taken<'m>,
    /// Pieces of chains before.
    first: usize,
}

impl<'a, 'm> Walk<'a, 'm> {
    /// Adds to `taken`.
    pub fn new(memory: &'m GuestMemory, way: Way, taken: &'a mut Taken<'m>) -> Self {
        let first = taken.pieces.len();
        Walk { memory, way, taken, first }
    }

    /// Adds what a descriptor points to.
    #[inline(always)]
    pub fn add(&mut self, descriptor: &Descriptor) -> Result<(), Fault> {
        let is_for_writing = descriptor.flags & WRITE != 0;
        if is_for_writing != (self.way == Way::In) {
            return Err(Fault::Direction);
        }
        let (at, len) = (descriptor.address, descriptor.len);
        match self.memory.buf(at, len).filter(|_| len > 0) {
            Some(buf) => self.taken.pieces.push(Piece { buf, at }),
            None => self.add_in_parts(at, len)?,
        }
        Ok(())
    }

    /// Adds memory that is in several regions, or of no length.
    #[cold]
    fn add_in_parts(&mut self, mut at: u64, mut left: u32) -> Result<(), Fault> {
        self.taken.empty += usize::from(left == 0);
        while left > 0 {
            if self.taken.pieces.len() - self.first == MAX_PIECES {
                return Err(Fault::Pieces);
            }
            let buf = self.memory.piece(at, left).ok_or(Fault::Address)?;
            self.taken.pieces.push(Piece { buf, at });
            left -= buf.size();
            at = at.checked_add(buf.size().into()).ok_or(Fault::Address)?;
        }
        Ok(())
    }

    /// The table that a descriptor points to, and how many descriptors it has.
    fn table(&self, descriptor: &Descriptor) -> Result<(Buf<'m>, u32), Fault> {
        let count = descriptor.len / DESCRIPTOR;
        let is_table = descriptor.len.is_multiple_of(DESCRIPTOR)
            && (1..=MAX_CHAIN).contains(&count)
            && descriptor.flags & NEXT == 0;
        if !is_table {
            return Err(Fault::Table);
        }
        let table = self.memory.buf(descriptor.address, descriptor.len).ok_or(Fault::Address)?;
        Ok((table, count))
    }

    /// Adds what an entry of a table points to, which is no table.
    fn add_entry(&mut self, entry: &Descriptor) -> Result<(), Fault> {
        if entry.flags & INDIRECT != 0 { Err(Fault::Table) } else { self.add(entry) }
    }

    /// Adds what a table has, which is a chain of its own.
    pub fn add_split_table(&mut self, descriptor: &Descriptor) -> Result<(), Fault> {
        let (table, count) = self.table(descriptor)?;
        let mut number = 0;
        for _ in 0..count {
            let bytes = table.read((number * DESCRIPTOR) as usize).ok_or(Fault::Descriptor)?;
            let entry = Descriptor::split(bytes);
            self.add_entry(&entry)?;
            if entry.flags & NEXT == 0 {
                return Ok(());
            }
            number = entry.number.into();
        }
        Err(Fault::Endless)
    }

    /// Adds all that a table has.
    pub fn add_packed_table(&mut self, descriptor: &Descriptor) -> Result<(), Fault> {
        let (table, count) = self.table(descriptor)?;
        for number in 0..count {
            let bytes = table.read((number * DESCRIPTOR) as usize).ok_or(Fault::Descriptor)?;
            let entry = Descriptor::packed(bytes);
            self.add_entry(&entry)?;
        }
        Ok(())
    }
}

/// What the device gives back: the chain by its number, how many descriptors of the queue it took, and how
/// many bytes were written to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub id: u16,
    pub descriptors: u16,
    pub written: u32,
}

/// Chains that are at hand, one after the other.
#[derive(Debug)]
pub(crate) struct Taken<'m> {
    /// Those of all chains.
    pub pieces: Vec<Piece<'m>>,
    /// Descriptors of no length, which are no pieces, and have been walked like the others.
    empty: usize,
    /// Each with the number of the piece behind its last.
    pub chains: Vec<(Used, usize)>,
}

impl<'m> Taken<'m> {
    pub fn with_capacity(chains: usize) -> Taken<'m> {
        let (pieces, chains) = (Vec::with_capacity(chains), Vec::with_capacity(chains));
        Taken { pieces, empty: 0, chains }
    }

    /// Descriptors that were walked, and pieces that they were cut into: what the guest has made of work.
    #[inline]
    pub fn work(&self) -> usize {
        self.pieces.len() + self.empty
    }

    pub fn clear(&mut self) {
        self.pieces.clear();
        self.empty = 0;
        self.chains.clear();
    }

    /// The pieces that were added last are those of a chain.
    #[inline]
    pub fn end_chain(&mut self, used: Used) {
        self.chains.push((used, self.pieces.len()));
    }

    /// Forgets pieces that are of no whole chain.
    pub fn end_at_chain(&mut self) {
        let end = self.first_piece(self.chains.len());
        self.pieces.truncate(end);
    }

    /// The number of the first piece of chain `i`, or of the chain that would come there.
    #[inline]
    pub fn first_piece(&self, i: usize) -> usize {
        i.checked_sub(1).map_or(0, |before| self.chains[before].1)
    }

    /// The pieces of chain `i`.
    #[inline]
    pub fn pieces_of(&self, i: usize) -> &[Piece<'m>] {
        &self.pieces[self.first_piece(i)..self.chains[i].1]
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;
    use crate::memory::RegionAt;

    /// Memory in many regions makes many pieces of each descriptor: there is an end to those of a chain.
    #[test]
    fn a_chain_has_so_many_pieces() {
        let file = File::from(memfd_create("test", MemfdFlags::CLOEXEC).unwrap());
        file.set_len(64).unwrap();
        let at = |guest| RegionAt { guest, user: guest, size: 1, offset: guest };
        let memory = (0..64)
            .fold(GuestMemory::default(), |memory, guest| memory.with(at(guest), &file).unwrap());
        let mut taken = Taken::with_capacity(0);
        let descriptor = Descriptor { address: 0, len: 64, flags: 0, number: 0 };
        for chain in 1..3 {
            let mut walk = Walk::new(&memory, Way::Out, &mut taken);
            (0..MAX_PIECES / 64).for_each(|_| walk.add(&descriptor).unwrap());
            assert_eq!(walk.add(&descriptor), Err(Fault::Pieces));
            assert_eq!(taken.pieces.len(), chain * MAX_PIECES);
        }
    }
}
