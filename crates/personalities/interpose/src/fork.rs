//! `fork`: the child has the same descriptors and mappings, and none of the other threads.

use std::{
    cell::UnsafeCell,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use crate::{
    descriptors,
    epoll_sets::Sets,
    hooks::netlink::{self, Questions},
    mappings::{self, Mappings},
    signals::{Blocked, Locked},
    vfork,
};

/// When the library is loaded.
pub fn at_load() {
    // SAFETY: handlers with C linkage that live as long as the library, which is never unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) };
}

/// The library's locks, in the reverse of the order in which they may be taken together. The table of descriptors
/// has none: at any instant it is as good as at any other.
struct Locks {
    questions: Questions,
    sets: Sets,
    mappings: Locked<Mappings>,
    /// From before the first lock: a handler may fork, too.
    signals: Blocked,
}

/// What the forking thread holds. It is in no variable of the thread's: a destructor of a
/// `pthread_key_create` may fork, and comes after those of such variables.
struct DuringFork(UnsafeCell<Option<Locks>>);

// SAFETY: it is written and emptied by the thread alone that holds the locks, which no other has then.
unsafe impl Sync for DuringFork {}

static DURING_FORK: DuringFork = DuringFork(UnsafeCell::new(None));

impl DuringFork {
    /// # Safety
    /// The calling thread has taken the locks, or has just left them here.
    unsafe fn replace(&self, locks: Option<Locks>) -> Option<Locks> {
        // SAFETY: by the contract above no other thread is here before the result is dropped.
        unsafe { std::ptr::replace(self.0.get(), locks) }
    }
}

/// No thread is in the middle of a change while the process is copied.
extern "C" fn before() {
    let signals = Blocked::new();
    let mappings = mappings::lock();
    let sets = Sets::lock();
    let locks = Locks { questions: netlink::lock(), sets, mappings, signals };
    // SAFETY: this thread has taken them.
    unsafe { DURING_FORK.replace(Some(locks)) };
}

extern "C" fn after() {
    // SAFETY: this thread has left them there in `before`.
    drop(unsafe { DURING_FORK.replace(None) });
}

/// How many forks lie between the process that loaded the library and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Another number in a child of `fork`: for what a child has a copy of, and cannot go on with.
pub fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Relaxed);
    vfork::forked();
    // SAFETY: the one thread that there is; it has left them there in `before`.
    let Some(locks) = (unsafe { DURING_FORK.replace(None) }) else { return };
    let Locks { questions, mut sets, mappings, signals } = locks;
    sets.forked();
    drop((questions, sets, mappings));
    // An end may ask for the locks, and no handler comes before it.
    descriptors::forked();
    drop(signals);
}
