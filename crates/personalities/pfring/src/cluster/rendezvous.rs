//! Where members of a cluster on a port find its distributor.
//!
//! It is a Unix socket beside the cluster's file, where no other user can reach or replace it. The
//! member that has the file's lock for it makes it anew, and is found there as long as it has the
//! lock, of which the kernel lets go when the member ends, however it does. The others are
//! connected to it, and see that at once.
//!
//! ```text
//!   member --> distributor    its queue, and the name of the pipe that it has from another, if it does
//!   member <-- distributor    the name by which it opens its pipe (to receive alone where nothing can
//!                             be sent), or that there is none
//! ```

use std::{
    ffi::c_int,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

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

use super::{
    QUEUES,
    file::{DISTRIBUTOR, hold, release},
};

/// How often it is tried, and the pause after a try: another has the lock, and does not listen yet.
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
    /// There is none, so this member is the distributor as long as it has this.
    Vacant(Listener),
}

/// Where the others find this member. It is the distributor as long as this is there.
pub struct Listener {
    socket: OwnedFd,
    path: PathBuf,
    file: File,
}

impl Listener {
    /// Of the member that has the lock.
    fn new(file: &File, path: &Path) -> io::Result<Listener> {
        let socket = new_socket()?;
        // A killed distributor has left its own.
        let _ = fs::remove_file(path);
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        listen(&socket, QUEUES as i32)?;
        Ok(Listener { socket, path: path.into(), file: file.try_clone()? })
    }

    /// The next that has come; `None` if there is none.
    pub fn next(&self) -> Option<OwnedFd> {
        loop {
            let peer = accept_with(&self.socket, FLAGS).ok()?;
            if is_of_this_user(&peer) {
                return Some(peer);
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        release(&self.file, DISTRIBUTOR);
    }
}

/// Finds the distributor of the cluster with this file, at this socket, or becomes it.
pub fn find(file: &File, path: &Path) -> Result<Found, c_int> {
    for _ in 0..TRIES {
        if hold(file, DISTRIBUTOR).is_ok() {
            let listener = Listener::new(file, path).inspect_err(|_| release(file, DISTRIBUTOR));
            let number = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
            return listener.map(Found::Vacant).map_err(number);
        }
        match connected(path) {
            Ok(distributor) => return Ok(Found::Distributor(distributor)),
            Err(Errno::NOENT | Errno::CONNREFUSED | Errno::AGAIN) => thread::sleep(PAUSE),
            Err(error) => return Err(error.raw_os_error()),
        }
    }
    Err(libc::EBUSY)
}

fn connected(path: &Path) -> rustix::io::Result<OwnedFd> {
    let socket = new_socket()?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    is_of_this_user(&socket).then_some(socket).ok_or(Errno::PERM)
}

fn new_socket() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)
}

/// Another user's program is told nothing, and its memory is not opened.
fn is_of_this_user(peer: &OwnedFd) -> bool {
    socket_peercred(peer).is_ok_and(|peer| peer.uid == geteuid())
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

#[cfg(test)]
mod tests {
    use super::{super::file::tests::file, *};

    /// What a member that was killed has left does not keep the next one from being the
    /// distributor, nor does it take its place.
    #[test]
    fn who_has_the_lock_is_the_distributor() {
        let path = std::env::temp_dir().join(format!("ringway-pf_ring-{}", std::process::id()));
        let (one, other) = file();
        let Ok(Found::Vacant(first)) = find(&one, &path) else { panic!("there is none") };
        let Ok(Found::Distributor(_)) = find(&other, &path) else { panic!("it is there") };
        // As by SIGKILL: nothing is removed, and the kernel closes what it had open.
        let left = first.socket.try_clone().unwrap();
        release(&one, DISTRIBUTOR);
        std::mem::forget(first);
        let Ok(Found::Vacant(second)) = find(&other, &path) else { panic!("it has gone") };
        let Ok(Found::Distributor(_)) = find(&one, &path) else { panic!("the second is there") };
        assert!(second.next().is_some());
        assert!(accept_with(&left, FLAGS).is_ok(), "the first connection");
        assert!(accept_with(&left, FLAGS).is_err(), "no other has come to the first one");
        drop(second);
        assert!(!path.exists());
    }
}
