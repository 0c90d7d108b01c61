//! One buffer: copying in and out without ever borrowing its bytes.
//!
//! Others may write a buffer while it is read. What a program decides by is read by [`Buf::read`],
//! once and volatile, or copied out by [`Buf::copy_to`]. Copies use plain reads and writes, so that
//! they are as wide as the processor has them; volatile ones would be made word by word. A plain
//! read of bytes that change meanwhile gives some bytes: each pattern of them is a value, and
//! nothing but the copy depends on it. What the compiler could do to a plain read is to make it
//! twice, and to take the second for what was checked in the first. For that, the copy would have
//! to be read from the buffer again after it was made: the fence behind it in `copy_to` says that
//! the buffer may have changed by then. It is no instruction. Copies from buffer to buffer are
//! looked at by the receiver alone, who reads them by the same rules.
#![allow(unsafe_code)]

use std::{
    marker::PhantomData,
    ptr::{self, NonNull},
    sync::atomic::{AtomicU32, Ordering::Acquire, compiler_fence},
};

/// The data area of one buffer of a region. The bytes may change at any time: what was
/// copied out is the only thing to trust.
#[derive(Clone, Copy, Debug)]
pub struct Buf<'a> {
    ptr: NonNull<u8>,
    size: u32,
    region: PhantomData<&'a ()>,
}

// SAFETY: a pointer into a mapping that `'a` keeps alive; see the crate's rules.
unsafe impl Send for Buf<'_> {}

impl<'a> Buf<'a> {
    /// Private memory as a buffer. Of more than 4 GiB, the first.
    #[inline]
    pub fn of(bytes: &'a mut [u8]) -> Self {
        let size = bytes.len().try_into().unwrap_or(u32::MAX);
        Buf { ptr: NonNull::from(bytes).cast(), size, region: PhantomData }
    }

    /// The `len` bytes from `offset` as a buffer, or `None` if they are not inside this one.
    #[inline]
    pub fn part(&self, offset: u32, len: u32) -> Option<Buf<'a>> {
        (offset.checked_add(len)? <= self.size)
            // SAFETY: the part is inside the buffer.
            .then(|| unsafe { Buf { ptr: self.ptr.add(offset as usize), size: len, ..*self } })
    }

    /// What is behind the first `offset` bytes, if there are so many.
    #[inline]
    pub fn skip(&self, offset: u32) -> Option<Buf<'a>> {
        let size = self.size.checked_sub(offset)?;
        // SAFETY: the `size` bytes from there are the last of the buffer's.
        Some(unsafe { Buf::new(self.ptr.add(offset as usize), size) })
    }

    /// The `len` bytes in front of this buffer.
    ///
    /// # Safety
    /// They lie in the same mapping.
    pub(crate) unsafe fn in_front(&self, len: u32) -> Buf<'a> {
        // SAFETY: by the caller's contract.
        unsafe { Buf { ptr: self.ptr.sub(len as usize), size: len, ..*self } }
    }

    /// This buffer, and the `len` bytes in front of it.
    ///
    /// # Safety
    /// They lie in the same mapping.
    pub(crate) unsafe fn with_front(&self, len: u32) -> Buf<'a> {
        // SAFETY: by the caller's contract.
        unsafe { Buf { ptr: self.ptr.sub(len as usize), size: len + self.size, ..*self } }
    }

    /// # Safety
    /// `size` bytes from `ptr` stay readable and writable for the lifetime of the result.
    pub unsafe fn new(ptr: NonNull<u8>, size: u32) -> Self {
        Buf { ptr, size, region: PhantomData }
    }

    /// Bytes of the data area.
    #[inline]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// First byte of the data area; valid as long as the region is mapped.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// `N` bytes from `offset`, or `None` if they are not inside the buffer.
    #[inline]
    pub fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        (offset.checked_add(N)? <= self.size as usize)
            // SAFETY: the bytes are inside the buffer.
            .then(|| unsafe { read(self.ptr.add(offset).as_ptr()) })
    }

    /// The `N` words of 32 bits from `offset`, or `None` if they are not inside the buffer, or not aligned.
    #[inline]
    pub fn words<const N: usize>(&self, offset: u32) -> Option<&'a [AtomicU32; N]> {
        let end = offset as usize + size_of::<[AtomicU32; N]>();
        if end > self.size as usize {
            return None;
        }
        // SAFETY: the words are inside the buffer.
        let at = unsafe { self.ptr.add(offset as usize) }.cast::<[AtomicU32; N]>();
        if !at.is_aligned() {
            return None;
        }
        // SAFETY: aligned words in the mapping, which `'a` keeps. Others change them as words, or by copies that
        // allow for any change.
        Some(unsafe { at.as_ref() })
    }

    /// Stores `N` bytes at `offset`; false, with nothing stored, if they are not inside the buffer.
    #[inline]
    pub fn store<const N: usize>(&self, offset: usize, bytes: [u8; N]) -> bool {
        let inside = offset.checked_add(N).is_some_and(|end| end <= self.size as usize);
        if inside {
            // SAFETY: the bytes are inside the buffer; arrays of bytes need no alignment.
            unsafe { ptr::write_volatile(self.ptr.add(offset).as_ptr().cast(), bytes) };
        }
        inside
    }

    /// Copies out as much of the first `len` bytes as `to` holds; returns how much.
    #[inline]
    pub fn copy_to(&self, len: usize, to: &mut [u8]) -> usize {
        let n = len.min(self.size as usize).min(to.len());
        // SAFETY: `n` bytes are inside both; `to` is exclusive, hence not shared memory. Others may
        // write the buffer meanwhile: see the file's description.
        unsafe { copy(self.ptr.as_ptr(), to.as_mut_ptr(), n) };
        compiler_fence(Acquire);
        n
    }

    /// Copies `from` to `offset`, as far as it fits; returns how much.
    #[inline]
    pub fn write(&self, offset: usize, from: &[u8]) -> usize {
        let n = (self.size as usize).saturating_sub(offset).min(from.len());
        if n == 0 {
            return 0;
        }
        // SAFETY: `offset + n` is inside the buffer, and `from` is private memory.
        unsafe { copy(from.as_ptr(), self.ptr.add(offset).as_ptr(), n) };
        n
    }

    /// Copies the first `len` bytes of `from`, as far as both buffers hold them, and not a byte
    /// more: what else is in the sender's buffer is none of the receiver's business.
    #[inline]
    pub fn copy_from(&self, from: &Buf<'_>, len: usize) {
        let len = len.min(self.size.min(from.size) as usize);
        // SAFETY: `len` bytes are inside both buffers. Others may write either meanwhile: see the
        // file's description.
        unsafe { copy(from.ptr.as_ptr(), self.ptr.as_ptr(), len) };
    }

    /// Moves the first `len` bytes to `offset`; false, with nothing moved, if they do not fit there.
    #[inline]
    pub fn shift(&self, offset: u32, len: u32) -> bool {
        self.move_within(0, offset, len)
    }

    /// Moves `len` bytes at `from` to `to`; false, with nothing moved, if either is not inside the buffer.
    #[inline]
    pub(crate) fn move_within(&self, from: u32, to: u32, len: u32) -> bool {
        let fits = from.max(to).checked_add(len).is_some_and(|end| end <= self.size);
        if fits {
            let base = self.ptr.as_ptr();
            // SAFETY: both ranges are inside the buffer; `copy` lets them overlap.
            unsafe { ptr::copy(base.add(from as usize), base.add(to as usize), len as usize) };
        }
        fits
    }

    /// Hints that the first two lines are about to be written.
    #[inline]
    pub fn prefetch_to_write(&self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch has no effect but on caches, wherever it points to.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
            _mm_prefetch(self.ptr.as_ptr().cast(), _MM_HINT_ET0);
            _mm_prefetch(self.ptr.as_ptr().wrapping_add(64).cast(), _MM_HINT_ET0);
        }
    }

    /// Hints that the first line is about to be read.
    #[inline]
    pub fn prefetch(&self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch has no effect but on caches.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch(self.ptr.as_ptr().cast(), _MM_HINT_T0);
        }
    }
}

