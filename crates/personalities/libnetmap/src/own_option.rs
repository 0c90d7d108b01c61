//! What netmap knows nothing of: Ringway's own options travel to Ringway as text, in one option.

use std::{ffi::CStr, ptr::copy_nonoverlapping, slice};

use ringway_abi::{NETMAP_REQ_OPT_RINGWAY, nmreq_option};

use crate::{
    cleanup::{Cleanup, remember},
    ctx::Ctx,
    errno::Errno,
    option_list::{nmreq_find_option, nmreq_push_option, nmreq_remove_option},
    types::nmport_d,
};

const HEAD: usize = size_of::<nmreq_option>();

/// What the port asks for so far; empty when that is nothing.
///
/// # Safety
/// A port, whose options stay while the text is in use.
pub unsafe fn text<'a>(d: *mut nmport_d) -> &'a [u8] {
    // SAFETY: by the contract above; an option has the size that it says.
    unsafe {
        let option = nmreq_find_option(&raw mut (*d).hdr, NETMAP_REQ_OPT_RINGWAY);
        let Some(head) = option.as_ref() else { return b"" };
        let length = (head.nro_size as usize).saturating_sub(HEAD);
        slice::from_raw_parts(option.add(1).cast(), length)
    }
}

/// Asks for `more`: a list of options as names have it.
///
/// # Safety
/// A port.
pub unsafe fn append(d: *mut nmport_d, more: &[&[u8]]) -> Result<(), Errno> {
    // SAFETY: by the contract above. The old option leaves the list, but is released with the port
    // only, so its text can still be read. The new one has room for both texts behind its head.
    unsafe {
        let ctx = Ctx::new((*d).ctx);
        let old = text(d);
        let size = HEAD + old.len() + more.iter().map(|part| part.len()).sum::<usize>();
        let option: *mut nmreq_option = ctx.malloc(size).cast();
        if option.is_null() {
            return ctx.fail(libc::ENOMEM, format_args!("no memory for an option"));
        }
        option.write(nmreq_option {
            nro_next: 0,
            nro_reqtype: NETMAP_REQ_OPT_RINGWAY,
            nro_status: 0,
            nro_size: size as u64,
        });
        let mut at: *mut u8 = option.add(1).cast();
        for part in [old].iter().chain(more) {
            copy_nonoverlapping(part.as_ptr(), at, part.len());
            at = at.add(part.len());
        }
        let hdr = &raw mut (*d).hdr;
        let before = nmreq_find_option(hdr, NETMAP_REQ_OPT_RINGWAY);
        if !before.is_null() {
            nmreq_remove_option(hdr, before);
        }
        nmreq_push_option(hdr, option);
        remember(d, ctx, Cleanup::Option(option))
    }
}

/// Asks for `@name=value`.
///
/// # Safety
/// A port.
pub unsafe fn add(d: *mut nmport_d, name: &str, value: &CStr) -> Result<(), Errno> {
    // SAFETY: by the contract above.
    unsafe { append(d, &[b"@", name.as_bytes(), b"=", value.to_bytes()]) }
}
