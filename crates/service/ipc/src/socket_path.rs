//! Where the sockets are: the system daemon's, and each user's own.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::{
    fd::{AsFd, BorrowedFd},
    fs::{Mode, mkdir},
    io::Errno,
    net::{SocketAddrUnix, SocketType, getpeername, sockopt::socket_type},
    process::{getegid, geteuid, getgid, getuid},
};

use crate::{
    Error,
    shared_folder::{self, retried},
    start::connect_to,
};

const SYSTEM_SOCKET: &str = "/run/ringway/ringwayd.sock";

/// A socket to look for a daemon at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketPath {
    /// Named in `RINGWAY_SOCKET`: this one and no other.
    Named(PathBuf),
    /// `/run/ringway/ringwayd.sock`, if it is there.
    System(PathBuf),
    /// In a directory that only its user can enter. A daemon is started there on demand.
    Private { dir: PathBuf },
}

impl SocketPath {
    /// Where this process finds its daemon: what `RINGWAY_SOCKET` names, else the system
    /// daemon if there is one, else the user's own in `RINGWAY_DIR`, or below
    /// `XDG_RUNTIME_DIR`, `/run/user/UID` or `/dev/shm`.
    pub fn find() -> SocketPath {
        if let Some(path) = set("RINGWAY_SOCKET") {
            return SocketPath::Named(path.into());
        }
        if set("RINGWAY_DIR").is_none() && Path::new(SYSTEM_SOCKET).exists() {
            return SocketPath::System(SYSTEM_SOCKET.into());
        }
        SocketPath::Private { dir: private_dir() }
    }

    /// Where the system daemon is, be it there or not: what `RINGWAY_SOCKET` names, or its usual socket.
    pub fn system() -> SocketPath {
        match set("RINGWAY_SOCKET") {
            Some(path) => SocketPath::Named(path.into()),
            None => SocketPath::System(SYSTEM_SOCKET.into()),
        }
    }

    /// The socket's path.
    pub fn socket(&self) -> PathBuf {
        match self {
            SocketPath::Named(path) | SocketPath::System(path) => path.clone(),
            SocketPath::Private { dir } => socket_in(dir),
        }
    }

    /// Whether a private daemon could be started there, if that is where it is: nothing is left that was
    /// not there before.
    ///
    /// # Errors
    /// [`Error::Unsafe`], as for a program that opens a port.
    pub fn check_private(&self) -> Result<(), Error> {
        let SocketPath::Private { dir } = self else { return Ok(()) };
        let was_there = fs::symlink_metadata(dir).is_ok();
        let secured = secure_for_socket(dir);
        if !was_there {
            leave_folder(dir);
        }
        secured
    }

    /// Whether a daemon listens there; none is started.
    pub fn answer(&self) -> io::Result<()> {
        match connect_to(&self.socket()) {
            Err(Error::Connect { source, .. }) => Err(source),
            Err(other) => Err(io::Error::other(other)),
            Ok(_) => Ok(()),
        }
    }
}

/// A private daemon's socket.
fn socket_in(dir: &Path) -> PathBuf {
    dir.join("ringwayd.sock")
}

/// Whether a connection is to the system daemon, at its usual place.
pub fn is_of_system(connection: impl AsFd) -> bool {
    peer(connection.as_fd()).as_deref() == Some(SYSTEM_SOCKET.as_bytes())
}

fn set(variable: &str) -> Option<OsString> {
    ringway_environment::variable(variable).filter(|value| !value.is_empty())
}

/// Whether files that this process makes, and connections, are another user's or group's than those of
/// the user who runs it: what that user has made may be a trap then.
pub(crate) fn is_set_id() -> bool {
    getuid() != geteuid() || getgid() != getegid()
}

/// The user's own folder, made if it is not there: of a private daemon, and of what programs of one user show each other,
/// whichever daemon they have.
///
/// # Errors
/// [`Error::Unsafe`]: it cannot be made, or is not the user's alone.
pub fn user_folder() -> Result<PathBuf, Error> {
    retried(|| {
        let dir = private_dir();
        secure(&dir).map(|()| dir)
    })
}

/// Removes the [folder](user_folder) if there is nothing in it, unless the user named it.
pub fn leave_user_folder() {
    leave(&private_dir());
}

/// As [`leave_user_folder`], of a private daemon's directory.
pub(crate) fn leave(dir: &Path) {
    if set("RINGWAY_DIR").is_none() {
        leave_folder(dir);
    }
}

