//! A part of a virtqueue, where both sides change numbers.

use std::{
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
};

use ringway_region::Buf;

use crate::memory::GuestMemory;

/// Bytes of the guest's memory at a place that stays, with the memory that they are in.
#[derive(Debug)]
pub(crate) struct Part {
    memory: Arc<GuestMemory>,
    first: NonNull<u8>,
    len: u32,
    /// The guest's address of the first.
    address: u64,
}

// SAFETY: a pointer into a mapping that `memory` keeps, used as memory that others change.
unsafe impl Send for Part {}

impl Part {
    /// The `len` bytes at the guest's address `address`, if they are in one piece, and the address is a multiple
    /// of `align`.
    pub fn new(memory: &Arc<GuestMemory>, address: u64, len: u32, align: usize) -> Option<Part> {
        let buf = memory.buf(address, len)?;
        let first = NonNull::new(buf.as_ptr())?;
        let aligned = (first.as_ptr() as usize).is_multiple_of(align);
        aligned.then(|| Part { memory: memory.clone(), first, len, address })
    }

    #[inline]
    fn buf(&self) -> Buf<'_> {
        // SAFETY: `new` found the bytes in a mapping of `memory`, which is kept.
        unsafe { Buf::new(self.first, self.len) }
    }

    /// `N` bytes at an offset, read once; zeros if they are not inside.
    #[inline]
    pub fn read<const N: usize>(&self, offset: u32) -> [u8; N] {
        self.buf().read(offset as usize).unwrap_or([0; N])
    }

    /// Stores bytes at an offset, if they are inside.
    #[inline]
    pub fn write<const N: usize>(&self, offset: u32, bytes: [u8; N]) {
        self.buf().store(offset as usize, bytes);
        self.memory.mark(self.address + u64::from(offset), N as u64);
    }

    /// Has the processor fetch what is at an offset, if that is inside.
    #[inline]
    pub fn prefetch(&self, offset: u32) {
        if let Some(buf) = self.buf().skip(offset) {
            buf.prefetch();
        }
    }

    /// The number of 16 bits at an offset; 0 if it is not inside, or the offset is odd.
    #[inline]
    pub fn load(&self, offset: u32, order: Ordering) -> u16 {
        self.word(offset).map_or(0, |word| u16::from_le(word.load(order)))
    }

    /// Stores such a number.
    #[inline]
    pub fn store(&self, offset: u32, value: u16, order: Ordering) {
        if let Some(word) = self.word(offset) {
            word.store(value.to_le(), order);
            self.memory.mark(self.address + u64::from(offset), 2);
        }
    }

    #[inline]
    fn word(&self, offset: u32) -> Option<&AtomicU16> {
        let inside = offset.checked_add(2).is_some_and(|end| end <= self.len);
        let at = self.first.as_ptr().wrapping_add(offset as usize).cast::<AtomicU16>();
        // SAFETY: inside the bytes that `memory` keeps mapped, and aligned. The guest uses such numbers as words.
        (inside && at.is_aligned()).then(|| unsafe { &*at })
    }
}
