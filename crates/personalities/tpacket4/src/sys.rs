//! The unsafe code of this crate, where it meets the program: numbers of descriptors and addresses that the program
//! has named, as it does to the kernel, and words that it shares with us.
#![allow(unsafe_code)]

use std::{
    mem::ManuallyDrop,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use ringway_region::{Buf, Mapping, collapse};
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::{DupFlags, Errno, FdFlags, dup3, fcntl_getfd},
    mm::{Advice, madvise},
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
};

use crate::socket::Socket;

/// A descriptor by the number that the program has made a call with.
///
/// Another thread of the program may close it meanwhile, as in the midst of the program's own calls: then the kernel
/// refuses the number, or means what has it by then.
pub fn of_program(number: RawFd) -> Result<BorrowedFd<'static>, i32> {
    if number < 0 {
        return Err(libc::EBADF);
    }
    // SAFETY: not -1. It is the program's, whose call this is; no value of ours has a descriptor of this number,
    // unless the program has closed it, which it could do to any of ours at any time.
    Ok(unsafe { BorrowedFd::borrow_raw(number) })
}

/// A descriptor that `socket` has, by number.
pub fn of_life(_socket: &Socket, number: RawFd) -> BorrowedFd<'_> {
    // SAFETY: not -1: the socket has it open, and closes it at the end of its life. The reference is one of a call in
    // progress, and a life does not end during a call.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// From now on the program's `number` means what `with` does, and has the flags that it had.
pub fn replace(number: RawFd, with: OwnedFd) -> Result<(), Errno> {
    let before = of_program(number).map_err(|_| Errno::BADF)?;
    fcntl_setfl(&with, fcntl_getfl(before)? & OFlags::NONBLOCK)?;
    let keeps = !fcntl_getfd(before)?.contains(FdFlags::CLOEXEC);
    // SAFETY: not negative, and never closed here: it stays the program's, which has asked for another thing by it.
    let mut place = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
    dup3(&with, &mut place, if keeps { DupFlags::empty() } else { DupFlags::CLOEXEC })
}

/// An `ioctl` of the program's about a network interface, on a socket of our own.
pub fn interface_ioctl(number: u32, argument: u64) -> Result<i32, i32> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let socket = socket.map_err(|error| error.raw_os_error())?;
    // SAFETY: the program's own call, but for the socket: what the address is of is its own affair.
    match unsafe { libc::ioctl(socket.as_raw_fd(), number.into(), argument) } {
        done @ 0.. => Ok(done),
        _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)),
    }
}

/// Has the kernel make all pages of the program's memory present and writable, and huge where it can; what is in them
/// stays.
pub fn populate(address: u64, len: u64) -> Result<(), Errno> {
    let address = NonNull::new(address as *mut u8).ok_or(Errno::FAULT)?;
    // SAFETY: it changes nothing that a program could see, whatever is at these addresses.
    unsafe { madvise(address.as_ptr().cast(), len as usize, Advice::LinuxPopulateWrite)? };
    collapse(NonNull::slice_from_raw_parts(address, len as usize));
    Ok(())
}

/// Memory of the program's that it has registered.
#[inline]
pub fn bytes<'a>(address: u64, len: u32) -> Buf<'a> {
    let at = NonNull::new(address as *mut u8).unwrap_or(NonNull::dangling());
    // SAFETY: the program has promised that the memory stays, as to a kernel: to unmap it faults, as it would in the
    // program's own code. At a page's address there is no null: an area at 0 is refused, see `populate`.
    unsafe { Buf::new(at, len) }
}

/// Words of a mapping that the program has, too.
pub struct Words {
    start: NonNull<AtomicU64>,
    len: usize,
    _mapping: Arc<Mapping>,
}

// SAFETY: the mapping stays as long as the value, wherever that goes; atomics suit whatever others do.
unsafe impl Send for Words {}

impl Words {
    /// `len` words from byte `at` of the mapping. `None`: they are not inside, or not aligned.
    pub fn new(mapping: &Arc<Mapping>, at: usize, len: usize) -> Option<Words> {
        let bytes = mapping.bytes();
        let end = len.checked_mul(size_of::<u64>())?.checked_add(at)?;
        let start = NonNull::from(bytes.get(at..end)?).cast::<AtomicU64>();
        let words = Words { start, len, _mapping: mapping.clone() };
        (len > 0 && start.is_aligned()).then_some(words)
    }

    /// Memory that nobody else has.
    #[cfg(test)]
    pub fn private(len: usize) -> Words {
        let bytes = len * size_of::<u64>();
        let mapping = Mapping::open(crate::socket::rings_file(bytes).unwrap(), bytes).unwrap();
        Words::new(&Arc::new(mapping), 0, len).unwrap()
    }

    #[inline]
    fn all(&self) -> &[AtomicU64] {
        // SAFETY: inside the mapping, which lives as long as `self`, and aligned: `new` has checked it.
        unsafe { NonNull::slice_from_raw_parts(self.start, self.len).as_ref() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// All of them, two by two.
    #[inline]
    pub fn pairs(&self) -> &[[AtomicU64; 2]] {
        self.all().as_chunks().0
    }

    /// Makes all of them 0.
    pub fn clear(&self) {
        self.all().iter().for_each(|word| word.store(0, Relaxed));
    }

    /// The `n`th two words.
    #[inline]
    pub fn pair(&self, n: usize) -> [&AtomicU64; 2] {
        self.pairs()[n].each_ref()
    }
}
