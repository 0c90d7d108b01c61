//! Packets of the program.

use std::ffi::{c_int, c_void};

use super::whose;
use crate::{abi::*, handle::Handle, system};

fn inject(handle: &Handle, bytes: *const c_void, size: usize) -> c_int {
    let live = match handle.live() {
        Ok(live) => live,
        Err(code) => return code,
    };
    let Ok(sent @ 1..) = c_int::try_from(size) else {
        let what = if size == 0 {
            "The number of bytes to be injected must not be zero"
        } else {
            "More than INT_MAX bytes cannot be injected"
        };
        return handle.fail(PCAP_ERROR, what);
    };
    // SAFETY: the program's packet has so many bytes.
    let packet = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), size) };
    match live.inject(packet, handle.is_nonblocking()) {
        Ok(()) => sent,
        Err(error) => {
            let code = handle.fail(PCAP_ERROR, &error.text);
            // Programs look there, as after libpcap's own `send`.
            // SAFETY: the thread's own number.
            unsafe { *libc::__errno_location() = error.errno };
            code
        }
    }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_inject(
    p: *mut pcap_t,
    bytes: *const c_void,
    size: usize,
) -> c_int {
    // SAFETY: the program's handle.
    unsafe {
        whose!(
            p,
            |handle: &Handle| inject(handle, bytes, size),
            PCAP_ERROR,
            system::pcap_inject(p, bytes, size)
        )
    }
}

/// # Safety
/// As libpcap says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_sendpacket(
    p: *mut pcap_t,
    bytes: *const u8,
    size: c_int,
) -> c_int {
    let ours = |handle: &Handle| {
        if size <= 0 {
            return handle.fail(PCAP_ERROR, "The number of bytes to be sent must be positive");
        }
        match inject(handle, bytes.cast(), size.unsigned_abs() as usize) {
            PCAP_ERROR => PCAP_ERROR,
            _ => 0,
        }
    };
    // SAFETY: the program's handle.
    unsafe { whose!(p, ours, PCAP_ERROR, system::pcap_sendpacket(p, bytes, size)) }
}
