//! What members of a cluster have agreed on: a small file.
//!
//! ```text
//!   bytes   0..32    how packets are shared out, among how many queues, of which device, and which queues were held
//!          32..36    the group of the members' packet sockets: see `turns.rs`
//!         128..640   what each queue has lost, on a port: written by the member that distributes
//!   locks  64 + q    held by the member with queue q for as long as it lives: the kernel lets go of it
//!             128    held by the member that distributes: see `rendezvous.rs`
//! ```
//!
//! It is in a folder that the user's programs alone can enter, so no other user can make, read,
//! write, lock or list it.
//! A member that changes or removes the file locks all of it meanwhile. The last member to leave removes it. The file of
//! members that were killed is removed when the next ring is opened. What is read of the file is checked: it is a number
//! of queues within its bounds.

use std::{
    ffi::c_int,
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use super::{QUEUES, WITH_DUPLICATES};
use crate::files;

/// How often a file is tried that others have, or remove.
const TRIES: u32 = 400;
/// What names of the files begin with.
const NAME: &str = "pf_ring-cluster-";
const LOCKS: i64 = 64;
/// The lock of the member that distributes, behind those of the queues.
pub const DISTRIBUTOR: u32 = QUEUES;
const MAGIC: u32 = 0x7266_7032;

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    pub kind: u32,
    pub queues: u32,
    pub options: u32,
    pub device: u64,
    /// Queues that have had a member, a bit for each.
    pub used: u64,
}

impl Shared {
    /// What its queue has no room for may go to another.
    pub fn is_relaxed(self) -> bool {
        const RELAXED: u32 = 1;
        self.options & RELAXED != 0
    }
}

/// A cluster's file by its name. Dropping this removes the file, unless it has members.
pub struct Place(PathBuf);

impl Place {
    /// The socket of the member that distributes: beside the file, with a name that is about as
    /// short as the daemon's socket's, as a path may be too long for a socket.
    pub fn socket(&self) -> PathBuf {
        socket_of(&self.0)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        remove_unused(&self.0);
        files::leave_shared_folder();
    }
}

fn socket_of(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("pf-{}", name.trim_start_matches(NAME)))
}

/// The file of a cluster, locked: of this network namespace.
pub fn open_locked(id: u16) -> io::Result<(Place, File)> {
    let netns = fs::metadata("/proc/thread-self/ns/net").map_or(0, |file| file.ino());
    for _ in 0..TRIES {
        let place = Place(files::shared_folder()?.join(format!("{NAME}{netns:x}-{id}")));
        let file = match open(&place.0) {
            // Others have removed the folder meanwhile.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        lock(&file)?;
        // The last member may have removed it meanwhile.
        if is_at(&file, &place.0) {
            return Ok((place, file));
        }
    }
    Err(Errno::BUSY.into())
}

/// Removes the files of clusters without members.
pub fn sweep() {
    let Ok(folder) = files::shared_folder() else { return };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(NAME.as_bytes()) {
            remove_unused(&entry.path());
        }
    }
    files::leave_shared_folder();
}

/// Removes the file of a cluster if it has no members, and the socket of a killed member.
fn remove_unused(path: &Path) {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let opened = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    let Ok(file) = opened else { return };
    let is_unused = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        && !(0..QUEUES).any(|queue| is_locked(&file, queue))
        && is_at(&file, path);
    if is_unused {
        let _ = fs::remove_file(socket_of(path));
        let _ = fs::remove_file(path);
    }
}

/// Whether it is this file that has the name.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |file: fs::Metadata| (file.dev(), file.ino());
    let there = path.symlink_metadata().map(identity);
    file.metadata().map(identity).is_ok_and(|own| there.is_ok_and(|there| there == own))
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC).open(path)
}

/// Locks the file while it is changed. EBUSY if a program that is stopped has it locked.
pub fn lock(file: &File) -> rustix::io::Result<()> {
    for _ in 0..TRIES {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(Duration::from_millis(5)),
            result => return result,
        }
    }
    Err(Errno::BUSY)
}

