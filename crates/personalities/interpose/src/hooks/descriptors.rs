//! `open`, `close` and the ways to copy a descriptor.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_ulong},
    os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd},
};

use libc::FILE;

use crate::{
    descriptors::{self, InUse},
    epoll_sets, own_numbers,
    personality::{AfterClose, Opened, UserPath},
    raw::{Number, syscall},
    real_libc::{fail, keep_errno, real},
};

/// The number by which the program knows what a personality has made.
pub(super) fn number_of(opened: Result<Opened, c_int>, personality: usize, flags: c_int) -> c_int {
    let into_number = |fd: OwnedFd| {
        if flags & libc::O_CLOEXEC == 0 {
            let _ = rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::empty());
        }
        if flags & libc::O_NONBLOCK != 0 {
            let _ = rustix::fs::fcntl_setfl(&fd, rustix::fs::OFlags::NONBLOCK);
        }
        fd.into_raw_fd()
    };
    let opened = opened.map(|opened| match opened {
        Opened::Own(fd) => Opened::Own(lowest(fd)),
        Opened::Plain(fd) => Opened::Plain(lowest(fd)),
    });
    match opened {
        Ok(Opened::Own(fd)) => match descriptors::insert(fd.as_fd(), personality, flags) {
            true => into_number(fd),
            false => fail(libc::EMFILE),
        },
        Ok(Opened::Plain(fd)) => made(into_number(fd)),
        Err(errno) => fail(errno),
    }
}

/// Opens what a personality claims.
#[inline(never)]
fn open_claimed(path: *const c_char, flags: c_int) -> Option<c_int> {
    let path = UserPath::new(path);
    let (personality, opened) = descriptors::claim(|p| p.open(path, flags))?;
    Some(number_of(opened, personality, flags))
}

/// By the lowest number that is free, as each file that is opened: while the personality opened this one, it may have
/// had another there.
fn lowest(fd: OwnedFd) -> OwnedFd {
    match rustix::io::fcntl_dupfd_cloexec(&fd, 0) {
        Ok(lower) if lower.as_raw_fd() < fd.as_raw_fd() => lower,
        _ => fd,
    }
}

/// A descriptor that the kernel has made for the program: whatever was known of the number is out of
/// date.
#[inline(never)]
pub(super) fn made(fd: c_int) -> c_int {
    if fd >= 0 {
        descriptors::mark_foreign(fd);
        epoll_sets::closed(fd);
        own_numbers::lost(fd);
    }
    fd
}

