//! The Unix socket between a machine's monitor and its port.

use super::link::{Link, Vhost, is_readable, is_ready};
use super::stream::Stream;
use crate::error::{Error, Result};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, recv, socket_with,
};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Bytes of a Unix socket's path at most: the kernel has room for these and a zero.
const LONGEST_PATH: usize = 107;

/// Connections that are looked at before frames have their turn.
const CONNECTIONS: usize = 64;

/// What a monitor speaks.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Vhost,
    Stream,
}

/// Device and number of a file: somebody may have put another in its place.
pub type FileId = (u64, u64);

/// What is at the socket's path, for a process that may reach files, or by one.
pub trait Reach {
    /// Connects to the monitor that listens there, and does not wait for room in its queue of connections.
    fn connect(&self) -> std::result::Result<OwnedFd, Errno>;

    /// Removes the file, if it is this one.
    fn remove(&self, file: FileId);
}

/// The socket's path.
pub struct SocketFile(pub PathBuf);

impl Reach for SocketFile {
    fn connect(&self) -> std::result::Result<OwnedFd, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(&self.0)?)?;
        Ok(socket)
    }

    fn remove(&self, file: FileId) {
        if identity(&self.0) == Some(file) {
            let _ = fs::remove_file(&self.0);
        }
    }
}

/// Where monitors are waited for, or one waits.
pub struct Socket {
    place: Place,
    kind: Kind,
    path: PathBuf,
    reach: Box<dyn Reach>,
}

enum Place {
    /// A socket of ours. Its file goes with it.
    Listening {
        listener: UnixListener,
        file: Option<FileId>,
    },
    Connecting,
}

impl Socket {
    /// Listens at a path, or is going to connect to it.
    pub fn open(path: &Path, connect: bool, kind: Kind) -> Result<Socket> {
        check_length(path)?;
        let reach = Box::new(SocketFile(path.into()));
        let socket = |place| Socket { place, kind, path: path.into(), reach };
        if connect {
            return Ok(socket(Place::Connecting));
        }
        clear(path)?;
        let listener = UnixListener::bind(path).map_err(|error| refused(path, &error))?;
        let system = |source| Error::System { what: "the socket", source };
        listener.set_nonblocking(true).map_err(system)?;
        Ok(socket(Place::Listening { listener, file: identity(path) }))
    }

    /// From now on another process reaches its path.
    pub fn reach_by(&mut self, other: impl Reach + 'static) {
        self.reach = Box::new(other);
    }

    /// A monitor that has connected meanwhile, or can be connected to. `Err`: why it cannot, if that is not only
    /// that none has come yet.
    ///
    /// By vhost-user a monitor speaks first. What has connected and says nothing is kept in `silent`, until it speaks,
    /// or another connects.
    pub fn accept(
        &self,
        silent: &mut Option<UnixStream>,
    ) -> std::result::Result<Option<UnixStream>, String> {
        match &self.place {
            Place::Listening { listener, .. } => Ok(accept(listener, self.kind, silent)),
            Place::Connecting => match self.reach.connect() {
                Ok(stream) => Ok(Some(stream.into())),
                Err(Errno::AGAIN) => Err(format!(
                    "{}: the monitor has too many connections that it has not taken; it may be stopped",
                    self.path.display()
                )),
                Err(error) => Err(format!("{}: {}", self.path.display(), io::Error::from(error))),
            },
        }
    }

    /// Closes what has connected while there is a monitor: it would wait without being told. True if there was something
    /// that had not gone already. What has connected after the monitor has hung up waits for its turn.
    pub fn refuse_others(&self, link: &dyn Link) -> bool {
        let Place::Listening { listener, .. } = &self.place else { return false };
        // In this order: a hang-up that came before the other connection is seen.
        let is_another = || is_readable(listener.as_fd()) && !link.has_hung_up();
        let others =
            (0..CONNECTIONS).map_while(|_| is_another().then(|| listener.accept().ok()).flatten());
        others.filter(|(other, _)| opening(other) != Opening::Closed).count() > 0
    }

    /// The link to a machine, over what was accepted.
    pub fn link(&self, socket: UnixStream) -> io::Result<Box<dyn Link>> {
        Ok(match self.kind {
            Kind::Vhost => Box::new(Vhost::new(socket)?),
            Kind::Stream => Box::new(Stream::new(socket)?),
        })
    }

    /// Readable when a monitor has connected; `None` where nothing tells.
    pub fn listener(&self) -> Option<BorrowedFd<'_>> {
        match &self.place {
            Place::Listening { listener, .. } => Some(listener.as_fd()),
            Place::Connecting => None,
        }
    }
}

fn accept(
    listener: &UnixListener,
    kind: Kind,
    silent: &mut Option<UnixStream>,
) -> Option<UnixStream> {
    for _ in 0..CONNECTIONS {
        let monitor = take_monitor(kind, silent);
        if monitor.is_some() {
            return monitor;
        }
        *silent = Some(listener.accept().ok()?.0);
    }
    take_monitor(kind, silent)
}

