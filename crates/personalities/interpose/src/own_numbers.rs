//! Descriptors that this library has for itself, in a program that may mean all numbers.
//!
//! A program that becomes a daemon closes every number that it does not know. It has not opened those that the library
//! has for its ports, so for the program they are not open: its calls close all others. Were ours closed, another file
//! of the program's would have the number soon, which the library would write to, and close in its turn.
//!
//! A program may give the number to another descriptor by `dup2` all the same. Then it is the program's, and the
//! part of the library that still has it does not close it. A system call that the program makes by itself is not seen.

use std::{
    ffi::{c_int, c_uint},
    os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd},
};

use crate::{numbers::Numbers, vfork};

/// Those that are ours.
static OWN: Numbers = Numbers::new();
/// Those that were, and that something of ours will close yet.
static LOST: Numbers = Numbers::new();

/// Moves a descriptor of our own to a high number, away from those that programs count on: the highest of a few that the
/// process may have.
pub fn out_of_the_way(fd: OwnedFd) -> OwnedFd {
    const HIGH: [RawFd; 4] = [512, 128, 32, 3];
    let moved = HIGH.iter().find_map(|high| rustix::io::fcntl_dupfd_cloexec(&fd, *high).ok());
    let fd = moved.unwrap_or(fd);
    OWN.insert(fd.as_raw_fd());
    fd
}

/// Whether the number is ours: the program has not opened it.
#[inline]
pub fn is_own(fd: RawFd) -> bool {
    OWN.has(fd)
}

/// The program has another descriptor there now.
#[inline]
pub fn lost(fd: RawFd) {
    if is_own(fd) && !vfork::is_child() && OWN.remove(fd) {
        LOST.insert(fd);
    }
}

/// All numbers from `first` were closed.
pub fn closed_from(first: RawFd) {
    OWN.each().filter(|fd| *fd >= first).for_each(lost);
}

/// The library is about to close a number, of which it may have lost the descriptor. False: it must not.
#[inline]
pub fn closes(fd: RawFd) -> bool {
    OWN.remove(fd) || !LOST.remove(fd)
}

/// Leaves a descriptor alone that something else is by now.
pub fn forget(fd: OwnedFd) {
    closes(fd.into_raw_fd());
}

/// Calls `close` for all parts of a range of numbers in which none is ours, until it does not return 0.
pub fn without_own(
    first: c_uint,
    last: c_uint,
    mut close: impl FnMut(c_uint, c_uint) -> c_int,
) -> c_int {
    let mut from = first;
    for own in OWN.each().map(|fd| fd as c_uint).filter(|own| (first..=last).contains(own)) {
        if from < own {
            match close(from, own - 1) {
                0 => {}
                error => return error,
            }
        }
        from = own + 1;
    }
    if from > last { 0 } else { close(from, last) }
}
