//! `socket`, `bind` and `getsockname`, `getsockopt` and `setsockopt`, and the ways to send and to receive.

use std::{
    ffi::{c_int, c_void},
    ptr::null,
};

use libc::{msghdr, size_t, sockaddr, socklen_t, ssize_t};

use crate::{
    descriptors::{self, Known},
    hooks::{
        descriptors::{made, number_of},
        netlink::{self, Pieces},
    },
    personality::SocketOption,
    real_libc::{fail, keep_errno, real},
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
        None => {
            netlink::made(domain, protocol);
            made(real!(socket: fn(domain => c_int, kind => c_int, protocol => c_int) -> c_int))
        }
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
    let own = own.or_else(|| descriptors::adopt(fd, option, value as u64, len));
    match own.and_then(|own| keep_errno(|| own.set_option(fd, option, value as u64, len))) {
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
    match own.and_then(|own| keep_errno(|| own.get_option(fd, option, value as u64, len as u64))) {
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

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn bind(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    let own = descriptors::get(fd);
    match own.and_then(|own| keep_errno(|| own.bind(fd, address as u64, len))) {
        Some(answer) => done(answer),
        None => real!(
            bind: fn(fd => c_int, address => *const sockaddr, len => socklen_t) -> c_int
        ),
    }
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn getsockname(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    let own = descriptors::get(fd);
    match own.and_then(|own| keep_errno(|| own.socket_name(fd, address as u64, len as u64))) {
        Some(answer) => done(answer),
        None => real!(
            getsockname: fn(
                fd => c_int,
                address => *mut sockaddr,
                len => *mut socklen_t,
            ) -> c_int
        ),
    }
}

/// Apart from the functions, which are called often. A descriptor that was never seen is not looked at.
#[inline(never)]
fn sent(fd: c_int, flags: c_int) -> Option<ssize_t> {
    let Known::Own(own) = descriptors::known(fd) else { return None };
    let answer = keep_errno(|| own.send(fd, flags))?;
    Some(answer.map_or_else(|errno| fail(errno) as ssize_t, |done| done as ssize_t))
}

macro_rules! send_functions {
    ($($name:ident($flags:ident; $($arg:ident: $type:ty),*) => $pieces:expr, $to:expr;)*) => {$(
        /// # Safety
        /// As the function of libc.
        pub unsafe extern "C-unwind" fn $name(fd: c_int, $($arg: $type),*) -> ssize_t {
            if descriptors::may_be_own(fd)
                && let Some(done) = sent(fd, $flags)
            {
                return done;
            }
            if netlink::is_used()
                && let Some(done) = netlink::send(fd, &$pieces, $to, $flags)
            {
                return done;
            }
            real!(unwinding $name: fn(fd => c_int, $($arg => $type),*) -> ssize_t)
        }
    )*};
}

send_functions! {
    send(flags; from: *const c_void, len: size_t, flags: c_int)
        => Pieces::one(from, len), (null(), 0);
    __send(flags; from: *const c_void, len: size_t, flags: c_int)
        => Pieces::one(from, len), (null(), 0);
    sendto(flags; from: *const c_void, len: size_t, flags: c_int, to: *const sockaddr, size: socklen_t)
        => Pieces::one(from, len), (to.cast(), size);
    sendmsg(flags; message: *const msghdr, flags: c_int)
        => Pieces::of_message(message), netlink::address_of(message);
}

/// As [`sent`]. What lies in the kernel's descriptor is no message of the program's.
#[inline(never)]
pub(super) fn received(fd: c_int) -> Option<ssize_t> {
    let Known::Own(own) = descriptors::known(fd) else { return None };
    let answer = keep_errno(|| own.receive(fd))?;
    Some(answer.map_or_else(|errno| fail(errno) as ssize_t, |done| done as ssize_t))
}

macro_rules! receive_functions {
    ($($name:ident($to:ident, $len:ident, $flags:ident; $($arg:ident: $type:ty),*);)*) => {$(
        /// # Safety
        /// As the function of libc.
        pub unsafe extern "C-unwind" fn $name(fd: c_int, $($arg: $type),*) -> ssize_t {
            if descriptors::may_be_own(fd)
                && let Some(done) = received(fd)
            {
                return done;
            }
            let got = real!(unwinding $name: fn(fd => c_int, $($arg => $type),*) -> ssize_t);
            if !netlink::is_waiting() {
                return got;
            }
            // SAFETY: what the kernel has received is there.
            unsafe { netlink::received(fd, &Pieces::one($to, $len), got, $flags) }
        }
    )*};
}

receive_functions! {
    recv(to, len, flags; to: *mut c_void, len: size_t, flags: c_int);
    __recv_chk(to, len, flags; to: *mut c_void, len: size_t, size: size_t, flags: c_int);
    recvfrom(to, len, flags;
        to: *mut c_void, len: size_t, flags: c_int, from: *mut sockaddr, length: *mut socklen_t);
    __recvfrom_chk(to, len, flags;
        to: *mut c_void, len: size_t, size: size_t, flags: c_int, from: *mut sockaddr, length: *mut socklen_t);
}