/// What has connected, if it is a monitor. What has gone is forgotten, but for a stream's frames, which count.
fn take_monitor(kind: Kind, silent: &mut Option<UnixStream>) -> Option<UnixStream> {
    let stream = silent.take()?;
    match (opening(&stream), kind) {
        (Opening::Closed, _) => {}
        (Opening::Bytes, Kind::Vhost) if is_ready(stream.as_fd(), PollFlags::empty()) => {}
        (Opening::Silence, Kind::Vhost) => *silent = Some(stream),
        (Opening::Silence, Kind::Stream) | (Opening::Bytes, _) => return Some(stream),
    }
    None
}

/// How a connection begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opening {
    Bytes,
    Silence,
    /// The other side has closed it without a word.
    Closed,
}

fn opening(stream: &UnixStream) -> Opening {
    match recv(stream, &mut [0u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((0, _)) => Opening::Closed,
        Ok(_) => Opening::Bytes,
        Err(Errno::AGAIN | Errno::INTR) => Opening::Silence,
        Err(_) => Opening::Closed,
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Place::Listening { file: Some(file), .. } = self.place {
            self.reach.remove(file);
        }
    }
}

fn identity(path: &Path) -> Option<FileId> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Removes what a process has left that was killed: a socket at which no process listens any more.
fn clear(path: &Path) -> Result<()> {
    let Ok(there) = fs::symlink_metadata(path) else { return Ok(()) };
    if !there.file_type().is_socket() {
        let problem = "is no socket; name another path, or remove it";
        return Err(Error::Value(format!("{}: {problem}", path.display())));
    }
    // The kernel connects no sockets of different kinds, so a listener there does not take this for a monitor.
    let probe = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
    match probe {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|error| refused(path, &error))
        }
        Err(error) if error.raw_os_error() != Some(Errno::PROTOTYPE.raw_os_error()) => {
            Err(refused(path, &error))
        }
        _ => Err(Error::Value(format!(
            "{}: another process listens there; name another path, or end that process; if it is the machine's \
             monitor, give --connect",
            path.display()
        ))),
    }
}

/// Fails where no socket can have such a path.
fn check_length(path: &Path) -> Result<()> {
    match path.as_os_str().len() {
        length if length > LONGEST_PATH => Err(Error::Value(format!(
            "{}: {length} bytes, and the path of a Unix socket has {LONGEST_PATH} at most; name a shorter one",
            path.display()
        ))),
        _ => Ok(()),
    }
}

fn refused(path: &Path, error: &io::Error) -> Error {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "make the folder first",
        io::ErrorKind::PermissionDenied => "name a path in a folder that you may write to",
        _ => "name another path",
    };
    Error::Value(format!("{}: {error}; {remedy}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit is the kernel's: a path of that length is one.
    #[test]
    fn a_path_that_no_socket_can_have_is_refused_at_once() {
        let folder = std::env::temp_dir().join(format!("ringway-long-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let path = |length: usize| {
            let name = "s".repeat(length - folder.as_os_str().len() - 1);
            folder.join(name)
        };
        for connect in [false, true] {
            let problem = Socket::open(&path(108), connect, Kind::Vhost).err().unwrap().to_string();
            assert!(problem.contains("108 bytes, and"), "{problem}");
            assert!(problem.ends_with("107 at most; name a shorter one"), "{problem}");
            let socket = Socket::open(&path(107), connect, Kind::Vhost).unwrap();
            assert!(connect || UnixStream::connect(path(107)).is_ok());
            drop(socket);
        }
        fs::remove_dir(&folder).unwrap();
    }

    /// A monitor that takes no connections, stopped perhaps, does not hold up the run.
    #[test]
    fn a_monitor_that_takes_no_connections_is_tried_again() {
        let folder = std::env::temp_dir().join(format!("ringway-full-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let socket = Socket::open(&path, true, Kind::Vhost).unwrap();
        let mut waiting = Vec::new();
        let full = loop {
            match socket.accept(&mut None) {
                Ok(stream) => waiting.push(stream.unwrap()),
                Err(why) => break why,
            }
        };
        assert!(full.contains("it may be stopped"), "{full}");
        waiting.iter().for_each(|_| drop(listener.accept().unwrap()));
        assert!(socket.accept(&mut None).unwrap().is_some());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_was_left_behind_is_replaced_and_what_is_in_use_is_not() {
        let folder = std::env::temp_dir().join(format!("ringway-vm-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("socket");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "as after a kill");
        let socket = Socket::open(&path, false, Kind::Vhost).unwrap();
        let text = |opened: Result<Socket>| opened.err().unwrap().to_string();
        assert!(
            text(Socket::open(&path, false, Kind::Vhost)).contains("another process listens there")
        );
        drop(socket);
        assert!(!path.exists());
        fs::write(&path, "").unwrap();
        assert!(text(Socket::open(&path, false, Kind::Vhost)).contains("is no socket"));
        assert!(
            text(Socket::open(&folder.join("none/socket"), false, Kind::Stream))
                .contains("make the folder")
        );
        // Another's file in our place stays.
        fs::remove_file(&path).unwrap();
        let socket = Socket::open(&path, false, Kind::Vhost).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        drop(socket);
        assert!(path.exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
