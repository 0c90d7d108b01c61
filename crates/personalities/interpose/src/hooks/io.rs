//! `read`, `write` and their relatives: a personality may answer them without looking at what is to be
//! moved. A descriptor that was never seen is not looked at for them, since it is hardly ever one of
//! ours, and they are called often.

use std::{
    ffi::{c_int, c_void},
    ptr::null,
};

use libc::{iovec, off_t, size_t, ssize_t};

use crate::{
    descriptors::{self, InUse, Known},
    hooks::netlink::{self, Pieces},
    real_libc::{fail, keep_errno, real},
};

/// What a personality says to a call on a descriptor of its own. `None`: the next library has it.
type Answer = fn(&InUse, c_int) -> Option<Result<usize, c_int>>;

/// Apart from the functions, which are many: what they do for foreign descriptors is next to nothing.
#[inline(never)]
fn answer(fd: c_int, ask: Answer) -> Option<ssize_t> {
    let Known::Own(own) = descriptors::known(fd) else { return None };
    let answer = keep_errno(|| ask(&own, fd))?;
    Some(answer.map_or_else(|errno| fail(errno) as ssize_t, |done| done as ssize_t))
}

fn read_own(own: &InUse, fd: c_int) -> Option<Result<usize, c_int>> {
    own.read(fd)
}

fn write_own(own: &InUse, fd: c_int) -> Option<Result<usize, c_int>> {
    own.write(fd)
}

macro_rules! io_functions {
    ($($ask:ident: $name:ident($($arg:ident: $type:ty),*) $(from $sent:expr)? $(, to $got:expr)?;)*) => {$(
        /// # Safety
        /// As the function of libc.
        pub unsafe extern "C-unwind" fn $name(fd: c_int, $($arg: $type),*) -> ssize_t {
            if descriptors::may_be_own(fd)
                && let Some(done) = answer(fd, $ask)
            {
                return done;
            }
            $(if netlink::is_used()
                && let Some(done) = netlink::send(fd, &$sent, (null(), 0), 0)
            {
                return done;
            })?
            let done = real!(unwinding $name: fn(fd => c_int, $($arg => $type),*) -> ssize_t);
            $(if netlink::is_waiting() {
                // SAFETY: what the kernel has received is there.
                return unsafe { netlink::received(fd, &$got, done, 0) };
            })?
            done
        }
    )*};
}

io_functions! {
    read_own: read(to: *mut c_void, len: size_t), to Pieces::one(to, len);
    read_own: __read_chk(to: *mut c_void, len: size_t, size: size_t), to Pieces::one(to, len);
    read_own: pread(to: *mut c_void, len: size_t, at: off_t);
    read_own: pread64(to: *mut c_void, len: size_t, at: off_t);
    read_own: __pread_chk(to: *mut c_void, len: size_t, at: off_t, size: size_t);
    read_own: __pread64_chk(to: *mut c_void, len: size_t, at: off_t, size: size_t);
    read_own: readv(to: *const iovec, count: c_int), to Pieces::of(to, count as usize);
    read_own: preadv(to: *const iovec, count: c_int, at: off_t);
    read_own: preadv64(to: *const iovec, count: c_int, at: off_t);
    read_own: preadv2(to: *const iovec, count: c_int, at: off_t, flags: c_int);
    read_own: preadv64v2(to: *const iovec, count: c_int, at: off_t, flags: c_int);
    write_own: write(from: *const c_void, len: size_t) from Pieces::one(from, len);
    write_own: pwrite(from: *const c_void, len: size_t, at: off_t);
    write_own: pwrite64(from: *const c_void, len: size_t, at: off_t);
    write_own: writev(from: *const iovec, count: c_int) from Pieces::of(from, count as usize);
    write_own: pwritev(from: *const iovec, count: c_int, at: off_t);
    write_own: pwritev64(from: *const iovec, count: c_int, at: off_t);
    write_own: pwritev2(from: *const iovec, count: c_int, at: off_t, flags: c_int);
    write_own: pwritev64v2(from: *const iovec, count: c_int, at: off_t, flags: c_int);
}
