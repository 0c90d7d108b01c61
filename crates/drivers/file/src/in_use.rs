//! Which files this process reads and writes.
//!
//! A file that is read is not replaced, and none is written twice: either would lose what is in it.

use std::{
    fs::File,
    os::unix::fs::MetadataExt,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Device and inode of a file.
type Inode = (u64, u64);

/// Each file as often as it is open, and whether to be written.
static OPEN: Mutex<Vec<(Inode, bool)>> = Mutex::new(Vec::new());

fn open() -> MutexGuard<'static, Vec<(Inode, bool)>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// That this process reads a file, or what it has read of it, or writes it, until this is dropped: the file is not
/// replaced meanwhile by what the process writes.
#[derive(Debug, Default)]
pub struct InUse(Option<(Inode, bool)>);

impl InUse {
    /// Of a file that is read.
    pub(crate) fn to_read(file: &File) -> InUse {
        let of = inode(file).map(|inode| (inode, false));
        open().extend(of);
        InUse(of)
    }

    /// Of a file that is to be written; `None`: it is open already.
    pub(crate) fn to_write(file: &File) -> Option<InUse> {
        let of = inode(file).map(|inode| (inode, true));
        let mut open = open();
        if of.is_some_and(|(inode, _)| open.iter().any(|(other, _)| *other == inode)) {
            return None;
        }
        open.extend(of);
        Some(InUse(of))
    }
}

impl Clone for InUse {
    fn clone(&self) -> InUse {
        open().extend(self.0);
        InUse(self.0)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut open = open();
        if let Some(at) = open.iter().position(|one| self.0.as_ref() == Some(one)) {
            open.swap_remove(at);
        }
    }
}

/// `None`: it is a pipe or a device, which loses nothing.
fn inode(file: &File) -> Option<Inode> {
    let data = file.metadata().ok().filter(|data| data.is_file())?;
    Some((data.dev(), data.ino()))
}
