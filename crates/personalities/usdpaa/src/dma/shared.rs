//! Maps that processes of a user share by name: files in a folder of the user's below `/dev/shm`,
//! that live as long as a process has them open. No other user can enter the folder, so none can
//! take a name in it, or list, lock or fill it.
//!
//! ```text
//!  0        the map
//!  length   what is taken of it: the words of `shared_fit.rs`
//! ```
//!
//! A file gets its name when it is complete. Each process with
//! the map holds a shared `flock` on it; a process that gets it exclusively is the last, and removes
//! the name.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags, fallocate, flock, linkat},
    io::Errno,
};

use super::{shared_fit, words::Words};

/// What names of the files begin with.
const PREFIX: &str = "usdpaa-";
const PAGE: usize = 4096;
/// How often a folder is made anew that others take away.
const TRIES: usize = 16;

/// A file of a shared map, with a lock that says that it is in use.
pub struct Shared {
    pub file: File,
    /// Behind the file: that is closed first.
    _name: Name,
    /// Bytes of the map.
    pub length: usize,
}

/// Its name, which goes with the last that has the file: as a child has, too, that this process has made.
struct Name(PathBuf);

impl Drop for Name {
    fn drop(&mut self) {
        remove_unused(&self.0);
        ringway::leave_shared_folder();
    }
}

/// Bytes of the file of a map.
fn file_length(length: usize) -> Option<u64> {
    let words = shared_fit::words(length).checked_mul(size_of::<u32>())?;
    let length = length.checked_add(words.checked_next_multiple_of(PAGE)?)?;
    i64::try_from(length).ok().map(|length| length as u64)
}

/// Bytes of the map of a file: 16 of 17 pages are the map's.
fn map_length(file: u64) -> Option<usize> {
    let length = usize::try_from(file).ok()? / PAGE * 16 / 17 * PAGE;
    (length > 0 && file_length(length) == Some(file)).then_some(length)
}

fn is_named(file: &File) -> bool {
    file.metadata().is_ok_and(|file| file.nlink() > 0)
}

/// Opens a file that is there.
fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.read(true).write(true).custom_flags(flags.bits() as i32).open(path)
}

/// Takes a name away, if no process has the file.
fn remove_unused(path: &Path) {
    if let Ok(file) = open_file(path)
        && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        && is_named(&file)
    {
        let _ = fs::remove_file(path);
    }
}

/// Takes all files away that processes of the user have left which were killed.
fn clean(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            remove_unused(&entry.path());
        }
    }
}

/// A new file without a name.
fn make(folder: &Path, bytes: u64) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR)?);
    flock(&file, FlockOperation::LockShared)?;
    // Memory that is not there is noticed now, and is no signal later.
    match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok(file),
        Err(Errno::NOSPC | Errno::NOMEM | Errno::FBIG) => Err(io::Error::other(format!(
            "{} has no room for {bytes} bytes: make it larger (mount -o remount,size=...), or the map smaller",
            folder.parent().unwrap_or(folder).display()
        ))),
        Err(error) => Err(error.into()),
    }
}

/// The file of a name, if there is one, so that it stays.
fn join(path: &Path) -> io::Result<Option<File>> {
    loop {
        match open_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => {
                let file = file?;
                flock(&file, FlockOperation::LockShared)?;
                // The last one may have gone meanwhile, and the name with it.
                if is_named(&file) {
                    return Ok(Some(file));
                }
            }
        }
    }
}

/// Opens the file of a name, or makes it with a length; 0 is that of the map that is there.
pub fn open(name: &str, length: usize, is_new: bool, is_lazy: bool) -> io::Result<Shared> {
    if name.contains(['/', '\0']) {
        return Err(io::Error::other("a name has no slash"));
    }
    let open = || {
        let folder = ringway::shared_folder().map_err(io::Error::other)?;
        open_in(&folder, name, length, (is_new, is_lazy))
    };
    for _ in 1..TRIES {
        match open() {
            // The last process with a map has taken the folder away meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
    }
    open()
}

fn open_in(
    folder: &Path,
    name: &str,
    length: usize,
    (is_new, is_lazy): (bool, bool),
) -> io::Result<Shared> {
    clean(folder);
    // Behind what is open by it: the name goes when that is closed, and the folder with the last
    // name.
    let place = Name(folder.join(format!("{PREFIX}{name}")));
    loop {
        if (is_lazy || !is_new)
            && let Some(file) = join(&place.0)?
        {
            let its = map_length(file.metadata()?.len());
            return match its.filter(|its| length == 0 || length == *its) {
                Some(length) => Ok(Shared { file, _name: place, length }),
                None => Err(io::Error::other("it has another length: give the same, or 0")),
            };
        }
        if !is_new {
            let what = "no process has it: the first one makes it, with DMA_MAP_FLAG_NEW";
            return Err(io::Error::other(what));
        }
        let bytes = file_length(length).filter(|_| length > 0);
        let file = make(folder, bytes.ok_or_else(|| io::Error::other("a new map has a length"))?)?;
        let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
        match linkat(CWD, nameless, CWD, &place.0, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => return Ok(Shared { file, _name: place, length }),
            Err(Errno::EXIST) if is_lazy => {}
            Err(Errno::EXIST) => {
                return Err(io::Error::other("it is there: DMA_MAP_FLAG_LAZY shares it"));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

impl Shared {
    /// What is taken of the map.
    pub fn words(&self) -> io::Result<Words> {
        Words::map(&self.file, self.length, shared_fit::words(self.length))
    }

    /// Keeps other processes from allocating, until this is dropped, or the process is gone.
    pub fn lock(&self) -> io::Result<Alone> {
        // Opened anew: a lock of the file that a child has inherited would be the child's as well.
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let alone = Alone(OpenOptions::new().read(true).write(true).open(path)?);
        alone.set(libc::F_WRLCK, libc::F_OFD_SETLKW)?;
        Ok(alone)
    }
}

/// The lock for allocating.
pub struct Alone(File);

impl Alone {
    fn set(&self, kind: i32, command: i32) -> io::Result<()> {
        // SAFETY: zeroes are a lock of the whole file.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short;
        loop {
            // SAFETY: an open file, and a lock that stays during the call.
            let result = unsafe { libc::fcntl(self.0.as_raw_fd(), command, &raw const lock) };
            let error = io::Error::last_os_error();
            match result {
                -1 if error.kind() == io::ErrorKind::Interrupted => {}
                -1 => return Err(error),
                _ => return Ok(()),
            }
        }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        // By name: a child that was made meanwhile has the descriptor, too.
        let _ = self.set(libc::F_UNLCK, libc::F_OFD_SETLK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_length_tells_its_maps() {
        for pages in (1..200).chain([1 << 14, 12_345, 1 << 20]) {
            let file = file_length(pages * PAGE).unwrap();
            assert_eq!(map_length(file), Some(pages * PAGE), "{pages}");
        }
        for bytes in [0, 1, 4096, 4097, 18 * 4096 + 1, 17 * 4096, u64::MAX] {
            assert_eq!(map_length(bytes), None, "{bytes}");
        }
    }
}
