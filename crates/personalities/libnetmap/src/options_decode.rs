//! Lists of options in names, read with the program's or the library's own parsers.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr::{copy_nonoverlapping, null},
    sync::atomic::Ordering::Relaxed,
};

use ringway_portspec::{Body, Key, Opt};

use crate::{
    ctx::Ctx,
    errno::{self, Errno},
    request::refused,
    types::{
        MAXKEYS, OPTF_ALLOWEMPTY, OPTF_DISABLED, OPTK_ALLOWEMPTY, OPTK_MUSTSET, nmctx,
        nmreq_opt_key, nmreq_opt_parser, nmreq_parse_ctx,
    },
};

/// What the program gets: the result of the call, and `errno`.
pub struct Failure {
    pub result: c_int,
    pub errno: Errno,
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Failure {
        Failure { result: -1, errno }
    }
}

/// The value of each key, as a part of its option; `None` where it was not given.
type Values<'a> = [Option<&'a [u8]>; MAXKEYS];

/// # Safety
/// A parser.
unsafe fn keys(parser: &nmreq_opt_parser) -> impl Iterator<Item = (&CStr, &nmreq_opt_key)> {
    let count = usize::try_from(parser.nr_keys).unwrap_or(0).min(MAXKEYS);
    parser.keys[..count].iter().filter(|key| !key.key.is_null()).map(|key| {
        // SAFETY: by the contract above.
        (unsafe { CStr::from_ptr(key.key) }, key)
    })
}

/// # Safety
/// `parsers` is a list of them.
unsafe fn find<'a>(
    mut parsers: *const nmreq_opt_parser,
    option: &Opt,
    ctx: Ctx,
) -> Result<&'a nmreq_opt_parser, Errno> {
    let name = option.name.escape_ascii();
    // SAFETY: by the contract above.
    while let Some(parser) = unsafe { parsers.as_ref() } {
        // SAFETY: a parser has a prefix.
        if unsafe { CStr::from_ptr(parser.prefix) }.to_bytes() != option.name {
            parsers = parser.next;
        } else if parser.flags.load(Relaxed) & OPTF_DISABLED != 0 {
            return ctx.fail(libc::EOPNOTSUPP, format_args!("option {name} is disabled"));
        } else {
            return Ok(parser);
        }
    }
    ctx.fail(libc::EINVAL, format_args!("there is no option {name}"))
}

/// Finds the parser's key for each of the option's.
///
/// # Safety
/// A parser.
unsafe fn values<'a>(
    parser: &nmreq_opt_parser,
    option: &Opt<'a>,
    ctx: Ctx,
) -> Result<Values<'a>, Errno> {
    let mut values = [None; MAXKEYS];
    let name = option.name.escape_ascii();
    match &option.body {
        Body::None if parser.flags.load(Relaxed) & OPTF_ALLOWEMPTY == 0 => {
            return ctx.fail(libc::EINVAL, format_args!("option {name} takes a value"));
        }
        Body::None => {}
        Body::Default(value) => match usize::try_from(parser.default_key) {
            Ok(key) if key < MAXKEYS => values[key] = Some(*value),
            _ => {
                return ctx.fail(
                    libc::EINVAL,
                    format_args!("option {name} takes keys, as in @{name}:KEY=VALUE"),
                );
            }
        },
        Body::Keys(list) => {
            for key in list.clone() {
                let key = key.or_else(|problem| {
                    ctx.fail(libc::EINVAL, format_args!("option {name}: {problem}"))
                })?;
                // SAFETY: by the contract above.
                unsafe { set(parser, &key, &mut values) }.or_else(|problem| {
                    let key = key.name.escape_ascii();
                    ctx.fail(libc::EINVAL, format_args!("option {name}: {problem} {key}"))
                })?;
            }
        }
    }
    // SAFETY: by the contract above.
    for (key, nmreq_opt_key { id, flags, .. }) in unsafe { keys(parser) } {
        let given = usize::try_from(*id).ok().and_then(|id| *values.get(id)?);
        if flags & OPTK_MUSTSET != 0 && given.is_none() {
            let key = key.to_bytes().escape_ascii();
            return ctx.fail(libc::EINVAL, format_args!("option {name}: there is no {key}="));
        }
    }
    Ok(values)
}

