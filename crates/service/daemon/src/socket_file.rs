//! What is at the socket's path before a daemon listens there. A daemon replaces the socket that an ended one has left,
//! and nothing else.

use std::{
    fs, io,
    os::unix::fs::FileTypeExt,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use ringway_ipc::{Heard, has_ended, hear, hung_daemon};
use ringway_proto::EventKind;
use rustix::{
    event::Timespec,
    fd::OwnedFd,
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with},
};

use crate::{
    log::{Entry, log},
    running::{is_of_another_program, running_at},
};

/// As long as another daemon has to answer, or to end: a killed daemon listens for some more milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);
/// From one look at a daemon that ends to the next.
const PAUSE: Duration = Duration::from_millis(2);

/// Why a daemon cannot listen at a path.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: a daemon is running there already; stop it first")]
    Running { path: String },
    #[error(
        "{path}: {what} is there, and the daemon does not replace it; move it away, or give another \
         path as `socket` in the configuration"
    )]
    Taken { path: String, what: &'static str },
    #[error("{path}: {what}: {source}")]
    Io { path: String, what: &'static str, source: io::Error },
}

/// A socket of the daemon's kind, not blocking.
pub fn new_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// Whether there is a file at the path. Nothing connects to it.
///
/// # Errors
/// It is no socket, or that of a program that is no daemon.
pub fn look(path: &Path) -> Result<bool, Error> {
    let kind = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        found => found.map_err(io_error(path, "cannot look at what is there"))?.file_type(),
    };
    let what = match kind {
        _ if kind.is_socket() && !is_of_another_program(path) => return Ok(true),
        _ if kind.is_socket() => SOCKET,
        _ if kind.is_file() => "a regular file",
        _ if kind.is_dir() => "a directory",
        _ if kind.is_symlink() => "a symbolic link",
        _ => "a file that is no socket",
    };
    Err(taken(path, what))
}

/// Makes room for the socket of a daemon.
///
/// # Errors
/// A daemon runs there, or what is there is not what one has left.
pub fn make_room(path: &Path, address: &SocketAddrUnix) -> Result<(), Error> {
    if !look(path)? {
        return Ok(());
    }
    let deadline = Instant::now() + PATIENCE;
    let hung = loop {
        let connection = new_socket().map_err(io_error(path, "cannot make a socket"))?;
        let left = deadline.saturating_duration_since(Instant::now());
        match connect(&connection, address) {
            Err(Errno::CONNREFUSED) => {
                return remove(path).map_err(io_error(path, "cannot replace it"));
            }
            // It has been removed meanwhile.
            Err(Errno::NOENT) => return Ok(()),
            Ok(()) => match hear(&connection, Timespec::try_from(left).unwrap_or_default()) {
                Heard::Answer => break None,
                Heard::Nothing => break hung_daemon(&connection),
                // Whether it has ended, the next connection tells.
                Heard::End if left.is_zero() => break None,
                Heard::End => {}
            },
            // There is no room for another connection: a program listens, which may be stopped, or busy, or ends.
            Err(Errno::AGAIN) if left.is_zero() => {
                break running_at(path).filter(|pid| has_ended(*pid));
            }
            Err(Errno::AGAIN) => {}
            Err(Errno::PROTOTYPE) => return Err(taken(path, SOCKET)),
            Err(error) => {
                let what =
                    "whether a program listens there is not known; remove the socket if none does";
                return Err(io_error(path, what)(error.into()));
            }
        }
        thread::sleep(PAUSE);
    };
    let Some(pid) = hung else {
        return Err(Error::Running { path: path.display().to_string() });
    };
    let text = format!(
        "{}: the daemon there (process {pid}) was killed and does not end, for a file system in user space (FUSE) holds \
         it up: this daemon takes its place; interfaces that programs had open there stay occupied until that file \
         system is aborted (/sys/fs/fuse/connections/*/abort)",
        path.display()
    );
    log(Entry::warn(EventKind::Process, text));
    remove(path).map_err(io_error(path, "cannot replace it"))
}

/// Removes a file that may not be there.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

const SOCKET: &str = "a socket of another program";

fn taken(path: &Path, what: &'static str) -> Error {
    Error::Taken { path: path.display().to_string(), what }
}

fn io_error(path: &Path, what: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::Io { path: path.display().to_string(), what, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixListener};

    use ringway_testkit::Folder;
    use rustix::{
        event::{PollFd, PollFlags, poll},
        net::{bind, listen},
    };

    use super::*;

    fn room(path: &Path) -> Result<(), String> {
        make_room(path, &SocketAddrUnix::new(path).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_no_daemon_has_left_stays() {
        let folder = Folder::new();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "x").unwrap();
        fs::create_dir(at("directory")).unwrap();
        std::os::unix::fs::symlink("nothing", at("link")).unwrap();
        let _stream = UnixListener::bind(at("stream")).unwrap();
        let _datagram = UnixDatagram::bind(at("datagram")).unwrap();
        for (name, what) in [
            ("file", "a regular file"),
            ("directory", "a directory"),
            ("link", "a symbolic link"),
            ("stream", "a socket of another program"),
            ("datagram", "a socket of another program"),
        ] {
            let said = room(&at(name)).unwrap_err();
            assert!(said.contains(&format!("{name}: {what} is there")), "{said}");
            assert!(fs::symlink_metadata(at(name)).is_ok(), "{name} has gone");
        }
        for name in ["file", "directory", "link", "stream"] {
            assert!(look(&at(name)).is_err(), "{name}");
        }
    }

    /// A killed daemon may be connected to until the kernel has closed its sockets: then its place is free.
    #[test]
    fn a_listener_that_ends_leaves_its_place() {
        let folder = Folder::new();
        let path = folder.path().join("socket");
        let address = SocketAddrUnix::new(&path).unwrap();
        for others in [0, 1] {
            let listener = new_socket().unwrap();
            bind(&listener, &address).unwrap();
            listen(&listener, 0).unwrap();
            // With one of them, there is no room for another.
            let waiting: Vec<_> = (0..others).map(|_| new_socket().unwrap()).collect();
            waiting.iter().for_each(|other| connect(other, &address).unwrap());
            let listener = thread::spawn(move || {
                let mut connected = [PollFd::new(&listener, PollFlags::IN)];
                poll(&mut connected, None).unwrap();
                drop(listener);
            });
            assert_eq!(room(&path), Ok(()), "{others}");
            assert!(!path.exists());
            listener.join().unwrap();
        }
    }

    /// The queue of a listener that accepts nothing is full in the end: it listens nevertheless.
    #[test]
    fn a_listener_keeps_its_place() {
        let folder = Folder::new();
        let path = folder.path().join("socket");
        let address = SocketAddrUnix::new(&path).unwrap();
        assert_eq!(room(&path), Ok(()), "nothing is there");
        let listener = new_socket().unwrap();
        bind(&listener, &address).unwrap();
        listen(&listener, 0).unwrap();
        let mut waiting = Vec::new();
        loop {
            let said = room(&path).unwrap_err();
            assert!(said.contains("a daemon is running there already"), "{said}");
            assert!(path.exists());
            let next = new_socket().unwrap();
            match connect(&next, &address) {
                Ok(()) => waiting.push(next),
                Err(error) => break assert_eq!(error, Errno::AGAIN),
            }
        }
        assert!(room(&path).is_err() && path.exists());
        drop(listener);
        assert_eq!(room(&path), Ok(()));
        assert!(!path.exists(), "what was left is removed");
    }
}
