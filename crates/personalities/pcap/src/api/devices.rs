//! The list of devices.

use std::{
    ffi::{CString, c_char, c_int, c_uint},
    ptr::null_mut,
};

use ringway_live_capture::{
    devices::{Device, devices},
    name,
};

use crate::{abi::*, system, text::text};

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_findalldevs(
    list: *mut *mut pcap_if_t,
    errbuf: *mut c_char,
) -> c_int {
    // SAFETY: the program's own arguments.
    let code = unsafe { system::pcap_findalldevs(list, errbuf) };
    if code != 0 {
        return code;
    }
    let mut end = list;
    // SAFETY: the system library has filled in a list, the last of which points nowhere; what is put there is
    // memory of `malloc`, as all of it, which is how `pcap_freealldevs` frees it.
    unsafe {
        while !(*end).is_null() {
            end = &raw mut (**end).next;
        }
        for device in devices() {
            let Some(entry) = entry(&device) else { break };
            *end = entry;
            end = &raw mut (*entry).next;
        }
    }
    0
}

/// A device in memory of `malloc`; `None` if there is none.
fn entry(device: &Device) -> Option<*mut pcap_if_t> {
    let [name, description] = [&*device.name, device.description].map(duplicate);
    // SAFETY: any size is right.
    let entry: *mut pcap_if_t = unsafe { libc::calloc(1, size_of::<pcap_if_t>()) }.cast();
    if entry.is_null() || name.is_null() {
        // SAFETY: memory of `malloc`, or null.
        unsafe {
            libc::free(name.cast());
            libc::free(description.cast());
            libc::free(entry.cast());
        }
        return None;
    }
    let flags = PCAP_IF_UP | PCAP_IF_RUNNING | PCAP_IF_CONNECTION_STATUS_NOT_APPLICABLE;
    // SAFETY: new memory of that size.
    unsafe {
        entry.write(pcap_if_t { next: null_mut(), name, description, addresses: null_mut(), flags })
    };
    Some(entry)
}

/// A C string in memory of `malloc`, or null.
fn duplicate(text: &str) -> *mut c_char {
    let Ok(text) = CString::new(text) else { return null_mut() };
    // SAFETY: a C string.
    unsafe { libc::strdup(text.as_ptr()) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_freealldevs(list: *mut pcap_if_t) {
    // SAFETY: the program's own list.
    unsafe { system::pcap_freealldevs(list) };
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_lookupnet(
    device: *const c_char,
    net: *mut c_uint,
    mask: *mut c_uint,
    errbuf: *mut c_char,
) -> c_int {
    // SAFETY: the name is a C string or null.
    if name::is_port(&unsafe { text(device) }) {
        // A port has no address: as `any` has none.
        // SAFETY: the program has given places for both.
        unsafe { (*net, *mask) = (0, 0) };
        return 0;
    }
    // SAFETY: the program's own arguments.
    unsafe { system::pcap_lookupnet(device, net, mask, errbuf) }
}
