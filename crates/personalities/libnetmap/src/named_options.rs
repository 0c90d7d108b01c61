//! The options that names of ports may carry: share, conf, extmem, offset, and Ringway's own.

use std::{
    ffi::{CStr, c_char, c_int, c_uint},
    ptr::null,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use ringway_abi::nmreq_register;

use crate::{
    ctx::Ctx,
    errno::{Errno, status},
    extmem::{nmport_extmem_from_file, nmport_extmem_getinfo},
    offset::nmport_offset,
    own_option,
    request::mem_id,
    types::{
        MAXKEYS, OPTF_DISABLED, OPTK_DEFAULT, OPTK_MUSTSET, nmport_d, nmreq_opt_key,
        nmreq_opt_parser, nmreq_parse_ctx,
    },
};

/// A parser of the library's own, which only its flags change.
struct Parser(nmreq_opt_parser);

// SAFETY: pointers to constants, and an atomic.
unsafe impl Sync for Parser {}

impl Parser {
    /// With keys numbered in the order given.
    const fn new(
        prefix: &'static CStr,
        parse: unsafe extern "C" fn(*mut nmreq_parse_ctx) -> c_int,
        keys: &[(&'static CStr, c_uint)],
        flags: u32,
        next: Option<&'static Parser>,
    ) -> Parser {
        let mut all = [nmreq_opt_key { key: null(), id: 0, flags: 0 }; MAXKEYS];
        let mut default_key = -1;
        let mut id = 0;
        while id < keys.len() {
            let (key, flags) = keys[id];
            all[id] = nmreq_opt_key { key: key.as_ptr(), id: id as c_int, flags };
            if flags & OPTK_DEFAULT != 0 {
                default_key = id as c_int;
            }
            id += 1;
        }
        Parser(nmreq_opt_parser {
            prefix: prefix.as_ptr(),
            parse: Some(parse),
            default_key,
            nr_keys: keys.len() as c_int,
            flags: AtomicU32::new(flags),
            next: match next {
                Some(next) => &raw const next.0,
                None => null(),
            },
            keys: all,
        })
    }
}

const MAIN: c_uint = OPTK_DEFAULT | OPTK_MUSTSET;

static SHARE: Parser = Parser::new(c"share", share, &[(c"port", MAIN)], 0, Some(&CONF));

static CONF: Parser = Parser::new(
    c"conf",
    conf,
    &[
        (c"rings", 0),
        (c"host_rings", 0),
        (c"slots", 0),
        (c"tx_rings", 0),
        (c"rx_rings", 0),
        (c"host_tx_rings", 0),
        (c"host_rx_rings", 0),
        (c"tx_slots", 0),
        (c"rx_slots", 0),
    ],
    0,
    Some(&EXTMEM),
);

static EXTMEM: Parser = Parser::new(
    c"extmem",
    extmem,
    &[
        (c"file", MAIN),
        (c"if_num", 0),
        (c"if_size", 0),
        (c"ring_num", 0),
        (c"ring_size", 0),
        (c"buf_num", 0),
        (c"buf_size", 0),
    ],
    0,
    Some(&OFFSET),
);

static OFFSET: Parser = Parser::new(
    c"offset",
    offset,
    &[(c"initial", MAIN), (c"bits", 0)],
    OPTF_DISABLED,
    Some(&FILTER),
);

static FILTER: Parser = Parser::new(c"filter", filter, &[(c"expression", MAIN)], 0, Some(&SAMPLE));

static SAMPLE: Parser = Parser::new(c"sample", sample, &[(c"one_in", MAIN)], 0, Some(&MODE));

static MODE: Parser = Parser::new(c"mode", mode, &[(c"mode", MAIN)], 0, Some(&BUFFERS));

static BUFFERS: Parser =
    Parser::new(c"buffers", buffers, &[(c"bytes", MAIN)], 0, Some(&TIMESTAMPS));

static TIMESTAMPS: Parser =
    Parser::new(c"timestamps", timestamps, &[(c"kind", MAIN)], 0, Some(&USER));

static USER: Parser = Parser::new(c"user", user, &[(c"name", MAIN)], 0, None);

/// All of them.
pub fn all() -> *const nmreq_opt_parser {
    &raw const SHARE.0
}

/// A number, as `atoi` reads it; `None` when its key was not given.
///
/// # Safety
/// Null or a string.
unsafe fn number(value: *const c_char) -> Option<c_int> {
    // SAFETY: by the contract above.
    (!value.is_null()).then(|| unsafe { libc::atoi(value) })
}

/// # Safety
/// Called with a port for a token.
unsafe extern "C" fn share(given: *mut nmreq_parse_ctx) -> c_int {
    // SAFETY: by the contract above; the key is mandatory.
    unsafe {
        let nmreq_parse_ctx { ctx, token, keys: [port, ..] } = *given;
        let d: *mut nmport_d = token.cast();
        status(join(&raw mut (*d).reg, port, Ctx::new(ctx)))
    }
}

/// Puts a registration into the region of a port.
///
/// # Safety
/// A registration and a string.
unsafe fn join(reg: *mut nmreq_register, mut port: *const c_char, ctx: Ctx) -> Result<(), Errno> {
    // SAFETY: by the contract above.
    unsafe {
        let wanted = mem_id(&mut port, ctx)?;
        match (*reg).nr_mem_id {
            other if other != 0 && other != wanted => ctx.fail(
                libc::EINVAL,
                format_args!("share: the port is to be in region {other}, not in {wanted}"),
            ),
            _ => {
                (*reg).nr_mem_id = wanted;
                Ok(())
            }
        }
    }
}

/// # Safety
/// Called with a port for a token.
unsafe extern "C" fn conf(given: *mut nmreq_parse_ctx) -> c_int {
    // SAFETY: by the contract above.
    let (reg, values) = unsafe {
        let nmreq_parse_ctx { token, keys, .. } = *given;
        let d: *mut nmport_d = token.cast();
        (&mut (*d).reg, keys.map(|value| number(value)))
    };
    let [rings, host_rings, slots, tx_rings, rx_rings, host_tx, host_rx, tx_slots, rx_slots, ..] =
        values;
    // One direction's number comes before that of both.
    let count = |field: &mut u16, one: Option<c_int>, both: Option<c_int>| {
        if let Some(count) = one.or(both) {
            *field = count as u16;
        }
    };
    count(&mut reg.nr_tx_rings, tx_rings, rings);
    count(&mut reg.nr_rx_rings, rx_rings, rings);
    count(&mut reg.nr_host_tx_rings, host_tx, host_rings);
    count(&mut reg.nr_host_rx_rings, host_rx, host_rings);
    if let Some(count) = tx_slots.or(slots) {
        reg.nr_tx_slots = count as u32;
    }
    if let Some(count) = rx_slots.or(slots) {
        reg.nr_rx_slots = count as u32;
    }
    0
}

/// # Safety
/// Called with a port for a token.
unsafe extern "C" fn extmem(given: *mut nmreq_parse_ctx) -> c_int {
    // SAFETY: by the contract above; the first key is mandatory.
    unsafe {
        let nmreq_parse_ctx { token, keys, .. } = *given;
        let d: *mut nmport_d = token.cast();
        if nmport_extmem_from_file(d, keys[0]) < 0 {
            return -1;
        }
        let info = nmport_extmem_getinfo(d);
        let pools = [
            &raw mut (*info).nr_if_pool_objtotal,
            &raw mut (*info).nr_if_pool_objsize,
            &raw mut (*info).nr_ring_pool_objtotal,
            &raw mut (*info).nr_ring_pool_objsize,
            &raw mut (*info).nr_buf_pool_objtotal,
            &raw mut (*info).nr_buf_pool_objsize,
        ];
        for (field, value) in pools.into_iter().zip(&keys[1..]) {
            if let Some(count) = number(*value) {
                *field = count as u32;
            }
        }
    }
    0
}

/// # Safety
/// Called with a port for a token.
unsafe extern "C" fn offset(given: *mut nmreq_parse_ctx) -> c_int {
    // SAFETY: by the contract above.
    unsafe {
        let nmreq_parse_ctx { token, keys: [initial, bits, ..], .. } = *given;
        let initial = number(initial).unwrap_or(0) as u64;
        let bits = number(bits).unwrap_or(0) as u64;
        nmport_offset(token.cast(), initial, initial, bits, 0)
    }
}

/// # Safety
/// Called with a port for a token.
unsafe extern "C" fn filter(given: *mut nmreq_parse_ctx) -> c_int {
    // SAFETY: by the contract above.
    unsafe { own(given, "filter") }
}

/// # Safety
/// Called with a port for a token.
unsafe extern "C" fn sample(given: *mut nmreq_parse_ctx) -> c_int {
    // SAFETY: by the contract above.
    unsafe { own(given, "sample") }
}

/// # Safety
/// Called with a port for a token.
unsafe extern "C" fn mode(given: *mut nmreq_parse_ctx) -> c_int {
    // SAFETY: by the contract above.
    unsafe { own(given, "mode") }
}

/// # Safety
/// Called with a port for a token.
unsafe extern "C" fn buffers(given: *mut nmreq_parse_ctx) -> c_int {
    // SAFETY: by the contract above.
    unsafe { own(given, "buffers") }
}

/// # Safety
/// Called with a port for a token.
unsafe extern "C" fn timestamps(given: *mut nmreq_parse_ctx) -> c_int {
    // SAFETY: by the contract above.
    unsafe { own(given, "timestamps") }
}

/// # Safety
/// Called with a port for a token.
unsafe extern "C" fn user(given: *mut nmreq_parse_ctx) -> c_int {
    // SAFETY: by the contract above.
    unsafe { own(given, "user") }
}

/// # Safety
/// Called with a port for a token, by an option whose only key is mandatory.
unsafe fn own(given: *mut nmreq_parse_ctx, name: &str) -> c_int {
    // SAFETY: by the contract above.
    unsafe {
        let nmreq_parse_ctx { token, keys: [value, ..], .. } = *given;
        status(own_option::add(token.cast(), name, CStr::from_ptr(value)))
    }
}

/// # Safety
/// A string.
unsafe fn flags(name: *const c_char) -> Option<&'static AtomicU32> {
    let all =
        [&SHARE, &CONF, &EXTMEM, &OFFSET, &FILTER, &SAMPLE, &MODE, &BUFFERS, &TIMESTAMPS, &USER];
    // SAFETY: by the contract above; prefixes are strings.
    let is_it =
        |parser: &Parser| unsafe { CStr::from_ptr(name) == CStr::from_ptr(parser.0.prefix) };
    let found = all.into_iter().find(|parser| is_it(parser));
    found.map(|parser| &parser.0.flags)
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_disable_option(name: *const c_char) {
    // SAFETY: by the contract above.
    if let Some(flags) = unsafe { flags(name) } {
        flags.fetch_or(OPTF_DISABLED, Relaxed);
    }
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_enable_option(name: *const c_char) -> c_int {
    // SAFETY: by the contract above.
    status(match unsafe { flags(name) } {
        Some(flags) => {
            flags.fetch_and(!OPTF_DISABLED, Relaxed);
            Ok(())
        }
        None => Err(libc::EOPNOTSUPP),
    })
}
