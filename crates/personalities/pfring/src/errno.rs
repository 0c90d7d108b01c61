//! `errno` of the calling thread.

use libc::c_int;

/// Leaves a reason.
pub fn set_errno(errno: c_int) {
    // SAFETY: each thread has its own, always.
    unsafe { *libc::__errno_location() = errno };
}

/// A result with a reason.
pub fn fails(result: c_int, errno: c_int) -> c_int {
    set_errno(errno);
    result
}

/// Runs `f`, and leaves the calling thread's `errno` as it was.
pub fn keep_errno<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: the calling thread's own errno.
    let before = unsafe { *libc::__errno_location() };
    let result = f();
    set_errno(before);
    result
}
