//! `mmap`, `munmap`, `mprotect` and `mremap`.

use std::{
    ffi::{c_int, c_void},
    ops::Range,
    os::fd::{AsRawFd, BorrowedFd},
};

use crate::{
    descriptors,
    mappings::{self, PAGE},
    personality::{self, Unmapping},
    raw::{Number, syscall},
    real_libc::{fail, keep_errno, real},
    uaccess,
};

/// The arguments of an `mmap`, but for the descriptor.
pub struct MmapArgs {
    pub address: *mut c_void,
    pub len: usize,
    pub protection: c_int,
    pub flags: c_int,
    pub offset: i64,
}

impl MmapArgs {
    /// Maps a file of ours in place of what the program named.
    pub fn map(&self, fd: BorrowedFd<'_>) -> Result<*mut c_void, c_int> {
        let MmapArgs { address, len, protection, flags, offset } = *self;
        let fd = fd.as_raw_fd() as usize;
        let place =
            [address as usize, len, protection as usize, flags as usize, fd, offset as usize];
        // SAFETY: the program asks for this mapping, at this address, and answers for what it replaces.
        let at = unsafe { syscall(Number::MMAP, place) };
        const FIRST_ERROR: isize = -4095;
        if (FIRST_ERROR..0).contains(&at) { Err(-at as c_int) } else { Ok(at as *mut c_void) }
    }

    fn call(&self, fd: c_int) -> *mut c_void {
        let MmapArgs { address, len, protection, flags, offset } = *self;
        real!(
            mmap: fn(
                address => *mut c_void,
                len => usize,
                protection => c_int,
                flags => c_int,
                fd => c_int,
                offset => i64,
            ) -> *mut c_void
        )
    }
}

fn mapped(args: MmapArgs, fd: c_int) -> *mut c_void {
    if args.flags & libc::MAP_FIXED == 0 {
        return map(args, fd);
    }
    let (start, len) = (args.address as usize, args.len);
    let stopped = Stopped::for_unmapping(start, len);
    let at = map(args, fd);
    // Some kernels have unmapped what was there before they find that they cannot map.
    stopped.end(at != libc::MAP_FAILED || !is_mapped(start, len));
    at
}

fn map(args: MmapArgs, fd: c_int) -> *mut c_void {
    if args.flags & libc::MAP_ANONYMOUS != 0 || fd < 0 {
        return foreign(args, fd);
    }
    match descriptors::get(fd) {
        None => foreign(args, fd),
        Some(own) => keep_errno(|| mappings::map(own, fd, args)).unwrap_or_else(|errno| {
            fail(errno);
            libc::MAP_FAILED
        }),
    }
}

/// The addresses that an `munmap` is about; `None` if the kernel refuses it.
fn pages(start: usize, len: usize) -> Option<Range<usize>> {
    let end = len.checked_next_multiple_of(PAGE).and_then(|len| start.checked_add(len))?;
    (len > 0 && start.is_multiple_of(PAGE)).then_some(start..end)
}

/// What the personalities have stopped for memory that is about to be unmapped.
struct Stopped(Vec<Unmapping>);

impl Stopped {
    /// Tells the personalities, unless the kernel would refuse it at once.
    fn for_unmapping(start: usize, len: usize) -> Stopped {
        let Some(pages) = pages(start, len) else { return Stopped(Vec::new()) };
        let all = personality::all().iter();
        Stopped(keep_errno(|| all.filter_map(|p| p.unmaps(pages.clone())).collect()))
    }

    /// Goes on with what is there still, unless the memory is `gone`.
    fn end(self, gone: bool) {
        if !self.0.is_empty() {
            keep_errno(|| self.0.into_iter().for_each(|end| end(gone)));
        }
    }
}

/// Whether all of this memory is mapped.
fn is_mapped(start: usize, len: usize) -> bool {
    // SAFETY: it begins to write what is mapped from files, as the kernel does by itself in time.
    unsafe { syscall(Number::MSYNC, [start, len, libc::MS_ASYNC as usize, 0, 0, 0]) == 0 }
}

/// A mapping of something else, which may lie where one of ours was.
fn foreign(args: MmapArgs, fd: c_int) -> *mut c_void {
    let at = args.call(fd);
    if args.flags & libc::MAP_FIXED != 0 && at != libc::MAP_FAILED {
        keep_errno(|| mappings::remove(at as usize, args.len));
    }
    at
}

macro_rules! mmap_functions {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the function of libc.
        pub unsafe extern "C" fn $name(
            address: *mut c_void,
            len: usize,
            protection: c_int,
            flags: c_int,
            fd: c_int,
            offset: i64,
        ) -> *mut c_void {
            mapped(MmapArgs { address, len, protection, flags, offset }, fd)
        }
    )*};
}

mmap_functions!(mmap mmap64);

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn munmap(address: *mut c_void, len: usize) -> c_int {
    let stopped = Stopped::for_unmapping(address as usize, len);
    let done = real!(munmap: fn(address => *mut c_void, len => usize) -> c_int);
    stopped.end(done == 0);
    if done == 0 {
        keep_errno(|| mappings::remove(address as usize, len));
    }
    done
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn mprotect(address: *mut c_void, len: usize, protection: c_int) -> c_int {
    let done =
        real!(mprotect: fn(address => *mut c_void, len => usize, protection => c_int) -> c_int);
    uaccess::changed();
    done
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn mremap(
    address: *mut c_void,
    old: usize,
    new: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    const MOVES: c_int = libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    let start = address as usize;
    let stays = flags & MOVES == 0 && (new <= old || flags & libc::MREMAP_MAYMOVE == 0);
    let kept = if stays { new.next_multiple_of(PAGE) } else { 0 };
    let from = Stopped::for_unmapping(start.saturating_add(kept), old.saturating_sub(kept));
    // What is in the place that it moves to goes as well.
    let place = if flags & libc::MREMAP_FIXED != 0 { (to as usize, new) } else { (0, 0) };
    let onto = Stopped::for_unmapping(place.0, place.1);
    let at = real!(
        mremap: fn(
            address => *mut c_void,
            old => usize,
            new => usize,
            flags => c_int,
            to => *mut c_void,
        ) -> *mut c_void
    );
    let done = at != libc::MAP_FAILED;
    from.end(done && (stays || at != address));
    onto.end(done || !is_mapped(place.0, place.1));
    if done {
        keep_errno(|| mappings::moved(address as usize, old, at as usize, new));
    }
    at
}
