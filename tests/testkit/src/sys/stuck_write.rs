//! A write that does not end.

use std::{io, mem::size_of, ptr::null_mut, thread};

use rustix::{
    fd::{AsFd, AsRawFd, OwnedFd},
    mm::{MapFlags, ProtFlags, UserfaultfdFlags, mmap_anonymous, munmap, userfaultfd},
};

const PAGE: usize = 4096;

/// `struct uffdio_api` of `linux/userfaultfd.h`.
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register`.
#[repr(C)]
struct Register {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
const UFFD_API: u64 = 0xaa;
const MISSING: u64 = 1;
/// Bytes of a `struct uffd_msg`.
const MESSAGE: usize = 32;

/// A write into a file, by a thread that takes what it writes from memory which never answers: a
/// `userfaultfd`. The kernel holds the lock of the file's inode all the while. When this is dropped the
/// write ends.
pub struct StuckWrite {
    faults: Option<OwnedFd>,
    writer: Option<thread::JoinHandle<()>>,
    page: usize,
}

impl StuckWrite {
    /// Writes a byte at `offset`; returns when the write is stuck.
    ///
    /// # Errors
    /// The kernel has no `userfaultfd` for this process: it takes root.
    pub fn into(file: impl AsFd, offset: u64) -> io::Result<StuckWrite> {
        // SAFETY: without an address the kernel chooses one where nothing is.
        let page = unsafe {
            mmap_anonymous(null_mut(), PAGE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        let mut stuck = StuckWrite { faults: None, writer: None, page: page as usize };
        // SAFETY: it changes how faults are answered in the page alone, to which nothing refers.
        let faults = unsafe { userfaultfd(UserfaultfdFlags::CLOEXEC)? };
        let mut api = Api { api: UFFD_API, features: 0, ioctls: 0 };
        let mut register =
            Register { start: page as u64, len: PAGE as u64, mode: MISSING, ioctls: 0 };
        let number = faults.as_raw_fd();
        // SAFETY: the structure that the call reads and writes, alive meanwhile.
        done(unsafe { libc::ioctl(number, UFFDIO_API, &mut api) })?;
        // SAFETY: as above. The addresses in it are those of the page.
        done(unsafe { libc::ioctl(number, UFFDIO_REGISTER, &mut register) })?;
        let (file, at) = (file.as_fd().try_clone_to_owned()?, page as usize);
        stuck.writer = Some(thread::spawn(move || {
            // SAFETY: a byte of the page, which is there until the thread has ended. The kernel alone reads
            // it.
            let written =
                unsafe { libc::pwrite(file.as_raw_fd(), at as *const _, 1, offset as i64) };
            assert_eq!(written, 1, "{}", io::Error::last_os_error());
        }));
        // It waits until there is a fault: the kernel reads the page with the lock held.
        let message = rustix::io::read(&faults, &mut [0u8; MESSAGE])?;
        assert_eq!(message, MESSAGE);
        stuck.faults = Some(faults);
        Ok(stuck)
    }
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Drop for StuckWrite {
    fn drop(&mut self) {
        // With the descriptor the page answers again.
        drop(self.faults.take());
        let ended = self.writer.take().map(|writer| writer.join());
        // SAFETY: mapped by `into`, of that length; the thread that used it has ended.
        let _ = unsafe { munmap(self.page as *mut _, PAGE) };
        assert!(ended.is_none_or(|ended| ended.is_ok()) || thread::panicking());
    }
}

const _: () = assert!(size_of::<Api>() == 24 && size_of::<Register>() == 32);
