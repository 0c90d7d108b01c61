//! `mmap` and `munmap`.

use std::ffi::{c_int, c_void};

use crate::{
    map,
    next::{fail, next},
    table,
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
        return args.call(fd);
    }
    match table::netmap(fd) {
        None => args.call(fd),
        Some(netmap) => map::map(netmap, fd, args).unwrap_or_else(|errno| {
            fail(errno);
            libc::MAP_FAILED
        }),
    }
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
