//! The calling thread, as locks in shared memory know it.
//!
//! A thread id means something in one pid namespace alone, and a forked child has another than its
//! parent, whose memory it has a copy of. So a thread is named by its id and its namespace, and what
//! is noted of it counts for one process only: see [`epoch`].

use std::cell::Cell;

use crate::sys::{RobustList, epoch};

/// See the file's description.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    /// The name: the id below, the namespace above.
    pub name: u64,
    pub robust: RobustList,
}

/// What is noted of a thread, and when. It is read piece by piece.
struct Known {
    epoch: Cell<u32>,
    name: Cell<u64>,
    robust: Cell<RobustList>,
}

impl Known {
    #[cold]
    fn look(&self) {
        self.name.set(u64::from(namespace()) << 32 | u64::from(thread_id()));
        self.robust.set(RobustList::of_this_thread());
        self.epoch.set(epoch());
    }
}

/// Ids are less in every namespace (`PID_MAX_LIMIT`).
const IDS: u32 = 1 << 22;

impl Thread {
    #[inline]
    pub fn current() -> Thread {
        thread_local!(static CURRENT: Known = const { Known {
            epoch: Cell::new(0),
            name: Cell::new(0),
            robust: Cell::new(RobustList::NONE),
        } });
        CURRENT.with(|known| {
            if known.epoch.get() != epoch() {
                known.look();
            }
            Thread { name: known.name.get(), robust: known.robust.get() }
        })
    }

    /// Whether the thread with that name cannot be there any more, as far as this one can tell: of
    /// threads in other namespaces it cannot.
    #[cold]
    pub fn knows_dead(&self, name: u64) -> bool {
        let (id, namespace) = (name as u32, name >> 32);
        if id == 0 || id >= IDS {
            return true;
        }
        namespace != 0 && namespace == self.name >> 32 && !exists(id)
    }
}

/// Notes what locks in shared memory are to know of the calling thread: for one that may not ask the
/// kernel later.
pub fn identify_thread() {
    Thread::current();
}

#[cfg(not(miri))]
fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// The pid namespace, by its inode; 0 where that is not to be had.
#[cfg(not(miri))]
fn namespace() -> u32 {
    let found = rustix::fs::stat("/proc/self/ns/pid");
    found.ok().and_then(|found| u32::try_from(found.st_ino).ok()).unwrap_or(0)
}

#[cfg(not(miri))]
fn exists(id: u32) -> bool {
    use rustix::{io::Errno, process::Pid, process::test_kill_process};
    // Signal 0 goes to no one, and finds threads that are no leaders too.
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH)) && !is_zombie(id)
}

/// Dead, and not yet waited for by its parent: it will not go on, whenever that is.
#[cfg(not(miri))]
fn is_zombie(id: u32) -> bool {
    use rustix::fs::{Mode, OFlags, open};
    use std::io::Write;
    let (mut path, mut stat) = ([0; 32], [0; 512]);
    // Not by the heap: a child of a fork may ask.
    let mut end = &mut path[..];
    let _ = write!(end, "/proc/{id}/stat");
    let left = end.len();
    let len = path.len() - left;
    let file = open(&path[..len], OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let len = file.and_then(|file| rustix::io::read(file, &mut stat)).unwrap_or(0);
    // The state follows the name, which is in parentheses and may hold some itself.
    let name_end = stat[..len].windows(2).rposition(|pair| pair == b") ");
    name_end.is_some_and(|end| matches!(stat.get(end + 2), Some(b'Z' | b'X')))
}

/// Miri has one process.
#[cfg(miri)]
fn thread_id() -> u32 {
    1
}

#[cfg(miri)]
fn namespace() -> u32 {
    1
}

#[cfg(miri)]
fn exists(_id: u32) -> bool {
    true
}
