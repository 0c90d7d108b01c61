//! What `nmport_parse` and its friends have set up beside the descriptor, to be undone last
//! one first.

use std::{
    ffi::c_void,
    ptr::{null_mut, write},
};

use ringway_abi::{nmreq_opt_extmem, nmreq_option};

use crate::{ctx::Ctx, errno::Errno, option_list::nmreq_remove_option, types::nmport_d};

/// One thing to undo.
#[derive(Clone, Copy)]
pub enum Cleanup {
    Extmem(*mut nmreq_opt_extmem),
    Option(*mut nmreq_option),
    Mapping { mem: *mut c_void, size: usize },
}

/// A list, in memory of the context.
pub struct nmport_cleanup_d {
    next: *mut nmport_cleanup_d,
    what: Cleanup,
}

/// Remembers what was done; if there is no memory for it, undoes it at once.
///
/// # Safety
/// A port, and something of it that has been done.
pub unsafe fn remember(d: *mut nmport_d, ctx: Ctx, what: Cleanup) -> Result<(), Errno> {
    match ctx.zeroed::<nmport_cleanup_d>("what is to be undone") {
        Ok(record) => {
            // SAFETY: by the contract above; the record is new.
            unsafe {
                write(record, nmport_cleanup_d { next: (*d).clist, what });
                (*d).clist = record;
            }
            Ok(())
        }
        Err(errno) => {
            // SAFETY: by the contract above.
            unsafe { undo(d, ctx, what) };
            Err(errno)
        }
    }
}

/// Undoes the newest thing on the list; false when it is empty.
///
/// # Safety
/// A port.
pub unsafe fn undo_last(d: *mut nmport_d, ctx: Ctx) -> bool {
    // SAFETY: records of the list are valid, and come from this context.
    unsafe {
        let record = (*d).clist;
        if record.is_null() {
            return false;
        }
        (*d).clist = (*record).next;
        undo(d, ctx, (*record).what);
        ctx.free(record);
    }
    true
}

/// # Safety
/// A port, and something of it that has been done.
unsafe fn undo(d: *mut nmport_d, ctx: Ctx, what: Cleanup) {
    // SAFETY: by the contract above: the options are the context's; one that is not in the port's
    // list stays as it is.
    unsafe {
        match what {
            Cleanup::Extmem(option) => {
                nmreq_remove_option(&raw mut (*d).hdr, option.cast());
                (*d).extmem = null_mut();
                ctx.free(option);
            }
            Cleanup::Option(option) => {
                nmreq_remove_option(&raw mut (*d).hdr, option);
                ctx.free(option);
            }
            Cleanup::Mapping { mem, size } => {
                libc::munmap(mem, size);
            }
        }
    }
}
