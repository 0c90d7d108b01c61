//! A Unix socket under a name, which is removed with it.

use crate::error::{Error, Result};
use rustix::fs::{Mode, stat};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Removes the file, if it is still the same.
pub struct SocketFile {
    path: PathBuf,
    id: (u64, u64),
}

/// Listens at `path`, for the user that runs this and its group. What another process has left there is replaced.
pub fn listen(path: &Path) -> Result<(UnixListener, SocketFile)> {
    let fail = |source: io::Error| {
        let remedy = match source.kind() {
            io::ErrorKind::NotFound => "make its directory first",
            io::ErrorKind::PermissionDenied => "name one in a directory that you may write to",
            _ => "name another one",
        };
        Error::Value(format!("{}: cannot listen: {source}; {remedy}", path.display()))
    };
    let listener = bind(path).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse if is_left(path) => {
            std::fs::remove_file(path)?;
            bind(path)
        }
        _ => Err(error),
    });
    let listener = listener.map_err(fail)?;
    let file = stat(path).map_err(|error| fail(error.into()))?;
    let id = (file.st_dev, file.st_ino);
    Ok((listener, SocketFile { path: path.into(), id }))
}

/// The file has its mode from the beginning on. No other thread makes files meanwhile: there is none yet.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let before = rustix::process::umask(Mode::from_raw_mode(0o117));
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    listener
}

/// It is a socket that no process listens to.
fn is_left(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && UnixStream::connect(path).err().is_some_and(refused)
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_same = stat(&self.path).is_ok_and(|file| (file.st_dev, file.st_ino) == self.id);
        if is_same {
            // It may be gone meanwhile.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
