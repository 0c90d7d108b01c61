//! The socket that clients connect to, and its end.

use std::{
    cell::RefCell,
    ffi::OsStr,
    fs, io,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, chown},
    },
    path::{Path, PathBuf},
};

use ringway_ipc::{LISTEN_FD, ShutdownLock, refuse};
use ringway_proto::{Error as Refusal, EventKind};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::ioctl_fionbio,
    net::{
        SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, getsockname, listen,
        sockopt::{socket_acceptconn, socket_type},
    },
};

use crate::{
    config::Config,
    log::{Entry, log},
    peer::{Trust, User},
    service_manager::{self, LISTEN_ELSEWHERE, Sockets},
    socket_file::{make_room, new_socket, remove},
    sys,
};

/// A listening socket, not blocking.
pub struct Listener {
    fd: OwnedFd,
    socket: PathBuf,
    /// Which file that is, if it is ours to remove: another daemon's may be in its place by the time
    /// that we leave.
    file: Option<FileId>,
    /// The directory whose lock openers take: a private daemon's.
    dir: Option<PathBuf>,
    /// Clients that are to be let in first.
    early: RefCell<Vec<Peer>>,
    /// A descriptor to give up when there are no more.
    spare: RefCell<Option<OwnedFd>>,
    trust: Trust,
}

fn spare() -> Option<OwnedFd> {
    fs::File::open("/dev/null").ok().map(OwnedFd::from)
}

/// Device and number of a file.
type FileId = (u64, u64);

fn file_id(path: &Path) -> Option<FileId> {
    let file = fs::symlink_metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

/// What the program was started with, if it is a socket that listens. It blocks no more.
fn listening(fd: OwnedFd) -> Option<OwnedFd> {
    let listens =
        socket_acceptconn(&fd) == Ok(true) && socket_type(&fd) == Ok(SocketType::SEQPACKET);
    (listens && ioctl_fionbio(&fd, true).is_ok()).then_some(fd)
}

/// Whether two paths lead to one file, or are the same.
fn is_same(one: &Path, other: &Path) -> bool {
    let file = |path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    one == other || file(one).is_some_and(|it| file(other) == Some(it))
}

/// Lets the users of the configuration connect.
fn admit(path: &Path, config: &Config) -> Result<(), Box<dyn std::error::Error>> {
    let io = |what| move |source| Error::Io { path: path.display().to_string(), what, source };
    let mode = fs::Permissions::from_mode(config.mode()?);
    fs::set_permissions(path, mode).map_err(io("cannot set its mode"))?;
    chown(path, None, config.gid()?).map_err(io("cannot set its group"))?;
    Ok(())
}

/// A client that has connected.
pub struct Peer {
    pub fd: OwnedFd,
    pub user: User,
}

/// The result of accepting a connection.
pub enum Arrival {
    Client(Peer),
    /// A client for which there is no room: to be closed.
    TurnedAway(Peer),
}

/// Why there is nothing to listen on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("descriptor 3 is not a listening socket; only programs start a private daemon")]
    NotInherited,
    #[error("the service manager hands over {count} sockets; one is what ringwayd.socket has")]
    TooMany { count: usize },
    #[error(
        "the socket of the service manager is none that listens for SOCK_SEQPACKET at a path; \
         say `ListenSequentialPacket=PATH` in its unit"
    )]
    NotListening,
    #[error("{path}: {what}: {source}")]
    Io { path: String, what: &'static str, source: io::Error },
}

/// A system daemon tells its users apart.
fn trust() -> Result<Trust, Error> {
    let what = "users cannot be told apart without it";
    Trust::users().map_err(|source| Error::Io { path: "/proc".into(), what, source })
}

impl Listener {
    /// The socket that the first opener has made in `dir`.
    pub fn private(dir: PathBuf) -> Result<Listener, Error> {
        let fd = sys::inherited(LISTEN_FD).ok().and_then(listening).ok_or(Error::NotInherited)?;
        let socket = dir.join("ringwayd.sock");
        let (file, dir, early) = (file_id(&socket), Some(dir), RefCell::default());
        let trust = Trust::OneUser;
        Ok(Listener { fd, socket, file, dir, early, spare: spare().into(), trust })
    }

    /// Listens on a socket of the network namespace that we are in now, in place of the one that the
    /// first opener made: a socket keeps its namespace.
    pub fn move_in(&mut self) -> Result<(), Error> {
        // While we hold the lock nobody is connecting, and who connected is in the queue.
        let Some(Ok(_alone)) = self.shutdown_lock() else { return Ok(()) };
        let mut early = Vec::new();
        while let Some(Arrival::Client(peer)) = self.accept() {
            early.push(peer);
        }
        let anew = || -> io::Result<OwnedFd> {
            remove(&self.socket)?;
            let fd = new_socket()?;
            bind(&fd, &SocketAddrUnix::new(&self.socket)?)?;
            listen(&fd, 128)?;
            Ok(fd)
        };
        let path = || self.socket.display().to_string();
        let what = "cannot listen there again";
        self.fd = anew().map_err(|source| Error::Io { path: path(), what, source })?;
        self.file = file_id(&self.socket);
        self.early = early.into();
        Ok(())
    }

