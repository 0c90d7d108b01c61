//! Connecting, and starting a private daemon where none is running.
//!
//! Openers and the daemon agree by a lock file in the private directory. An opener connects
//! under a shared lock; who finds nobody listening takes the exclusive lock, looks again,
//! makes the socket and starts a daemon that inherits it, already listening. A daemon that
//! wants to leave takes the exclusive lock too, so nobody is connecting while it decides; it
//! then removes socket, lock and directory.

use std::{
    ffi::{CString, OsStr},
    fmt::Display,
    fs::{self, File, OpenOptions},
    io,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    sync::OnceLock,
};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{FlockOperation, flock},
    io::retry_on_intr,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with},
    process::geteuid,
};

use crate::{
    Error, is_no_descriptors,
    ring_texts::sweep_ring_texts,
    shared_folder::retried,
    socket_path::{SocketPath, is_set_id, leave, secure_for_socket},
    sys,
};

/// The descriptor at which a private daemon finds its listening socket.
pub const LISTEN_FD: i32 = 3;

/// How a process has others connect for it: whether they may start a private daemon.
pub type Connector = Box<dyn Fn(Start) -> Result<OwnedFd, Error> + Send + Sync>;

/// What is done where no daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A private one is started, unless another is named.
    IfNeeded,
    No,
}

static CONNECTOR: OnceLock<Connector> = OnceLock::new();

/// From now on [`connect`] and [`connect_running`] take what `connector` has connected: for a process that confines
/// itself, and may not connect any more, nor start a daemon, which would be confined as well. Only the first call counts.
pub fn connect_by(connector: Connector) {
    let _ = CONNECTOR.set(connector);
}

/// Connects to the daemon; starts a private one if there is none and none is named.
pub fn connect() -> Result<OwnedFd, Error> {
    if let Some(connect) = CONNECTOR.get() {
        return connect(Start::IfNeeded);
    }
    retried(|| {
        let place = SocketPath::find();
        match &place {
            SocketPath::Private { dir } => connect_private(dir, &place.socket()),
            _ => connect_to(&place.socket()),
        }
    })
}

fn connect_private(dir: &Path, socket: &Path) -> Result<OwnedFd, Error> {
    if is_set_id() {
        return Err(Error::Start(
            "this program has other rights than the user who started it (a set-user-ID bit, say), and \
             whose daemon it would be is not clear; start the system daemon, or run the program as \
             its own user"
                .into(),
        ));
    }
    let shared = lock(dir, FlockOperation::LockShared)?;
    if let Some(connection) = connect_to_listener(socket)? {
        return Ok(connection);
    }
    drop(shared);
    let alone = ShutdownLock::take(dir)?;
    if let Some(connection) = connect_to_listener(socket)? {
        return Ok(connection);
    }
    if let Err(error) = start(dir, socket) {
        alone.remove_own_files();
        return Err(error);
    }
    connect_to(socket)
}

/// Connects to the daemon; `None` if nothing listens there. Any other failure says nothing about the daemon,
/// such as that this process has no descriptor left: starting one would take the socket of the daemon that runs.
fn connect_to_listener(socket: &Path) -> Result<Option<OwnedFd>, Error> {
    match connect_to(socket) {
        Err(Error::Connect { source, .. })
            if matches!(
                source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            Ok(None)
        }
        result => result.map(Some),
    }
}

/// Connects to the daemon; starts none.
pub fn connect_running() -> Result<OwnedFd, Error> {
    if let Some(connect) = CONNECTOR.get() {
        return connect(Start::No);
    }
    retried(|| {
        let place = SocketPath::find();
        let _shared = match &place {
            SocketPath::Private { dir } if place.socket().exists() => {
                Some(lock(dir, FlockOperation::LockShared)?)
            }
            _ => None,
        };
        connect_to(&place.socket())
    })
}

/// Connects to the [system daemon](SocketPath::system), and to no private one.
pub fn connect_system() -> Result<OwnedFd, Error> {
    retried(|| connect_to(&SocketPath::system().socket()))
}

