//! `recvmsg`: descriptors may come with a message, and may be ours.

use std::ffi::{c_int, c_uint};

use crate::{descriptors, real_libc::real};

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn recvmsg(
    socket: c_int,
    message: *mut libc::msghdr,
    flags: c_int,
) -> libc::ssize_t {
    let got = real!(
        recvmsg: fn(socket => c_int, message => *mut libc::msghdr, flags => c_int) -> libc::ssize_t
    );
    if got >= 0 {
        // SAFETY: the kernel has filled in what it points to.
        unsafe { look_again(message) };
    }
    got
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn recvmmsg(
    socket: c_int,
    messages: *mut libc::mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut libc::timespec,
) -> c_int {
    let got = real!(
        recvmmsg: fn(
            socket => c_int,
            messages => *mut libc::mmsghdr,
            count => c_uint,
            flags => c_int,
            timeout => *mut libc::timespec,
        ) -> c_int
    );
    for i in 0..usize::try_from(got).unwrap_or(0) {
        // SAFETY: the kernel has filled in the first `got` messages.
        unsafe { look_again(&raw mut (*messages.add(i)).msg_hdr) };
    }
    got
}

/// Whatever the table knows of the numbers that came with a message is out of date.
///
/// # Safety
/// `message` is as the kernel left it after a successful receive.
unsafe fn look_again(message: *const libc::msghdr) {
    // SAFETY: the macros of libc walk the control data that the kernel has written.
    unsafe {
        if message.is_null() || (*message).msg_controllen == 0 {
            return;
        }
        let mut part = libc::CMSG_FIRSTHDR(message);
        while !part.is_null() {
            if (*part).cmsg_level == libc::SOL_SOCKET && (*part).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*part).cmsg_len - libc::CMSG_LEN(0) as usize;
                let fds = libc::CMSG_DATA(part).cast::<c_int>();
                for i in 0..bytes / size_of::<c_int>() {
                    descriptors::forget(fds.add(i).read_unaligned());
                }
            }
            part = libc::CMSG_NXTHDR(message, part);
        }
    }
}