/// A number at any address.
#[repr(C, packed)]
struct Unaligned<T>(T);

/// Reads bytes once, in the widest pieces: an array would be read byte by byte.
///
/// # Safety
/// `N` bytes are readable at `from`.
#[inline]
unsafe fn read<const N: usize>(from: *const u8) -> [u8; N] {
    let mut bytes = [0; N];
    let mut at = 0;
    /// Reads the pieces of one width that there are from `at` on.
    macro_rules! pieces {
        ($kind:ty) => {
            while N - at >= size_of::<Unaligned<$kind>>() {
                // SAFETY: so many bytes are left in both; the type may be anywhere.
                unsafe {
                    let piece = from.add(at).cast::<Unaligned<$kind>>().read_volatile();
                    bytes.as_mut_ptr().add(at).cast::<Unaligned<$kind>>().write(piece);
                }
                at += size_of::<Unaligned<$kind>>();
            }
        };
    }
    pieces!(u64);
    pieces!(u32);
    pieces!(u16);
    pieces!(u8);
    bytes
}

/// Copies exactly `len` bytes. Short packets in a few moves of known size, without the call and
/// the decisions of a copy of any size.
///
/// # Safety
/// `len` bytes are readable at `src` and writable at `dst`.
#[inline]
unsafe fn copy(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: every piece is within the `len` bytes. Each is read before it is written, and
    // pieces that overlap each other carry the same bytes; two buffers of a region either
    // coincide or do not overlap.
    unsafe {
        match len {
            0..8 => ptr::copy(src, dst, len),
            8..16 => both_ends::<1>(src, dst, len),
            16..32 => both_ends::<2>(src, dst, len),
            32..64 => both_ends::<4>(src, dst, len),
            64..=256 => {
                for at in (0..len - 64).step_by(64) {
                    piece::<8>(src.add(at), dst.add(at));
                }
                piece::<8>(src.add(len - 64), dst.add(len - 64));
            }
            _ => ptr::copy(src, dst, len),
        }
    }
}

