//! The program's memory, which may not be there: the kernel copies, and says EFAULT.
//!
//! It copies through a pipe, which every program may have: a sandbox may forbid the calls that copy between
//! processes. Those are for programs that have no descriptors left, as an ioctl of netmap's takes none.

mod probe;

use rustix::{
    fd::AsRawFd,
    pipe::{PipeFlags, pipe_with},
};

pub(crate) use probe::{changed, readable, writable};

use crate::raw::{Number, syscall};

/// The address is not mapped, or not in the way that the access needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault;

impl From<Fault> for i32 {
    fn from(_: Fault) -> i32 {
        libc::EFAULT
    }
}

/// Bytes moved at once: a pipe takes as many without blocking.
const CHUNK: usize = 4096;

/// Copies `to.len()` bytes from `address`.
pub fn read(address: u64, to: &mut [u8]) -> Result<(), Fault> {
    let Ok((out, into)) = pipe_with(PipeFlags::CLOEXEC) else {
        return copied(Number::PROCESS_VM_READV, to.as_mut_ptr() as usize, address, to.len());
    };
    let mut from = address;
    for chunk in to.chunks_mut(CHUNK) {
        // SAFETY: the kernel checks the address and reads `chunk.len()` bytes of it, or fails.
        let moved = unsafe {
            syscall(Number::WRITE, [into.as_raw_fd() as usize, from as usize, chunk.len(), 0, 0, 0])
        };
        if moved != chunk.len() as isize || rustix::io::read(&out, &mut *chunk) != Ok(chunk.len()) {
            return Err(Fault);
        }
        from += chunk.len() as u64;
    }
    Ok(())
}

/// Copies `from` to `address`.
pub fn write(address: u64, from: &[u8]) -> Result<(), Fault> {
    let Ok((out, into)) = pipe_with(PipeFlags::CLOEXEC) else {
        return copied(Number::PROCESS_VM_WRITEV, from.as_ptr() as usize, address, from.len());
    };
    let mut to = address;
    for chunk in from.chunks(CHUNK) {
        if rustix::io::write(&into, chunk) != Ok(chunk.len()) {
            return Err(Fault);
        }
        // SAFETY: the kernel checks the address and writes `chunk.len()` bytes to it, or fails.
        // The program has named this memory as its own, to be written by the call.
        let moved = unsafe {
            syscall(Number::READ, [out.as_raw_fd() as usize, to as usize, chunk.len(), 0, 0, 0])
        };
        if moved != chunk.len() as isize {
            return Err(Fault);
        }
        to += chunk.len() as u64;
    }
    Ok(())
}

/// Copies between `own` and `address`, without descriptors.
#[cold]
fn copied(direction: Number, own: usize, address: u64, len: usize) -> Result<(), Fault> {
    let part = |at: usize| libc::iovec { iov_base: at as *mut _, iov_len: len };
    let (own, other) = (part(own), part(address as usize));
    let process = std::process::id() as usize;
    let (own, other) = (&raw const own as usize, &raw const other as usize);
    // SAFETY: `own` is the caller's, as long and of the right kind; the kernel checks the address, and the program
    // has named what is there to be read or written by the call.
    let moved = unsafe { syscall(direction, [process, own, 1, other, 1, 0]) };
    if moved == len as isize { Ok(()) } else { Err(Fault) }
}

/// Reads a structure.
pub fn get<T: zerocopy::FromBytes + zerocopy::IntoBytes>(address: u64) -> Result<T, Fault> {
    let mut value = T::new_zeroed();
    read(address, value.as_mut_bytes())?;
    Ok(value)
}

/// Writes a structure.
pub fn put<T: zerocopy::IntoBytes + zerocopy::Immutable>(
    address: u64,
    value: &T,
) -> Result<(), Fault> {
    write(address, value.as_bytes())
}
