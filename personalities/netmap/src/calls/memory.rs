//! `mmap`, `munmap`, `mprotect` and `mremap`.

use std::ffi::{c_int, c_void};

use crate::{
    map,
    next::{fail, next},
    probe, table,
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
    /// Maps `fd`, which may be another one than the program named.
    pub fn call(&self, fd: c_int) -> *mut c_void {
        let MmapArgs { address, len, protection, flags, offset } = *self;
        next!(
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
    match table::netmap(fd) {
        None => foreign(args, fd),
        Some(netmap) => map::map(netmap, fd, args).unwrap_or_else(|errno| {
            fail(errno);
            libc::MAP_FAILED
        }),
    }
}

/// A mapping of something else, which may lie where a region was.
fn foreign(args: MmapArgs, fd: c_int) -> *mut c_void {
    let at = args.call(fd);
    if args.flags & libc::MAP_FIXED != 0 && at != libc::MAP_FAILED {
        map::remove(at as usize, args.len);
    }
    at
}

macro_rules! mmap_functions {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the function of libc.
        #[unsafe(no_mangle)]
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: *mut c_void, len: usize) -> c_int {
    let done = next!(munmap: fn(address => *mut c_void, len => usize) -> c_int);
    if done == 0 {
        map::remove(address as usize, len);
    }
    done
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(address: *mut c_void, len: usize, protection: c_int) -> c_int {
    let done =
        next!(mprotect: fn(address => *mut c_void, len => usize, protection => c_int) -> c_int);
    probe::changed();
    done
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    address: *mut c_void,
    old: usize,
    new: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    let at = next!(
        mremap: fn(
            address => *mut c_void,
            old => usize,
            new => usize,
            flags => c_int,
            to => *mut c_void,
        ) -> *mut c_void
    );
    if at != libc::MAP_FAILED {
        map::moved(address as usize, old, at as usize, new);
    }
    at
}