/// Copies `W` words.
///
/// # Safety
/// `8 * W` bytes are readable at `src` and writable at `dst`.
#[inline]
unsafe fn piece<const W: usize>(src: *const u8, dst: *mut u8) {
    // SAFETY: by the caller's contract; no alignment is asked for.
    unsafe { dst.cast::<[u64; W]>().write_unaligned(src.cast::<[u64; W]>().read_unaligned()) }
}

/// Copies `len` bytes as two pieces of `W` words, one from each end.
///
/// # Safety
/// `len` bytes are readable at `src` and writable at `dst`, and `8 * W <= len <= 16 * W`.
#[inline]
unsafe fn both_ends<const W: usize>(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: by the caller's contract, both pieces are inside.
    unsafe {
        let last = src.add(len - 8 * W).cast::<[u64; W]>().read_unaligned();
        piece::<W>(src, dst);
        dst.add(len - 8 * W).cast::<[u64; W]>().write_unaligned(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_buf<R>(bytes: &mut [u8], f: impl FnOnce(Buf<'_>) -> R) -> R {
        f(Buf::of(bytes))
    }

    #[test]
    fn nothing_leaves_the_buffer() {
        let mut memory = [7u8; 100];
        with_buf(&mut memory, |buf| {
            assert_eq!(buf.read::<4>(97), None);
            assert_eq!(buf.read::<4>(96), Some([7; 4]));
            assert_eq!(buf.read::<4>(usize::MAX), None);
            assert_eq!(buf.write(98, &[1, 2, 3]), 2);
            assert_eq!(buf.write(1000, &[1]), 0);
            assert_eq!(buf.copy_to(5000, &mut [0; 200]), 100);
        });
        assert_eq!(memory[98..], [1, 2]);
    }

    #[test]
    fn reads_of_all_sizes() {
        let mut memory: Vec<u8> = (0..40).collect();
        with_buf(&mut memory, |buf| {
            for at in 0..20u8 {
                let from = |n: u8| (at..at + n).collect::<Vec<u8>>();
                assert_eq!(buf.read::<1>(at.into()).unwrap()[..], from(1));
                assert_eq!(buf.read::<2>(at.into()).unwrap()[..], from(2));
                assert_eq!(buf.read::<4>(at.into()).unwrap()[..], from(4));
                assert_eq!(buf.read::<15>(at.into()).unwrap()[..], from(15));
                assert_eq!(buf.read::<20>(at.into()).unwrap()[..], from(20));
            }
        });
    }

    #[test]
    fn words_are_inside_and_aligned() {
        let mut memory = [7u32; 5];
        // SAFETY: the bytes of an array of numbers, which nothing else uses.
        let bytes = unsafe { memory.align_to_mut::<u8>().1 };
        with_buf(bytes, |buf| {
            assert!(buf.words::<5>(0).is_some() && buf.words::<1>(16).is_some());
            assert!(buf.words::<6>(0).is_none() && buf.words::<1>(17).is_none());
            assert!(buf.words::<2>(1).is_none() && buf.words::<1>(u32::MAX).is_none());
        });
    }

    #[test]
    fn what_is_shifted_stays_whole_and_inside() {
        let mut memory: Vec<u8> = (0..100).collect();
        with_buf(&mut memory, |buf| {
            assert!(!buf.shift(41, 60) && !buf.shift(u32::MAX, 2) && !buf.shift(0, 101));
            assert!(buf.shift(40, 60) && buf.shift(0, 60) && buf.shift(100, 0));
        });
        assert!(memory[..40].iter().copied().eq(0..40) && memory[40..].iter().copied().eq(0..60));
    }

    #[test]
    fn parts_are_inside() {
        let mut memory = [0; 100];
        with_buf(&mut memory, |buf| {
            let part = buf.part(60, 30).unwrap();
            assert_eq!(part.write(0, &[7; 50]), 30);
            assert_eq!(part.part(30, 0).map(|end| end.size()), Some(0));
            assert!(part.part(1, 30).is_none() && buf.part(u32::MAX, 2).is_none());
        });
        assert_eq!(memory.iter().position(|byte| *byte == 7), Some(60));
        assert_eq!(memory[60..], [[7; 30].as_slice(), &[0; 10]].concat());
    }

    proptest::proptest! {
        #[test]
        fn copies_what_was_asked(size in 64u32..700, len in 0usize..900) {
            let mut from: Vec<u8> = (0..size).map(|i| i as u8 | 1).collect();
            let mut to = vec![0u8; size as usize + 1];
            let room = size as usize;
            let want = len.min(room);
            with_buf(&mut from, |src| with_buf(&mut to[..room], |dst| dst.copy_from(&src, len)));
            proptest::prop_assert_eq!(&to[..want], &from[..want]);
            proptest::prop_assert!(to[want..].iter().all(|byte| *byte == 0));
        }
    }
}
