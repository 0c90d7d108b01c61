//! Packets outside the region: a slot with NS_INDIRECT names memory of the program that syncs
//! (S-VALE-9).
//!
//! Whoever forwards the packets cannot see that memory, so their bytes move into the slots'
//! buffers before the slots are published. The kernel reads them, and says how far it came.

use libc::{c_void, iovec};
use ringway_abi::NS_INDIRECT;
use ringway_kring::Kring;

/// Pieces read by one system call.
const BATCH: usize = 64;

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
            if slot.flags & NS_INDIRECT != 0
                && let Some(buf) =
                    ring.buf(slot.buf_idx).filter(|b| u32::from(slot.len) <= b.size())
                && slot.len > 0
            {
                pieces.add(at, buf.as_ptr(), slot.ptr, slot.len.into());
            }
            at = ring.next(at);
        }
        pieces.read(|missing| {
            let slot = ring.slot(missing);
            ring.set_slot(missing, slot.buf_idx, 0, slot.flags);
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

    /// Reads all that can be read, and names the slots of what cannot.
    fn read(&self, mut missing: impl FnMut(u32)) {
        let mut done = 0;
        while done < self.count {
            let left = self.count - done;
            // SAFETY: the kernel checks the addresses that the program named and reads them, or
            // stops there. It writes into buffers of the region, `iov_len` bytes at most, which
            // is not more than each holds; the ring keeps the region mapped.
            let moved = unsafe {
                libc::process_vm_readv(
                    libc::getpid(),
                    self.to[done..].as_ptr(),
                    left as libc::c_ulong,
                    self.from[done..].as_ptr(),
                    left as libc::c_ulong,
                    0,
                )
            };
            let mut bytes = usize::try_from(moved).unwrap_or(0);
            while done < self.count && bytes >= self.from[done].iov_len {
                bytes -= self.from[done].iov_len;
                done += 1;
            }
            if done < self.count {
                missing(self.slots[done]);
                done += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ringway_abi::Dir;
    use ringway_region::{Layout, Region, RingInit, Sizes};

    use super::*;

    /// Every third slot names memory that is not there, every other third memory of this program.
    #[test]
    fn s_vale_9_what_cannot_be_read_is_empty() {
        let sizes = Sizes::private([1, 1], [256, 256], 0, 0);
        let region = Arc::new(Region::create(9, Layout::new(&sizes, 0).unwrap()).unwrap());
        let init = RingInit { dir: Dir::Tx, ringid: 0, num_slots: 256 };
        let bufs: Vec<u32> = (2..258).collect();
        let kring = Kring::create(&region, 0, &init, &bufs).unwrap();
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
