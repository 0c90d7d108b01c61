//! Huge pages, so that packets are found without a walk through page tables for each.
//!
//! Buffers lie 2 KiB apart: a few thousand of them take more pages of 4 KiB than a processor's TLB has entries.
//! The kernel puts what belongs together into huge pages when it is asked to (`MADV_COLLAPSE`, Linux 6.1 and
//! newer), whatever the machine's setting for shared memory is. It costs a tenth of what it takes to touch
//! the same memory in small pages for the first time. Where it is refused, small pages do as well.
#![allow(unsafe_code)]

use std::{
    ffi::c_void,
    io,
    ops::Range,
    ptr::{NonNull, null_mut},
    sync::atomic::AtomicU8,
};

use rustix::{
    fd::AsFd,
    mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap},
};

/// Bytes of a huge page: what the usual processors have. Elsewhere the kernel refuses, or does less.
pub(crate) const SIZE: usize = 2 << 20;

/// Asks for huge pages in the place of those of `memory`, as far as it fills some. What is in them stays.
pub fn collapse(memory: NonNull<[u8]>) {
    let first = memory.cast::<u8>();
    let skip = first.align_offset(SIZE);
    let size = memory.len().saturating_sub(skip) / SIZE * SIZE;
    let at = |offset: usize| first.as_ptr().wrapping_add(skip + offset).cast();
    // SAFETY: the advice changes nothing that a program could see, whatever is at these addresses.
    let advise = |offset, size, advice| unsafe { libc::madvise(at(offset), size, advice) };
    for huge_page in (0..size).step_by(SIZE) {
        // The kernel stops at the first that has nothing in it.
        advise(huge_page, 1, libc::MADV_POPULATE_WRITE);
    }
    advise(0, size, libc::MADV_COLLAPSE);
}

/// The same for the parts of `memory`, which begins where a huge page can, that `least` of these offsets or more lie in.
pub(crate) fn collapse_at(
    memory: &[AtomicU8],
    offsets: impl IntoIterator<Item = u64>,
    least: usize,
) {
    wanted(memory.len(), offsets, least).into_iter().for_each(|part| collapse_bytes(&memory[part]));
}

/// The huge pages of `len` bytes that `least` of the offsets or more lie in. Those side by side are one part.
fn wanted(len: usize, offsets: impl IntoIterator<Item = u64>, least: usize) -> Vec<Range<usize>> {
    let mut pages = vec![0; len / SIZE];
    for at in offsets {
        pages.get_mut(at as usize / SIZE).into_iter().for_each(|count| *count += 1);
    }
    let mut parts: Vec<Range<usize>> = Vec::new();
    for (page, _) in pages.iter().enumerate().filter(|(_, count)| **count >= least) {
        let (start, end) = (page * SIZE, (page + 1) * SIZE);
        match parts.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => parts.push(start..end),
        }
    }
    parts
}

fn collapse_bytes(memory: &[AtomicU8]) {
    collapse(NonNull::slice_from_raw_parts(NonNull::from(memory).cast(), memory.len()));
}

/// Bytes of the largest page that is not huge, on any machine. (To ask which one this machine has would take
/// functions that not every program has.)
const LARGEST_PAGE: usize = 64 << 10;

/// Bytes that a mapping of `len` takes, which is large enough for huge pages.
fn room(len: usize) -> Option<usize> {
    len.checked_next_multiple_of(LARGEST_PAGE)
}

