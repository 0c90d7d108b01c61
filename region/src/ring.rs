//! A `netmap_ring` and its slots in shared memory.

use std::{
    mem::offset_of,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
};

use ringway_abi::{Dir, netmap_ring};

use crate::{buf::Buf, region::Region};

pub use ringway_abi::netmap_slot as Slot;

/// Everything about a ring that is fixed when it is made.
#[derive(Clone, Copy, Debug)]
pub struct RingInit {
    pub dir: Dir,
    /// Index within the port and direction, host rings after NIC rings.
    pub ringid: u16,
    pub num_slots: u32,
}

/// A ring of `num_slots` slots. The number of slots and the place are this process's own
/// knowledge; only `head`, `cur`, `tail`, flags and slots are read from memory.
///
/// All accesses are relaxed: the ring is the program's private view (DESIGN: one sync
/// protocol); what crosses processes is ordered by the kring.
#[derive(Clone, Debug)]
pub struct RingView {
    base: NonNull<u8>,
    num_slots: u32,
    region: Arc<Region>,
}

// SAFETY: a pointer into a mapping that the `Arc` keeps alive, accessed by atomics only.
unsafe impl Send for RingView {}
// SAFETY: as above.
unsafe impl Sync for RingView {}

impl RingView {
    /// The ring in ring object `object`, with `num_slots` slots; `None` if there is no such
    /// object or the slots do not fit it.
    pub fn new(region: &Arc<Region>, object: u32, num_slots: u32) -> Option<RingView> {
        let fits = (1..=region.layout().max_slots()).contains(&num_slots);
        let base = region.ring_object(object).filter(|_| fits)?;
        Some(RingView { base, num_slots, region: region.clone() })
    }

    /// Writes a fresh ring: all of S-NIFP-4 but the buffers of its slots.
    pub fn init(&self, object: u32, init: &RingInit) {
        let layout = self.region.layout();
        let Some(at) = layout.rings.object(object) else { return };
        let header = netmap_ring {
            buf_ofs: (layout.bufs.offset + u64::from(layout.headroom)) as i64 - at as i64,
            num_slots: self.num_slots,
            // Programs find buffers by it, so it is the distance between two, headroom
            // included: the last bytes of a buffer are the next one's headroom.
            nr_buf_size: layout.bufs.size,
            ringid: init.ringid,
            dir: init.dir.abi(),
            head: 0,
            cur: 0,
            tail: match init.dir {
                Dir::Tx => self.num_slots - 1,
                Dir::Rx => 0,
            },
            flags: 0,
            ts: Default::default(),
            offset_mask: 0,
            buf_align: 0,
            sem: ringway_abi::RingSem([0; 128]),
        };
        // SAFETY: the object is at least 256 bytes, 64-byte aligned; nobody else uses a
        // ring that is being made. `write_unaligned` because the ABI type asks for 128.
        unsafe { self.base.cast::<netmap_ring>().write_unaligned(header) };
    }

    #[inline]
    fn field(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the offsets of this file are those of 32-bit fields within the 256 bytes
        // of the ring's head, 4-byte aligned; the `Arc` keeps the mapping.
        unsafe { AtomicU32::from_ptr(self.base.add(offset).cast().as_ptr()) }
    }

    #[inline]
    pub fn num_slots(&self) -> u32 {
        self.num_slots
    }

    #[inline]
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Index after `i`.
    #[inline]
    pub fn next(&self, i: u32) -> u32 {
        if i + 1 >= self.num_slots { 0 } else { i + 1 }
    }

    /// Index before `i`.
    #[inline]
    pub fn prev(&self, i: u32) -> u32 {
        if i == 0 { self.num_slots - 1 } else { i - 1 }
    }

