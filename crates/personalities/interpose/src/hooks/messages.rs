//! `recvmsg`: descriptors may come with a message, and may be ours; so may what a message is about.

use std::ffi::{c_int, c_uint};

use crate::{
    descriptors,
    hooks::{
        netlink::{self, Pieces},
        sockets::received,
    },
    real_libc::real,
};

/// # Safety
/// As the function of libc.
pub unsafe extern "C-unwind" fn recvmsg(
    socket: c_int,
    message: *mut libc::msghdr,
    flags: c_int,
) -> libc::ssize_t {
    if descriptors::may_be_own(socket)
        && let Some(done) = received(socket)
    {
        return done;
    }
    let got = real!(
        unwinding recvmsg: fn(socket => c_int, message => *mut libc::msghdr, flags => c_int) -> libc::ssize_t
    );
    if got >= 0 {
        // SAFETY: the call has succeeded, so the kernel has filled in the program's message.
        unsafe { look_again(message) };
        if netlink::is_waiting() {
            // SAFETY: as above.
            return unsafe { answered(socket, message, got, flags) };
        }
    }
    got
}

/// An answer of netlink's may be about an interface of a personality's. How many bytes there are.
///
/// # Safety
/// The kernel has just received a message of `got` bytes.
#[cold]
unsafe fn answered(
    socket: c_int,
    message: *mut libc::msghdr,
    got: libc::ssize_t,
    flags: c_int,
) -> libc::ssize_t {
    let pieces = Pieces::of_message(message);
    // SAFETY: by the contract above.
    let now = unsafe { netlink::received(socket, &pieces, got, flags) };
    if now != got && now < pieces.len() as libc::ssize_t {
        // SAFETY: the kernel has written to it, and `of_message` has found that it can be read.
        unsafe {
            let flags = &raw mut (*message).msg_flags;
            flags.write_unaligned(flags.read_unaligned() & !libc::MSG_TRUNC);
        }
    }
    now
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C-unwind" fn recvmmsg(
    socket: c_int,
    messages: *mut libc::mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut libc::timespec,
) -> c_int {
    if descriptors::may_be_own(socket)
        && let Some(done) = received(socket)
    {
        return done as c_int;
    }
    let got = real!(
        unwinding recvmmsg: fn(
            socket => c_int,
            messages => *mut libc::mmsghdr,
            count => c_uint,
            flags => c_int,
            timeout => *mut libc::timespec,
        ) -> c_int
    );
    for i in 0..usize::try_from(got).unwrap_or(0) {
        // The message is the first thing in it.
        let message = messages.wrapping_add(i);
        // SAFETY: the kernel has filled in the first `got` messages.
        unsafe { look_again(message.cast()) };
        if netlink::is_waiting() {
            // SAFETY: as above.
            unsafe {
                let len = &raw mut (*message).msg_len;
                let got = len.read_unaligned() as libc::ssize_t;
                len.write_unaligned(answered(socket, message.cast(), got, flags) as c_uint);
            }
        }
    }
    got
}

/// Whatever the table knows of the numbers that came with a message is out of date.
///
/// # Safety
/// `message` is null, or what the kernel has just filled in for the program.
unsafe fn look_again(message: *const libc::msghdr) {
    if message.is_null() {
        return;
    }
    // SAFETY: by the contract above. Programs need not align it: the kernel does not ask for that.
    let libc::msghdr { msg_control, msg_controllen, .. } = unsafe { message.read_unaligned() };
    let mut at = 0;
    while msg_controllen.saturating_sub(at) >= HEAD {
        let part = msg_control.cast::<u8>().wrapping_add(at).cast::<libc::cmsghdr>();
        // SAFETY: the kernel has written `msg_controllen` bytes there, and these lie within. A thread that
        // changes or unmaps them meanwhile is the program's own: then it is the program's numbers that are
        // looked at once more for nothing, or the program that ends.
        let head = unsafe { part.read_unaligned() };
        let Some(bytes) = head.cmsg_len.checked_sub(HEAD) else { return };
        let bytes = bytes.min(msg_controllen - at - HEAD);
        if head.cmsg_level == libc::SOL_SOCKET && head.cmsg_type == libc::SCM_RIGHTS {
            let fds = part.cast::<u8>().wrapping_add(HEAD).cast::<c_int>();
            for i in 0..bytes / size_of::<c_int>() {
                // SAFETY: as above: `bytes` stays within what the kernel has written.
                drop(descriptors::forget(unsafe { fds.add(i).read_unaligned() }));
            }
        }
        at += (HEAD + bytes).next_multiple_of(size_of::<usize>());
    }
}

/// A header of control data, which is aligned as a word is, as is what follows it.
const HEAD: usize = size_of::<libc::cmsghdr>();
const _: () = assert!(HEAD.is_multiple_of(size_of::<usize>()));
