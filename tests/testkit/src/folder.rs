//! Temporary folders that outlive nobody for long.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use crate::unique_name;

const STEM: &str = "ringway-scratch-";

/// A folder that only this user can enter. It goes on drop; and where its owner was killed, when
/// anybody makes the next.
///
/// Who owns one has it locked, which the kernel undoes at his end; so what can be locked is nobody's.
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

#[allow(clippy::new_without_default)]
impl Folder {
    /// Makes a folder in the system's temporary one.
    pub fn new() -> Folder {
        Folder::within(std::env::temp_dir())
    }

    /// Makes a folder in that one.
    pub fn within(parent: PathBuf) -> Folder {
        // A folder is made and locked while nobody looks.
        let turn = File::open(&parent).unwrap_or_else(|e| panic!("{}: {e}", parent.display()));
        flock(&turn, FlockOperation::LockExclusive).expect("nobody keeps it for long");
        remove_left(&parent);
        let path = parent.join(unique_name(STEM));
        let made = DirBuilder::new().mode(0o700).create(&path).and_then(|()| open(&path));
        let lock = made.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        flock(&lock, FlockOperation::NonBlockingLockExclusive).expect("it is new");
        Folder { path, _lock: lock }
    }

    /// Whether a path is that of such a folder, this test's or another's.
    pub fn is_one(path: &Path) -> bool {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(STEM))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn open(folder: &Path) -> std::io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?.into())
}

/// Removes the folders that nobody has locked, where this user may.
fn remove_left(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        if Folder::is_one(&path)
            && let Ok(folder) = open(&path)
            && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_owners_folder_goes_with_the_next() {
        let kept = Folder::new();
        let left = Folder::new();
        let path = left.path().to_owned();
        fs::write(path.join("file"), "").unwrap();
        // As when the process is killed: the lock goes, the folder stays.
        let left = std::mem::ManuallyDrop::new(left);
        flock(&left._lock, FlockOperation::Unlock).unwrap();
        let next = Folder::new();
        assert!(!path.exists() && kept.path().exists() && next.path().exists());
        let paths = [&kept, &next].map(|folder| folder.path().to_owned());
        drop((kept, next));
        assert!(paths.iter().all(|path| !path.exists()));
    }
}
