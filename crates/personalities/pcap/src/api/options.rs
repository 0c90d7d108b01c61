//! What is asked for between `pcap_create` and `pcap_activate`.

use std::ffi::{c_char, c_int, c_uint};

use ringway_live_capture::name;

use super::whose;
use crate::{abi::*, handle::Handle, system};

/// Functions that change one of the settings.
macro_rules! setters {
    ($($name:ident($value:ident) => $change:expr;)*) => {$(
        /// # Safety
        /// As libpcap says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(p: *mut pcap_t, $value: c_int) -> c_int {
            // SAFETY: the program's handle.
            unsafe {
                whose!(p, |handle: &Handle| handle.set($change), PCAP_ERROR, system::$name(p, $value))
            }
        }
    )*};
}

setters! {
    pcap_set_snaplen(snaplen) => |settings| settings.snaplen = snaplen;
    pcap_set_promisc(on) => |settings| settings.promiscuous = on != 0;
    pcap_set_timeout(milliseconds) => |settings| settings.timeout = milliseconds;
    pcap_set_rfmon(on) => |settings| settings.rfmon = on != 0;
    pcap_set_immediate_mode(on) => |settings| settings.immediate = on != 0;
    // Which packets a packet socket would be given: a port has no such choice.
    pcap_set_protocol_linux(protocol) => |_| _ = protocol;
    pcap_set_buffer_size(size) => |settings| if size > 0 { settings.buffer_size = size };
}

/// The timestamps that a port may have, in libpcap's numbers; none for the time of reading alone.
fn tstamp_types(handle: &Handle) -> &'static [c_int] {
    match name::is_interface(&handle.name) {
        true => &[PCAP_TSTAMP_HOST, PCAP_TSTAMP_HOST_HIPREC, PCAP_TSTAMP_ADAPTER_UNSYNCED],
        false => &[],
    }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_set_tstamp_type(p: *mut pcap_t, kind: c_int) -> c_int {
    let ours = |handle: &Handle| {
        let known = kind == PCAP_TSTAMP_HOST || tstamp_types(handle).contains(&kind);
        match handle.set(|settings| {
            if known {
                settings.tstamp_type = kind
            }
        }) {
            0 if !known => PCAP_WARNING_TSTAMP_TYPE_NOTSUP,
            code => code,
        }
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_set_tstamp_type(p, kind)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_set_tstamp_precision(
    p: *mut pcap_t,
    precision: c_int,
) -> c_int {
    let ours = |handle: &Handle| {
        let known = [PCAP_TSTAMP_PRECISION_MICRO, PCAP_TSTAMP_PRECISION_NANO].contains(&precision);
        let nanoseconds = precision == PCAP_TSTAMP_PRECISION_NANO;
        match handle.set(|settings| {
            if known {
                settings.nanoseconds = nanoseconds
            }
        }) {
            0 if !known => PCAP_ERROR_TSTAMP_PRECISION_NOTSUP,
            code => code,
        }
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_set_tstamp_precision(p, precision)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_get_tstamp_precision(p: *mut pcap_t) -> c_int {
    let ours = |handle: &Handle| match handle.settings().nanoseconds {
        true => PCAP_TSTAMP_PRECISION_NANO,
        false => PCAP_TSTAMP_PRECISION_MICRO,
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_get_tstamp_precision(p)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_list_tstamp_types(
    p: *mut pcap_t,
    list: *mut *mut c_int,
) -> c_int {
    let ours = |handle: &Handle| match tstamp_types(handle) {
        // The time of reading is always there.
        [] => hand_out(handle, &[PCAP_TSTAMP_HOST], list),
        types => hand_out(handle, types, list),
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_list_tstamp_types(p, list)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_can_set_rfmon(p: *mut pcap_t) -> c_int {
    // SAFETY: the program's handle.
    unsafe { whose!(p, |_: &Handle| 0, PCAP_ERROR, system::pcap_can_set_rfmon(p)) }
}

/// What PF_RING's libpcap has beside the others: its programs give a handle a name.
///
/// # Safety
/// It looks at neither.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_set_application_name(
    _p: *mut pcap_t,
    _name: *mut c_char,
) -> c_int {
    0
}

/// The same: after how many packets a sleeping program is woken.
///
/// # Safety
/// It looks at neither.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_set_watermark(_p: *mut pcap_t, _packets: c_uint) -> c_int {
    0
}

/// Gives a program a list that it frees with `free`; returns how long it is.
pub fn hand_out(handle: &Handle, numbers: &[c_int], list: *mut *mut c_int) -> c_int {
    // SAFETY: any size is right.
    let memory: *mut c_int = unsafe { libc::malloc(size_of_val(numbers)) }.cast();
    if memory.is_null() {
        return handle.fail(PCAP_ERROR, "malloc: no memory for a list");
    }
    // SAFETY: as much memory as the numbers have; the program has given a place for the list.
    unsafe {
        memory.copy_from_nonoverlapping(numbers.as_ptr(), numbers.len());
        *list = memory;
    }
    numbers.len() as c_int
}
