//! `of.h`: there is no device tree to be read.

use std::ffi::{c_char, c_int};

#[unsafe(no_mangle)]
pub extern "C" fn of_init_path(_path: *const c_char) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn of_finish() {}
