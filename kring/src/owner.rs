//! Who drives a ring at the moment, and what it has counted: lines of the control block
//! that only the program's side uses, kept in the region so that a forked or a receiving
//! process finds them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// The state of the program's side between two syncs, and the lock around a sync.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Owner {
    lock: AtomicU32,
    /// `head` at the last accepted sync, and the `tail` that the program was told.
    pub(crate) rhead: AtomicU32,
    pub(crate) rtail: AtomicU32,
    /// For the driver: how long the last looks found little (see the pipe driver).
    pub patience: AtomicU32,
    /// For the driver: a position of its own in the ring.
    pub mark: AtomicU32,
}

/// What one ring has done, counted by whoever drives it. One cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Counters {
    pub packets: AtomicU64,
    pub bytes: AtomicU64,
    /// Syncs refused because of invalid cursors.
    pub bad_index: AtomicU64,
    /// Slots dropped because their buffer index or length was invalid.
    pub bad_slot: AtomicU64,
    /// Slots dropped because they were longer than the path allows.
    pub too_long: AtomicU64,
    /// Slots lost because the next hop's queue was full.
    pub ring_full: AtomicU64,
    /// System calls made to wake the other party.
    pub kicks: AtomicU64,
}

/// Adds to a counter that only the caller writes.
#[inline]
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed) + n, Relaxed);
}

/// The right to drive a ring; given back on drop.
#[derive(Debug)]
pub struct Guard<'a>(&'a Owner);

impl Owner {
    /// Takes the ring, unless somebody else is in the middle of a sync of it. A holder that
    /// no longer exists, in any process, holds nothing.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_>> {
        let me = thread_id();
        match self.lock.compare_exchange(0, me, Acquire, Relaxed) {
            Ok(_) => Some(Guard(self)),
            Err(holder) => self.inherit(holder, me),
        }
    }

    #[cold]
    fn inherit(&self, holder: u32, me: u32) -> Option<Guard<'_>> {
        if holder == me || thread_exists(holder) {
            return None;
        }
        self.lock.compare_exchange(holder, me, Acquire, Relaxed).ok().map(|_| Guard(self))
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.lock.store(0, Release);
    }
}

#[cfg(not(miri))]
fn thread_id() -> u32 {
    use std::cell::Cell;
    thread_local!(static ID: Cell<(u32, u32)> = const { Cell::new((0, 0)) });
    // A forked child inherits the cache: the generation tells it that the id is its parent's.
    let generation = fork::generation();
    ID.with(|id| match id.get() {
        (g, tid) if g == generation && tid != 0 => tid,
        _ => {
            let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            id.set((generation, tid));
            tid
        }
    })
}

#[cfg(not(miri))]
mod fork {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    static GENERATION: AtomicU32 = AtomicU32::new(0);

    pub fn generation() -> u32 {
        GENERATION.load(Relaxed)
    }

    pub fn forked() {
        GENERATION.fetch_add(1, Relaxed);
    }
}

/// To be called in the child after `fork`, before it drives a ring.
#[cfg(not(miri))]
pub fn forked() {
    fork::forked();
}

#[cfg(not(miri))]
fn thread_exists(tid: u32) -> bool {
    // Signal 0 goes to no one, and finds threads that are no leaders too. A wrong number in
    // memory is nobody's.
    let id =
        i32::try_from(tid).ok().filter(|tid| *tid > 0).and_then(rustix::process::Pid::from_raw);
    id.is_some_and(|id| rustix::process::test_kill_process(id) != Err(rustix::io::Errno::SRCH))
        && !is_zombie(tid)
}

/// Dead, and not yet waited for by its parent: it will not go on, whenever that is.
#[cfg(not(miri))]
fn is_zombie(tid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    // The state follows the name, which is in parentheses and may hold some itself.
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['Z', 'X']))
}

/// Miri has one process.
#[cfg(miri)]
pub fn forked() {}

#[cfg(miri)]
fn thread_id() -> u32 {
    1
}

#[cfg(miri)]
fn thread_exists(_tid: u32) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sync_at_a_time() {
        let owner = Owner::default();
        let guard = owner.try_lock();
        assert!(guard.is_some());
        std::thread::scope(|s| assert!(s.spawn(|| owner.try_lock().is_none()).join().unwrap()));
        drop(guard);
        assert!(owner.try_lock().is_some());
    }

    #[test]
    #[cfg(not(miri))]
    fn who_was_not_waited_for_holds_nothing() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let owner = Owner::default();
        owner.lock.store(child.id(), Relaxed);
        while owner.try_lock().is_none() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    #[cfg(not(miri))]
    fn the_dead_hold_nothing() {
        let owner = Owner::default();
        std::thread::scope(|s| {
            s.spawn(|| std::mem::forget(owner.try_lock().unwrap())).join().unwrap();
        });
        // A joined thread may linger in /proc for an instant: the kernel says when it is gone.
        while owner.try_lock().is_none() {
            std::thread::yield_now();
        }
    }
}
