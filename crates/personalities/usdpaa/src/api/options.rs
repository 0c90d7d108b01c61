//! `netcfg_argp`: the option of programs whose command line is glibc's `argp`.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr,
    sync::{Mutex, PoisonError},
};

use crate::{netcfg::select, ports::Place, print};

/// `struct argp_option`.
#[repr(C)]
struct argp_option {
    name: *const c_char,
    key: c_int,
    arg: *const c_char,
    flags: c_int,
    doc: *const c_char,
    group: c_int,
}

type Parser = unsafe extern "C" fn(c_int, *const c_char, *mut c_void) -> c_int;

/// `struct argp`.
#[repr(C)]
pub struct argp {
    options: *const argp_option,
    parser: Parser,
    args_doc: *const c_char,
    doc: *const c_char,
    children: *const c_void,
    help_filter: *const c_void,
    argp_domain: *const c_char,
}

#[repr(transparent)]
struct Options([argp_option; 2]);

// SAFETY: constants, with pointers to constants.
unsafe impl Sync for Options {}
// SAFETY: as above.
unsafe impl Sync for argp {}

const KEY: c_int = b'i' as c_int;
/// `ARGP_ERR_UNKNOWN`: of options that are not this parser's.
const UNKNOWN: c_int = libc::E2BIG;

static OPTIONS: Options = Options([
    argp_option {
        name: c"fm-interfaces".as_ptr(),
        key: KEY,
        arg: c"LIST".as_ptr(),
        flags: 0,
        doc: c"Interfaces of the configuration to be used: fm1-gb0,fm1-10g,fm2-mac9".as_ptr(),
        group: 0,
    },
    argp_option {
        name: ptr::null(),
        key: 0,
        arg: ptr::null(),
        flags: 0,
        doc: ptr::null(),
        group: 0,
    },
]);

#[unsafe(no_mangle)]
pub static netcfg_argp: argp = argp {
    options: OPTIONS.0.as_ptr(),
    parser,
    args_doc: ptr::null(),
    doc: ptr::null(),
    children: ptr::null(),
    help_filter: ptr::null(),
    argp_domain: ptr::null(),
};

static SELECTED: Mutex<Option<Vec<Place>>> = Mutex::new(None);

/// The interfaces that the command line names; `None`: all of them.
pub fn selected() -> Option<Vec<Place>> {
    SELECTED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// # Safety
/// As `argp` says: `argument` is a C string if the option takes one.
unsafe extern "C" fn parser(key: c_int, argument: *const c_char, _state: *mut c_void) -> c_int {
    if key != KEY || argument.is_null() {
        return UNKNOWN;
    }
    // SAFETY: by the caller's contract.
    let list = unsafe { CStr::from_ptr(argument) }.to_string_lossy();
    match select::parse(&list) {
        Ok(places) => {
            *SELECTED.lock().unwrap_or_else(PoisonError::into_inner) = Some(places);
            0
        }
        Err(problem) => {
            print::error(&problem);
            libc::EINVAL
        }
    }
}
