//! The functions that the hooks stand in front of: the next ones in the loader's order.
//!
//! They are for descriptors of the program's own. What this code does for itself goes by
//! [system calls](crate).

use std::{
    ffi::{CStr, c_void},
    sync::atomic::{AtomicPtr, Ordering::Relaxed},
};

/// A function looked up when it is first needed.
pub struct RealFn {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl RealFn {
    /// By this name.
    pub const fn new(name: &'static CStr) -> RealFn {
        RealFn { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address. A program cannot go on without libc: there is no error to return.
    #[inline]
    pub fn get(&self) -> *mut c_void {
        let known = self.address.load(Relaxed);
        if known.is_null() { self.find() } else { known }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        // SAFETY: a nul-terminated name; dlsym may be called at any time.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            std::process::abort();
        }
        self.address.store(found, Relaxed);
        found
    }
}

/// Calls the next function of the given name and type.
macro_rules! real {
    ($name:ident: fn($($arg:expr => $type:ty),* $(,)?) -> $ret:ty) => {{
        const NAME: &std::ffi::CStr =
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name without nul"),
            };
        static REAL: $crate::real_libc::RealFn = $crate::real_libc::RealFn::new(NAME);
        // SAFETY: the symbol has this type by POSIX and libc's headers; where it takes more arguments than
        // are named there (`open`, `fcntl`, `ioctl`), these are passed in the same registers by the ABIs of
        // x86-64 and AArch64, and an argument that the program did not give is not looked at. The arguments
        // are those that the program gave, and what it promised with them is its own affair.
        unsafe {
            let function: unsafe extern "C" fn($($type),*) -> $ret =
                std::mem::transmute(REAL.get());
            function($($arg),*)
        }
    }};
}
pub(crate) use real;

/// Sets `errno` and returns -1, as a failing call does.
pub fn fail(errno: i32) -> i32 {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = errno };
    -1
}

/// The calling thread's `errno`.
pub fn errno() -> i32 {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() }
}

/// Runs `f`, and leaves the calling thread's `errno` as it was.
pub fn keep_errno<R>(f: impl FnOnce() -> R) -> R {
    let before = errno();
    let result = f();
    fail(before);
    result
}
