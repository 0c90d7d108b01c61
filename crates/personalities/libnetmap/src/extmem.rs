//! Regions in memory of the program's own: the option EXTMEM.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    mem::zeroed,
    ptr::null_mut,
};

use ringway_abi::{NETMAP_REQ_OPT_EXTMEM, nmreq_opt_extmem, nmreq_pools_info};

use crate::{
    cleanup::{Cleanup, remember, undo_last},
    ctx::Ctx,
    errno::{self, Cause, Errno, status},
    option_list::nmreq_push_option,
    request::name,
    types::nmport_d,
};

/// # Safety
/// A port.
unsafe fn add(d: *mut nmport_d, base: *mut c_void, size: usize) -> Result<(), Errno> {
    // SAFETY: by the contract above.
    let (ctx, hdr, registered, has_extmem) =
        unsafe { (Ctx::new((*d).ctx), (*d).hdr, (*d).register_done != 0, !(*d).extmem.is_null()) };
    let ctx = ctx.about(name(&hdr));
    if registered {
        return ctx.fail(libc::EINVAL, format_args!("extmem: the port is registered already"));
    }
    if has_extmem {
        return ctx.fail(libc::EINVAL, format_args!("extmem: the port has external memory"));
    }
    let option: *mut nmreq_opt_extmem = ctx.zeroed("the option extmem")?;
    // SAFETY: by the contract above; the option is new and all of zeroes.
    unsafe {
        (*option).nro_opt.nro_reqtype = NETMAP_REQ_OPT_EXTMEM;
        (*option).nro_usrptr = base as u64;
        (*option).nro_info.nr_memsize = size as u64;
        nmreq_push_option(&raw mut (*d).hdr, option.cast());
        (*d).extmem = option;
        remember(d, ctx, Cleanup::Extmem(option))
    }
}

/// Maps a whole file, shared and writable.
fn map(file: &CStr) -> Result<(*mut c_void, usize), Errno> {
    // SAFETY: a nul-terminated path, our own descriptor, a structure of integers, and a
    // mapping at an address that the kernel chooses.
    unsafe {
        let fd = libc::open(file.as_ptr(), libc::O_RDWR);
        if fd < 0 {
            return Err(errno::get());
        }
        let mut found: libc::stat = zeroed();
        let mapped = match libc::fstat(fd, &mut found) {
            0 => {
                let (size, access) = (found.st_size as usize, libc::PROT_READ | libc::PROT_WRITE);
                match libc::mmap(null_mut(), size, access, libc::MAP_SHARED, fd, 0) {
                    libc::MAP_FAILED => Err(errno::get()),
                    mem => Ok((mem, size)),
                }
            }
            _ => Err(errno::get()),
        };
        libc::close(fd);
        mapped
    }
}

/// # Safety
/// A port.
unsafe fn add_file(d: *mut nmport_d, file: &CStr) -> Result<(), Errno> {
    // SAFETY: by the contract above.
    let (ctx, hdr) = unsafe { (Ctx::new((*d).ctx), (*d).hdr) };
    let ctx = ctx.about(name(&hdr));
    let (mem, size) = map(file).or_else(|errno| {
        let file = file.to_bytes().escape_ascii();
        ctx.fail(errno, format_args!("extmem: cannot map {file}: {}", Cause(errno)))
    })?;
    // SAFETY: by the contract above; the mapping is new, and the newest thing to undo if the
    // option is not to be had.
    unsafe {
        remember(d, ctx, Cleanup::Mapping { mem, size })?;
        add(d, mem, size).inspect_err(|_| {
            undo_last(d, ctx);
        })
    }
}

/// # Safety
/// A port, and memory that stays until the port is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_extmem(d: *mut nmport_d, base: *mut c_void, size: usize) -> c_int {
    // SAFETY: by the contract above.
    status(unsafe { add(d, base, size) })
}

/// # Safety
/// A port and a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_extmem_from_file(d: *mut nmport_d, file: *const c_char) -> c_int {
    // SAFETY: by the contract above.
    status(unsafe { add_file(d, CStr::from_ptr(file)) })
}

/// # Safety
/// A port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_extmem_getinfo(d: *mut nmport_d) -> *mut nmreq_pools_info {
    // SAFETY: by the contract above; the option is the port's.
    unsafe {
        match (*d).extmem {
            option if option.is_null() => null_mut(),
            option => &raw mut (*option).nro_info,
        }
    }
}
