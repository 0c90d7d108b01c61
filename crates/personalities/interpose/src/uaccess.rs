//! The program's memory, which may not be there: the kernel copies, and says EFAULT.

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
    let (out, into) = pipe_with(PipeFlags::CLOEXEC).map_err(|_| Fault)?;
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
    let (out, into) = pipe_with(PipeFlags::CLOEXEC).map_err(|_| Fault)?;
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
