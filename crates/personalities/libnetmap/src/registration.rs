//! From a filled-in descriptor to a port that can be used.

use std::ffi::c_int;

use ringway_abi::nmreq_header;

use crate::{
    ctx::Ctx,
    device::Device,
    errno::{Cause, Errno, status},
    mapping::{map, unmap},
    option_list::{self, walk},
    request::name,
    types::nmport_d,
};

/// # Safety
/// A port.
unsafe fn register(d: *mut nmport_d) -> Result<(), Errno> {
    // SAFETY: by the contract above.
    let (ctx, hdr) = unsafe { (Ctx::new((*d).ctx), (*d).hdr) };
    let ctx = ctx.about(name(&hdr));
    // SAFETY: by the contract above; nobody else uses the port.
    unsafe {
        if (*d).register_done != 0 {
            return ctx.fail(libc::EINVAL, format_args!("registered already"));
        }
        let device = Device::open(ctx)?;
        if let Err(errno) = device.control(&raw mut (*d).hdr) {
            report(&raw const (*d).hdr, errno, ctx);
            return Err(errno);
        }
        (*d).fd = device.into_fd();
        (*d).register_done = 1;
    }
    Ok(())
}

/// Says which options were refused, or, when none was, what became of the request.
///
/// # Safety
/// A header with its options.
unsafe fn report(hdr: *const nmreq_header, errno: Errno, ctx: Ctx) {
    let mut plain = true;
    // SAFETY: by the contract above.
    for option in unsafe { walk(hdr).map(|option| *option) } {
        if option.nro_status != 0 {
            plain = false;
            let kind = option_list::name(option.nro_reqtype).to_string_lossy();
            let cause = Cause(option.nro_status as Errno);
            let _ = ctx.fail::<()>(errno, format_args!("option {kind}: {cause}"));
        }
    }
    if plain {
        let _ = ctx.fail::<()>(errno, format_args!("cannot register: {}", Cause(errno)));
    }
}

/// # Safety
/// A port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_register(d: *mut nmport_d) -> c_int {
    // SAFETY: by the contract above.
    status(unsafe { register(d) })
}

/// # Safety
/// A port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_undo_register(d: *mut nmport_d) {
    // SAFETY: by the contract above; the descriptor is the port's.
    unsafe {
        if (*d).fd >= 0 {
            libc::close((*d).fd);
        }
        (*d).fd = -1;
        (*d).register_done = 0;
    }
}

/// # Safety
/// A port.
pub unsafe fn open_desc(d: *mut nmport_d) -> Result<(), Errno> {
    // SAFETY: by the contract above.
    unsafe {
        register(d)?;
        map(d).inspect_err(|_| nmport_undo_register(d))
    }
}

/// # Safety
/// A port.
pub unsafe fn undo_open_desc(d: *mut nmport_d) {
    // SAFETY: by the contract above.
    unsafe {
        unmap(d);
        nmport_undo_register(d);
    }
}

/// # Safety
/// A port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_open_desc(d: *mut nmport_d) -> c_int {
    // SAFETY: by the contract above.
    status(unsafe { open_desc(d) })
}

/// # Safety
/// A port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_undo_open_desc(d: *mut nmport_d) {
    // SAFETY: by the contract above.
    unsafe { undo_open_desc(d) };
}
