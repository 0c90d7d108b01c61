//! `mmap`, `munmap`, `mprotect` and `mremap`.

use std::{
    ffi::{c_int, c_void},
    ops::Range,
    os::fd::{AsRawFd, BorrowedFd},
    ptr::null_mut,
};

use crate::{
    descriptors,
    mappings::{self, PAGE},
    personality,
    raw::{Number, syscall},
    real_libc::{fail, real},
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
    if args.flags & libc::MAP_ANONYMOUS != 0 || fd < 0 {
        return foreign(args, fd);
    }
    match descriptors::get(fd) {
        None => foreign(args, fd),
        Some(own) => mappings::map(own, fd, args).unwrap_or_else(|errno| {
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

/// Tells the personalities that memory is about to be unmapped, unless the kernel would refuse that.
fn unmaps(start: usize, len: usize) {
    if let Some(pages) = pages(start, len) {
        personality::all().iter().for_each(|personality| personality.unmaps(pages.clone()));
    }
}

/// Whether the kernel refuses a mapping in the place of what a personality uses: it is tried
/// elsewhere.
fn is_refused(args: &MmapArgs, fd: c_int) -> bool {
    let Some(pages) = pages(args.address as usize, args.len) else { return false };
    if !personality::all().iter().any(|personality| personality.may_use(&pages)) {
        return false;
    }
    let anywhere = MmapArgs { address: null_mut(), flags: args.flags & !libc::MAP_FIXED, ..*args };
    let at = anywhere.call(fd);
    if at != libc::MAP_FAILED {
        real!(munmap: fn(at => *mut c_void, args.len => usize) -> c_int);
    }
    at == libc::MAP_FAILED
}

/// A mapping of something else, which may lie where one of ours was.
fn foreign(args: MmapArgs, fd: c_int) -> *mut c_void {
    if args.flags & libc::MAP_FIXED != 0 {
        if is_refused(&args, fd) {
            return libc::MAP_FAILED;
        }
        unmaps(args.address as usize, args.len);
    }
    let at = args.call(fd);
    if args.flags & libc::MAP_FIXED != 0 && at != libc::MAP_FAILED {
        mappings::remove(at as usize, args.len);
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
    unmaps(address as usize, len);
    let done = real!(munmap: fn(address => *mut c_void, len => usize) -> c_int);
    if done == 0 {
        mappings::remove(address as usize, len);
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
    let at = real!(
        mremap: fn(
            address => *mut c_void,
            old => usize,
            new => usize,
            flags => c_int,
            to => *mut c_void,
        ) -> *mut c_void
    );
    if at != libc::MAP_FAILED {
        mappings::moved(address as usize, old, at as usize, new);
    }
    at
}
