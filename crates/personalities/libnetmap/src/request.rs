//! Requests from names: what is in front of the options.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr::null_mut,
};

use ringway_abi::{
    NETMAP_API, NETMAP_REQ_IFNAMSIZ, NETMAP_REQ_PORT_INFO_GET, NETMAP_RING_MASK, NR_EXCLUSIVE,
    NR_MONITOR_RX, NR_MONITOR_TX, NR_REG_ALL_NIC, NR_REG_NIC_SW, NR_REG_ONE_NIC, NR_REG_ONE_SW,
    NR_REG_SW, NR_RX_RINGS_ONLY, NR_TX_RINGS_ONLY, NR_ZCOPY_MON, nmreq_header, nmreq_port_info_get,
    nmreq_register,
};
use ringway_portspec::{NAME_MAX, RINGS_MAX, Register, Rings};

use crate::{
    ctx::Ctx,
    device::Device,
    errno::{Cause, Errno, number, status},
    types::nmctx,
};

// What the grammar takes has room in a request.
const _: () = assert!(NAME_MAX < NETMAP_REQ_IFNAMSIZ && RINGS_MAX <= NETMAP_RING_MASK);

/// The C string at `*text`.
///
/// # Safety
/// `*text` is a nul-terminated string, unchanged while the result is used.
unsafe fn string<'a>(text: *const *const c_char) -> &'a [u8] {
    // SAFETY: by the contract above.
    unsafe { CStr::from_ptr(*text) }.to_bytes()
}

/// Moves `*text`, of `length` bytes, to its last `rest` bytes.
///
/// # Safety
/// `*text` has `length` bytes, and `rest` is no more.
unsafe fn advance(text: *mut *const c_char, length: usize, rest: usize) {
    // SAFETY: stays within the string.
    unsafe { *text = (*text).add(length - rest) };
}

/// What is wrong with a name.
pub fn refused<T>(ctx: Ctx, problem: ringway_portspec::Error) -> Result<T, Errno> {
    ctx.fail(libc::EINVAL, format_args!("{problem}"))
}

/// The name in a request.
pub fn name(header: &nmreq_header) -> &[u8] {
    header.nr_name.split(|byte| *byte == 0).next().unwrap_or(b"")
}

/// An empty request.
pub fn empty(reqtype: u16, body: *mut c_void) -> nmreq_header {
    nmreq_header {
        nr_version: NETMAP_API,
        nr_reqtype: reqtype,
        nr_reserved: 0,
        nr_name: [0; 64],
        nr_options: 0,
        nr_body: body as u64,
    }
}

/// # Safety
/// `hdr` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmreq_header_init(
    hdr: *mut nmreq_header,
    reqtype: u16,
    body: *mut c_void,
) {
    // SAFETY: by the contract above; what was there needs no care.
    unsafe { hdr.write(empty(reqtype, body)) };
}

/// # Safety
/// As [`nmreq_header_decode`].
pub unsafe fn decode_header(
    spec: *mut *const c_char,
    hdr: *mut nmreq_header,
    ctx: Ctx,
) -> Result<(), Errno> {
    // SAFETY: by the contract above.
    let text = unsafe { string(spec) };
    let (name, rest) =
        ringway_portspec::header(text).or_else(|problem| refused(ctx.about(text), problem))?;
    let mut nr_name = [0; 64];
    nr_name[..name.len()].copy_from_slice(name);
    // SAFETY: by the contract above; the rest is the end of the text.
    unsafe {
        (*hdr).nr_name = nr_name;
        advance(spec, text.len(), rest.len());
    }
    Ok(())
}

/// # Safety
/// `*spec` is a string, `hdr` a header, `ctx` a context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmreq_header_decode(
    spec: *mut *const c_char,
    hdr: *mut nmreq_header,
    ctx: *mut nmctx,
) -> c_int {
    // SAFETY: by the contract above.
    status(unsafe { decode_header(spec, hdr, Ctx::new(ctx)) })
}

/// Writes mode, ring, flags and region; leaves the other fields.
fn store(reg: &mut nmreq_register, how: &Register) {
    let Register { rings, flags, mem_id } = *how;
    (reg.nr_mode, reg.nr_ringid) = match rings {
        Rings::All => (NR_REG_ALL_NIC, 0),
        Rings::Host => (NR_REG_SW, 0),
        Rings::AllAndHost => (NR_REG_NIC_SW, 0),
        Rings::One(ring) => (NR_REG_ONE_NIC, ring),
        Rings::OneHost(ring) => (NR_REG_ONE_SW, ring),
    };
    let said = [
        (flags.exclusive, NR_EXCLUSIVE),
        (flags.rx_only, NR_RX_RINGS_ONLY),
        (flags.tx_only, NR_TX_RINGS_ONLY),
        (flags.monitor_tx, NR_MONITOR_TX),
        (flags.monitor_rx, NR_MONITOR_RX),
        (flags.zero_copy_monitor, NR_ZCOPY_MON),
    ];
    reg.nr_flags = said.iter().filter(|(said, _)| *said).map(|(_, flag)| flag).sum();
    reg.nr_mem_id = mem_id;
}

/// # Safety
/// As [`nmreq_register_decode`].
pub unsafe fn decode_register(
    mode: *mut *const c_char,
    reg: *mut nmreq_register,
    ctx: Ctx,
) -> Result<(), Errno> {
    // SAFETY: by the contract above.
    let (text, reg) = unsafe { (string(mode), &mut *reg) };
    let (how, rest) = ringway_portspec::register(text, reg.nr_mem_id)
        .or_else(|problem| refused(ctx.about(text), problem))?;
    store(reg, &how);
    // SAFETY: by the contract above; the rest is the end of the text.
    unsafe { advance(mode, text.len(), rest.len()) };
    Ok(())
}

/// # Safety
/// `*mode` is a string, `reg` a registration, `ctx` a context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmreq_register_decode(
    mode: *mut *const c_char,
    reg: *mut nmreq_register,
    ctx: *mut nmctx,
) -> c_int {
    // SAFETY: by the contract above.
    status(unsafe { decode_register(mode, reg, Ctx::new(ctx)) })
}

/// # Safety
/// As [`nmreq_get_mem_id`].
pub unsafe fn mem_id(portname: *mut *const c_char, ctx: Ctx) -> Result<u16, Errno> {
    let device = Device::open(ctx)?;
    let mut info = nmreq_port_info_get::default();
    let mut header = empty(NETMAP_REQ_PORT_INFO_GET, null_mut());
    // SAFETY: by the contract above.
    let ctx = ctx.about(unsafe { string(portname) });
    // SAFETY: by the contract above.
    unsafe { decode_header(portname, &mut header, ctx)? };
    header.nr_body = &raw mut info as u64;
    // SAFETY: the body is ours, and there are no options.
    match unsafe { device.control(&mut header) } {
        Ok(()) => Ok(info.nr_mem_id),
        Err(errno) => ctx.fail(errno, format_args!("cannot find its region: {}", Cause(errno))),
    }
}

/// # Safety
/// `*portname` is a string, `ctx` a context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmreq_get_mem_id(portname: *mut *const c_char, ctx: *mut nmctx) -> i32 {
    // SAFETY: by the contract above.
    number(unsafe { mem_id(portname, Ctx::new(ctx)) }.map(i32::from))
}
