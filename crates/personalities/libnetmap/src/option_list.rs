//! The options of a request: a list, by addresses in the program.

use std::{
    ffi::{CStr, c_char},
    ptr::null_mut,
};

use ringway_abi::{
    NETMAP_REQ_OPT_CSB, NETMAP_REQ_OPT_EXTMEM, NETMAP_REQ_OPT_OFFSETS, NETMAP_REQ_OPT_RINGWAY,
    NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS, NETMAP_REQ_OPT_SYNC_KLOOP_MODE, nmreq_header, nmreq_option,
};

/// Walks from one option to the next; an option may be released once the walk has left it.
///
/// # Safety
/// A list whose elements are valid when they are reached.
pub unsafe fn walk(hdr: *const nmreq_header) -> impl Iterator<Item = *mut nmreq_option> {
    // SAFETY: by the contract above.
    let mut next = unsafe { (*hdr).nr_options } as *mut nmreq_option;
    std::iter::from_fn(move || {
        let option = next;
        // SAFETY: by the contract above.
        next = unsafe { option.as_ref() }?.nro_next as *mut nmreq_option;
        Some(option)
    })
}

/// # Safety
/// A header with a list of options, and an option that is in no list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmreq_push_option(hdr: *mut nmreq_header, opt: *mut nmreq_option) {
    // SAFETY: by the contract above.
    unsafe {
        (*opt).nro_next = (*hdr).nr_options;
        (*hdr).nr_options = opt as u64;
    }
}

/// An option that is not in the list stays as it is.
///
/// # Safety
/// A header with a list of options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmreq_remove_option(hdr: *mut nmreq_header, opt: *mut nmreq_option) {
    // SAFETY: by the contract above: the links are those of the list.
    unsafe {
        let mut link = &raw mut (*hdr).nr_options;
        for option in walk(hdr) {
            if option == opt {
                *link = (*opt).nro_next;
                (*opt).nro_next = 0;
                return;
            }
            link = &raw mut (*option).nro_next;
        }
    }
}

/// # Safety
/// A header with a list of options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmreq_find_option(
    hdr: *mut nmreq_header,
    reqtype: u32,
) -> *mut nmreq_option {
    // SAFETY: by the contract above.
    unsafe { walk(hdr).find(|option| (**option).nro_reqtype == reqtype) }.unwrap_or(null_mut())
}

/// # Safety
/// A header with a list of options, all of `malloc`, which nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmreq_free_options(hdr: *mut nmreq_header) {
    // SAFETY: by the contract above; the walk has left what is released.
    unsafe {
        for option in walk(hdr) {
            libc::free(option.cast());
        }
        (*hdr).nr_options = 0;
    }
}

pub fn name(reqtype: u32) -> &'static CStr {
    match reqtype {
        NETMAP_REQ_OPT_EXTMEM => c"extmem",
        NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS => c"sync-kloop-eventfds",
        NETMAP_REQ_OPT_CSB => c"csb",
        NETMAP_REQ_OPT_SYNC_KLOOP_MODE => c"sync-kloop-mode",
        NETMAP_REQ_OPT_OFFSETS => c"offsets",
        NETMAP_REQ_OPT_RINGWAY => c"one of Ringway's own",
        _ => c"unknown",
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn nmreq_option_name(reqtype: u32) -> *const c_char {
    name(reqtype).as_ptr()
}