/// Maps the first `len` bytes of a file, shared, for reading and writing. Where it has room for huge pages, it begins
/// at an address that one can have.
pub(crate) fn map(file: impl AsFd, len: usize) -> io::Result<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing, and neither does one in the
    // place of a part of what has just been reserved. What is left of that is nobody's.
    let base = unsafe {
        if len < SIZE {
            mmap(null_mut(), len, access, MapFlags::SHARED, file, 0)?
        } else {
            let reserved = room(len).and_then(|room| room.checked_add(SIZE));
            let reserved = reserved.ok_or(io::ErrorKind::OutOfMemory)?;
            let none = MapFlags::PRIVATE | MapFlags::NORESERVE;
            let first = mmap_anonymous(null_mut(), reserved, ProtFlags::empty(), none)?;
            let before = first.cast::<u8>().align_offset(SIZE);
            let (base, behind) = (first.byte_add(before), SIZE - before);
            if let Err(error) = mmap(base, len, access, MapFlags::SHARED | MapFlags::FIXED, file, 0)
            {
                let _ = munmap(first, reserved);
                return Err(error.into());
            }
            // Of no bytes, it does nothing.
            let _ = munmap(first, before);
            let _ = munmap(first.byte_add(reserved - behind), behind);
            base
        }
    };
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Takes back what [`map`] has mapped.
///
/// # Safety
/// `base` is an answer of `map` to the same `len`, and nobody uses the memory from here on.
pub(crate) unsafe fn unmap(base: NonNull<u8>, len: usize) {
    let size = if len < SIZE { Some(len) } else { room(len) };
    // SAFETY: as the caller says: this is the mapping, and what was reserved for the rest of its last page.
    let _ = unsafe { munmap(base.as_ptr().cast::<c_void>(), size.unwrap_or(len)) };
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::{fs::File, os::unix::fs::FileExt, sync::atomic::Ordering::Relaxed};

    use proptest::prelude::*;
    use rustix::fs::{SeekFrom, seek};

    use super::*;
    use crate::{Layout, Region, Sizes, mapping::Mapping};

    proptest! {
        /// Page by page.
        #[test]
        fn what_is_wanted_has_enough_of_the_offsets(
            pages in 0usize..7, rest in 0..SIZE, least in 0usize..4,
            offsets in proptest::collection::vec(0..8 * SIZE as u64, 0..12),
        ) {
            let is_wanted = |page: usize| {
                let range = (page * SIZE) as u64..((page + 1) * SIZE) as u64;
                page < pages && offsets.iter().filter(|at| range.contains(at)).count() >= least
            };
            let parts = wanted(pages * SIZE + rest, offsets.iter().copied(), least);
            for page in 0..8 {
                let (first, last) = (page * SIZE, (page + 1) * SIZE - 1);
                let is_in = [first, last].map(|at| parts.iter().any(|part| part.contains(&at)));
                prop_assert_eq!(is_in, [is_wanted(page); 2], "{}: {:?}", page, parts);
            }
            prop_assert!(parts.windows(2).all(|two| two[0].end < two[1].start), "{parts:?}");
        }
    }

    /// Whether the file has a page there, be it huge or not.
    fn has_page(file: impl AsFd, at: usize) -> bool {
        seek(file, SeekFrom::Data(at as u64)) == Ok(at as u64)
    }

    /// Whether the kernel makes pages that it is asked for: Linux 5.14 and newer.
    fn makes_pages() -> bool {
        let (fd, probe) = Mapping::create("huge-makes", SIZE).unwrap();
        let first = probe.bytes().as_ptr().cast_mut().cast();
        // SAFETY: the advice changes nothing that a program could see.
        let done = unsafe { libc::madvise(first, 1, libc::MADV_POPULATE_WRITE) } == 0;
        assert_eq!(has_page(fd, 0), done);
        done
    }

    /// Those that lie in the memory as a whole, and no other.
    #[test]
    fn huge_pages_in_the_memory_are_asked_for() {
        let makes_pages = makes_pages();
        let (fd, mapping) = Mapping::create("huge-whole", 5 * SIZE + 4097).unwrap();
        collapse_bytes(&mapping.bytes()[1..4 * SIZE + 5]);
        let found = [0, 1, 2, 3, 4, 5].map(|page| has_page(&fd, page * SIZE));
        let expected = [false, true, true, true, false, false];
        assert_eq!(found, expected.map(|whole| whole && makes_pages));
    }

    #[test]
    fn a_region_asks_where_enough_of_the_offsets_are() {
        let makes_pages = makes_pages();
        let region = Region::create(2, Layout::new(&Sizes::PRIVATE, 0).unwrap()).unwrap();
        let size = SIZE as u64;
        region.use_huge_pages([0, size, size + 5, 2 * size, 3 * size - 1], 2);
        let found = [0, 1, 2, 3].map(|page| has_page(region.memfd(), page * SIZE));
        assert_eq!(found, [false, makes_pages, makes_pages, false]);
    }

    /// What is in the place of the last page, behind the file's end, is not the mapping's.
    #[test]
    fn large_files_begin_where_a_huge_page_can() {
        let large = [SIZE, SIZE, SIZE, SIZE, SIZE + 1, 2 * SIZE + 4096];
        let mapped = large.map(|len| (len, Mapping::create("huge-begins", len).unwrap()));
        for (len, (fd, mapping)) in mapped {
            assert!(mapping.bytes().as_ptr().addr().is_multiple_of(SIZE), "{len}");
            mapping.bytes()[len - 1].store(7, Relaxed);
            let mut last = [0];
            File::from(fd).read_exact_at(&mut last, len as u64 - 1).unwrap();
            assert_eq!(last, [7]);
        }
    }

    #[test]
    fn what_is_mapped_begins_where_a_huge_page_can_and_keeps_what_is_in_it() {
        let len = 3 * SIZE + 4097;
        let (_fd, mapping) = Mapping::create("huge", len).unwrap();
        let bytes = mapping.bytes();
        assert!(bytes.as_ptr().addr().is_multiple_of(SIZE) && bytes.len() == len);
        let marked = [0, 1, SIZE - 1, SIZE, 2 * SIZE + 5, 3 * SIZE, len - 1];
        marked.iter().for_each(|at| bytes[*at].store(7, Relaxed));
        [0, 1, len - 1, len].iter().for_each(|start| collapse_bytes(&bytes[*start..]));
        collapse_at(bytes, [0, 5, 3 * SIZE as u64, 1 << 40, u64::MAX], 1);
        let others = (0..len).step_by(4096).filter(|at| !marked.contains(at));
        assert!(marked.iter().all(|at| bytes[*at].load(Relaxed) == 7));
        assert!(others.into_iter().all(|at| bytes[at].load(Relaxed) == 0));
    }

    /// Huge pages of the mapping of the file with this name.
    fn pages(name: &str) -> usize {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (_, own) = smaps.split_once(name).expect("it is mapped");
        let (_, size) = own.split_once("ShmemPmdMapped:").expect("Linux 4.8 and newer");
        let size = size.split_whitespace().next().unwrap();
        size.parse::<usize>().unwrap() * 1024 / SIZE
    }

    #[test]
    fn the_kernel_has_huge_pages_for_what_was_asked() {
        let (_fd, probe) = Mapping::create("huge-probe", SIZE).unwrap();
        probe.bytes()[0].store(1, Relaxed);
        // SAFETY: the advice changes nothing that a program could see.
        let result = unsafe {
            libc::madvise(probe.bytes().as_ptr().cast_mut().cast(), SIZE, libc::MADV_COLLAPSE)
        };
        // None on kernels older than 6.1.
        let has_some = result == 0 && pages("huge-probe") == 1;
        let (_fd, mapping) = Mapping::create("huge-pages", 4 * SIZE).unwrap();
        assert_eq!(pages("huge-pages"), 0);
        collapse_at(mapping.bytes(), [1, SIZE as u64, 2 * SIZE as u64], 2);
        assert_eq!(pages("huge-pages"), 0);
        let expected = if has_some { 2 } else { 0 };
        // Where memory is in pieces, the kernel may not find enough of it at the first try.
        const TRIES: usize = 50;
        let found = (0..TRIES).find(|_| {
            collapse_at(mapping.bytes(), [5, 3 * SIZE as u64], 1);
            pages("huge-pages") == expected
        });
        assert!(found.is_some(), "{} of {expected}", pages("huge-pages"));
    }
}