/// Removes a folder with nothing in it.
pub(crate) fn leave_folder(folder: &Path) {
    // The next program that needs the folder makes it again.
    let _ = fs::remove_dir(folder);
}

/// The first of these that there is: what the user has named, the session's directory, a folder
/// that others cannot take from the user. Where the kernel keeps no keys, as in some containers, a
/// name is left that others can guess.
fn private_dir() -> PathBuf {
    if let Some(dir) = set("RINGWAY_DIR") {
        return dir.into();
    }
    let uid = geteuid().as_raw();
    // A relative path is ignored: XDG Base Directory Specification.
    let named = set("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let mut of_session = named.into_iter().chain([format!("/run/user/{uid}").into()]);
    // What another user can write, that user can take from under us.
    let is_own = |dir: &PathBuf| {
        let found = fs::metadata(dir).ok();
        found.is_some_and(|dir| dir.is_dir() && dir.uid() == uid && dir.mode() & 0o022 == 0)
    };
    match of_session.find(is_own) {
        Some(runtime) => runtime.join("ringway"),
        None => shared_folder::find().unwrap_or_else(|| format!("/tmp/ringway-{uid}").into()),
    }
}

/// Whether a file is a directory that its owner alone can enter, and this process is the owner's.
pub(crate) fn is_alone(found: &fs::Metadata) -> bool {
    found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0
}

/// As [`secure`], of a directory that is to have a daemon's socket: the kernel takes no long path for one.
pub(crate) fn secure_for_socket(dir: &Path) -> Result<(), Error> {
    if SocketAddrUnix::new(socket_in(dir)).is_err() {
        return Err(Error::Unsafe {
            path: dir.display().to_string(),
            problem: "is too long for the path of a socket, which has 107 bytes at most".into(),
            remedy: "make its path shorter",
        });
    }
    secure(dir)
}

/// Makes the private directory, or checks that the existing one is ours alone: a socket
/// or a program put there by somebody else would be trusted with our packets.
pub(crate) fn secure(dir: &Path) -> Result<(), Error> {
    let path = dir.display().to_string();
    let with_remedy = |problem, remedy| Error::Unsafe { path: path.clone(), problem, remedy };
    let problem = |problem| with_remedy(problem, "remove it");
    if dir.is_relative() {
        // It would be another directory for each program, and for the daemon.
        return Err(with_remedy("is a relative path".into(), "write all of it, from / on"));
    }
    match mkdir(dir, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(e) => {
            let problem = format!("cannot be created: {}", io::Error::from(e));
            let remedy = match e {
                Errno::NOENT | Errno::NOTDIR => "create the directory that it is to be in",
                Errno::ACCESS | Errno::PERM => "have the directory that it is in made writable",
                Errno::ROFS => "mount its file system writable",
                Errno::NOSPC | Errno::DQUOT => "make room there",
                _ => "create it by hand",
            };
            return Err(with_remedy(problem, remedy));
        }
    }
    let found = fs::symlink_metadata(dir).map_err(|e| problem(e.to_string()))?;
    if !found.is_dir() {
        return Err(problem("is not a directory".into()));
    }
    if found.uid() != geteuid().as_raw() {
        return Err(Error::Theirs { path, uid: found.uid() });
    }
    if found.mode() & 0o077 != 0 {
        let problem = format!("can be entered by others (mode {:o})", found.mode() & 0o777);
        return Err(with_remedy(problem, "take their rights away (chmod 700)"));
    }
    Ok(())
}

/// Whether `fd` is connected to the daemon that this process would use: for descriptors that
/// were inherited or received, and may be anything.
pub fn is_daemon(fd: impl AsFd) -> bool {
    let fd = fd.as_fd();
    if socket_type(fd) != Ok(SocketType::SEQPACKET) {
        return false;
    }
    let Some(path) = peer(fd) else { return false };
    let ours = SocketPath::find().socket();
    path == ours.as_os_str().as_encoded_bytes() || name_of(&ours) == Some(path)
}

/// The path that the other end of a connection is bound to.
fn peer(connection: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let peer = getpeername(connection).ok()??;
    SocketAddrUnix::try_from(peer).ok()?.path_bytes().map(<[u8]>::to_vec)
}

/// What the daemon calls its socket, which we may know by a link to it, or have mounted elsewhere.
fn name_of(socket: &Path) -> Option<Vec<u8>> {
    peer(connect_to(socket).ok()?.as_fd())
}