/// Takes the lock of a private directory, which is made if need be. A daemon that leaves
/// removes both: the lock that counts is the one that is still there when it is held.
fn lock(dir: &Path, operation: FlockOperation) -> Result<DirLock, Error> {
    let path = dir.join("lock");
    let shown = path.display();
    let refused = |source| cannot_start(&shown, source);
    loop {
        secure_for_socket(dir)?;
        let file = match own_file(&path, File::options().write(true)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            result => result.map_err(refused)?,
        };
        hold(&file, operation)?;
        let held = file.metadata().map_err(refused)?;
        match fs::symlink_metadata(&path) {
            Ok(there) if (there.dev(), there.ino()) == (held.dev(), held.ino()) => {
                return Ok(DirLock(file));
            }
            _ => continue,
        }
    }
}

/// The lock of a private directory.
struct DirLock(File);

impl Drop for DirLock {
    fn drop(&mut self) {
        // A process that was forked meanwhile has the descriptor, too.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Opens a file in the private directory, which is made if it is not there. It is this user's, and
/// where it seems to be: neither a link to another, nor anybody else's.
fn own_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = options.create(true).mode(0o600).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "not a file of yours; remove it",
        ));
    }
    Ok(file)
}

fn hold(lock: &File, operation: FlockOperation) -> Result<(), Error> {
    loop {
        match flock(lock, operation) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(e) => return Err(Error::Start(format!("cannot lock: {e}"))),
            Ok(()) => return Ok(()),
        }
    }
}

fn new_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// A connection to the process that listens there.
///
/// # Errors
/// Those of `connect(2)`.
pub fn connect_to(path: &Path) -> Result<OwnedFd, Error> {
    let connect = || {
        if path.is_relative() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a relative path"));
        }
        let socket = new_socket()?;
        let address = SocketAddrUnix::new(path)?;
        retry_on_intr(|| rustix::net::connect(&socket, &address))?;
        Ok(socket)
    };
    connect().map_err(|source| match is_no_descriptors(&source) {
        true => Error::NoDescriptors { source, is_done: false },
        false => Error::Connect { path: path.display().to_string(), source },
    })
}

/// Why no daemon can be started. What the program itself has run out of is no fault of the daemon's.
fn cannot_start(what: &dyn Display, source: io::Error) -> Error {
    match is_no_descriptors(&source) {
        true => Error::NoDescriptors { source, is_done: false },
        false => Error::Start(format!("{what}: {source}")),
    }
}

/// Makes the socket, and starts a daemon on it: a connection waits in the socket's queue until the daemon is
/// ready.
fn start(dir: &Path, path: &Path) -> Result<(), Error> {
    let daemon = daemon_binary().ok_or_else(|| {
        Error::Start(
            "there is no such program beside this library or in PATH; build it with `make \
             build`, or install it"
                .into(),
        )
    })?;
    let listen_on = || {
        let _ = fs::remove_file(path);
        let socket = new_socket()?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        listen(&socket, 128)?;
        Ok(socket)
    };
    let listener: OwnedFd = listen_on().map_err(|e: io::Error| {
        cannot_start(&format_args!("cannot listen at {}", path.display()), e)
    })?;
    spawn(&daemon, dir, &listener).map_err(|e| cannot_start(&daemon.display(), e))
}

/// The daemon's program: beside the library or program that this code is in, or in the `bin` beside
/// the library's directory; then in `PATH`, but for relative paths there.
pub fn daemon_binary() -> Option<PathBuf> {
    let own = own_object();
    let dirs = own.iter().flat_map(|object| object.ancestors().skip(1));
    let beside = dirs.zip(["ringwayd", "bin/ringwayd"]).map(|(dir, at)| dir.join(at));
    let in_path = ringway_environment::variable("PATH").unwrap_or_default();
    // The daemon starts in another working directory. An empty variable has one empty path.
    let in_path = std::env::split_paths(&in_path).filter(|dir| dir.is_absolute());
    let in_path = in_path.map(|dir| dir.join("ringwayd"));
    let runs = |path: &PathBuf| {
        rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
    };
    beside.chain(in_path).find(runs)
}

