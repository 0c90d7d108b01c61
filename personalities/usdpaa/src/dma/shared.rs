//! Maps that processes of a user share by name: files below `/dev/shm` that live as long as somebody has them open.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
};

use rustix::fs::{FlockOperation, flock};

/// A file of a shared map, with a lock that says that it is in use.
pub struct Shared {
    pub file: File,
    path: PathBuf,
}

fn path(name: &str) -> Option<PathBuf> {
    let is_name = (1..16).contains(&name.len()) && !name.contains(['/', '\0']);
    let user = rustix::process::getuid().as_raw();
    is_name.then(|| PathBuf::from(format!("/dev/shm/ringway-usdpaa-{user}-{name}")))
}

/// Takes a file away that nobody has open any more.
fn clean(path: &PathBuf) {
    if let Ok(file) = File::open(path)
        && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
    {
        let _ = fs::remove_file(path);
    }
}

/// Opens the file of a name, or makes it with a length: and whether it was made now.
pub fn open(name: &str, length: usize, is_new: bool, is_lazy: bool) -> io::Result<(Shared, bool)> {
    let path = path(name).ok_or(io::ErrorKind::InvalidInput)?;
    clean(&path);
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    let made =
        if is_new { options.clone().create_new(true).open(&path).map(Some) } else { Ok(None) };
    let made = match made {
        Err(error) if is_lazy && error.kind() == io::ErrorKind::AlreadyExists => None,
        made => made?,
    };
    let is_made = made.is_some();
    let file = match made {
        Some(file) => {
            flock(&file, FlockOperation::LockShared)?;
            file.set_len(length as u64)?;
            file
        }
        None => {
            let file = options.open(&path)?;
            flock(&file, FlockOperation::LockShared)?;
            if file.metadata()?.len() != length as u64 {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            file
        }
    };
    Ok((Shared { file, path }, is_made))
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The last one takes the name away.
        if flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_file(&self.path);
        }
    }
}