macro_rules! open_functions {
    ($($name:ident[$path:ident, $flags:ident]($($arg:ident: $type:ty),*);)*) => {$(
        /// # Safety
        /// As the function of libc.
        pub unsafe extern "C" fn $name($($arg: $type),*) -> c_int {
            match open_claimed($path, $flags) {
                Some(fd) => fd,
                None => made(real!($name: fn($($arg => $type),*) -> c_int)),
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

macro_rules! creat_functions {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the function of libc.
        pub unsafe extern "C" fn $name(path: *const c_char, mode: c_uint) -> c_int {
            match open_claimed(path, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC) {
                Some(fd) => fd,
                None => made(real!($name: fn(path => *const c_char, mode => c_uint) -> c_int)),
            }
        }
    )*};
}

creat_functions!(creat creat64);

macro_rules! stream_functions {
    ($($name:ident)*) => {$(
        /// libc opens the file of a stream by itself, without a name that could be taken.
        ///
        /// # Safety
        /// As the function of libc.
        pub unsafe extern "C" fn $name(path: *const c_char, mode: *const c_char) -> *mut FILE {
            // SAFETY: a string, by the contract of the caller.
            match unsafe { stream_claimed(path, mode) } {
                Some(stream) => stream,
                None => real!($name: fn(path => *const c_char, mode => *const c_char) -> *mut FILE),
            }
        }
    )*};
}

stream_functions!(fopen fopen64);

/// A stream of a file that a personality claims.
///
/// # Safety
/// `mode` is a string.
unsafe fn stream_claimed(path: *const c_char, mode: *const c_char) -> Option<*mut FILE> {
    // SAFETY: by the contract above.
    let flags = flags_of(unsafe { CStr::from_ptr(mode) }.to_bytes());
    let (_, opened) = descriptors::claim(|p| p.file(UserPath::new(path), flags))?;
    let fd = match opened {
        Ok(fd) => fd.into_raw_fd(),
        Err(errno) => {
            fail(errno);
            return Some(std::ptr::null_mut());
        }
    };
    // Its end will not be seen, so nothing is to be known of its number.
    drop(descriptors::forget(fd));
    if flags & libc::O_CLOEXEC == 0 {
        own_call(Number::FCNTL, [fd as usize, libc::F_SETFD as usize, 0]);
    }
    let stream = real!(fdopen: fn(fd => c_int, mode => *const c_char) -> *mut FILE);
    if stream.is_null() {
        own_call(Number::CLOSE, [fd as usize, 0, 0]);
    }
    Some(stream)
}

/// The number of a stream that libc is about to close by itself, and what is known of it.
fn closing(stream: *mut FILE) -> (c_int, Option<AfterClose>) {
    if stream.is_null() {
        return (-1, None);
    }
    keep_errno(|| {
        // A stream without a descriptor has -1.
        let fd = real!(fileno: fn(stream => *mut FILE) -> c_int);
        let after = descriptors::forget(fd);
        epoll_sets::closed(fd);
        (fd, after)
    })
}

macro_rules! reopening_functions {
    ($($name:ident)*) => {$(
        /// libc closes the stream's number by itself, even if it then opens no other file, and mostly gives the other
        /// file that number.
        ///
        /// # Safety
        /// As the function of libc.
        pub unsafe extern "C" fn $name(
            path: *const c_char,
            mode: *const c_char,
            stream: *mut FILE,
        ) -> *mut FILE {
            let (fd, after) = closing(stream);
            let done = real!($name: fn(
                path => *const c_char, mode => *const c_char, stream => *mut FILE
            ) -> *mut FILE);
            keep_errno(|| {
                drop(after);
                if !done.is_null() {
                    let now = real!(fileno: fn(done => *mut FILE) -> c_int);
                    [fd, now].into_iter().for_each(|fd| _ = made(fd));
                }
            });
            done
        }
    )*};
}

reopening_functions!(freopen freopen64);

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn fclose(stream: *mut FILE) -> c_int {
    let (_, after) = closing(stream);
    let done = real!(fclose: fn(stream => *mut FILE) -> c_int);
    keep_errno(|| drop(after));
    done
}

/// How a stream of that mode opens its file.
fn flags_of(mode: &[u8]) -> c_int {
    let has = |letter| mode.contains(&letter);
    let access = match mode.first() {
        _ if has(b'+') => libc::O_RDWR,
        Some(b'r') => libc::O_RDONLY,
        _ => libc::O_WRONLY,
    };
    access | if has(b'e') { libc::O_CLOEXEC } else { 0 }
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    if own_numbers::is_own(fd) {
        return fail(libc::EBADF);
    }
    let own = descriptors::take(fd);
    epoll_sets::closed(fd);
    let Some(own) = own else {
        return real!(close: fn(fd => c_int) -> c_int);
    };
    let after = own.leave();
    let done = own_call(Number::CLOSE, [fd as usize, 0, 0]);
    drop(after);
    done
}

/// A system call on a descriptor of ours that works on numbers alone.
fn own_call(number: Number, [first, second, third]: [usize; 3]) -> c_int {
    // SAFETY: no argument is an address.
    unsafe { own_call_with_memory(number, [first, second, third, 0, 0, 0]) }
}

/// A system call on a descriptor of ours.
///
/// # Safety
/// As the system call.
pub(super) unsafe fn own_call_with_memory(number: Number, arguments: [usize; 6]) -> c_int {
    // SAFETY: by the contract above.
    match unsafe { syscall(number, arguments) } as c_int {
        done @ 0.. => done,
        error => fail(-error),
    }
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    const CLOEXEC: c_int = 1 << 2;
    let close = |first, last| real!(close_range: fn(first => c_uint, last => c_uint, flags => c_int) -> c_int);
    if flags & CLOEXEC != 0 || first > last {
        return close(first, last);
    }
    let done = own_numbers::without_own(first, last, close);
    if done == 0 {
        keep_errno(|| descriptors::forget_closed(first, last));
    }
    done
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn closefrom(first: c_int) {
    // Negative numbers mean all, as in libc.
    let all_from = first.max(0) as c_uint;
    // SAFETY: numbers of the program's.
    if keep_errno(|| unsafe { close_range(all_from, c_uint::MAX, 0) }) == 0 {
        return;
    }
    // A sandbox may forbid the one call, and libc knows another way.
    real!(closefrom: fn(first => c_int) -> ());
    keep_errno(|| {
        own_numbers::closed_from(first);
        descriptors::forget_closed(all_from, c_uint::MAX);
    });
}

/// Notes that `copy` is what `original` is, which is `own` or nothing of ours.
fn copied(own: Option<&InUse>, original: c_int, copy: c_int) -> c_int {
    if copy >= 0 && copy != original {
        let is_set = own.is_none() && descriptors::is_set(original);
        match own {
            Some(own) => descriptors::alias(own, copy),
            None if is_set => descriptors::mark_set(copy),
            None => drop(descriptors::forget(copy)),
        }
        // What had the number before is closed.
        epoll_sets::closed(copy);
        own_numbers::lost(copy);
        if is_set {
            keep_errno(|| epoll_sets::copied(original, copy));
        }
    }
    copy
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn dup(fd: c_int) -> c_int {
    let own = descriptors::get(fd);
    let copy = match own {
        Some(_) => own_call(Number::DUP, [fd as usize, 0, 0]),
        None => real!(dup: fn(fd => c_int) -> c_int),
    };
    copied(own.as_ref(), fd, copy)
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn dup2(fd: c_int, to: c_int) -> c_int {
    let own = descriptors::get(fd);
    let copy = match own {
        Some(_) if fd == to => fd,
        Some(_) => own_call(Number::DUP3, [fd as usize, to as usize, 0]),
        None => real!(dup2: fn(fd => c_int, to => c_int) -> c_int),
    };
    copied(own.as_ref(), fd, copy)
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    let own = descriptors::get(fd);
    let copy = match own {
        Some(_) => own_call(Number::DUP3, [fd as usize, to as usize, flags as usize]),
        None => real!(dup3: fn(fd => c_int, to => c_int, flags => c_int) -> c_int),
    };
    copied(own.as_ref(), fd, copy)
}

macro_rules! fcntl_functions {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the function of libc.
        pub unsafe extern "C" fn $name(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
            let own = match command {
                libc::F_DUPFD | libc::F_DUPFD_CLOEXEC | libc::F_GETFL => descriptors::get(fd),
                _ => None,
            };
            let done = match own {
                Some(_) => {
                    own_call(Number::FCNTL, [fd as usize, command as usize, argument as usize])
                }
                None => {
                    real!($name: fn(fd => c_int, command => c_int, argument => c_ulong) -> c_int)
                }
            };
            match (command, &own) {
                (libc::F_DUPFD | libc::F_DUPFD_CLOEXEC, own) => copied(own.as_ref(), fd, done),
                (libc::F_GETFL, Some(own)) if done >= 0 => own.status_flags(done),
                _ => done,
            }
        }
    )*};
}

fcntl_functions!(fcntl fcntl64);
