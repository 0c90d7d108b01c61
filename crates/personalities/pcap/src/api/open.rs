//! Handles come and go.

use std::{
    ffi::{c_char, c_int},
    ptr::null_mut,
};

use ringway_live_capture::name;

use super::whose;
use crate::{
    abi::*,
    handle::Handle,
    handles, system,
    text::{store, text},
};

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_create(
    device: *const c_char,
    errbuf: *mut c_char,
) -> *mut pcap_t {
    // SAFETY: the name is a C string or null.
    let name = unsafe { text(device) };
    if let Some(problem) = name::no_device(&name) {
        // SAFETY: a buffer for errors.
        unsafe { store(errbuf, &problem) };
        return null_mut();
    }
    if !name::is_port(&name) {
        // SAFETY: the program's own call.
        return unsafe { system::pcap_create(device, errbuf) };
    }
    match handles::add(Box::new(Handle::new(&name))) {
        Some(handle) => handle,
        None => {
            // SAFETY: a buffer for errors.
            unsafe { store(errbuf, &format!("{name}: too many ports are open; close some")) };
            null_mut()
        }
    }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_activate(p: *mut pcap_t) -> c_int {
    // SAFETY: the program's handle.
    unsafe { whose!(p, |handle: &Handle| handle.activate(), PCAP_ERROR, system::pcap_activate(p)) }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_open_live(
    device: *const c_char,
    snaplen: c_int,
    promisc: c_int,
    timeout: c_int,
    errbuf: *mut c_char,
) -> *mut pcap_t {
    // SAFETY: the name is a C string or null.
    let name = unsafe { text(device) };
    if !name::is_port(&name) && name::no_device(&name).is_none() {
        // SAFETY: the program's own call.
        return unsafe { system::pcap_open_live(device, snaplen, promisc, timeout, errbuf) };
    }
    // SAFETY: as above.
    let p = unsafe { pcap_create(device, errbuf) };
    if p.is_null() {
        return p;
    }
    let open = |handle: &Handle| {
        handle.set(|settings| {
            settings.snaplen = snaplen;
            settings.promiscuous = promisc != 0;
            settings.timeout = timeout;
        });
        let code = handle.activate();
        (code, handle.error.text())
    };
    // SAFETY: a handle that was just made.
    let (code, why) =
        unsafe { whose!(p, open, (PCAP_ERROR, String::new()), (PCAP_ERROR, String::new())) };
    let status = || {
        // SAFETY: a code; the text is a constant of the library's.
        unsafe { text(system::pcap_statustostr(code)) }
    };
    let why = why.strip_prefix(&format!("{name}: ")).unwrap_or(&why).to_owned();
    let said = match code {
        // A warning is told where errors are, and the handle is there.
        0.. => (code > 0).then_some(why),
        PCAP_ERROR => Some(format!("{name}: {why}")),
        PCAP_ERROR_NO_SUCH_DEVICE | PCAP_ERROR_PERM_DENIED | PCAP_ERROR_PROMISC_PERM_DENIED => {
            Some(format!("{name}: {} ({why})", status()))
        }
        _ => Some(format!("{name}: {}", status())),
    };
    if let Some(said) = said {
        // SAFETY: a buffer for errors.
        unsafe { store(errbuf, &said) };
    }
    if code < 0 {
        // SAFETY: nothing else knows of the handle.
        unsafe { pcap_close(p) };
        return null_mut();
    }
    p
}

/// # Safety
/// As libpcap says: the handle is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_close(p: *mut pcap_t) {
    // SAFETY: the program's handle, which it is done with.
    unsafe {
        whose!(p, |_: &Handle| drop(handles::remove(p)), (), system::pcap_close(p));
    }
}