/// # Safety
/// A parser.
unsafe fn set<'a>(
    parser: &nmreq_opt_parser,
    written: &Key<'a>,
    values: &mut Values<'a>,
) -> Result<(), &'static str> {
    // SAFETY: by the contract above.
    let (_, key) = unsafe { keys(parser) }
        .find(|(name, _)| written.is(name.to_bytes()))
        .ok_or("there is no key")?;
    let value = usize::try_from(key.id).ok().and_then(|id| values.get_mut(id));
    let value = value.ok_or("there is no place for key")?;
    if value.is_some() {
        return Err("twice the key");
    }
    *value = match written.value {
        // Nothing is as good as not given.
        Some(given) => Some(given).filter(|given| !given.is_empty()),
        // The key stands for itself, so that the parser can tell.
        None if key.flags & OPTK_ALLOWEMPTY != 0 => Some(written.name),
        None => return Err("there is no value for key"),
    };
    Ok(())
}

/// A copy of a list, in memory of the context, to be cut into C strings.
struct Copy<'a> {
    ctx: Ctx<'a>,
    text: *mut u8,
}

impl<'a> Copy<'a> {
    fn new(ctx: Ctx<'a>, text: &CStr) -> Result<Copy<'a>, Errno> {
        let text = text.to_bytes_with_nul();
        let copy: *mut u8 = ctx.malloc(text.len()).cast();
        if copy.is_null() {
            return ctx.fail(libc::ENOMEM, format_args!("no memory for a list of options"));
        }
        // SAFETY: the allocator has just given that many bytes.
        unsafe { copy_nonoverlapping(text.as_ptr(), copy, text.len()) };
        Ok(Copy { ctx, text: copy })
    }

    /// Cuts out a part of the list, as a C string.
    ///
    /// # Safety
    /// In the list, and followed by something that is not read any more.
    unsafe fn cut(&self, (at, length): (usize, usize)) -> *const c_char {
        // SAFETY: by the contract above; after the list there is a nul.
        unsafe {
            *self.text.add(at + length) = 0;
            self.text.add(at).cast()
        }
    }
}

impl Drop for Copy<'_> {
    fn drop(&mut self) {
        // SAFETY: of this context, and not used any more.
        unsafe { self.ctx.free(self.text) };
    }
}

/// # Safety
/// As [`nmreq_options_decode`].
pub unsafe fn decode(
    list: &CStr,
    parsers: *const nmreq_opt_parser,
    token: *mut c_void,
    ctx: Ctx,
) -> Result<(), Failure> {
    if list.is_empty() {
        return Ok(());
    }
    let ctx = ctx.about(list.to_bytes());
    let copy = Copy::new(ctx, list)?;
    let (start, mut rest) = (list.as_ptr().addr(), list.to_bytes());
    while !rest.is_empty() {
        let option;
        (option, rest) = ringway_portspec::option(rest).or_else(|problem| refused(ctx, problem))?;
        // SAFETY: by the contract above.
        let (parser, values) = unsafe {
            let parser = find(parsers, &option, ctx)?;
            (parser, values(parser, &option, ctx)?)
        };
        let keys = values.map(|value| match value {
            // SAFETY: read from the list, of which this is a copy; a separator follows.
            Some(value) => unsafe { copy.cut((value.as_ptr().addr() - start, value.len())) },
            None => null(),
        });
        let mut given = nmreq_parse_ctx { ctx: ctx.as_ptr(), token, keys };
        // SAFETY: the parser's own function, with what it is to be called with.
        let result = parser.parse.map_or(0, |parse| unsafe { parse(&mut given) });
        if result < 0 {
            return Err(Failure { result, errno: errno::get() });
        }
    }
    Ok(())
}

/// # Safety
/// A string, a list of parsers, what they take for a token, and a context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmreq_options_decode(
    opt: *const c_char,
    parsers: *const nmreq_opt_parser,
    token: *mut c_void,
    ctx: *mut nmctx,
) -> c_int {
    // SAFETY: by the contract above.
    match unsafe { decode(CStr::from_ptr(opt), parsers, token, Ctx::new(ctx)) } {
        Ok(()) => 0,
        Err(failure) => {
            errno::set(failure.errno);
            failure.result
        }
    }
}
