//! The list of interfaces.

use std::{
    ffi::{CString, c_char, c_int},
    ptr::null_mut,
};

use crate::{abi::pfring_if_t, interface};

const UP: c_int = libc::IFF_UP;

fn text(text: &str) -> *mut c_char {
    CString::new(text).unwrap_or_default().into_raw()
}

/// One entry for each interface of this network namespace; null if there are none.
pub fn list() -> *mut pfring_if_t {
    interface::all().iter().rev().fold(null_mut(), |next, name| {
        let of = interface::Interface::new(name);
        let is_up = of.as_ref().and_then(|of| of.flags()).unwrap_or(0) & UP != 0;
        Box::into_raw(Box::new(pfring_if_t {
            name: text(name),
            system_name: text(name),
            module: text("pf_ring"),
            module_version: text("8.9.0"),
            // A card's. Programs show the address of what has none.
            sn: null_mut(),
            mac: of.and_then(|of| of.address()).unwrap_or_default(),
            bus_id: [0; 4],
            status: is_up.into(),
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
