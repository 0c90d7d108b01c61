//! One at a time for the gateway of a network: it comes with the first container and goes with the last.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

use crate::error::{Error, Kind};

/// Held until it is dropped, or the process ends. Its file goes with it.
pub struct Lock {
    folder: PathBuf,
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Waits for it. It holds in one network namespace: another one has other interfaces.
    pub fn of(network: &str) -> Result<Lock, Error> {
        let folder = folder()?;
        let shown = folder.display().to_string();
        let lock = || -> io::Result<Lock> {
            let netns = fs::metadata("/proc/thread-self/ns/net")?.ino();
            let path = folder.join(format!("{network}.{netns}"));
            loop {
                match DirBuilder::new().mode(0o700).create(&folder) {
                    Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
                    _ => {}
                }
                let file = match open(&folder, &path) {
                    // The folder has gone with the last file.
                    Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                    file => file?,
                };
                flock(&file, FlockOperation::LockExclusive)?;
                // It counts only if its file is still there when it is held.
                let held = file.metadata()?;
                let is_same =
                    |there: &fs::Metadata| (there.dev(), there.ino()) == (held.dev(), held.ino());
                if fs::symlink_metadata(&path).as_ref().is_ok_and(is_same) {
                    return Ok(Lock { folder: folder.clone(), path, _file: file });
                }
            }
        };
        let remedy = "it has to be a folder of this user's";
        lock().map_err(|e| Error::new(Kind::Io, format!("{shown}: {e}"), remedy))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        // Unless others have locks there.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// A file of another user's, in a folder of its own, would be a lock that it could hold for ever.
fn open(folder: &Path, path: &Path) -> io::Result<File> {
    if folder.symlink_metadata()?.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    File::options().create(true).append(true).open(path)
}

/// For root in `/run`, for others in their own part of it.
fn folder() -> Result<PathBuf, Error> {
    let parent = match rustix::process::geteuid().is_root() {
        true => PathBuf::from("/run"),
        false => std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).ok_or_else(|| {
            Error::new(
                Kind::Environment,
                "XDG_RUNTIME_DIR is not set",
                "it names this user's part of /run",
            )
        })?,
    };
    Ok(parent.join("ringway-networks"))
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        thread,
    };

    use ringway_testkit::skip_without_root;

    use super::*;

    /// Although each takes the file, and the folder, away.
    #[test]
    fn one_at_a_time_has_it() {
        if skip_without_root("one_at_a_time_has_it") {
            return;
        }
        let name = ringway_testkit::unique_name("lock");
        let holders = AtomicU32::new(0);
        let cycle = || {
            for _ in 0..200 {
                let _lock = Lock::of(&name).unwrap();
                assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                thread::yield_now();
                holders.fetch_sub(1, Ordering::SeqCst);
            }
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(cycle);
            }
        });
    }
}
