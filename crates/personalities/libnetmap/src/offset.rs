//! Packets that do not start where their buffer does: the option OFFSETS.

use std::ffi::c_int;

use ringway_abi::{NETMAP_REQ_OPT_OFFSETS, nmreq_opt_offsets};

use crate::{
    cleanup::{Cleanup, remember},
    ctx::Ctx,
    errno::{Errno, status},
    option_list::nmreq_push_option,
    types::nmport_d,
};

/// # Safety
/// A port.
unsafe fn add(
    d: *mut nmport_d,
    initial: u64,
    maxoff: u64,
    bits: u64,
    mingap: u64,
) -> Result<(), Errno> {
    // SAFETY: by the contract above.
    let ctx = unsafe { Ctx::new((*d).ctx) };
    let option: *mut nmreq_opt_offsets = ctx.zeroed("the option offsets")?;
    // SAFETY: by the contract above; the option is new and all of zeroes.
    unsafe {
        (*option).nro_opt.nro_reqtype = NETMAP_REQ_OPT_OFFSETS;
        (*option).nro_initial_offset = initial;
        (*option).nro_max_offset = maxoff;
        (*option).nro_offset_bits = bits as u32;
        (*option).nro_min_gap = mingap;
        nmreq_push_option(&raw mut (*d).hdr, option.cast());
        remember(d, ctx, Cleanup::Option(option.cast()))
    }
}

/// # Safety
/// A port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_offset(
    d: *mut nmport_d,
    initial: u64,
    maxoff: u64,
    bits: u64,
    mingap: u64,
) -> c_int {
    // SAFETY: by the contract above.
    status(unsafe { add(d, initial, maxoff, bits, mingap) })
}
