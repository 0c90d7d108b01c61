//! One packet into the next ring with room.
//!
//! The rings are in memory that others can write to: what is read of them is read once, and
//! checked against the mapping before it is used as an address.

use std::{
    ffi::{c_int, c_void},
    ptr::copy,
};

use ringway_abi::{NS_MOREFRAG, netmap_ring, netmap_slot};

use crate::{
    mapping::{Area, ring_offset},
    types::nmport_d,
};

/// A tx ring, with copies of what does not change while the program holds its slots.
struct Ring {
    at: *mut netmap_ring,
    area: Area,
    slots: u32,
    cur: u32,
    tail: u32,
    /// Bytes from one buffer to the next, and how many of them a slot can have.
    stride: usize,
    chunk: usize,
    /// Address of buffer 0.
    buffers: usize,
}

impl Ring {
    /// Ring `index` of the port; `None` when it is not bound, or nonsense.
    fn of(d: &nmport_d, area: Area, index: u16) -> Option<Ring> {
        let offset = ring_offset(d.nifp, area, index as usize)?;
        let at: *mut netmap_ring = d.nifp.wrapping_byte_add(offset).cast();
        if !area.holds(at.addr(), size_of::<netmap_ring>()) || !at.is_aligned() {
            return None;
        }
        // SAFETY: within the mapping, and aligned.
        let (slots, cur, tail, stride, chunk, buf_ofs) = unsafe {
            (
                (&raw const (*at).num_slots).read_volatile(),
                (&raw const (*at).cur).read_volatile(),
                (&raw const (*at).tail).read_volatile(),
                (&raw const (*at).nr_buf_size).read_volatile() as usize,
                (&raw const (*at).nr_data_size).read_volatile() as usize,
                (&raw const (*at).buf_ofs).read_volatile() as usize,
            )
        };
        let end = size_of::<netmap_ring>() + slots as usize * size_of::<netmap_slot>();
        // netmap itself has no such field.
        let chunk = if chunk == 0 { stride } else { chunk };
        let most = stride.min(u16::MAX.into());
        let right = cur < slots && tail < slots && (1..=most).contains(&chunk);
        (right && area.holds(at.addr(), end)).then_some(Ring {
            at,
            area,
            slots,
            cur,
            tail,
            stride,
            chunk,
            buffers: at.addr().wrapping_add(buf_ofs),
        })
    }

    /// Slots between `cur` and `tail`.
    fn room(&self) -> usize {
        let wrapped = if self.tail < self.cur { self.slots } else { 0 };
        (self.tail + wrapped - self.cur) as usize
    }

    fn next(&self, index: u32) -> u32 {
        if index + 1 == self.slots { 0 } else { index + 1 }
    }

    /// Fills slot `index` with `size` bytes; `None` when its buffer is not in the region.
    ///
    /// # Safety
    /// That many bytes to read.
    unsafe fn fill(&self, index: u32, from: *const u8, size: usize, flags: u16) -> Option<()> {
        let slot: *mut netmap_slot = self.at.wrapping_add(1).cast();
        let slot = slot.wrapping_add(index as usize);
        // SAFETY: within the mapping: `of` has checked all slots, and `index` is one of them.
        let buf_idx = unsafe { (&raw const (*slot).buf_idx).read_volatile() } as usize;
        let buffer = self.buffers.wrapping_add(buf_idx * self.stride);
        if !self.area.holds(buffer, size) {
            return None;
        }
        // SAFETY: within the mapping, as checked. What the program sends may be in the region
        // too, even in this buffer.
        unsafe {
            copy(from, self.at.cast::<u8>().with_addr(buffer), size);
            (&raw mut (*slot).len).write_volatile(size as u16);
            (&raw mut (*slot).flags).write_volatile(flags);
        }
        Some(())
    }

    /// Puts in a packet of `size` bytes, if there is room for all of it.
    ///
    /// # Safety
    /// That many bytes to read.
    unsafe fn put(&self, packet: *const u8, size: usize) -> Option<()> {
        // An empty packet takes a slot as well.
        let needed = size.div_ceil(self.chunk).max(1);
        if needed > self.room() {
            return None;
        }
        let (mut index, mut done) = (self.cur, 0);
        for left in (0..needed).rev() {
            let part = self.chunk.min(size - done);
            let flags = if left > 0 { NS_MOREFRAG } else { 0 };
            // SAFETY: by the contract above: a part of the packet.
            unsafe { self.fill(index, packet.wrapping_add(done), part, flags)? };
            index = self.next(index);
            done += part;
        }
        // SAFETY: within the mapping, and aligned. The port looks at the next sync of this
        // thread.
        unsafe {
            (&raw mut (*self.at).head).write_volatile(index);
            (&raw mut (*self.at).cur).write_volatile(index);
        }
        Some(())
    }
}

/// Returns `size`, or 0 when no ring has room.
///
/// # Safety
/// A port, and `size` bytes to read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_inject(d: *mut nmport_d, buf: *const c_void, size: usize) -> c_int {
    // SAFETY: by the contract above.
    let d = unsafe { &mut *d };
    // SAFETY: a mapping of the port's, or null.
    let Some(area) = (unsafe { d.mem.as_ref() }).map(Area::of) else { return 0 };
    let rings = d.last_tx_ring.wrapping_sub(d.first_tx_ring).wrapping_add(1);
    let mut index = d.cur_tx_ring;
    for _ in 0..rings {
        if index > d.last_tx_ring {
            index = d.first_tx_ring;
        }
        let ring = Ring::of(d, area, index);
        // SAFETY: by the contract above.
        if ring.is_some_and(|ring| unsafe { ring.put(buf.cast(), size) }.is_some()) {
            d.cur_tx_ring = index;
            return size as c_int;
        }
        index = index.wrapping_add(1);
    }
    0
}
