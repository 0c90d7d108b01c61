//! A region in the program's own memory (S-EXT).
//!
//! A region is a memfd of the daemon's, so that others can map it too. What the program's pages hold is
//! copied into it, and the region is mapped over the pages: the program finds its memory where and as it
//! was, but for interfaces, rings and the buffers in them. Huge pages give way to ordinary ones: they
//! can run out, and the daemon must not be killed for it.

use std::{fs::File, os::unix::fs::FileExt};

use ringway::Binding;
use ringway_abi::nmreq_opt_extmem;
use ringway_interpose::MappedArea;
use ringway_proto::Extmem;
use rustix::fd::BorrowedFd;

use crate::{
    netmap_fd::explain_as,
    request::neutral::{extmem, store_extmem},
    sys,
};

const PAGE: u64 = 4096;
/// Pages copied at once.
const STRETCH: usize = 512;
/// In `/proc/self/pagemap`: the page is in memory, or swapped out.
const PRESENT: u64 = 1 << 63 | 1 << 62;

/// Memory that a program brings.
pub struct UserMemory {
    at: u64,
    pub asked: Extmem,
    areas: Vec<MappedArea>,
}

impl UserMemory {
    /// Looks at the memory that an option names. EFAULT: not all of it is there to be written
    /// (S-EXT-1).
    pub fn look(option: &nmreq_opt_extmem) -> Result<UserMemory, i32> {
        let (at, info) = (option.nro_usrptr, option.nro_info);
        let size = info.nr_memsize;
        let wrong = |errno, problem| {
            explain_as(
                &format_args!("memory for a region, {size} bytes at {at:#x}: {problem}"),
                errno,
            )
        };
        let not_there = "not all of it is there to be written; map it first";
        let end = at.checked_add(size).ok_or_else(|| wrong(libc::EFAULT, not_there))?;
        if !at.is_multiple_of(PAGE) {
            return Err(wrong(libc::EINVAL, "it begins within a page; align it to 4096 bytes"));
        }
        if size == 0 {
            return Err(wrong(libc::EINVAL, "give its size in nro_info.nr_memsize"));
        }
        let areas = areas(at, end).map_err(|errno| wrong(errno, not_there))?;
        let same = match areas.as_slice() {
            [MappedArea { shared: true, file: Some((dev, inode)), start, offset, .. }] => {
                Some((*dev, *inode, offset + (at - start)))
            }
            _ => None,
        };
        Ok(UserMemory { at, asked: extmem(&info, same), areas })
    }

    /// Maps the region over the memory, if it is what the port lives in, and tells the program
    /// the pools that it has.
    pub fn settle(&self, binding: &Binding, option: &mut nmreq_opt_extmem) -> Result<(), i32> {
        let Some(granted) = &binding.options().extmem else { return Err(libc::EPROTO) };
        if granted.mem_id == binding.registration().mem_id {
            let len = binding.region().layout().memsize() as usize;
            let memfd = binding.region().memfd();
            if let Some(from) = granted.copy_from {
                self.copy(from, memfd)?;
                binding.list_extra_bufs();
            }
            sys::map_over(self.at, len, memfd).map_err(|e| e.raw_os_error())?;
        }
        store_extmem(&mut option.nro_info, granted);
        Ok(())
    }

    /// Puts what the memory holds from byte `from` on into a memfd. Pages that were never touched stay
    /// holes.
    fn copy(&self, from: u64, memfd: BorrowedFd<'_>) -> Result<(), i32> {
        let open = |path| File::open(path).map_err(|_| libc::EFAULT);
        let (pagemap, memory) = (open("/proc/self/pagemap")?, open("/proc/self/mem")?);
        let (begin, end) = (self.at.saturating_add(from), self.at + self.asked.memory);
        let mut content = [0; PAGE as usize];
        for area in &self.areas {
            let (mut page, to) = (area.start.max(begin) / PAGE * PAGE, area.end.min(end));
            while page < to {
                let pages = ((to - page).div_ceil(PAGE) as usize).min(STRETCH);
                let mut present = [0u8; STRETCH * 8];
                let present = &mut present[..pages * 8];
                pagemap.read_exact_at(present, page / PAGE * 8).map_err(|_| libc::EFAULT)?;
                for entry in present.chunks_exact(8) {
                    let entry = u64::from_ne_bytes(entry.try_into().unwrap_or_default());
                    // A page of a file has content before it is touched.
                    if entry & PRESENT != 0 || area.file.is_some() {
                        let (first, last) = (page.max(begin), (page + PAGE).min(to));
                        let content = &mut content[..last.saturating_sub(first) as usize];
                        memory.read_exact_at(content, first).map_err(|_| libc::EFAULT)?;
                        rustix::io::pwrite(memfd, content, first.saturating_sub(self.at))
                            .map_err(|e| e.raw_os_error())?;
                    }
                    page += PAGE;
                }
            }
        }
        Ok(())
    }
}

/// What is mapped between two addresses.
fn areas(at: u64, end: u64) -> Result<Vec<MappedArea>, i32> {
    let mut found = Vec::new();
    let mut next = at;
    for area in MappedArea::all().map_err(|_| libc::EFAULT)? {
        let area = area.map_err(|_| libc::EFAULT)?;
        if area.end <= next {
            continue;
        }
        if area.start > next || !area.writable {
            break;
        }
        found.push(area);
        next = area.end;
        if next >= end {
            return Ok(found);
        }
    }
    Err(libc::EFAULT)
}
