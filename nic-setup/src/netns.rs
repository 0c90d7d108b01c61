//! Set-up in another network namespace.

use std::os::fd::BorrowedFd;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Runs `f` on a thread of its own inside the network namespace `ns` and returns its result; the
/// calling thread stays where it is. Sockets and links that `f` makes stay in `ns`.
///
/// Errors are those of `setns(2)`: EPERM without CAP_SYS_ADMIN, EINVAL when `ns` is no network
/// namespace. A panic of `f` goes on in the caller.
pub fn in_netns<T: Send>(
    ns: BorrowedFd<'_>,
    f: impl FnOnce() -> T + Send,
) -> rustix::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            move_into_link_name_space(ns, Some(LinkNameSpaceType::Network))?;
            Ok(f())
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
