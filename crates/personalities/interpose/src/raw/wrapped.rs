//! What stands in for libc's functions where code that is linked into the preload library calls them.
//!
//! The linker resolves a reference to `close` by `__wrap_close`, and these symbols are seen by nothing
//! outside the library. `tests/tests/preload.rs` holds the library against a list of the symbols that it
//! may ask for, and runs it in a program that has all of libc's names itself.

use std::{
    ffi::{c_char, c_int, c_long},
    ptr,
};

use libc::*;

use super::{Number, syscall};
use crate::{own_numbers, real_libc::fail};

include!("names.rs");

/// The answer as libc gives it: -1, and the error in `errno`.
fn result(answer: isize) -> isize {
    const FIRST_ERROR: isize = -4095;
    match answer {
        FIRST_ERROR..0 => fail(-answer as c_int) as isize,
        _ => answer,
    }
}

const AT_CWD: usize = AT_FDCWD as usize;
const NO_FOLLOW: usize = AT_SYMLINK_NOFOLLOW as usize;

macro_rules! wrapped {
    ($($name:ident($($argument:ident),*) = $number:ident[$($value:expr),*];)*) => {
        $(mod $name {
            use super::*;

            /// # Safety
            /// As the function of libc.
            unsafe extern "C" fn call($($argument: usize),*) -> isize {
                let mut arguments = [0; 6];
                arguments.iter_mut().zip([$($value),*]).for_each(|(at, value): (_, usize)| *at = value);
                // SAFETY: libc's function is this system call, and the caller called that.
                result(unsafe { syscall(Number($number), arguments) })
            }
            export!($name);
        })*
        const BY_NUMBER: &[&str] = &[$(stringify!($name)),*];
    };
}

/// Gives the function `call` the name by which the linker finds it.
macro_rules! export {
    ($name:ident) => {
        std::arch::global_asm!(
            concat!(".pushsection .text.__wrap_", stringify!($name), ",\"ax\",@progbits"),
            concat!(".globl __wrap_", stringify!($name)),
            concat!(".hidden __wrap_", stringify!($name)),
            concat!(".type __wrap_", stringify!($name), ",@function"),
            concat!("__wrap_", stringify!($name), ":"),
            #[cfg(target_arch = "x86_64")]
            "jmp {call}",
            #[cfg(target_arch = "aarch64")]
            "b {call}",
            ".popsection",
            call = sym call,
        );
    };
}

wrapped! {
    _exit(status) = SYS_exit_group[status];
    bind(fd, address, len) = SYS_bind[fd, address, len];
    chdir(path) = SYS_chdir[path];
    execve(path, arguments, environment) = SYS_execve[path, arguments, environment];
    fcntl(fd, command, argument) = SYS_fcntl[fd, command, argument];
    fstat64(fd, to) = SYS_fstat[fd, to];
    getpid() = SYS_getpid[];
    getrandom(to, len, flags) = SYS_getrandom[to, len, flags];
    getsockname(fd, address, len) = SYS_getsockname[fd, address, len];
    getsockopt(fd, level, name, value, len) = SYS_getsockopt[fd, level, name, value, len];
    gettid() = SYS_gettid[];
    ioctl(fd, number, argument) = SYS_ioctl[fd, number, argument];
    lseek64(fd, to, from) = SYS_lseek[fd, to, from];
    lstat64(path, to) = SYS_newfstatat[AT_CWD, path, to, NO_FOLLOW];
    madvise(at, len, advice) = SYS_madvise[at, len, advice];
    mkdir(path, mode) = SYS_mkdirat[AT_CWD, path, mode];
    mmap(at, len, access, flags, fd, offset) = SYS_mmap[at, len, access, flags, fd, offset];
    mmap64(at, len, access, flags, fd, offset) = SYS_mmap[at, len, access, flags, fd, offset];
    munmap(at, len) = SYS_munmap[at, len];
    open64(path, flags, mode) = SYS_openat[AT_CWD, path, flags, mode];
    pread64(fd, to, len, from) = SYS_pread64[fd, to, len, from];
    process_vm_readv(process, to, count, from, parts, flags) =
        SYS_process_vm_readv[process, to, count, from, parts, flags];
    read(fd, to, len) = SYS_read[fd, to, len];
    readlink(path, to, len) = SYS_readlinkat[AT_CWD, path, to, len];
    rmdir(path) = SYS_unlinkat[AT_CWD, path, AT_REMOVEDIR as usize];
    sched_yield() = SYS_sched_yield[];
    send(fd, from, len, flags) = SYS_sendto[fd, from, len, flags];
    sendmmsg(fd, messages, count, flags) = SYS_sendmmsg[fd, messages, count, flags];
    setsockopt(fd, level, name, value, len) = SYS_setsockopt[fd, level, name, value, len];
    stat64(path, to) = SYS_newfstatat[AT_CWD, path, to];
    statx(dir, path, flags, mask, to) = SYS_statx[dir, path, flags, mask, to];
    unlink(path) = SYS_unlinkat[AT_CWD, path];
    waitpid(process, status, options) = SYS_wait4[process, status, options];
    write(fd, from, len) = SYS_write[fd, from, len];
    writev(fd, parts, count) = SYS_writev[fd, parts, count];
}

