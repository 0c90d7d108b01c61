//! The list of devices.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint},
    ptr::{null, null_mut},
};

use ringway_live_capture::{
    devices::{Device, devices},
    name,
};

use crate::{
    abi::*,
    system,
    text::{store, text},
};

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
            (*entry).addresses = addresses(of_interface(*list, &device.name));
            *end = entry;
            end = &raw mut (*entry).next;
        }
    }
    0
}

/// The addresses of the interface that a port is of, as the system's library lists them; null for other ports.
///
/// # Safety
/// A list of that library's.
unsafe fn of_interface(mut list: *const pcap_if_t, port: &str) -> *const pcap_addr_t {
    let Some(interface) = port.strip_prefix("netmap:") else { return null() };
    // SAFETY: by the caller's contract; each device has a name.
    unsafe {
        while let Some(device) = list.as_ref() {
            if CStr::from_ptr(device.name).to_bytes() == interface.as_bytes() {
                return device.addresses;
            }
            list = device.next;
        }
    }
    null()
}

/// A copy of a list of addresses, in memory of `malloc`: no more of it than there is memory for.
///
/// # Safety
/// A list of the system library's, or null.
unsafe fn addresses(mut list: *const pcap_addr_t) -> *mut pcap_addr_t {
    let mut first = null_mut();
    let mut end = &raw mut first;
    // SAFETY: by the caller's contract; the copies are new memory of that size, the last of which points nowhere.
    unsafe {
        while let Some(of_interface) = list.as_ref() {
            let copy: *mut pcap_addr_t = libc::calloc(1, size_of::<pcap_addr_t>()).cast();
            if copy.is_null() {
                break;
            }
            copy.write(pcap_addr_t {
                next: null_mut(),
                addr: address(of_interface.addr),
                netmask: address(of_interface.netmask),
                broadaddr: address(of_interface.broadaddr),
                dstaddr: address(of_interface.dstaddr),
            });
            *end = copy;
            end = &raw mut (*copy).next;
            list = of_interface.next;
        }
    }
    first
}

/// A copy of an address in memory of `malloc`; null of one whose length is not known.
///
/// # Safety
/// An address, as long as its family says, or null.
unsafe fn address(of_interface: *const libc::sockaddr) -> *mut libc::sockaddr {
    // SAFETY: by the caller's contract.
    let family = unsafe { of_interface.as_ref() }.map(|address| c_int::from(address.sa_family));
    let size = match family {
        Some(libc::AF_INET) => size_of::<libc::sockaddr_in>(),
        Some(libc::AF_INET6) => size_of::<libc::sockaddr_in6>(),
        Some(libc::AF_PACKET) => size_of::<libc::sockaddr_ll>(),
        _ => return null_mut(),
    };
    // SAFETY: any size is right; it is written where there is memory, and as long as the address is.
    unsafe {
        let copy = libc::malloc(size);
        if !copy.is_null() {
            std::ptr::copy_nonoverlapping(of_interface.cast::<u8>(), copy.cast(), size);
        }
        copy.cast()
    }
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
    let port = unsafe { text(device) };
    let interface = match name::is_port(&port) {
        true => name::interface_of(&port).and_then(|name| CString::new(name).ok()),
        // SAFETY: the program's own arguments.
        false => return unsafe { system::pcap_lookupnet(device, net, mask, errbuf) },
    };
    let Some(interface) = interface else {
        // SAFETY: the program has given places for both, and a buffer for errors.
        unsafe {
            (*net, *mask) = (0, 0);
            store(errbuf, &format!("{port}: no IPv4 address assigned"));
        }
        return PCAP_ERROR;
    };
    // SAFETY: a C string, and the program's own arguments.
    unsafe { system::pcap_lookupnet(interface.as_ptr(), net, mask, errbuf) }
}
