//! The unsafe code of this crate, where it meets the program: numbers of descriptors and addresses that the
//! program has named, as it does to the kernel, and what calls of several threads share.
#![allow(unsafe_code)]

use std::{
    os::fd::{BorrowedFd, OwnedFd, RawFd},
    ptr::null_mut,
    sync::{
        Arc,
        atomic::{AtomicPtr, AtomicU32, Ordering::*},
    },
};

use ringway::Binding;
use ringway_interpose::End;
use rustix::mm::{MapFlags, ProtFlags, mmap};

/// A descriptor by the number that the program has made a call with, which is not negative: for the time of
/// that call.
///
/// Another thread of the program may close it meanwhile, as in the midst of the program's own calls: then
/// the kernel refuses the number, or means what has it by then.
#[inline]
pub fn of_program(number: &RawFd) -> BorrowedFd<'_> {
    assert!(*number >= 0);
    // SAFETY: not -1. It is the program's, whose call this is; no value of ours has a descriptor of this
    // number, unless the program has closed it, which it could do to any of ours at any time.
    unsafe { BorrowedFd::borrow_raw(*number) }
}

/// A copy of a descriptor that the program has named by any number; EBADF if it is not open.
pub fn copy_of(number: RawFd) -> rustix::io::Result<OwnedFd> {
    if number < 0 {
        return Err(rustix::io::Errno::BADF);
    }
    of_program(&number).try_clone_to_owned().map_err(|error| {
        rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::BADF)
    })
}

/// A word of the program's, at an aligned address that it has named.
#[inline]
pub fn word<'a>(address: usize) -> &'a AtomicU32 {
    let word = address as *mut u32;
    assert!(word.is_aligned());
    // SAFETY: aligned. The program has promised that the memory stays, as to a kernel that it shares the
    // word with: to unmap it faults, as it would in the program's own code. It is read and written by
    // atomics alone on our side.
    unsafe { AtomicU32::from_ptr(word) }
}

/// Maps a memfd over `len` bytes of memory of the program's, which has named it to be replaced.
pub fn map_over(address: u64, len: usize, memfd: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
    // SAFETY: these pages are the program's, as if it made the call itself: they were mapped and writable,
    // and stay so. Nothing of ours lies in memory that a program names.
    unsafe { mmap(address as *mut _, len, access, flags, memfd, 0) }.map(drop)
}

/// A binding, with a copy of the connection that the daemon knows it by: the port stays for as long, whatever becomes
/// of the program's numbers (S-LIFE-5).
pub struct Connected {
    pub binding: Binding,
    _connection: Arc<OwnedFd>,
}

impl Connected {
    pub fn new(binding: Binding, connection: Arc<OwnedFd>) -> Connected {
        Connected { binding, _connection: connection }
    }
}

/// A binding that appears once, and is there until the descriptor's end.
pub struct Bound(AtomicPtr<Connected>);

impl Bound {
    pub const fn new() -> Bound {
        Bound(AtomicPtr::new(null_mut()))
    }

    /// The binding, if there is one.
    #[inline]
    pub fn get(&self) -> Option<&Binding> {
        // SAFETY: null, or a box that `set` has leaked and published whole (Release, Acquire), which
        // changes no more. `take` frees it when nothing uses the descriptor, and thus this reference.
        unsafe { self.0.load(Acquire).as_ref() }.map(|connected| &connected.binding)
    }

    /// Sets the binding, unless there is one already.
    pub fn set(&self, connected: Connected) {
        let new = Box::into_raw(Box::new(connected));
        if self.0.compare_exchange(null_mut(), new, AcqRel, Acquire).is_err() {
            // SAFETY: made just above, and published nowhere.
            drop(unsafe { Box::from_raw(new) });
        }
    }

    /// Takes it out: at the end of the descriptor that this is a part of.
    pub fn take(&self, _unused: &End) -> Option<Box<Connected>> {
        let connected = self.0.swap(null_mut(), AcqRel);
        // SAFETY: it came from Box::into_raw in `set`, and whoever takes it out has it alone: no call uses
        // the descriptor now, so that no reference from `get` is left.
        (!connected.is_null()).then(|| unsafe { Box::from_raw(connected) })
    }
}
