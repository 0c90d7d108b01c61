//! `dlopen`: a program that loads libpcap while it runs gets this library.
//!
//! Without this the loader gives it for `libpcap.so.0.8` alone, under which name it is loaded
//! already. Programs also ask for `libpcap.so`, for a name with another version, or for a path, and
//! would have the system's beside this one.
//!
//! The call goes on by a jump: the next `dlopen` sees the program's return address, by which it
//! knows where the caller looks for libraries.

use std::{
    arch::naked_asm,
    ffi::{CStr, CString, c_char, c_int, c_void},
    os::unix::ffi::OsStringExt,
    sync::OnceLock,
};

use crate::system::own_file;

/// The function that the call goes on to, and the name that it is given.
#[repr(C)]
struct Onward {
    function: *const c_void,
    name: *const c_char,
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void {
    // Both registers of an `Onward` are those of the platform's C ABI; the second argument is kept
    // over the call.
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "push rsi",
        "call {onward}",
        "pop rsi",
        "mov rdi, rdx",
        "jmp rax",
        onward = sym onward,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "stp x1, x30, [sp, #-16]!",
        "bl {onward}",
        "mov x16, x0",
        "mov x0, x1",
        "ldp x1, x30, [sp], #16",
        "br x16",
        onward = sym onward,
    );
}

/// # Safety
/// A C string, or null.
unsafe extern "C" fn onward(name: *const c_char) -> Onward {
    // SAFETY: by the contract above.
    let asked = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    let own = asked.filter(|name| is_libpcap(name)).and_then(|_| own_name());
    Onward { function: next(), name: own.map_or(name, CStr::as_ptr) }
}

/// Whether the file of this name is libpcap, of any version.
fn is_libpcap(name: &CStr) -> bool {
    let file = name.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let version = file.strip_prefix(b"libpcap.so");
    version.is_some_and(|version| version.is_empty() || version.starts_with(b"."))
}

fn own_name() -> Option<&'static CStr> {
    static NAME: OnceLock<Option<CString>> = OnceLock::new();
    let name = || CString::new(own_file()?.into_os_string().into_vec()).ok();
    NAME.get_or_init(name).as_deref()
}

/// The next library's.
fn next() -> *const c_void {
    // SAFETY: a C string; dlsym may be called at any time.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlopen".as_ptr()) };
    if function.is_null() {
        // The program has called a function that does not exist.
        std::process::abort();
    }
    function
}

/// The next library's, for libpcaps that are not this one.
///
/// # Safety
/// As the function of libc.
pub unsafe fn real_dlopen(name: &CStr, flags: c_int) -> *mut c_void {
    type Dlopen = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
    // SAFETY: the function of this name, of libc's or of a library that takes its place, has this
    // type.
    let function = unsafe { std::mem::transmute::<*const c_void, Dlopen>(next()) };
    // SAFETY: by the contract above.
    unsafe { function(name.as_ptr(), flags) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_libpcap() {
        for name in
            [c"libpcap.so", c"libpcap.so.1", c"libpcap.so.0.8", c"/usr/lib/libpcap.so.1.10.3"]
        {
            assert!(is_libpcap(name), "{name:?}");
        }
        for name in [c"libpcap", c"libpcap.sock", c"xlibpcap.so", c"libpcap.so/", c"libc.so.6", c""]
        {
            assert!(!is_libpcap(name), "{name:?}");
        }
    }
}
