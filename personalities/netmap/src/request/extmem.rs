//! A region in the program's own memory (S-EXT).
//!
//! A region is a memfd, so that others can map it too. The program's pages become one: their
//! content goes into a new memfd, the daemon makes a region of it, and the region is mapped over
//! the pages. The program finds its memory where and as it was. Huge pages give way to ordinary
//! ones: they can run out, and the daemon must not be killed for it.
#![allow(unsafe_code)]

use std::{
    fs::File,
    io::{BufRead, BufReader},
    os::{fd::OwnedFd, unix::fs::FileExt},
};

use ringway::Binding;
use ringway_abi::nmreq_opt_extmem;
use ringway_proto::Extmem;
use rustix::{
    fs::{MemfdFlags, ftruncate, makedev, memfd_create},
    mm::{MapFlags, ProtFlags, mmap},
};

use crate::request::neutral::{extmem, store_extmem};

const PAGE: u64 = 4096;
/// Pages copied at once.
const STRETCH: usize = 512;
/// In `/proc/self/pagemap`: the page is in memory, or swapped out.
const PRESENT: u64 = 1 << 63 | 1 << 62;

/// Memory that a program brings.
pub struct UserMemory {
    at: u64,
    pub asked: Extmem,
    /// A copy.
    pub memfd: OwnedFd,
}

/// One line of `/proc/self/maps`.
#[derive(Clone, Copy)]
struct Area {
    start: u64,
    end: u64,
    writable: bool,
    shared: bool,
    file: Option<(u64, u64)>,
    offset: u64,
}

impl UserMemory {
    /// Looks at the memory that an option names. EFAULT: not all of it is there to be written
    /// (S-EXT-1).
    pub fn look(option: &nmreq_opt_extmem) -> Result<UserMemory, i32> {
        let (at, info) = (option.nro_usrptr, option.nro_info);
        let end = at.checked_add(info.nr_memsize).ok_or(libc::EFAULT)?;
        if !at.is_multiple_of(PAGE) || info.nr_memsize == 0 {
            return Err(libc::EINVAL);
        }
        let areas = areas(at, end)?;
        let same = match areas.as_slice() {
            [Area { shared: true, file: Some((dev, inode)), start, offset, .. }] => {
                Some((*dev, *inode, offset + (at - start)))
            }
            _ => None,
        };
        let memfd = copy(at, info.nr_memsize, &areas)?;
        Ok(UserMemory { at, asked: extmem(&info, same), memfd })
    }

    /// Maps the region over the memory, if it is what the port lives in, and tells the program
    /// the pools that it has.
    pub fn settle(&self, binding: &Binding, option: &mut nmreq_opt_extmem) -> Result<(), i32> {
        let Some(granted) = &binding.options().extmem else { return Err(libc::EPROTO) };
        if granted.mem_id == binding.registration().mem_id {
            let len = binding.region().layout().memsize() as usize;
            let (access, memfd) = (ProtFlags::READ | ProtFlags::WRITE, binding.region().memfd());
            // SAFETY: these pages are the program's, which has named them as the ones to become
            // the region; they were mapped and writable, and stay so with the same content.
            let mapped = unsafe {
                mmap(self.at as *mut _, len, access, MapFlags::SHARED | MapFlags::FIXED, memfd, 0)
            };
            mapped.map_err(|e| e.raw_os_error())?;
        }
        store_extmem(&mut option.nro_info, granted);
        Ok(())
    }
}

/// What is mapped between two addresses.
fn areas(at: u64, end: u64) -> Result<Vec<Area>, i32> {
    let maps = File::open("/proc/self/maps").map_err(|_| libc::EFAULT)?;
    let mut found = Vec::new();
    let mut next = at;
    for line in BufReader::new(maps).lines() {
        let area = line.ok().as_deref().and_then(parse).ok_or(libc::EFAULT)?;
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

fn parse(line: &str) -> Option<Area> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?.as_bytes();
    let offset = fields.next()?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let inode: u64 = fields.next()?.parse().ok()?;
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    let device = makedev(hex(major)? as u32, hex(minor)? as u32);
    Some(Area {
        start: hex(start)?,
        end: hex(end)?,
        writable: permissions.starts_with(b"rw"),
        shared: permissions.get(3) == Some(&b's'),
        file: (inode != 0).then_some((device, inode)),
        offset: hex(offset)?,
    })
}

/// A memfd with the content of `bytes` bytes at `at`. Pages that were never touched stay holes.
fn copy(at: u64, bytes: u64, areas: &[Area]) -> Result<OwnedFd, i32> {
    let errno = |e: rustix::io::Errno| e.raw_os_error();
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memfd = memfd_create("ringway-brought", flags).map_err(errno)?;
    ftruncate(&memfd, bytes.next_multiple_of(PAGE)).map_err(errno)?;
    let open = |path| File::open(path).map_err(|_| libc::EFAULT);
    let (pagemap, memory) = (open("/proc/self/pagemap")?, open("/proc/self/mem")?);
    let mut content = [0; PAGE as usize];
    for area in areas {
        let (mut from, to) = (area.start.max(at), area.end.min(at + bytes));
        while from < to {
            let pages = ((to - from).div_ceil(PAGE) as usize).min(STRETCH);
            let mut present = [0u8; STRETCH * 8];
            let present = &mut present[..pages * 8];
            pagemap.read_exact_at(present, from / PAGE * 8).map_err(|_| libc::EFAULT)?;
            for (page, entry) in (from..).step_by(PAGE as usize).zip(present.chunks_exact(8)) {
                let entry = u64::from_ne_bytes(entry.try_into().unwrap_or_default());
                // A page of a file has content before it is touched.
                if entry & PRESENT != 0 || area.file.is_some() {
                    let content = &mut content[..(to - page).min(PAGE) as usize];
                    memory.read_exact_at(content, page).map_err(|_| libc::EFAULT)?;
                    rustix::io::pwrite(&memfd, content, page - at).map_err(errno)?;
                }
            }
            from += pages as u64 * PAGE;
        }
    }
    Ok(memfd)
}
