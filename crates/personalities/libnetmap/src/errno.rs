//! Results, as C has them.

use std::{
    ffi::{CStr, c_char, c_int},
    fmt,
};

/// An errno. Carried as a value, and stored only when the program gets the result: what is
/// released on the way cannot change it.
pub type Errno = c_int;

/// The calling thread's `errno`.
pub fn get() -> Errno {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() }
}

pub fn set(errno: Errno) {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = errno }
}

/// 0, or -1 with `errno`.
pub fn status(result: Result<(), Errno>) -> c_int {
    number(result.map(|()| 0))
}

/// The number, or -1 with `errno`.
pub fn number(result: Result<c_int, Errno>) -> c_int {
    result.unwrap_or_else(|errno| {
        set(errno);
        -1
    })
}

/// The pointer, or null with `errno`.
pub fn pointer<T>(result: Result<*mut T, Errno>) -> *mut T {
    result.unwrap_or_else(|errno| {
        set(errno);
        std::ptr::null_mut()
    })
}

/// Displays an errno as `strerror` does.
pub struct Cause(pub Errno);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut text = [0 as c_char; 128];
        // SAFETY: writes at most `text.len()` bytes, of which the last is a nul.
        unsafe { libc::strerror_r(self.0, text.as_mut_ptr(), text.len()) };
        // SAFETY: nul-terminated, by strerror_r or from the start.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) };
        f.write_str(&text.to_string_lossy())
    }
}
