//! `vfork`: whose memory this is.
//!
//! The child runs in its parent's memory, with descriptors of its own, until it executes
//! another program. What it closes or copies on the way there must not change what is known of the
//! parent's.

use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering::*};

use rustix::{
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous},
    process::getpid,
};

const PAGE: usize = 4096;

/// The process whose memory this is, in a page that is 0 again in a child of `fork`.
static OWNER: AtomicPtr<AtomicI32> = AtomicPtr::new(std::ptr::null_mut());

/// Whether this process is the child of a `vfork`, and only borrows the memory.
#[cold]
pub fn is_child() -> bool {
    // SAFETY: it points to a page that is never unmapped, or is null.
    let Some(owner) = (unsafe { OWNER.load(Acquire).as_ref() }) else { return false };
    let me = getpid().as_raw_pid();
    // After a fork that libc does not know of, `forked` is not called.
    matches!(owner.compare_exchange(0, me, Relaxed, Relaxed), Err(other) if other != me)
}

/// After a fork: from now on the memory is this process's.
pub fn forked() {
    is_child();
}

/// When the library is loaded.
pub fn at_load() {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: new memory, where the kernel likes it; advice about nothing else.
    let page = unsafe {
        mmap_anonymous(std::ptr::null_mut(), PAGE, protection, MapFlags::PRIVATE)
            .and_then(|page| madvise(page, PAGE, Advice::LinuxWipeOnFork).map(|()| page))
    };
    // Without it we are as we would be without this file.
    if let Ok(page) = page {
        OWNER.store(page.cast(), Release);
        forked();
    }
}
