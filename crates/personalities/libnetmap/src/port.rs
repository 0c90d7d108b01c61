//! Descriptors: made, filled in from a name, copied, released.

use std::{
    ffi::{CStr, c_char, c_int},
    ptr::null_mut,
};

use ringway_abi::{NETMAP_REQ_REGISTER, nmreq_register};

use crate::{
    cleanup::undo_last,
    ctx::Ctx,
    errno::{self, Errno, pointer},
    named_options,
    options_decode::{self, Failure},
    own_option,
    registration::{open_desc, undo_open_desc},
    request::{decode_header, decode_register, empty, name},
    types::nmport_d,
};

fn new(ctx: Ctx) -> Result<*mut nmport_d, Errno> {
    let d: *mut nmport_d = ctx.zeroed("a port")?;
    // SAFETY: new memory, all of zeroes, which is right for every other field.
    unsafe {
        (*d).hdr = empty(NETMAP_REQ_REGISTER, (&raw mut (*d).reg).cast());
        (*d).ctx = ctx.as_ptr();
        (*d).fd = -1;
    }
    Ok(d)
}

#[unsafe(no_mangle)]
pub extern "C" fn nmport_new() -> *mut nmport_d {
    pointer(new(Ctx::current()))
}

/// # Safety
/// Null, or a port that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_delete(d: *mut nmport_d) {
    if !d.is_null() {
        // SAFETY: by the contract above; a port is memory of its context.
        unsafe {
            let ctx = Ctx::new((*d).ctx);
            while undo_last(d, ctx) {}
            ctx.free(d);
        }
    }
}

/// # Safety
/// A port.
unsafe fn parse(d: *mut nmport_d, spec: &CStr) -> Result<(), Failure> {
    let mut rest = spec.as_ptr();
    // SAFETY: by the contract above; each step leaves `rest` in the string.
    let parsed = unsafe {
        let ctx = Ctx::new((*d).ctx).about(spec.to_bytes());
        decode_header(&mut rest, &raw mut (*d).hdr, ctx)
            .and_then(|()| decode_register(&mut rest, &raw mut (*d).reg, ctx))
            .map_err(Failure::from)
            .and_then(|()| {
                let list = CStr::from_ptr(rest);
                options_decode::decode(list, named_options::all(), d.cast(), ctx)
            })
    };
    if parsed.is_err() {
        // SAFETY: by the contract above.
        unsafe { nmport_undo_parse(d) };
    }
    parsed
}

/// # Safety
/// A port and a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_parse(d: *mut nmport_d, spec: *const c_char) -> c_int {
    // SAFETY: by the contract above.
    match unsafe { parse(d, CStr::from_ptr(spec)) } {
        Ok(()) => 0,
        Err(failure) => {
            errno::set(failure.errno);
            -1
        }
    }
}

/// # Safety
/// A port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_undo_parse(d: *mut nmport_d) {
    // SAFETY: by the contract above.
    unsafe {
        let ctx = Ctx::new((*d).ctx);
        while undo_last(d, ctx) {}
        (*d).reg = nmreq_register::default();
        (*d).hdr = empty(0, null_mut());
        (*d).hdr.nr_version = 0;
    }
}

/// # Safety
/// A string.
unsafe fn prepare(spec: *const c_char) -> Result<*mut nmport_d, Errno> {
    let d = new(Ctx::current())?;
    // SAFETY: by the contract above; the port is new.
    unsafe {
        parse(d, CStr::from_ptr(spec)).map_err(|failure| {
            nmport_delete(d);
            failure.errno
        })?;
    }
    Ok(d)
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_prepare(spec: *const c_char) -> *mut nmport_d {
    // SAFETY: by the contract above.
    pointer(unsafe { prepare(spec) })
}

/// # Safety
/// Null, or a port that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_undo_prepare(d: *mut nmport_d) {
    if !d.is_null() {
        // SAFETY: by the contract above.
        unsafe {
            nmport_undo_parse(d);
            nmport_delete(d);
        }
    }
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_open(spec: *const c_char) -> *mut nmport_d {
    // SAFETY: by the contract above; the port is new.
    pointer(unsafe {
        prepare(spec).and_then(|d| match open_desc(d) {
            Ok(()) => Ok(d),
            Err(errno) => {
                nmport_undo_prepare(d);
                Err(errno)
            }
        })
    })
}

/// # Safety
/// Null, or a port that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_close(d: *mut nmport_d) {
    if !d.is_null() {
        // SAFETY: by the contract above.
        unsafe {
            undo_open_desc(d);
            nmport_undo_prepare(d);
        }
    }
}

/// # Safety
/// A port.
unsafe fn clone(d: *mut nmport_d) -> Result<*mut nmport_d, Errno> {
    // SAFETY: by the contract above.
    unsafe {
        let hdr = (*d).hdr;
        let ctx = Ctx::new((*d).ctx).about(name(&hdr));
        if !(*d).extmem.is_null() && (*d).register_done == 0 {
            return ctx.fail(
                libc::EINVAL,
                format_args!("register a port with external memory before you clone it"),
            );
        }
        let copy = new(ctx)?;
        (*copy).hdr = hdr;
        (*copy).hdr.nr_options = 0;
        (*copy).hdr.nr_body = &raw mut (*copy).reg as u64;
        (*copy).reg = (*d).reg;
        let own = own_option::text(d);
        if !own.is_empty() {
            own_option::append(copy, &[own]).inspect_err(|_| nmport_delete(copy))?;
        }
        Ok(copy)
    }
}

/// # Safety
/// A port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_clone(d: *mut nmport_d) -> *mut nmport_d {
    // SAFETY: by the contract above.
    pointer(unsafe { clone(d) })
}
