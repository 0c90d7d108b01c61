//! `fork`: the child has the same descriptors and mappings, and another thread id.

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

unsafe extern "C" fn before() {
    crate::map::before_fork();
}

unsafe extern "C" fn after() {
    crate::map::after_fork();
}

unsafe extern "C" fn in_child() {
    ringway_kring::forked();
    crate::map::after_fork();
}