    /// Slots from `from` up to `to`.
    #[inline]
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        if to >= from { to - from } else { to + self.num_slots - from }
    }

    /// Index `by` slots after `i`, for `by <= num_slots`.
    #[inline]
    pub fn advance(&self, i: u32, by: u32) -> u32 {
        let at = i + by;
        if at >= self.num_slots { at - self.num_slots } else { at }
    }

    #[inline]
    pub fn head(&self) -> u32 {
        self.field(offset_of!(netmap_ring, head)).load(Relaxed)
    }

    #[inline]
    pub fn cur(&self) -> u32 {
        self.field(offset_of!(netmap_ring, cur)).load(Relaxed)
    }

    #[inline]
    pub fn tail(&self) -> u32 {
        self.field(offset_of!(netmap_ring, tail)).load(Relaxed)
    }

    #[inline]
    pub fn flags(&self) -> u32 {
        self.field(offset_of!(netmap_ring, flags)).load(Relaxed)
    }

    #[inline]
    pub fn set_head(&self, v: u32) {
        self.field(offset_of!(netmap_ring, head)).store(v, Relaxed);
    }

    #[inline]
    pub fn set_cur(&self, v: u32) {
        self.field(offset_of!(netmap_ring, cur)).store(v, Relaxed);
    }

    #[inline]
    pub fn set_tail(&self, v: u32) {
        self.field(offset_of!(netmap_ring, tail)).store(v, Relaxed);
    }

    /// The bits of a slot's `ptr` that hold the offset of its data (S-OFF-3).
    pub fn set_offset_mask(&self, mask: u64) {
        let at = offset_of!(netmap_ring, offset_mask);
        // SAFETY: an 8-byte aligned 64-bit field within the ring's head.
        let field = unsafe { AtomicU64::from_ptr(self.base.add(at).cast().as_ptr()) };
        field.store(mask, Relaxed);
    }

    /// Stamps the ring with the time of the last receive.
    pub fn set_ts(&self, seconds: i64, micros: i64) {
        let at = offset_of!(netmap_ring, ts);
        for (offset, value) in [(at, seconds), (at + 8, micros)] {
            // SAFETY: 8-byte aligned 64-bit fields within the ring's head.
            let field = unsafe { AtomicU64::from_ptr(self.base.add(offset).cast().as_ptr()) };
            field.store(value as u64, Relaxed);
        }
    }

    #[inline]
    fn words(&self, i: u32) -> [&AtomicU64; 2] {
        assert!(i < self.num_slots);
        let at = 256 + 16 * i as usize;
        // SAFETY: `i < num_slots <= max_slots`, so the 16 bytes are inside the ring object,
        // and 16-byte aligned since the object is 64-byte aligned.
        unsafe {
            let slot = self.base.add(at).cast::<u64>();
            [AtomicU64::from_ptr(slot.as_ptr()), AtomicU64::from_ptr(slot.add(1).as_ptr())]
        }
    }

    /// Slot `i` as the two words it is stored in: index, length and flags in the first,
    /// `ptr` in the second.
    #[inline]
    pub fn slot_words(&self, i: u32) -> [u64; 2] {
        let [a, b] = self.words(i);
        [a.load(Relaxed), b.load(Relaxed)]
    }

    /// Stores the two words of slot `i`.
    #[inline]
    pub fn set_slot_words(&self, i: u32, words: [u64; 2]) {
        let [a, b] = self.words(i);
        a.store(words[0], Relaxed);
        b.store(words[1], Relaxed);
    }

    /// A copy of slot `i`.
    #[inline]
    pub fn slot(&self, i: u32) -> Slot {
        let [a, ptr] = self.slot_words(i);
        Slot { buf_idx: a as u32, len: (a >> 32) as u16, flags: (a >> 48) as u16, ptr }
    }

    /// Stores index, length and flags of slot `i`, and leaves its `ptr`. A slot that says so
    /// already is not written: its cache line may be shared with another core.
    #[inline]
    pub fn set_slot(&self, i: u32, buf_idx: u32, len: u16, flags: u16) {
        let word = u64::from(buf_idx) | u64::from(len) << 32 | u64::from(flags) << 48;
        let first = self.words(i)[0];
        if first.load(Relaxed) != word {
            first.store(word, Relaxed);
        }
    }

    /// Stores the `ptr` of slot `i`.
    #[inline]
    pub fn set_slot_ptr(&self, i: u32, ptr: u64) {
        self.words(i)[1].store(ptr, Relaxed);
    }

    /// The buffer with the given index, if it is one of the region's.
    #[inline]
    pub fn buf(&self, index: u32) -> Option<Buf<'_>> {
        self.region.buf(index)
    }
}