pub fn read(file: &File) -> Option<Shared> {
    let mut bytes = [0; 32];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let word = |at: usize| u32::from_ne_bytes(*bytes[at..].first_chunk().expect("it is inside"));
    if word(0) != MAGIC {
        return None;
    }
    let long = |at: usize| u64::from_ne_bytes(*bytes[at..].first_chunk().expect("it is inside"));
    let (kind, queues) = (word(4).min(WITH_DUPLICATES), word(8).clamp(1, QUEUES));
    Some(Shared { kind, queues, options: word(12), device: long(16), used: long(24) })
}

pub fn write(file: &File, shared: Shared) -> io::Result<()> {
    let mut bytes = [0; 32];
    let words = [MAGIC, shared.kind, shared.queues, shared.options];
    for (at, word) in words.into_iter().enumerate() {
        bytes[4 * at..][..4].copy_from_slice(&word.to_ne_bytes());
    }
    bytes[16..24].copy_from_slice(&shared.device.to_ne_bytes());
    bytes[24..].copy_from_slice(&shared.used.to_ne_bytes());
    file.write_all_at(&bytes, 0)
}

/// Where the file says what a queue has lost.
pub fn loss_at(queue: u32) -> u64 {
    128 + 8 * u64::from(queue)
}

/// What a queue has lost; 0 if it is not known.
pub fn loss(file: &File, queue: u32) -> u64 {
    let mut bytes = [0; 8];
    let read = file.read_exact_at(&mut bytes, loss_at(queue));
    read.map_or(0, |()| u64::from_ne_bytes(bytes))
}

fn lock_of(number: u32, kind: c_int) -> libc::flock {
    libc::flock {
        l_type: kind as _,
        l_whence: libc::SEEK_SET as _,
        l_start: LOCKS + i64::from(number),
        l_len: 1,
        l_pid: 0,
    }
}

/// Whether a member has a queue. Each has the file open by itself, so this is another member.
pub fn is_locked(file: &File, queue: u32) -> bool {
    let mut lock = lock_of(queue, libc::F_WRLCK);
    // SAFETY: an open file, and a lock to ask about.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) };
    result == 0 && i32::from(lock.l_type) != libc::F_UNLCK
}

/// Takes a queue, or what [`DISTRIBUTOR`] stands for. EBUSY if another member has it.
pub fn hold(file: &File, number: u32) -> Result<(), c_int> {
    set(file, number, libc::F_WRLCK).then_some(()).ok_or(libc::EBUSY)
}

/// Lets go of it.
pub fn release(file: &File, number: u32) {
    set(file, number, libc::F_UNLCK);
}

fn set(file: &File, number: u32, kind: c_int) -> bool {
    // SAFETY: an open file, and a lock to set.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock_of(number, kind)) == 0 }
}

#[cfg(test)]
pub mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    /// A file that two have open.
    pub fn file() -> (File, File) {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(format!("ringway-cluster-{process}-{number}"));
        let open =
            || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let (one, other) = (open().unwrap(), open().unwrap());
        std::fs::remove_file(&path).unwrap();
        (one, other)
    }

    #[test]
    fn a_file_goes_when_nobody_holds_a_queue() {
        let path = std::env::temp_dir().join(format!("ringway-cluster-{}", std::process::id()));
        let member = open(&path).unwrap();
        hold(&member, 3).unwrap();
        remove_unused(&path);
        assert!(is_at(&member, &path), "it has a member");
        let held_elsewhere = member.try_clone().unwrap();
        drop(member);
        drop(Place(path.clone()));
        assert!(is_at(&held_elsewhere, &path), "another process has the member's descriptor");
        drop(held_elsewhere);
        let newcomer = open(&path).unwrap();
        lock(&newcomer).unwrap();
        remove_unused(&path);
        assert!(is_at(&newcomer, &path), "somebody is joining");
        drop(newcomer);
        drop(Place(path.clone()));
        assert!(!path.exists());
    }

    #[test]
    fn what_the_file_says_is_within_bounds() {
        let (file, _) = file();
        assert!(read(&file).is_none());
        write(&file, Shared { kind: 99, queues: 0, options: 1, device: 1, used: 5 }).unwrap();
        let kind = WITH_DUPLICATES;
        assert_eq!(read(&file), Some(Shared { kind, queues: 1, options: 1, device: 1, used: 5 }));
    }
}
