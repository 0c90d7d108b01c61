//! `ioctl`: the syncs, which stay in the process, and the requests, which do not.

use std::{
    ffi::{c_int, c_ulong, c_void},
    os::fd::RawFd,
};

use ringway_abi::{Dir, NIOCCONFIG, NIOCCTRL, NIOCGINFO, NIOCREGIF, NIOCRXSYNC, NIOCTXSYNC};

use crate::{
    next::{fail, next},
    request,
    table::{self, InUse, Known},
    worker,
};

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, number: c_ulong, arg: *mut c_void) -> c_int {
    match table::get(fd) {
        Known::Netmap(netmap) => netmap_ioctl(&netmap, fd, number as u32, arg as u64),
        Known::Unknown if is_netmap(number as u32) => match table::netmap(fd) {
            Some(netmap) => netmap_ioctl(&netmap, fd, number as u32, arg as u64),
            None => next!(ioctl: fn(fd => c_int, number => c_ulong, arg => *mut c_void) -> c_int),
        },
        _ => next!(ioctl: fn(fd => c_int, number => c_ulong, arg => *mut c_void) -> c_int),
    }
}

fn is_netmap(number: u32) -> bool {
    [NIOCCTRL, NIOCTXSYNC, NIOCRXSYNC, NIOCGINFO, NIOCREGIF, NIOCCONFIG].contains(&number)
}

#[inline]
fn netmap_ioctl(netmap: &InUse, fd: RawFd, number: u32, arg: u64) -> c_int {
    match number {
        NIOCTXSYNC => sync(netmap, fd, Dir::Tx),
        NIOCRXSYNC => sync(netmap, fd, Dir::Rx),
        _ => match request::answer(netmap, fd, number, arg) {
            Ok(()) => 0,
            Err(errno) => fail(errno),
        },
    }
}

/// S-SYNC-2, 3: invalid cursors are no error of the call, that the interface has gone is one.
#[inline]
fn sync(netmap: &InUse, fd: RawFd, dir: Dir) -> c_int {
    match netmap.binding(fd) {
        Some(binding) if binding.in_csb_mode() => fail(libc::EBUSY),
        Some(binding) => {
            let good = binding.sync(dir);
            worker::catch_up(netmap, fd, binding, dir);
            let gone = netmap.is_gone() || (!good && binding.is_gone(dir));
            if gone { fail(libc::EIO) } else { 0 }
        }
        None => fail(libc::ENXIO),
    }
}
