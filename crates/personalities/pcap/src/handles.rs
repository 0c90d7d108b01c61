//! Whose a `pcap_t *` is.
//!
//! A program has one type for all its handles, and never looks into one. So a handle of ours is the address
//! of an entry of a table in this library, and one of the system library's, which comes from its allocator,
//! is never that: a comparison of the address tells them apart, and nothing is read that is not ours.

use std::{
    ptr::null_mut,
    sync::atomic::{
        AtomicPtr,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
};

use crate::{abi::pcap_t, handle::Handle};

/// Handles of ours that can be open at once.
const MAX_HANDLES: usize = 4096;

static TABLE: [AtomicPtr<Handle>; MAX_HANDLES] =
    [const { AtomicPtr::new(null_mut()) }; MAX_HANDLES];

/// What a program has called a handle.
pub enum Whose<'a> {
    Ours(&'a Handle),
    /// One of ours that was closed: a mistake of the program's.
    Closed,
    Theirs,
}

/// The handle for a program; `None` if it has as many as there can be.
pub fn add(handle: Box<Handle>) -> Option<*mut pcap_t> {
    let handle = Box::into_raw(handle);
    let free = |entry: &&AtomicPtr<Handle>| {
        entry.compare_exchange(null_mut(), handle, AcqRel, Relaxed).is_ok()
    };
    let Some(entry) = TABLE.iter().find(free) else {
        // SAFETY: it was a box a moment ago, and nothing else knows of it.
        drop(unsafe { Box::from_raw(handle) });
        return None;
    };
    Some(std::ptr::from_ref(entry).cast::<pcap_t>().cast_mut())
}

fn entry(p: *mut pcap_t) -> Option<&'static AtomicPtr<Handle>> {
    let offset = p.addr().checked_sub(TABLE.as_ptr().addr())?;
    let is_entry = offset % size_of::<AtomicPtr<Handle>>() == 0;
    TABLE.get(offset / size_of::<AtomicPtr<Handle>>()).filter(|_| is_entry)
}

/// Whose a handle is. This is all that a signal handler needs.
///
/// # Safety
/// The program does not close the handle before it is done with the result.
#[inline]
pub unsafe fn find<'a>(p: *mut pcap_t) -> Whose<'a> {
    let Some(entry) = entry(p) else { return Whose::Theirs };
    // SAFETY: entries are null, or boxes that live until they are taken out.
    match unsafe { entry.load(Acquire).as_ref() } {
        Some(handle) => Whose::Ours(handle),
        None => Whose::Closed,
    }
}

/// Takes a handle of ours out.
///
/// # Safety
/// The program does nothing with the handle meanwhile, and never again.
pub unsafe fn remove(p: *mut pcap_t) -> Option<Box<Handle>> {
    let handle = entry(p)?.swap(null_mut(), AcqRel);
    // SAFETY: a box that was put there by `add`, and is now there no more.
    (!handle.is_null()).then(|| unsafe { Box::from_raw(handle) })
}