    /// The service manager's socket, if it hands one over; else one of its own, as configured.
    pub fn system(config: &Config) -> Result<Listener, Box<dyn std::error::Error>> {
        match service_manager::sockets()? {
            Sockets::None => Listener::configured(config),
            Sockets::One(fd) => {
                Listener::activated(listening(fd).ok_or(Error::NotListening)?, config)
            }
            Sockets::TooMany { count } => Err(Error::TooMany { count }.into()),
        }
    }

    /// The service manager's: its unit says where it is. It stays when the daemon goes, and clients
    /// wait in its queue for the next.
    fn activated(fd: OwnedFd, config: &Config) -> Result<Listener, Box<dyn std::error::Error>> {
        let address = getsockname(&fd).ok().and_then(|name| SocketAddrUnix::try_from(name).ok());
        let path = address.as_ref().and_then(SocketAddrUnix::path_bytes);
        let path = path.ok_or(Error::NotListening)?;
        let path = Path::new(OsStr::from_bytes(path));
        if !is_same(path, Path::new(&config.socket)) {
            let (socket, path) = (&config.socket, path.display());
            let text = format!(
                "`socket` is {socket}, and the daemon listens at {path}: {LISTEN_ELSEWHERE}"
            );
            log(Entry::warn(EventKind::Config, text));
        }
        admit(path, config)?;
        Ok(Listener {
            fd,
            socket: path.into(),
            file: None,
            dir: None,
            early: RefCell::default(),
            spare: spare().into(),
            trust: trust()?,
        })
    }

    fn configured(config: &Config) -> Result<Listener, Box<dyn std::error::Error>> {
        let path = Path::new(&config.socket);
        let io = |what| move |source| Error::Io { path: path.display().to_string(), what, source };
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(io("cannot make its directory"))?;
        }
        let address = SocketAddrUnix::new(path).map_err(|e| io("not a socket path")(e.into()))?;
        make_room(path, &address)?;
        let fd = new_socket().map_err(io("cannot make a socket"))?;
        bind(&fd, &address).map_err(|e| io("cannot listen there")(e.into()))?;
        admit(path, config)?;
        listen(&fd, 128).map_err(|e| io("cannot listen there")(e.into()))?;
        Ok(Listener {
            fd,
            socket: path.into(),
            file: file_id(path),
            dir: None,
            early: RefCell::default(),
            spare: spare().into(),
            trust: trust()?,
        })
    }

    /// Where clients find the daemon.
    pub fn path(&self) -> &Path {
        &self.socket
    }

    /// The next connection that waits to be accepted.
    pub fn accept(&self) -> Option<Arrival> {
        if let Some(peer) = self.early.borrow_mut().pop() {
            return Some(Arrival::Client(peer));
        }
        let mut reserve = self.spare.borrow_mut();
        if reserve.is_none() {
            *reserve = spare();
        }
        match self.next() {
            Ok(peer) => Some(Arrival::Client(peer)),
            // In and out again: as long as somebody stood at the door, the loop would not rest.
            Err(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => {
                drop(reserve.take());
                self.next().ok().map(Arrival::TurnedAway)
            }
            Err(_) => None,
        }
    }

    fn next(&self) -> rustix::io::Result<Peer> {
        loop {
            match accept_with(&self.fd, SocketFlags::CLOEXEC) {
                Ok(fd) => {
                    // Every Unix socket knows its peer.
                    match self.trust.user(fd.as_fd()) {
                        Ok(user) => return Ok(Peer { fd, user }),
                        Err(_) => continue,
                    }
                }
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => continue,
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the service manager has made the socket, and says where it is.
    pub fn is_activated(&self) -> bool {
        self.dir.is_none() && self.file.is_none()
    }

    /// Whether the daemon goes when nobody needs it.
    pub fn is_private(&self) -> bool {
        self.dir.is_some()
    }

    /// Stops listening, unless somebody has connected just now: that client comes back.
    pub fn leave(&self) -> Result<(), Peer> {
        // While we hold the lock nobody is connecting, and who connected is in the queue.
        let alone = self.shutdown_lock();
        if let Some(Arrival::Client(peer)) = self.accept() {
            return Err(peer);
        }
        self.remove_files(alone);
        Ok(())
    }

    /// Tells every connected client why, and stops listening.
    pub fn refuse_all(&self, why: &Refusal) {
        // While we hold the lock nobody is connecting, and who connected is in the queue.
        let alone = self.shutdown_lock();
        while let Some(Arrival::Client(peer) | Arrival::TurnedAway(peer)) = self.accept() {
            refuse(&peer.fd, why);
        }
        self.remove_files(alone);
    }

    /// Stops listening at once.
    pub fn close(&self) {
        self.remove_files(self.shutdown_lock());
    }

    /// The lock of a private daemon's directory. A directory that has been removed has none: to lock it would
    /// make it again.
    fn shutdown_lock(&self) -> Option<Result<ShutdownLock, ringway_ipc::Error>> {
        self.dir.as_deref().filter(|dir| dir.exists()).map(ShutdownLock::take)
    }

    /// Leaves nothing of ours behind. If somebody has removed our socket, as with the whole
    /// directory, the next program has started another daemon, whose socket stays.
    fn remove_files(&self, alone: Option<Result<ShutdownLock, ringway_ipc::Error>>) {
        let there = file_id(&self.socket);
        if there.is_some() && there != self.file {
            return;
        }
        match alone {
            Some(Ok(alone)) => alone.remove_files(),
            _ => {
                let _ = fs::remove_file(&self.socket);
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
