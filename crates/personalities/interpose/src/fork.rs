//! `fork`: the child has the same descriptors and mappings, and none of the other threads.

use std::{
    cell::Cell,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use crate::{epoll_sets::Sets, hooks::netlink, mappings, vfork};

/// When the library is loaded.
pub fn at_load() {
    // SAFETY: handlers with C linkage that live as long as the library, which is never unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) };
}

/// The library's locks, in the order in which they may be taken together. The table of descriptors
/// has none: at any instant it is as good as at any other.
type Locks = (mappings::Locked, Sets, netlink::Locked);

thread_local!(static DURING_FORK: Cell<Option<Locks>> = const { Cell::new(None) });

/// No thread is in the middle of a change while the process is copied.
extern "C" fn before() {
    DURING_FORK.set(Some((mappings::lock(), Sets::lock(), netlink::lock())));
}

extern "C" fn after() {
    drop(DURING_FORK.take());
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
    if let Some((_, mut sets, _)) = DURING_FORK.take() {
        sets.forked();
    }
}
