//! `stat`, `access` and their kin: what a path that a personality claims looks like.
//!
//! The personality opens what stands for it, and the kernel answers for that.

use std::{
    ffi::{c_char, c_int, c_uint},
    os::fd::AsRawFd,
};

use libc::{AT_EACCESS, AT_EMPTY_PATH, stat as Stat, statx as Statx};

use super::descriptors::own_call_with_memory;
use crate::{
    descriptors,
    personality::UserPath,
    raw::Number,
    real_libc::{fail, real},
};

/// Makes a system call on what stands for `path`, if a personality claims that. The call's first two
/// arguments, a directory and a path in it, are put in front of the others.
#[inline(never)]
fn claimed(path: *const c_char, number: Number, others: [usize; 3]) -> Option<c_int> {
    let (_, file) = descriptors::claim(|p| p.file(UserPath::new(path), libc::O_PATH))?;
    let [third, fourth, fifth] = others;
    Some(match file {
        // SAFETY: the kernel checks the addresses, and writes to one that the program has named to be
        // written by this call.
        Ok(file) => unsafe {
            let [at, empty] = [file.as_raw_fd() as usize, c"".as_ptr() as usize];
            own_call_with_memory(number, [at, empty, third, fourth, fifth, 0])
        },
        Err(errno) => fail(errno),
    })
}

const EMPTY_PATH: usize = AT_EMPTY_PATH as usize;

macro_rules! stat_functions {
    ($($name:ident[$path:ident, $buf:ident]($($arg:ident: $type:ty),*);)*) => {$(
        /// # Safety
        /// As the function of libc.
        pub unsafe extern "C" fn $name($($arg: $type),*) -> c_int {
            match claimed($path, Number::NEWFSTATAT, [$buf as usize, EMPTY_PATH, 0]) {
                Some(done) => done,
                None => real!($name: fn($($arg => $type),*) -> c_int),
            }
        }
    )*};
}

// Those that begin with underscores are what programs call that were built with glibc 2.32 or before.
stat_functions! {
    stat[path, buf](path: *const c_char, buf: *mut Stat);
    stat64[path, buf](path: *const c_char, buf: *mut Stat);
    lstat[path, buf](path: *const c_char, buf: *mut Stat);
    lstat64[path, buf](path: *const c_char, buf: *mut Stat);
    fstatat[path, buf](dir: c_int, path: *const c_char, buf: *mut Stat, flags: c_int);
    fstatat64[path, buf](dir: c_int, path: *const c_char, buf: *mut Stat, flags: c_int);
    __xstat[path, buf](version: c_int, path: *const c_char, buf: *mut Stat);
    __xstat64[path, buf](version: c_int, path: *const c_char, buf: *mut Stat);
    __lxstat[path, buf](version: c_int, path: *const c_char, buf: *mut Stat);
    __lxstat64[path, buf](version: c_int, path: *const c_char, buf: *mut Stat);
    __fxstatat[path, buf](version: c_int, dir: c_int, path: *const c_char, buf: *mut Stat, flags: c_int);
    __fxstatat64[path, buf](version: c_int, dir: c_int, path: *const c_char, buf: *mut Stat, flags: c_int);
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn statx(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    buf: *mut Statx,
) -> c_int {
    match claimed(path, Number::STATX, [EMPTY_PATH, mask as usize, buf as usize]) {
        Some(done) => done,
        None => real!(statx: fn(
            dir => c_int, path => *const c_char, flags => c_int, mask => c_uint, buf => *mut Statx
        ) -> c_int),
    }
}

macro_rules! access_functions {
    ($($name:ident[$path:ident, $mode:ident, $flags:expr]($($arg:ident: $type:ty),*);)*) => {$(
        /// # Safety
        /// As the function of libc.
        pub unsafe extern "C" fn $name($($arg: $type),*) -> c_int {
            let how = ($flags & AT_EACCESS) as usize | EMPTY_PATH;
            match claimed($path, Number::FACCESSAT2, [$mode as usize, how, 0]) {
                Some(done) => done,
                None => real!($name: fn($($arg => $type),*) -> c_int),
            }
        }
    )*};
}

access_functions! {
    access[path, mode, 0](path: *const c_char, mode: c_int);
    eaccess[path, mode, AT_EACCESS](path: *const c_char, mode: c_int);
    euidaccess[path, mode, AT_EACCESS](path: *const c_char, mode: c_int);
    faccessat[path, mode, flags](dir: c_int, path: *const c_char, mode: c_int, flags: c_int);
}
