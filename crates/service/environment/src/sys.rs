//! The unsafe code of this crate.
#![allow(unsafe_code)]

/// Whether the kernel has marked the process at its start.
pub fn is_secure() -> bool {
    // SAFETY: it reads a table that the kernel has written before the program's first instruction.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}
