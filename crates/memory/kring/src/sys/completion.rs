//! Signalling an eventfd that others hold, without ever waiting for them.
//!
//! `write` to an eventfd waits while its count is full, and whether it may wait is said by a flag that
//! every holder can change: there is no flag for a single call (`pwritev2` with RWF_NOWAIT is not
//! supported). The kernel's own way to signal one, for the end of an asynchronous read, never waits:
//! it adds 1, or leaves a full count as it is, and wakes all listeners. So the process reads nothing
//! from a file of its own, asynchronously, and names the eventfd as what is to be told of the end.
//! The read ends before the call that begins it returns.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    ptr,
    sync::OnceLock,
};

use rustix::{
    fs::{MemfdFlags, memfd_create},
    time::Timespec,
};

/// Reads that may be noted as ended before the notes are taken away. The kernel makes more room than
/// that; what is asked for here counts towards `fs.aio-max-nr`.
const ROOM: u32 = 64;

/// Notes taken away at once.
const NOTES: usize = 128;

/// As often as a signal is tried where the notes of others leave no room for its own.
const TRIES: usize = 64;

/// `struct iocb` of `linux/aio_abi.h`, on little-endian machines.
#[repr(C)]
#[derive(Default)]
struct Control {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    result_fd: u32,
}

const PREAD: u16 = 0;
/// `result_fd` is an eventfd, to be signalled.
const RESULT_FD: u32 = 1;

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Note([u64; 4]);

const _: () = assert!(size_of::<Control>() == 64 && size_of::<Note>() == 32);

/// The process's asynchronous reads.
#[derive(Debug)]
pub(crate) struct Completions {
    /// `aio_context_t`.
    context: usize,
    /// An empty file.
    empty: OwnedFd,
}

impl Completions {
    /// Those of this process. They last as long as the process, and do not pass to a forked child.
    ///
    /// Fails where the kernel has no asynchronous reads, and where all processes together have as many
    /// as there may be, which another user may have taken: then a later call may succeed.
    pub fn of_this_process() -> io::Result<&'static Completions> {
        static ALL: OnceLock<Completions> = OnceLock::new();
        match ALL.get() {
            Some(all) => Ok(all),
            // One that another thread makes meanwhile is as good; this one is never used then.
            None => Completions::new().map(|new| ALL.get_or_init(|| new)),
        }
    }

    fn new() -> io::Result<Completions> {
        let empty = memfd_create("doorbells", MemfdFlags::CLOEXEC)?;
        let mut context = 0usize;
        // SAFETY: the call writes a number to `context`, alive during the call, and maps memory of its own
        // where nothing is.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, ROOM, &raw mut context) };
        match made {
            0 => Ok(Completions { context, empty }),
            _ => Err(explained(io::Error::last_os_error())),
        }
    }

    /// Adds 1 to the count of `eventfd`, unless it is full, and wakes all who listen. Whatever others
    /// have done with it, this does not wait.
    pub fn signal(&self, eventfd: BorrowedFd<'_>) {
        let control = Control {
            opcode: PREAD,
            fd: self.empty.as_fd().as_raw_fd() as u32,
            flags: RESULT_FD,
            result_fd: eventfd.as_raw_fd() as u32,
            ..Default::default()
        };
        let controls = [&raw const control];
        for _ in 0..TRIES {
            // SAFETY: the call reads one pointer, and the block that it points to; both are on this
            // thread's stack, and the kernel copies the block. It is a read of 0 bytes, so no buffer is
            // written to. The context is never destroyed; a forked child has none, and the kernel refuses
            // the number.
            let begun = unsafe {
                libc::syscall(libc::SYS_io_submit, self.context, 1usize, controls.as_ptr())
            };
            if begun == 1 || io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock {
                return;
            }
            self.forget_notes();
        }
    }

    /// Makes room for notes. Other threads may do so at the same time.
    fn forget_notes(&self) {
        let mut notes = [Note([0; 4]); NOTES];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call writes `NOTES` entries at most to the array of as many, and reads the time.
        unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                0usize,
                NOTES,
                notes.as_mut_ptr(),
                ptr::from_ref(&at_once),
            );
        }
    }
}

/// With what can be done about it.
fn explained(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => io::Error::other(
            "all asynchronous reads of this machine are taken (raise the sysctl fs.aio-max-nr, and \
             start the daemon again)",
        ),
        Some(libc::ENOSYS) => io::Error::other("the kernel has no io_setup(2) (CONFIG_AIO)"),
        _ => error,
    }
}
