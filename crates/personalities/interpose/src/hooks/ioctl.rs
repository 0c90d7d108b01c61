//! `ioctl`.

use std::{
    ffi::{c_int, c_ulong, c_void},
    os::fd::RawFd,
};

use crate::{
    descriptors::{self, InUse, Known},
    hooks::{descriptors::own_call_with_memory, interfaces},
    personality,
    raw::Number,
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
        Some(own) => match number as u32 {
            FIOCLEX | FIONCLEX | FIONBIO => of_any_file(fd, number, argument),
            number => interfaces::answer(fd, number, argument)
                .unwrap_or_else(|| answer(&own, fd, number, argument)),
        },
        None => match interfaces::answer(fd, number as u32, argument) {
            Some(done) => done,
            None => {
                real!(ioctl: fn(fd => c_int, number => c_ulong, argument => *mut c_void) -> c_int)
            }
        },
    }
}

#[inline]
fn answer(own: &InUse, fd: RawFd, number: u32, argument: *mut c_void) -> c_int {
    keep_errno(|| own.ioctl(fd, number, argument as u64)).unwrap_or_else(fail)
}

/// Requests that the kernel carries out itself on any descriptor, without asking the file's driver.
const FIOCLEX: u32 = libc::FIOCLEX as u32;
const FIONCLEX: u32 = libc::FIONCLEX as u32;
const FIONBIO: u32 = libc::FIONBIO as u32;

#[cold]
fn of_any_file(fd: RawFd, number: c_ulong, argument: *mut c_void) -> c_int {
    let arguments = [fd as usize, number as usize, argument as usize, 0, 0, 0];
    // SAFETY: the kernel checks the address, and reads a number of the program's there at most.
    unsafe { own_call_with_memory(Number::IOCTL, arguments) }
}

#[cold]
fn is_request(number: c_ulong) -> bool {
    personality::all().iter().any(|personality| personality.is_request(number as u32))
}