/// The file that this code was loaded from.
fn own_object() -> Option<PathBuf> {
    match sys::own_library() {
        Some(library) => fs::canonicalize(OsStr::from_bytes(library.to_bytes())).ok(),
        None => std::env::current_exe().ok(),
    }
}

/// Starts the daemon, which has nothing to do with this process: that may be any program.
fn spawn(daemon: &Path, dir: &Path, listener: &OwnedFd) -> io::Result<()> {
    let text = |s: &OsStr| CString::new(s.as_bytes()).map_err(io::Error::other);
    let log = own_file(&dir.join("ringwayd.log"), File::options().append(true))?;
    let null = File::open("/dev/null")?;
    let args = [text(daemon.as_os_str())?, c"--private".into(), text(dir.as_os_str())?];
    let env = ringway_environment::variables()
        .filter(|(name, _)| name != "LD_PRELOAD")
        .map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            text(&name)
        })
        .collect::<io::Result<Vec<_>>>()?;
    // The listening socket at `LISTEN_FD`.
    let descriptors = [null.as_fd(), null.as_fd(), log.as_fd(), listener.as_fd()];
    sys::Start { arguments: &args, environment: &env, descriptors: &descriptors }.detached()
}

const _: () = assert!(LISTEN_FD == 3);

/// While it lives, nobody is connecting: the daemon's side of the agreement, and that of a program which starts one.
pub struct ShutdownLock {
    dir: PathBuf,
    _lock: DirLock,
}

impl ShutdownLock {
    /// Takes the lock of the daemon's private directory.
    pub fn take(dir: &Path) -> Result<ShutdownLock, Error> {
        Ok(ShutdownLock { dir: dir.into(), _lock: lock(dir, FlockOperation::LockExclusive)? })
    }

    /// Leaves the place as it was before: without socket, without lock, without a log that
    /// says nothing. The directory goes too, unless the user named it.
    pub fn remove_files(self) {
        // What killed programs have left keeps the directory no longer than what they had of the daemon.
        sweep_ring_texts(&self.dir);
        self.remove_own_files();
    }

    /// The same, but for what programs have left.
    fn remove_own_files(self) {
        let log = self.dir.join("ringwayd.log");
        let silent = fs::metadata(&log).is_ok_and(|log| log.len() == 0);
        let _ = fs::remove_file(self.dir.join("ringwayd.sock"));
        if silent {
            let _ = fs::remove_file(log);
        }
        let _ = fs::remove_file(self.dir.join("lock"));
        leave(&self.dir);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{DirBuilderExt, symlink};

    use super::*;

    /// A child that another thread forks while the lock is held has a copy of it.
    #[test]
    fn a_lock_goes_although_a_child_has_it() {
        let dir = std::env::temp_dir().join(format!("ringway-lock-{}", std::process::id()));
        let held = lock(&dir, FlockOperation::LockExclusive).unwrap();
        let _of_child = held.0.try_clone().unwrap();
        drop(held);
        let again = File::open(dir.join("lock")).unwrap();
        assert_eq!(flock(&again, FlockOperation::NonBlockingLockExclusive), Ok(()));
        fs::remove_dir_all(dir).unwrap();
    }

    /// What others have put into the directory, by a link, is neither made nor written to.
    #[test]
    fn files_are_not_opened_by_links() {
        let root = std::env::temp_dir().join(format!("ringway-start-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&root).unwrap();
        let (dir, target) = (root.join("run"), root.join("target"));
        drop(lock(&dir, FlockOperation::LockShared).unwrap());
        for name in ["lock", "ringwayd.log"] {
            let _ = fs::remove_file(dir.join(name));
            symlink(&target, dir.join(name)).unwrap();
        }
        assert!(matches!(lock(&dir, FlockOperation::LockShared), Err(Error::Start(_))));
        let listener = new_socket().unwrap();
        assert!(spawn(Path::new("/bin/true"), &dir, &listener).is_err());
        assert!(!target.exists());
        fs::remove_dir_all(root).unwrap();
    }
}
