//! Packets outside the region: a slot with NS_INDIRECT names memory of the program that syncs
//! (S-VALE-9).
//!
//! The party that forwards the packets cannot see that memory, so their bytes move into the slots'
//! buffers before the slots are published. The kernel reads them, and says how far it came.
//!
//! A slot whose memory cannot be read becomes empty. It keeps NS_INDIRECT if its buffer has the
//! Ethernet header all the same: a packet that begins so still goes where that says.

use ringway_abi::NS_INDIRECT;
use ringway_kring::Kring;
use ringway_region::Buf;

use crate::sys::Pieces;

/// Pieces read by one system call.
const BATCH: usize = 64;

/// Bytes of an Ethernet header.
const HEADER: usize = 14;

/// Fetches the data of the slots that a program is about to send: those of a transmit ring from
/// what was published last up to `head`. A piece that cannot be read becomes empty; one that
/// its buffer cannot hold is left to whoever looks at the slots next.
pub fn fetch(kring: &Kring, head: u32) {
    let ring = kring.ring();
    let mut at = kring.bounded(kring.csb().app.head());
    let head = kring.bounded(head);
    while at != head {
        let mut batch = Batch::new();
        while at != head && !batch.is_full() {
            let slot = ring.slot(at);
            // S-FLAGS-NS_INDIRECT.
            if slot.flags & NS_INDIRECT != 0
                && let Some(to) =
                    ring.buf(slot.buf_idx).and_then(|buf| buf.part(0, slot.len.into()))
            {
                match slot.len {
                    0 => ring.set_slot(at, slot.buf_idx, 0, slot.flags & !NS_INDIRECT),
                    _ => batch.add(at, to, slot.ptr),
                }
            }
            at = ring.next(at);
        }
        batch.read(|missing, begins| {
            let slot = ring.slot(missing);
            let flags = if begins { slot.flags } else { slot.flags & !NS_INDIRECT };
            ring.set_slot(missing, slot.buf_idx, 0, flags);
        });
    }
}

/// Pieces that are read together, and the slots that they are of.
struct Batch<'a> {
    slots: [u32; BATCH],
    pieces: Pieces<'a, BATCH>,
}

impl<'a> Batch<'a> {
    fn new() -> Self {
        Batch { slots: [0; BATCH], pieces: Pieces::new() }
    }

    fn is_full(&self) -> bool {
        self.pieces.len() == BATCH
    }

    fn add(&mut self, slot: u32, to: Buf<'a>, from: u64) {
        if let Some(place) = self.slots.get_mut(self.pieces.len()) {
            *place = slot;
            self.pieces.add(to, from);
        }
    }

    /// Reads all that can be read, and names the slots of what cannot, with whether there was an
    /// Ethernet header.
    fn read(&self, mut missing: impl FnMut(u32, bool)) {
        let mut done = 0;
        while done < self.pieces.len() {
            let mut bytes = self.pieces.read(done);
            while done < self.pieces.len() && bytes >= self.pieces.size(done) {
                bytes -= self.pieces.size(done);
                done += 1;
            }
            if done < self.pieces.len() {
                missing(self.slots[done], self.begins(done));
                done += 1;
            }
        }
    }

    #[cold]
    fn begins(&self, at: usize) -> bool {
        self.pieces.size(at) >= HEADER && self.pieces.read_beginning(at, HEADER) == HEADER
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ringway_abi::Dir;
    use ringway_region::{Layout, Region, RingInit, Sizes};

    use super::*;
    use crate::sys::Guarded;

    /// What cannot be read in whole goes where its header says, if there is one.
    #[test]
    fn s_vale_9_what_can_be_read_in_part_keeps_its_header() {
        let kring = ring(8);
        let ring = kring.ring();
        let mapping = Guarded::new();
        let left = [64, 14, 13, 0];
        for (i, left) in (0..).zip(left) {
            let [word, _] = ring.slot_words(i);
            ring.set_slot_words(i, [word, mapping.end() - left]);
            ring.set_slot(i, word as u32, 100, NS_INDIRECT);
        }
        ring.set_slot(4, ring.slot(4).buf_idx, 0, NS_INDIRECT);
        fetch(&kring, 5);
        for i in 0..5 {
            let slot = ring.slot(i);
            assert_eq!(slot.len, 0, "slot {i}");
            assert_eq!(slot.flags & NS_INDIRECT != 0, i < 2, "slot {i}");
        }
        for i in 0..2 {
            let slot = ring.slot(i);
            assert_eq!(ring.buf(slot.buf_idx).unwrap().read::<14>(0), Some([7; 14]));
        }
    }

    /// A transmit ring.
    fn ring(num_slots: u32) -> Kring {
        let sizes = Sizes::private([1, 1], [num_slots; 2], 0, 0);
        let region = Arc::new(Region::create(9, Layout::new(&sizes, 0).unwrap()).unwrap());
        let init = RingInit { dir: Dir::Tx, ringid: 0, num_slots };
        let bufs: Vec<u32> = (2..num_slots + 2).collect();
        Kring::create(&region, 0, &init, &bufs).unwrap()
    }

    /// Slots in turn: one that names memory that is not there, two of this program's, of different
    /// lengths, and one that names nothing.
    #[test]
    fn s_vale_9_what_cannot_be_read_is_empty() {
        let kring = ring(256);
        let ring = kring.ring();
        let memory: Vec<[u8; 100]> = (0..200).map(|i| [i as u8; 100]).collect();
        let length = |i: u32| if i % 4 == 2 { 60 } else { 100 };
        for i in 0..200u32 {
            let [word, _] = ring.slot_words(i);
            let ptr = match i % 4 {
                0 => 8,
                1 | 2 => memory[i as usize].as_ptr() as u64,
                _ => u64::MAX,
            };
            ring.set_slot_words(i, [word, ptr]);
            let flags = if i % 4 == 3 { 0 } else { NS_INDIRECT };
            ring.set_slot(i, word as u32, length(i), flags);
        }
        fetch(&kring, 200);
        for i in 0..200u32 {
            let slot = ring.slot(i);
            assert_eq!(slot.len, if i % 4 == 0 { 0 } else { length(i) }, "slot {i}");
            let read = ring.buf(slot.buf_idx).unwrap().read::<100>(0).unwrap();
            let mut expected = [0; 100];
            if matches!(i % 4, 1 | 2) {
                expected[..length(i).into()].fill(i as u8);
            }
            assert_eq!(read, expected, "slot {i}");
        }
    }
}
