//! A lock in shared memory that survives its holder: it is held by a thread id, and a thread
//! that does not exist any more, in any process, holds nothing.

use std::sync::atomic::{AtomicU32, Ordering::*};

/// See the file's description. 0: nobody holds it.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Lock(AtomicU32);

ringway_region::shared_struct!(Lock { 0 });

/// The lock, held; given back on drop.
#[derive(Debug)]
pub struct Guard<'a>(&'a Lock);

impl Lock {
    /// Takes the lock, unless somebody else who exists has it. Who takes it, and then looks,
    /// either sees what another has announced before trying, or the other sees the lock taken.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_>> {
        let me = thread_id();
        match self.0.compare_exchange(0, me, SeqCst, SeqCst) {
            Ok(_) => Some(Guard(self)),
            Err(holder) => self.inherit(holder, me),
        }
    }

    #[cold]
    fn inherit(&self, holder: u32, me: u32) -> Option<Guard<'_>> {
        if holder == me || thread_exists(holder) {
            return None;
        }
        self.0.compare_exchange(holder, me, SeqCst, SeqCst).ok().map(|_| Guard(self))
    }

    /// Whether somebody who exists has it.
    pub(crate) fn is_held(&self) -> bool {
        match self.0.load(Acquire) {
            0 => false,
            holder => thread_exists(holder),
        }
    }
}

impl Guard<'_> {
    /// Keeps the lock for good: until its memory is put to another use.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.store(0, Release);
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
    fn one_at_a_time() {
        let lock = Lock::default();
        let guard = lock.try_lock();
        assert!(guard.is_some());
        std::thread::scope(|s| assert!(s.spawn(|| lock.try_lock().is_none()).join().unwrap()));
        drop(guard);
        assert!(lock.try_lock().is_some());
    }

    #[test]
    #[cfg(not(miri))]
    fn who_was_not_waited_for_holds_nothing() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let lock = Lock::default();
        lock.0.store(child.id(), Relaxed);
        while lock.try_lock().is_none() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    #[cfg(not(miri))]
    fn the_dead_hold_nothing() {
        let lock = Lock::default();
        std::thread::scope(|s| {
            s.spawn(|| std::mem::forget(lock.try_lock().unwrap())).join().unwrap();
        });
        // A joined thread may linger in /proc for an instant: the kernel says when it is gone.
        while lock.try_lock().is_none() {
            std::thread::yield_now();
        }
    }
}
