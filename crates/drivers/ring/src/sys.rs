//! The unsafe code of this crate: reading memory of this process that may not be there.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use libc::{c_ulong, c_void, iovec};
use ringway_region::Buf;

/// What one system call reads: from addresses that a program has named, to buffers. `N` pieces at most.
pub struct Pieces<'a, const N: usize> {
    from: [iovec; N],
    to: [iovec; N],
    count: usize,
    bufs: PhantomData<Buf<'a>>,
}

impl<'a, const N: usize> Pieces<'a, N> {
    pub fn new() -> Self {
        let none = iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Pieces { from: [none; N], to: [none; N], count: 0, bufs: PhantomData }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// Bytes of a piece.
    pub fn size(&self, at: usize) -> usize {
        self.to[at].iov_len
    }

    /// One more, as long as the buffer; panics if there is no room.
    pub fn add(&mut self, to: Buf<'a>, from: u64) {
        let (at, len) = (self.count, to.size() as usize);
        self.from[at] = iovec { iov_base: from as *mut c_void, iov_len: len };
        self.to[at] = iovec { iov_base: to.as_ptr().cast(), iov_len: len };
        self.count += 1;
    }

    /// Reads the pieces from `first` on; returns how many bytes could be read.
    pub fn read(&self, first: usize) -> usize {
        self.transfer(&self.from[first..self.count], &self.to[first..self.count])
    }

    /// Reads the first `len` bytes of a piece, or all of it; returns how many could be read.
    pub fn read_beginning(&self, at: usize, len: usize) -> usize {
        let len = len.min(self.to[at].iov_len);
        self.transfer(&[iovec { iov_len: len, ..self.from[at] }], &self.to[at..][..1])
    }

    /// `to` is of `self.to`.
    fn transfer(&self, from: &[iovec], to: &[iovec]) -> usize {
        let (to_len, from_len) = (to.len() as c_ulong, from.len() as c_ulong);
        // SAFETY: the call takes nothing.
        let own = unsafe { libc::getpid() };
        // SAFETY: the kernel checks the addresses that the program has named: it reads what is there, and
        // stops where nothing is. It writes into the buffers of `self.to` alone, each as far as it goes,
        // which stay writable for 'a; that others write there at the same time, a `Buf` allows for.
        let moved =
            unsafe { libc::process_vm_readv(own, to.as_ptr(), to_len, from.as_ptr(), from_len, 0) };
        usize::try_from(moved).unwrap_or(0)
    }
}

/// Two pages, of which the second cannot be read; the first is full of 7.
#[cfg(test)]
pub struct Guarded(*mut c_void);

#[cfg(test)]
impl Guarded {
    const PAGE: usize = 4096;

    pub fn new() -> Guarded {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
        let (kind, none) = (kind | libc::MAP_ANONYMOUS, std::ptr::null_mut());
        // SAFETY: new memory, at a place of the kernel's choice.
        let at = unsafe { libc::mmap(none, 2 * Self::PAGE, access, kind, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        // SAFETY: the first page was mapped just above, and nothing else refers to it.
        unsafe { at.cast::<u8>().write_bytes(7, Self::PAGE) };
        // SAFETY: the second page begins inside the mapping.
        let second = unsafe { at.byte_add(Self::PAGE) };
        // SAFETY: the second page is ours, and nothing refers to it.
        assert_eq!(unsafe { libc::mprotect(second, Self::PAGE, libc::PROT_NONE) }, 0);
        Guarded(at)
    }

    /// Where what can be read ends.
    pub fn end(&self) -> u64 {
        self.0.addr() as u64 + Self::PAGE as u64
    }
}

#[cfg(test)]
impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; nothing refers to it.
        unsafe { libc::munmap(self.0, 2 * Self::PAGE) };
    }
}
