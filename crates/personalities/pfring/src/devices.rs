//! The list of interfaces and ports.

use std::{
    ffi::{CString, c_char, c_int},
    ptr::null_mut,
};

use ringway_live_capture::devices::devices as ports;

use crate::{
    abi::pfring_if_t,
    interface::{self, Interface},
    source::interface_of,
};

const UP: c_int = libc::IFF_UP;

/// What serves interfaces, and what serves ports: its name and its version.
const MODULE: [&str; 2] = ["pf_ring", "8.9.0"];
const PORTS_MODULE: [&str; 2] = ["ringway", env!("CARGO_PKG_VERSION")];

fn text(text: &str) -> *mut c_char {
    CString::new(text).unwrap_or_default().into_raw()
}

/// One entry for each interface of this network namespace, and for each port that there is; null if
/// there are none.
pub fn list() -> *mut pfring_if_t {
    let interfaces = interface::all().into_iter().map(|name| (name, MODULE));
    let ports = ports().into_iter().map(|device| (device.name, PORTS_MODULE));
    let all: Vec<_> = interfaces.chain(ports).collect();
    all.iter().rev().fold(null_mut(), |next, (name, [module, version])| {
        let interface = interface_of(name);
        let of = interface.and_then(Interface::new);
        // What is no interface is there, and takes what is sent to it.
        let flags = of.as_ref().and_then(Interface::flags).unwrap_or(0);
        Box::into_raw(Box::new(pfring_if_t {
            name: text(name),
            system_name: text(name),
            module: text(module),
            module_version: text(version),
            // A card's. Programs show the address of what has none.
            sn: null_mut(),
            mac: of.and_then(|of| of.address()).unwrap_or_default(),
            bus_id: [0; 4],
            status: (interface.is_none() || flags & UP != 0).into(),
            // None is needed.
            license: 1,
            license_expiration: 0,
            next,
        }))
    })
}

/// Gives a list back.
///
/// # Safety
/// One of `list`, or null; used no more.
pub unsafe fn free(mut list: *mut pfring_if_t) {
    while !list.is_null() {
        // SAFETY: each entry and each text was made by `list`, and is freed once.
        unsafe {
            let entry = Box::from_raw(list);
            for text in [entry.name, entry.system_name, entry.module, entry.module_version] {
                drop(CString::from_raw(text));
            }
            list = entry.next;
        }
    }
}
