//! Packets outside the region: a slot with NS_INDIRECT names memory of the program that syncs
//! (S-VALE-9).
//!
//! Whoever forwards the packets cannot see that memory, so their bytes move into the slots'
//! buffers before the slots are published. The kernel reads them, and says how far it came.
//!
//! A slot whose memory cannot be read becomes empty. It keeps NS_INDIRECT if its buffer has the
//! Ethernet header all the same: a packet that begins so still goes where that says.
#![allow(unsafe_code)]

use libc::{c_void, iovec};
use ringway_abi::NS_INDIRECT;
use ringway_kring::Kring;

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
        let mut pieces = Pieces::default();
        while at != head && pieces.count < BATCH {
            let slot = ring.slot(at);
            // S-FLAGS-NS_INDIRECT.
            if slot.flags & NS_INDIRECT != 0
                && let Some(buf) =
                    ring.buf(slot.buf_idx).filter(|b| u32::from(slot.len) <= b.size())
            {
                match slot.len {
                    0 => ring.set_slot(at, slot.buf_idx, 0, slot.flags & !NS_INDIRECT),
                    len => pieces.add(at, buf.as_ptr(), slot.ptr, len.into()),
                }
            }
            at = ring.next(at);
        }
        pieces.read(|missing, begins| {
            let slot = ring.slot(missing);
            let flags = if begins { slot.flags } else { slot.flags & !NS_INDIRECT };
            ring.set_slot(missing, slot.buf_idx, 0, flags);
        });
    }
}

/// What one system call reads: from the program's memory, to buffers.
struct Pieces {
    slots: [u32; BATCH],
    from: [iovec; BATCH],
    to: [iovec; BATCH],
    count: usize,
}

impl Default for Pieces {
    fn default() -> Self {
        let none = iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Pieces { slots: [0; BATCH], from: [none; BATCH], to: [none; BATCH], count: 0 }
    }
}

impl Pieces {
    fn add(&mut self, slot: u32, to: *mut u8, from: u64, len: usize) {
        let i = self.count;
        self.slots[i] = slot;
        self.from[i] = iovec { iov_base: from as *mut c_void, iov_len: len };
        self.to[i] = iovec { iov_base: to.cast(), iov_len: len };
        self.count += 1;
    }

    /// Reads all that can be read, and names the slots of what cannot, with whether there was an
    /// Ethernet header.
    fn read(&self, mut missing: impl FnMut(u32, bool)) {
        let mut done = 0;
        while done < self.count {
            let mut bytes = self.move_some(&self.from[done..self.count], done);
            while done < self.count && bytes >= self.from[done].iov_len {
                bytes -= self.from[done].iov_len;
                done += 1;
            }
            if done < self.count {
                missing(self.slots[done], self.begins(done));
                done += 1;
            }
        }
    }

    #[cold]
    fn begins(&self, at: usize) -> bool {
        let header = iovec { iov_len: HEADER, ..self.from[at] };
        self.from[at].iov_len >= HEADER && self.move_some(&[header], at) == HEADER
    }

    /// Reads `from`, which are the pieces from `first` on or what they begin with; returns how many
    /// bytes could be read.
    fn move_some(&self, from: &[iovec], first: usize) -> usize {
        let to = &self.to[first..self.count];
        // SAFETY: the kernel checks the addresses that the program named and reads them, or stops
        // there. It writes into buffers of the region, `iov_len` bytes at most, which is not more
        // than each holds; the ring keeps the region mapped.
        let moved = unsafe {
            libc::process_vm_readv(
                libc::getpid(),
                to.as_ptr(),
                to.len() as libc::c_ulong,
                from.as_ptr(),
                from.len() as libc::c_ulong,
                0,
            )
        };
        usize::try_from(moved).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ringway_abi::Dir;
    use ringway_region::{Layout, Region, RingInit, Sizes};

    use super::*;

    /// What cannot be read in whole goes where its header says, if there is one.
    #[test]
    fn s_vale_9_what_can_be_read_in_part_keeps_its_header() {
        let kring = ring(8);
        let ring = kring.ring();
        let mapping = Mapping::guarded();
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

    /// Two pages, of which the second cannot be read; the first is full of 7.
    struct Mapping(*mut c_void);

    const PAGE: usize = 4096;

    impl Mapping {
        fn guarded() -> Mapping {
            let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
            let kind = kind | libc::MAP_ANONYMOUS;
            // SAFETY: new memory, at a place of the kernel's choice.
            let at = unsafe { libc::mmap(std::ptr::null_mut(), 2 * PAGE, access, kind, -1, 0) };
            assert_ne!(at, libc::MAP_FAILED);
            // SAFETY: the first page was mapped just above, and nothing else refers to it.
            unsafe { at.cast::<u8>().write_bytes(7, PAGE) };
            // SAFETY: the second page is ours, and nothing refers to it.
            assert_eq!(unsafe { libc::mprotect(at.byte_add(PAGE), PAGE, libc::PROT_NONE) }, 0);
            Mapping(at)
        }

        /// Where what can be read ends.
        fn end(&self) -> u64 {
            self.0.addr() as u64 + PAGE as u64
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: mapped by `guarded`; nothing refers to it.
            unsafe { libc::munmap(self.0, 2 * PAGE) };
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

    /// Every third slot names memory that is not there, every other third memory of this program.
    #[test]
    fn s_vale_9_what_cannot_be_read_is_empty() {
        let kring = ring(256);
        let ring = kring.ring();
        let memory: Vec<[u8; 100]> = (0..200).map(|i| [i as u8; 100]).collect();
        for i in 0..200u32 {
            let [word, _] = ring.slot_words(i);
            let ptr = match i % 3 {
                0 => 8,
                1 => memory[i as usize].as_ptr() as u64,
                _ => u64::MAX,
            };
            ring.set_slot_words(i, [word, ptr]);
            let flags = if i % 3 == 2 { 0 } else { NS_INDIRECT };
            ring.set_slot(i, word as u32, 100, flags);
        }
        fetch(&kring, 200);
        for i in 0..200u32 {
            let slot = ring.slot(i);
            assert_eq!(slot.len, if i % 3 == 0 { 0 } else { 100 }, "slot {i}");
            let read = ring.buf(slot.buf_idx).unwrap().read::<100>(0).unwrap();
            let expected = if i % 3 == 1 { i as u8 } else { 0 };
            assert_eq!(read, [expected; 100], "slot {i}");
        }
    }
}
