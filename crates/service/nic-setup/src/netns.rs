//! Set-up in another network namespace.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::{
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use crate::operation::{NamedNetns, NetnsCookie, NetnsOf};
use crate::parcel::Fd;
use crate::{Error, helper};

/// Where `ip netns` keeps the names.
const NAMED: &str = "/run/netns";

/// Runs `f` for the network namespace `ns` and returns its result: what `f` sets up by this crate's
/// functions is set up there. The calling thread stays where it is.
///
/// That is on a thread of its own inside `ns`; or, where a [helper](crate::use_helper) sets up, on the
/// calling thread, and the helper enters `ns` for each of those functions.
///
/// Errors are those of `setns(2)`: EPERM without CAP_SYS_ADMIN, EINVAL when `ns` is no network
/// namespace; and those of making a thread: EAGAIN at a limit of processes. A panic of `f` goes on in
/// the caller.
pub fn in_netns<T: Send>(ns: BorrowedFd<'_>, f: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    if helper::is_elsewhere() {
        return helper::within(ns, f);
    }
    on_thread("netns", move || {
        move_into_link_name_space(ns, Some(LinkNameSpaceType::Network))?;
        Ok(f())
    })
}

/// The number by which the kernel knows the calling thread's network namespace, and no other while the
/// machine runs (Linux 5.14).
pub fn netns_cookie() -> io::Result<u64> {
    helper::run_where_needed(NetnsCookie).map_err(Error::into_io)
}

pub(crate) fn cookie_here() -> io::Result<u64> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    crate::sys::netns_cookie(socket.as_fd())
}

/// A new descriptor of the network namespace of a socket, which is asked for nothing else. It takes
/// CAP_NET_ADMIN there.
pub fn netns_of(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let socket = Fd(socket.try_clone_to_owned()?);
    helper::run(NetnsOf { socket }).map(OwnedFd::from).map_err(Error::into_io)
}

pub(crate) fn netns_of_here(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // Of a file that is no socket the answer would be a number that its file system has made up.
    rustix::net::sockopt::socket_type(socket)?;
    crate::sys::netns_of(socket)
}

/// A network namespace that has a name (`ip netns`), by the number that [`netns_cookie`] tells
/// there. ENOENT: there is none.
pub fn named_netns(cookie: u64) -> io::Result<OwnedFd> {
    helper::run(NamedNetns { cookie }).map(OwnedFd::from).map_err(Error::into_io)
}

pub(crate) fn named_netns_here(cookie: u64) -> io::Result<OwnedFd> {
    let entries = fs::read_dir(NAMED)?.flatten();
    let files = entries.filter_map(|entry| File::open(entry.path()).ok());
    let is_it = |file: &File| {
        let enter = || move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network));
        on_thread("netns", || enter().map_err(Into::into).and_then(|()| cookie_here()))
            .is_ok_and(|found| found == cookie)
    };
    let found = files.into_iter().find(is_it).map(OwnedFd::from);
    found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

/// The calling thread's network namespace.
pub(crate) fn netns_here() -> io::Result<OwnedFd> {
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

pub(crate) fn unknown(cause: io::Error) -> Error {
    Error::Netns { interface: String::new(), cause }
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
