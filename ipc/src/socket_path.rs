//! Where the sockets are: the system daemon's, and each user's own.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::{
    fd::AsFd,
    fs::{Mode, mkdir},
    io::Errno,
    net::{SocketAddrUnix, SocketType, getpeername, sockopt::socket_type},
    process::{getegid, geteuid, getgid, getuid},
};

use crate::{Error, start::connect_to};

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
    /// daemon if there is one, else the user's own in `RINGWAY_DIR`, `XDG_RUNTIME_DIR`,
    /// `/run/user/UID` or `/tmp`.
    pub fn find() -> SocketPath {
        if let Some(path) = set("RINGWAY_SOCKET") {
            return SocketPath::Named(path.into());
        }
        if set("RINGWAY_DIR").is_none() && Path::new(SYSTEM_SOCKET).exists() {
            return SocketPath::System(SYSTEM_SOCKET.into());
        }
        SocketPath::Private { dir: private_dir() }
    }

    /// The socket's path.
    pub fn socket(&self) -> PathBuf {
        match self {
            SocketPath::Named(path) | SocketPath::System(path) => path.clone(),
            SocketPath::Private { dir } => dir.join("ringwayd.sock"),
        }
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
    let dir = private_dir();
    secure(&dir)?;
    Ok(dir)
}

/// Removes the [folder](user_folder) if there is nothing in it, unless the user named it.
pub fn leave_user_folder() {
    leave(&private_dir());
}

/// As [`leave_user_folder`], of a private daemon's directory.
pub(crate) fn leave(dir: &Path) {
    if set("RINGWAY_DIR").is_none() {
        // The next program that needs the folder makes it again.
        let _ = fs::remove_dir(dir);
    }
}

fn private_dir() -> PathBuf {
    if let Some(dir) = set("RINGWAY_DIR") {
        return dir.into();
    }
    let uid = getuid().as_raw();
    let runtime = set("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.unwrap_or_else(|| format!("/run/user/{uid}").into());
    match runtime.is_dir() {
        true => runtime.join("ringway"),
        false => format!("/tmp/ringway-{uid}").into(),
    }
}

/// Makes the private directory, or checks that the one that is there is ours alone: a socket
/// or a program put there by somebody else would be trusted with our packets.
pub(crate) fn secure(dir: &Path) -> Result<(), Error> {
    let path = dir.display().to_string();
    let problem = |problem: String| Error::Unsafe { path: path.clone(), problem };
    match mkdir(dir, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(e) => return Err(problem(format!("cannot be created: {}", io::Error::from(e)))),
    }
    let found = fs::symlink_metadata(dir).map_err(|e| problem(e.to_string()))?;
    if !found.is_dir() {
        return Err(problem("is not a directory".into()));
    }
    if found.uid() != geteuid().as_raw() {
        return Err(problem(format!("belongs to user {}, not to you", found.uid())));
    }
    if found.mode() & 0o077 != 0 {
        return Err(problem(format!("can be entered by others (mode {:o})", found.mode() & 0o777)));
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
    let Some(peer) = getpeername(fd).ok().flatten() else { return false };
    let Ok(peer) = SocketAddrUnix::try_from(peer) else { return false };
    let Some(path) = peer.path_bytes() else { return false };
    let ours = SocketPath::find().socket();
    path == ours.as_os_str().as_encoded_bytes() || name_of(&ours).as_deref() == Some(path)
}

/// What the daemon calls its socket, which we may know by a link to it, or have mounted elsewhere.
fn name_of(socket: &Path) -> Option<Vec<u8>> {
    let peer = getpeername(&connect_to(socket).ok()?).ok()??;
    SocketAddrUnix::try_from(peer).ok()?.path_bytes().map(<[u8]>::to_vec)
}
