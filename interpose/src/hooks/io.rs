//! `read`, `write` and their relatives: a personality may answer them without looking at what is to be
//! moved. A descriptor that was never seen is not looked at for them, since it is hardly ever one of
//! ours, and they are called often.

use std::ffi::{c_int, c_void};

use libc::{iovec, off_t, size_t, ssize_t};

use crate::{
    descriptors::{self, InUse, Known},
    real_libc::{fail, real},
};

/// The answer to a call on a descriptor of ours. `None`: the next library has it.
#[inline]
fn answer(fd: c_int, ask: impl FnOnce(&InUse) -> Option<Result<usize, c_int>>) -> Option<ssize_t> {
    let Known::Own(own) = descriptors::known(fd) else { return None };
    let answer = ask(&own)?;
    Some(answer.map_or_else(|errno| fail(errno) as ssize_t, |done| done as ssize_t))
}

macro_rules! io_functions {
    ($($ask:ident: $name:ident($($arg:ident: $type:ty),*);)*) => {$(
        /// # Safety
        /// As the function of libc.
        pub unsafe extern "C" fn $name(fd: c_int, $($arg: $type),*) -> ssize_t {
            match answer(fd, |own| own.$ask(fd)) {
                Some(done) => done,
                None => real!($name: fn(fd => c_int, $($arg => $type),*) -> ssize_t),
            }
        }
    )*};
}

io_functions! {
    read: read(to: *mut c_void, len: size_t);
    read: __read_chk(to: *mut c_void, len: size_t, size: size_t);
    read: pread(to: *mut c_void, len: size_t, at: off_t);
    read: pread64(to: *mut c_void, len: size_t, at: off_t);
    read: __pread_chk(to: *mut c_void, len: size_t, at: off_t, size: size_t);
    read: __pread64_chk(to: *mut c_void, len: size_t, at: off_t, size: size_t);
    read: readv(to: *const iovec, count: c_int);
    read: preadv(to: *const iovec, count: c_int, at: off_t);
    read: preadv64(to: *const iovec, count: c_int, at: off_t);
    read: preadv2(to: *const iovec, count: c_int, at: off_t, flags: c_int);
    read: preadv64v2(to: *const iovec, count: c_int, at: off_t, flags: c_int);
    write: write(from: *const c_void, len: size_t);
    write: pwrite(from: *const c_void, len: size_t, at: off_t);
    write: pwrite64(from: *const c_void, len: size_t, at: off_t);
    write: writev(from: *const iovec, count: c_int);
    write: pwritev(from: *const iovec, count: c_int, at: off_t);
    write: pwritev64(from: *const iovec, count: c_int, at: off_t);
    write: pwritev2(from: *const iovec, count: c_int, at: off_t, flags: c_int);
    write: pwritev64v2(from: *const iovec, count: c_int, at: off_t, flags: c_int);
}