/// Those that are more than a system call.
const OTHERS: &[&str] = &["clock_gettime", "close", "getcwd", "poll", "realpath", "syscall"];

mod clock_gettime {
    use rustix::time::ClockId;

    use super::*;

    /// Without a system call for the clocks that are read often.
    /// # Safety
    /// As the function of libc.
    unsafe extern "C" fn call(clock: clockid_t, to: *mut timespec) -> c_int {
        let known = match clock {
            CLOCK_MONOTONIC => ClockId::Monotonic,
            CLOCK_REALTIME => ClockId::Realtime,
            _ => {
                let arguments = [clock as usize, to as usize, 0, 0, 0, 0];
                // SAFETY: libc's function is this system call, and the caller called that.
                return result(unsafe { syscall(Number(SYS_clock_gettime), arguments) }) as c_int;
            }
        };
        let now = rustix::time::clock_gettime(known);
        // SAFETY: the caller's memory for the time.
        unsafe { to.write(timespec { tv_sec: now.tv_sec, tv_nsec: now.tv_nsec }) };
        0
    }
    export!(clock_gettime);
}

mod close {
    use super::*;

    /// # Safety
    /// As the function of libc.
    unsafe extern "C" fn call(fd: c_int) -> c_int {
        if !own_numbers::closes(fd) {
            return 0;
        }
        // SAFETY: libc's function is this system call, and the caller called that.
        result(unsafe { syscall(Number(SYS_close), [fd as usize, 0, 0, 0, 0, 0]) }) as c_int
    }
    export!(close);
}

mod getcwd {
    use super::*;

    /// # Safety
    /// As the function of libc.
    unsafe extern "C" fn call(to: *mut c_char, len: size_t) -> *mut c_char {
        // SAFETY: libc's function is this system call for memory of the caller's.
        let answer = unsafe { syscall(Number(SYS_getcwd), [to as usize, len, 0, 0, 0, 0]) };
        if result(answer) < 0 { ptr::null_mut() } else { to }
    }
    export!(getcwd);
}

mod poll {
    use super::*;

    /// # Safety
    /// As the function of libc.
    unsafe extern "C" fn call(fds: *mut pollfd, count: nfds_t, millis: c_int) -> c_int {
        let time = timespec {
            tv_sec: (millis / 1000).into(),
            tv_nsec: (millis % 1000 * 1_000_000).into(),
        };
        let time = if millis < 0 { ptr::null() } else { &raw const time };
        // SAFETY: as `poll`, whose list this is.
        result(unsafe {
            syscall(Number(SYS_ppoll), [fds as usize, count as usize, time as usize, 0, 0, 0])
        }) as c_int
    }
    export!(poll);
}

mod realpath {
    use super::*;

    /// As the kernel knows the file. The result is the caller's to free; a buffer of the caller's is
    /// never given here.
    /// # Safety
    /// As the function of libc.
    unsafe extern "C" fn call(path: *const c_char, to: *mut c_char) -> *mut c_char {
        debug_assert!(to.is_null());
        // SAFETY: the path is the caller's string; the descriptor is this function's own, and so is the
        // memory.
        unsafe {
            let flags = (O_PATH | O_CLOEXEC) as usize;
            let fd = result(syscall(Number(SYS_openat), [AT_CWD, path as usize, flags, 0, 0, 0]));
            if fd < 0 {
                return ptr::null_mut();
            }
            let link = format!("/proc/self/fd/{fd}\0");
            let len = PATH_MAX as usize;
            let found: *mut c_char = calloc(1, len).cast();
            let arguments = [AT_CWD, link.as_ptr() as usize, found as usize, len - 1, 0, 0];
            let answer = match found.is_null() {
                true => fail(ENOMEM) as isize,
                false => result(syscall(Number(SYS_readlinkat), arguments)),
            };
            syscall(Number(SYS_close), [fd as usize, 0, 0, 0, 0, 0]);
            if answer < 0 {
                free(found.cast());
                return ptr::null_mut();
            }
            found
        }
    }
    export!(realpath);
}

mod syscall {
    use super::*;

    /// # Safety
    /// As the function of libc.
    unsafe extern "C" fn call(
        number: c_long,
        a: usize,
        b: usize,
        c: usize,
        d: usize,
        e: usize,
        f: usize,
    ) -> c_long {
        // SAFETY: the caller's system call. What it did not give is whatever it is, and not looked at.
        result(unsafe { super::super::syscall(Number(number), [a, b, c, d, e, f]) }) as c_long
    }
    export!(syscall);
}

/// The list is that of the linker.
const _: () = {
    let mut at = 0;
    while at < WRAPPED.len() {
        assert!(contains(BY_NUMBER, WRAPPED[at]) != contains(OTHERS, WRAPPED[at]));
        at += 1;
    }
    assert!(WRAPPED.len() == BY_NUMBER.len() + OTHERS.len());
};

const fn contains(names: &[&str], name: &str) -> bool {
    let mut at = 0;
    while at < names.len() {
        let (a, b) = (names[at].as_bytes(), name.as_bytes());
        let mut same = 0;
        while same < a.len() && same < b.len() && a[same] == b[same] {
            same += 1;
        }
        if same == a.len() && same == b.len() {
            return true;
        }
        at += 1;
    }
    false
}
