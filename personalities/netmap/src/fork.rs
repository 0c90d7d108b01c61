//! `fork`: the child has the same descriptors and mappings, and another thread id.

use std::cell::Cell;

use crate::{guest, map, sets::Sets, table};

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        // SAFETY: handlers with C linkage that live as long as the library, which is never
        // unloaded.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) };
    }
    at_load
};

/// The library's locks, in the order in which they may be taken together.
type Still = (map::Still, Sets, table::Still);

thread_local!(static DURING_FORK: Cell<Option<Still>> = const { Cell::new(None) });

/// Nobody is in the middle of a change while the process is copied.
unsafe extern "C" fn before() {
    DURING_FORK.set(Some((map::still(), Sets::lock(), table::still())));
}

unsafe extern "C" fn after() {
    drop(DURING_FORK.take());
}

unsafe extern "C" fn in_child() {
    guest::settle();
    ringway_kring::forked();
    drop(DURING_FORK.take());
}
