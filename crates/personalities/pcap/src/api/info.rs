//! What a program asks about a handle.

use std::ffi::{c_char, c_int};
use std::io::{self, Write};
use std::ptr::{null, null_mut};

use libc::{FILE, timeval};

use super::{options::hand_out, whose};
use ringway_live_capture::Opened;

use crate::{abi::*, handle::Handle, system, text::text};

/// What an activated handle says, or, without a text, the code that it is none.
fn of_live(handle: &Handle, say: impl FnOnce(&Opened) -> c_int) -> c_int {
    handle.try_live().map_or(PCAP_ERROR_NOT_ACTIVATED, say)
}

/// Functions that return one number.
macro_rules! numbers {
    ($($name:ident => $say:expr;)*) => {$(
        /// # Safety
        /// As libpcap says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(p: *mut pcap_t) -> c_int {
            // SAFETY: the program's handle.
            unsafe {
                whose!(p, |handle: &Handle| of_live(handle, $say), PCAP_ERROR, system::$name(p))
            }
        }
    )*};
}

numbers! {
    pcap_datalink => |_| DLT_EN10MB;
    pcap_datalink_ext => |_| 0;
    pcap_snapshot => |live| live.snaplen() as c_int;
    pcap_bufsize => |live| live.buffer_size();
    pcap_is_swapped => |_| 0;
    // Those of a capture file.
    pcap_major_version => |_| 0;
    pcap_minor_version => |_| 0;
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_list_datalinks(
    p: *mut pcap_t,
    list: *mut *mut c_int,
) -> c_int {
    let ours = |handle: &Handle| of_live(handle, |_| hand_out(handle, &[DLT_EN10MB], list));
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_list_datalinks(p, list)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_set_datalink(p: *mut pcap_t, linktype: c_int) -> c_int {
    let ours = |handle: &Handle| {
        if linktype == DLT_EN10MB && handle.try_live().is_some() {
            return 0;
        }
        // SAFETY: a number; the text is a constant of the library's.
        let known = unsafe { text(system::pcap_datalink_val_to_name(linktype)) };
        let what = match &*known {
            "" => format!("DLT {linktype}"),
            name => name.to_string(),
        };
        handle.fail(PCAP_ERROR, &format!("{what} is not one of the DLTs supported by this device"))
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_set_datalink(p, linktype)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_stats(p: *mut pcap_t, stats: *mut pcap_stat) -> c_int {
    let ours = |handle: &Handle| match handle.live() {
        Ok(live) => {
            // SAFETY: the program has given room for them.
            unsafe { stats.write(live.stats()) };
            0
        }
        Err(code) => code,
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_stats(p, stats)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_geterr(p: *mut pcap_t) -> *mut c_char {
    let ours = |handle: &Handle| handle.error.as_ptr();
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, null_mut(), system::pcap_geterr(p)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_perror(p: *mut pcap_t, prefix: *const c_char) {
    let ours = |handle: &Handle| {
        // SAFETY: a C string.
        let prefix = unsafe { text(prefix) };
        // A reader that has gone is no reason to end the program.
        let _ = writeln!(io::stderr(), "{prefix}: {}", handle.error.text());
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, (), system::pcap_perror(p, prefix)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_file(p: *mut pcap_t) -> *mut FILE {
    // SAFETY: the program's handle.
    unsafe { whose!(p, |_: &Handle| null_mut(), null_mut(), system::pcap_file(p)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_fileno(p: *mut pcap_t) -> c_int {
    let ours = |handle: &Handle| handle.try_live().map_or(PCAP_ERROR, Opened::watch);
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_fileno(p)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_get_selectable_fd(p: *mut pcap_t) -> c_int {
    let ours = |handle: &Handle| handle.try_live().map_or(PCAP_ERROR, Opened::watch);
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_get_selectable_fd(p)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_get_required_select_timeout(p: *mut pcap_t) -> *const timeval {
    // The descriptor says it all.
    // SAFETY: the program's handle.
    unsafe { whose!(p, |_: &Handle| null(), null(), system::pcap_get_required_select_timeout(p)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_lib_version() -> *const c_char {
    // SAFETY: nothing is asked of the caller.
    unsafe { system::pcap_lib_version() }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_statustostr(code: c_int) -> *const c_char {
    // SAFETY: any number will do.
    unsafe { system::pcap_statustostr(code) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_strerror(errno: c_int) -> *const c_char {
    // SAFETY: any number will do.
    unsafe { system::pcap_strerror(errno) }
}
