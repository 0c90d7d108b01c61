//! The structures of `libnetmap.h`.

use std::{
    ffi::{c_char, c_int, c_uint, c_void},
    mem::align_of,
    sync::atomic::AtomicU32,
};

use ringway_abi::{assert_layout, netmap_if, nmreq_header, nmreq_opt_extmem, nmreq_register};

use crate::cleanup::nmport_cleanup_d;

/// A port; the program reads it, and writes `hdr` and `reg` before it is registered.
#[repr(C)]
pub struct nmport_d {
    pub hdr: nmreq_header,
    pub reg: nmreq_register,
    pub mem: *mut nmem_d,
    pub ctx: *mut nmctx,
    pub register_done: c_int,
    pub mmap_done: c_int,
    pub extmem: *mut nmreq_opt_extmem,
    pub fd: c_int,
    pub nifp: *mut netmap_if,
    pub first_tx_ring: u16,
    pub last_tx_ring: u16,
    pub first_rx_ring: u16,
    pub last_rx_ring: u16,
    pub cur_tx_ring: u16,
    pub cur_rx_ring: u16,
    pub clist: *mut nmport_cleanup_d,
}

/// How to report, allocate and lock; see `ctx`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nmctx {
    pub verbose: c_int,
    pub error: Option<unsafe extern "C" fn(*mut nmctx, *const c_char)>,
    pub malloc: Option<unsafe extern "C" fn(*mut nmctx, usize) -> *mut c_void>,
    pub free: Option<unsafe extern "C" fn(*mut nmctx, *mut c_void)>,
    pub lock: Option<unsafe extern "C" fn(*mut nmctx, c_int)>,
    pub mem_descs: *mut nmem_d,
}

/// A mapping, in the list of its context.
#[repr(C)]
pub struct nmem_d {
    pub mem_id: u16,
    pub refcount: c_int,
    pub mem: *mut c_void,
    pub size: usize,
    pub is_extmem: c_int,
    pub next: *mut nmem_d,
    pub prev: *mut nmem_d,
}

pub const MAXKEYS: usize = 16;
pub const OPTK_ALLOWEMPTY: c_uint = 1;
pub const OPTK_MUSTSET: c_uint = 2;
pub const OPTK_DEFAULT: c_uint = 4;
pub const OPTF_DISABLED: u32 = 1;
pub const OPTF_ALLOWEMPTY: u32 = 2;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct nmreq_opt_key {
    pub key: *const c_char,
    pub id: c_int,
    pub flags: c_uint,
}

/// An option that a name may carry.
#[repr(C, align(16))]
pub struct nmreq_opt_parser {
    pub prefix: *const c_char,
    pub parse: Option<unsafe extern "C" fn(*mut nmreq_parse_ctx) -> c_int>,
    pub default_key: c_int,
    pub nr_keys: c_int,
    /// Changes while the process runs, in the library's own parsers.
    pub flags: AtomicU32,
    pub next: *const nmreq_opt_parser,
    pub keys: [nmreq_opt_key; MAXKEYS],
}

#[repr(C)]
pub struct nmreq_parse_ctx {
    pub ctx: *mut nmctx,
    pub token: *mut c_void,
    pub keys: [*const c_char; MAXKEYS],
}

assert_layout! {
    nmport_d: 216 { hdr @ 0, reg @ 88, mem @ 144, ctx @ 152, register_done @ 160, mmap_done @ 164, extmem @ 168, fd @ 176, nifp @ 184, first_tx_ring @ 192, last_tx_ring @ 194, first_rx_ring @ 196, last_rx_ring @ 198, cur_tx_ring @ 200, cur_rx_ring @ 202, clist @ 208 },
    nmctx: 48 { verbose @ 0, error @ 8, malloc @ 16, free @ 24, lock @ 32, mem_descs @ 40 },
    nmem_d: 48 { mem_id @ 0, refcount @ 4, mem @ 8, size @ 16, is_extmem @ 24, next @ 32, prev @ 40 },
    nmreq_opt_key: 16 { key @ 0, id @ 8, flags @ 12 },
    nmreq_opt_parser: 304 { prefix @ 0, parse @ 8, default_key @ 16, nr_keys @ 20, flags @ 24, next @ 32, keys @ 40 },
    nmreq_parse_ctx: 144 { ctx @ 0, token @ 8, keys @ 16 },
}
const _: () = assert!(align_of::<nmreq_opt_parser>() == 16);
