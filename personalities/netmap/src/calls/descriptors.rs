//! `open`, `close` and the ways to copy a descriptor.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_ulong},
    os::fd::{AsFd, IntoRawFd},
};

use crate::{
    netmap_fd::explain,
    next::{fail, keep_errno, next},
    probe, sets, table,
};

const DEVICE: &CStr = c"/dev/netmap";

fn is_device(path: *const c_char) -> bool {
    let name = DEVICE.to_bytes_with_nul();
    if !probe::readable(path, name.len()) {
        return false;
    }
    // SAFETY: so many bytes can be read; what lies behind the end of a shorter string does not
    // matter.
    let start = unsafe { std::slice::from_raw_parts(path.cast::<u8>(), name.len()) };
    start == name
}

/// Opens the device, if that is what `path` names: it may name anything, or nothing.
fn open_device(path: *const c_char, flags: c_int) -> Option<c_int> {
    is_device(path).then(|| match ringway_ipc::connect() {
        Ok(connection) => {
            if flags & libc::O_CLOEXEC == 0 {
                let _ = rustix::io::fcntl_setfd(&connection, rustix::io::FdFlags::empty());
            }
            if flags & libc::O_NONBLOCK != 0 {
                let _ = rustix::fs::fcntl_setfl(&connection, rustix::fs::OFlags::NONBLOCK);
            }
            if !table::insert(connection.as_fd()) {
                return fail(libc::EMFILE);
            }
            let fd = connection.into_raw_fd();
            if let Some(netmap) = table::netmap(fd) {
                netmap.set_access(flags & libc::O_ACCMODE);
            }
            fd
        }
        Err(error) => fail(explain(&error)),
    })
}

/// A descriptor that something else than us has made: whatever was known of the number is
/// out of date.
fn fresh(fd: c_int) -> c_int {
    if fd >= 0 {
        table::forget(fd);
    }
    fd
}

macro_rules! open_functions {
    ($($name:ident[$path:ident, $flags:ident]($($arg:ident: $type:ty),*);)*) => {$(
        /// # Safety
        /// As the function of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> c_int {
            match open_device($path, $flags) {
                Some(fd) => fd,
                None => fresh(next!($name: fn($($arg => $type),*) -> c_int)),
            }
        }
    )*};
}

open_functions! {
    open[path, flags](path: *const c_char, flags: c_int, mode: c_uint);
    open64[path, flags](path: *const c_char, flags: c_int, mode: c_uint);
    __open_2[path, flags](path: *const c_char, flags: c_int);
    __open64_2[path, flags](path: *const c_char, flags: c_int);
    openat[path, flags](dir: c_int, path: *const c_char, flags: c_int, mode: c_uint);
    openat64[path, flags](dir: c_int, path: *const c_char, flags: c_int, mode: c_uint);
    __openat_2[path, flags](dir: c_int, path: *const c_char, flags: c_int);
    __openat64_2[path, flags](dir: c_int, path: *const c_char, flags: c_int);
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    sets::closed(fd);
    let barrier = table::forget(fd);
    let done = next!(close: fn(fd => c_int) -> c_int);
    keep_errno(|| drop(barrier));
    done
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    const CLOEXEC: c_int = 1 << 2;
    let mut farewells = Vec::new();
    if flags & CLOEXEC == 0 {
        for fd in first..=last.min(0xffff) {
            sets::closed(fd as c_int);
            farewells.extend(table::forget(fd as c_int));
        }
    }
    let done = next!(close_range: fn(first => c_uint, last => c_uint, flags => c_int) -> c_int);
    keep_errno(|| drop(farewells));
    done
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closefrom(first: c_int) {
    // SAFETY: by the contract of the caller. Negative numbers mean all, as in libc.
    unsafe { close_range(first.max(0) as c_uint, c_uint::MAX, 0) };
}

/// Notes that `copy` is what `original` is.
fn copied(original: c_int, copy: c_int) -> c_int {
    if copy >= 0 && copy != original {
        // What had the number before is closed.
        sets::closed(copy);
        match table::netmap(original) {
            Some(netmap) => table::alias(&netmap, copy),
            None if table::is_set(original) => {
                table::mark_set(copy);
                sets::copied(original, copy);
            }
            None => drop(table::forget(copy)),
        }
    }
    copy
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup(fd: c_int) -> c_int {
    copied(fd, next!(dup: fn(fd => c_int) -> c_int))
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(fd: c_int, to: c_int) -> c_int {
    copied(fd, next!(dup2: fn(fd => c_int, to => c_int) -> c_int))
}

/// # Safety
/// As the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    copied(fd, next!(dup3: fn(fd => c_int, to => c_int, flags => c_int) -> c_int))
}

macro_rules! fcntl_functions {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the function of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, command: c_int, arg: c_ulong) -> c_int {
            let done =
                next!($name: fn(fd => c_int, command => c_int, arg => c_ulong) -> c_int);
            match command {
                libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => copied(fd, done),
                libc::F_GETFL if done >= 0 => match table::netmap(fd) {
                    Some(netmap) => done & !libc::O_ACCMODE | netmap.access(),
                    None => done,
                },
                _ => done,
            }
        }
    )*};
}

fcntl_functions!(fcntl fcntl64);
