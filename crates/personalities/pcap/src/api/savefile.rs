//! Filters and capture files, which the system library makes: of a handle of its own that stands for ours.

use std::{
    ffi::{c_char, c_int, c_uint},
    ptr::null_mut,
};

use libc::FILE;

use super::whose;
use crate::{
    abi::*,
    handle::{Code, Handle},
    shadow::Shadow,
    system,
    text::text,
};

/// The handle that stands for ours; the words say for what, and for which function.
fn shadow<'a>(handle: &'a Handle, [what, function]: [&str; 2]) -> Result<&'a Shadow, Code> {
    if handle.try_live().is_none() {
        let text = format!("{what}not-yet-activated pcap_t passed to {function}");
        return Err(handle.fail(PCAP_ERROR, &text));
    }
    handle.shadow().ok_or_else(|| handle.fail(PCAP_ERROR, &system::missing()))
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_compile(
    p: *mut pcap_t,
    program: *mut bpf_program,
    expression: *const c_char,
    optimize: c_int,
    mask: c_uint,
) -> c_int {
    let ours = |handle: &Handle| {
        let shadow = match shadow(handle, ["", "pcap_compile"]) {
            Ok(shadow) => shadow,
            Err(code) => return code,
        };
        // SAFETY: a handle of the system's, and the program's own arguments.
        match unsafe { system::pcap_compile(shadow.as_ptr(), program, expression, optimize, mask) }
        {
            code @ ..0 => handle.fail(code, &shadow.error()),
            code => code,
        }
    };
    // SAFETY: the program's handle.
    unsafe {
        whose!(p, ours, PCAP_ERROR, system::pcap_compile(p, program, expression, optimize, mask))
    }
}

/// Opens a capture file for what a handle of ours captures.
fn dump(
    handle: &Handle,
    wanted: [&str; 2],
    open: impl FnOnce(*mut pcap_t) -> *mut pcap_dumper_t,
) -> *mut pcap_dumper_t {
    let Ok(shadow) = shadow(handle, wanted) else { return null_mut() };
    let dumper = open(shadow.as_ptr());
    if dumper.is_null() {
        handle.error.set(&shadow.error());
    }
    dumper
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_dump_open(
    p: *mut pcap_t,
    path: *const c_char,
) -> *mut pcap_dumper_t {
    // SAFETY: a handle of the system's, and the program's own path.
    let open = |p| unsafe { system::pcap_dump_open(p, path) };
    // SAFETY: the program's handle.
    unsafe {
        whose!(
            p,
            |handle: &Handle| dump(handle, [&format!("{}: ", text(path)), "pcap_dump_open"], open),
            null_mut(),
            open(p)
        )
    }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_dump_open_append(
    p: *mut pcap_t,
    path: *const c_char,
) -> *mut pcap_dumper_t {
    // SAFETY: a handle of the system's, and the program's own path.
    let open = |p| unsafe { system::pcap_dump_open_append(p, path) };
    // SAFETY: the program's handle.
    unsafe {
        whose!(
            p,
            |handle: &Handle| dump(
                handle,
                [&format!("{}: ", text(path)), "pcap_dump_open_append"],
                open
            ),
            null_mut(),
            open(p)
        )
    }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_dump_fopen(
    p: *mut pcap_t,
    file: *mut FILE,
) -> *mut pcap_dumper_t {
    // SAFETY: a handle of the system's, and the program's own file.
    let open = |p| unsafe { system::pcap_dump_fopen(p, file) };
    // SAFETY: the program's handle.
    unsafe {
        whose!(
            p,
            |handle: &Handle| dump(handle, ["stream: ", "pcap_dump_fopen"], open),
            null_mut(),
            open(p)
        )
    }
}
