//! Where members of a cluster on a port find the one that distributes.
//!
//! It is an abstract Unix socket, named by the cluster's file: one member has it, and the kernel takes it away when
//! that one leaves or ends, however it does. The others are connected to it, and see that at once.
//!
//! ```text
//!   member --> distributor    its queue, and the name of the pipe that it has from another, if it does
//!   member <-- distributor    the name by which it opens its pipe (to receive alone where nothing can
//!                             be sent), or that there is none
//! ```

use std::{ffi::c_int, fs::File, os::unix::fs::MetadataExt, thread, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with,
        bind, connect, listen, recv, send, socket_with, sockopt::socket_peercred,
    },
    process::geteuid,
};

use super::QUEUES;

/// How often it is tried, and the pause after a try: another has the name, and does not listen yet.
const TRIES: u32 = 400;
const PAUSE: Duration = Duration::from_millis(1);
/// How long a pipe is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a pipe's name, at most.
const LONGEST: usize = 256;

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// The answer instead of a name.
pub const NO_PIPE: &str = "-";

/// What there is.
pub enum Found {
    Distributor(OwnedFd),
    /// There is none. This socket has the name now: its owner is the distributor as long as it is open.
    Vacant(OwnedFd),
}

/// Finds the distributor of the cluster with this file, or becomes it. EPERM if it is another user's.
pub fn find(file: &File) -> Result<Found, c_int> {
    let identity = file.metadata().map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?;
    let name = format!("ringway-pf_ring/{:x}-{:x}", identity.dev(), identity.ino());
    look_up(&name).map_err(Errno::raw_os_error)
}

fn look_up(name: &str) -> rustix::io::Result<Found> {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    for _ in 0..TRIES {
        let own = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)?;
        match bind(&own, &address) {
            Ok(()) => {
                listen(&own, QUEUES as i32)?;
                return Ok(Found::Vacant(own));
            }
            Err(Errno::ADDRINUSE) => {}
            Err(error) => return Err(error),
        }
        match connect(&own, &address) {
            Ok(()) if is_of_this_user(&own) => return Ok(Found::Distributor(own)),
            Ok(()) => return Err(Errno::PERM),
            Err(Errno::CONNREFUSED | Errno::AGAIN) => thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::BUSY)
}

/// Another user's program is told nothing, and its memory is not opened.
fn is_of_this_user(peer: &OwnedFd) -> bool {
    socket_peercred(peer).is_ok_and(|peer| peer.uid == geteuid())
}

/// The next that has come; `None` if there is none.
pub fn next(listener: &OwnedFd) -> Option<OwnedFd> {
    loop {
        let peer = accept_with(listener, FLAGS).ok()?;
        if is_of_this_user(&peer) {
            return Some(peer);
        }
    }
}

/// What a member has said.
pub enum Said<T> {
    Nothing,
    This(T),
    /// It has gone.
    Gone,
}

/// The queue that a member has, and its pipe.
pub fn request_of(peer: &OwnedFd) -> Said<(u32, Option<String>)> {
    match receive(peer) {
        Said::This(bytes) => match bytes[..] {
            [queue, ref name @ ..] if u32::from(queue) < QUEUES => {
                let name = String::from_utf8(name.to_vec()).ok();
                Said::This((queue.into(), name.filter(|name| !name.is_empty())))
            }
            _ => Said::Gone,
        },
        Said::Nothing => Said::Nothing,
        Said::Gone => Said::Gone,
    }
}

/// The name of the pipe for a member.
pub fn pipe_of(distributor: &OwnedFd) -> Said<String> {
    match receive(distributor) {
        Said::This(bytes) => String::from_utf8(bytes).map_or(Said::Gone, Said::This),
        Said::Nothing => Said::Nothing,
        Said::Gone => Said::Gone,
    }
}

fn receive(peer: &OwnedFd) -> Said<Vec<u8>> {
    let mut bytes = [0; LONGEST];
    match recv(peer, &mut bytes, RecvFlags::DONTWAIT) {
        Ok((count, _)) if count > 0 => Said::This(bytes[..count.min(LONGEST)].to_vec()),
        Err(Errno::AGAIN | Errno::INTR) => Said::Nothing,
        _ => Said::Gone,
    }
}

/// Says it, unless the other has gone.
pub fn say(peer: &OwnedFd, what: &[u8]) -> bool {
    send(peer, what, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_ok()
}

/// Asks for the pipe of a queue, which may have one, and waits for its name. `None` if the distributor goes meanwhile, or
/// `quit` ends it.
pub fn ask(
    distributor: &OwnedFd,
    queue: u32,
    pipe: Option<&str>,
    quit: BorrowedFd<'_>,
) -> Option<String> {
    let request = [&[queue as u8], pipe.unwrap_or_default().as_bytes()].concat();
    if !say(distributor, &request) {
        return None;
    }
    let timeout = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    loop {
        match pipe_of(distributor) {
            Said::This(name) => return Some(name),
            Said::Gone => return None,
            Said::Nothing => {}
        }
        let fds = [distributor.as_fd(), quit];
        let mut fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match poll(&mut fds, Some(&timeout)) {
            Err(Errno::INTR) => {}
            Ok(1..) if fds[1].revents().is_empty() => {}
            _ => return None,
        }
    }
}
