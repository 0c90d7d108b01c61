//! `socket`, `getsockopt` and `setsockopt`.

use std::ffi::{c_int, c_void};

use libc::socklen_t;

use crate::{
    descriptors,
    hooks::descriptors::{made, number_of},
    personality::SocketOption,
    real_libc::{fail, real},
};

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    /// `socket` has `open`'s flags among the bits of the kind.
    const FLAGS: c_int = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    const _: () = assert!(libc::SOCK_CLOEXEC == libc::O_CLOEXEC);
    const _: () = assert!(libc::SOCK_NONBLOCK == libc::O_NONBLOCK);
    match descriptors::claim(|p| p.socket(domain, kind & !FLAGS, protocol)) {
        Some((personality, opened)) => number_of(opened, personality, libc::O_RDWR | kind & FLAGS),
        None => made(real!(
            socket: fn(domain => c_int, kind => c_int, protocol => c_int) -> c_int
        )),
    }
}

fn done(answer: Result<(), c_int>) -> c_int {
    answer.map_or_else(fail, |()| 0)
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    let option = SocketOption { level, name };
    let own = descriptors::get(fd);
    match own.and_then(|own| own.set_option(fd, option, value as u64, len)) {
        Some(answer) => done(answer),
        None => real!(
            setsockopt: fn(
                fd => c_int,
                level => c_int,
                name => c_int,
                value => *const c_void,
                len => socklen_t,
            ) -> c_int
        ),
    }
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let option = SocketOption { level, name };
    let own = descriptors::get(fd);
    match own.and_then(|own| own.get_option(fd, option, value as u64, len as u64)) {
        Some(answer) => done(answer),
        None => real!(
            getsockopt: fn(
                fd => c_int,
                level => c_int,
                name => c_int,
                value => *mut c_void,
                len => *mut socklen_t,
            ) -> c_int
        ),
    }
}
