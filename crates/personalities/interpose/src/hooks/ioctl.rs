//! `ioctl`.

use std::{
    ffi::{c_int, c_ulong, c_void},
    os::fd::RawFd,
};

use crate::{
    descriptors::{self, InUse, Known},
    hooks::interfaces,
    personality,
    real_libc::{fail, keep_errno, real},
};

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn ioctl(fd: c_int, number: c_ulong, argument: *mut c_void) -> c_int {
    let own = match descriptors::known(fd) {
        Known::Own(own) => Some(own),
        Known::Unknown if is_request(number) => descriptors::get(fd),
        _ => None,
    };
    match own {
        Some(own) => interfaces::answer(fd, number as u32, argument)
            .unwrap_or_else(|| answer(&own, fd, number, argument)),
        None => match interfaces::answer(fd, number as u32, argument) {
            Some(done) => done,
            None => {
                real!(ioctl: fn(fd => c_int, number => c_ulong, argument => *mut c_void) -> c_int)
            }
        },
    }
}

#[inline]
fn answer(own: &InUse, fd: RawFd, number: c_ulong, argument: *mut c_void) -> c_int {
    keep_errno(|| own.ioctl(fd, number as u32, argument as u64)).unwrap_or_else(fail)
}

#[cold]
fn is_request(number: c_ulong) -> bool {
    personality::all().iter().any(|personality| personality.is_request(number as u32))
}
