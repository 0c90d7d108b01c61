//! Whose memory this is.
//!
//! A child of `vfork` runs in its parent's memory, with descriptors of its own, until it executes
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

/// Whether this process only borrows the memory.
#[cold]
pub fn is_guest() -> bool {
    // SAFETY: it points to a page that is never unmapped, or is null.
    let Some(owner) = (unsafe { OWNER.load(Acquire).as_ref() }) else { return false };
    let me = getpid().as_raw_pid();
    // Whoever forks without libc's knowing has nobody to call `settle`.
    matches!(owner.compare_exchange(0, me, Relaxed, Relaxed), Err(other) if other != me)
}

/// From now on the memory is this process's: after a fork.
pub fn settle() {
    is_guest();
}

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: new memory, where the kernel likes it; advice about nothing else.
        let page = unsafe {
            mmap_anonymous(std::ptr::null_mut(), PAGE, protection, MapFlags::PRIVATE)
                .and_then(|page| madvise(page, PAGE, Advice::LinuxWipeOnFork).map(|()| page))
        };
        // Without it we are as we would be without this file.
        if let Ok(page) = page {
            OWNER.store(page.cast(), Release);
            settle();
        }
    }
    at_load
};
