//! Set-up in another network namespace.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::{
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

/// Runs `f` on a thread of its own inside the network namespace `ns` and returns its result; the
/// calling thread stays where it is. Sockets and links that `f` makes stay in `ns`.
///
/// Errors are those of `setns(2)`: EPERM without CAP_SYS_ADMIN, EINVAL when `ns` is no network
/// namespace; and those of making a thread: EAGAIN at a limit of processes. A panic of `f` goes on in
/// the caller.
pub fn in_netns<T: Send>(ns: BorrowedFd<'_>, f: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    on_thread("netns", move || {
        move_into_link_name_space(ns, Some(LinkNameSpaceType::Network))?;
        Ok(f())
    })
}

/// The number by which the kernel knows the calling thread's network namespace, and no other while the
/// machine runs (Linux 5.14).
pub fn netns_cookie() -> std::io::Result<u64> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    crate::sys::netns_cookie(socket.as_fd())
}

/// Runs `f` on a thread of its own. EAGAIN where there is none to be had; a panic of `f` goes on in
/// the caller.
pub(crate) fn on_thread<T: Send>(
    name: &str,
    f: impl FnOnce() -> std::io::Result<T> + Send,
) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(name.into()).spawn_scoped(scope, f)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
