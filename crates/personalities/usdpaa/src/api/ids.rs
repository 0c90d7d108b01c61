//! Numbers of queues, pools of portals, groups and pools of buffers.

use std::{
    collections::BTreeSet,
    ffi::c_int,
    ptr,
    sync::{Mutex, PoisonError},
};

use ringway_qbman::{Ids, manager};

use crate::argument::Out;

/// More ids than this are not asked for at once.
const MOST: u32 = 1 << 24;

fn alloc(ids: &Ids, result: Out<u32>, count: u32, align: u32, partial: c_int) -> c_int {
    if count == 0 || count > MOST || !result.exists() {
        return -libc::EINVAL;
    }
    let Ok((first, found)) = ids.alloc(count, align, partial != 0) else { return -libc::ENOMEM };
    for place in 0..found {
        result.put_at(place as usize, first + place);
    }
    found as c_int
}

/// The four functions of a kind of numbers.
macro_rules! ids {
    ($ids:ident: $alloc:ident, $release:ident, $reserve:ident, $seed:ident) => {
        /// # Safety
        /// As USDPAA says: room for `count` ids.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $alloc(
            result: Out<u32>,
            count: u32,
            align: u32,
            partial: c_int,
        ) -> c_int {
            alloc(&manager().$ids, result, count, align, partial)
        }

        /// # Safety
        /// None of its own.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $release(first: u32, count: u32) {
            manager().$ids.release(first, count);
        }

        /// # Safety
        /// None of its own.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $reserve(first: u32, count: u32) -> c_int {
            manager().$ids.reserve(first, count).map_or(-libc::EBUSY, |()| 0)
        }

        /// # Safety
        /// None of its own.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $seed(first: u32, count: u32) {
            manager().$ids.seed(first, count);
        }
    };
}

ids!(queue_ids: qman_alloc_fqid_range, qman_release_fqid_range, qman_reserve_fqid_range, qman_seed_fqid_range);
ids!(channel_ids: qman_alloc_pool_range, qman_release_pool_range, qman_reserve_pool_range, qman_seed_pool_range);
ids!(group_ids: qman_alloc_cgrid_range, qman_release_cgrid_range, qman_reserve_cgrid_range, qman_seed_cgrid_range);
ids!(pool_ids: bman_alloc_bpid_range, bman_release_bpid_range, bman_reserve_bpid_range, bman_seed_bpid_range);

/// Ids of a program's own range.
pub struct Range {
    first: u32,
    count: u32,
    used: Mutex<BTreeSet<u32>>,
}

/// Ranges that there are, by their addresses.
static RANGES: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// Runs with a range, if it is one; with the lock of all, so that none goes away meanwhile.
fn with<T>(range: *mut Range, none: T, run: impl FnOnce(&Range) -> T) -> T {
    let ranges = RANGES.lock().unwrap_or_else(PoisonError::into_inner);
    if !ranges.contains(&(range as usize)) {
        return none;
    }
    // SAFETY: one of `qman_fqid_pool_create` that is not destroyed, and cannot be while the lock is held.
    run(unsafe { &*range })
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_fqid_pool_create(fqid_start: u32, num: u32) -> *mut Range {
    if num == 0 || fqid_start.checked_add(num).is_none() {
        return ptr::null_mut();
    }
    let range = Range { first: fqid_start, count: num, used: Mutex::default() };
    let range = Box::into_raw(Box::new(range));
    RANGES.lock().unwrap_or_else(PoisonError::into_inner).insert(range as usize);
    range
}

/// # Safety
/// As USDPAA says: a pool of `qman_fqid_pool_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_fqid_pool_destroy(pool: *mut Range) -> c_int {
    let is_used =
        |range: &Range| !range.used.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
    match with(pool, None, |range| Some(is_used(range))) {
        None => return -libc::EINVAL,
        Some(true) => return -libc::EBUSY,
        Some(false) => {}
    }
    if RANGES.lock().unwrap_or_else(PoisonError::into_inner).remove(&(pool as usize)) {
        // SAFETY: of `qman_fqid_pool_create`, and nobody finds it any more.
        drop(unsafe { Box::from_raw(pool) });
    }
    0
}

/// # Safety
/// As USDPAA says: a pool of `qman_fqid_pool_create`, and room for an id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_fqid_pool_alloc(pool: *mut Range, fqid: Out<u32>) -> c_int {
    with(pool, -libc::EINVAL, |range| {
        let mut used = range.used.lock().unwrap_or_else(PoisonError::into_inner);
        let free = (range.first..range.first + range.count).find(|id| !used.contains(id));
        match free {
            Some(id) if fqid.put(id) => {
                used.insert(id);
                0
            }
            Some(_) => -libc::EINVAL,
            None => -libc::ENOMEM,
        }
    })
}

/// # Safety
/// As USDPAA says: a pool of `qman_fqid_pool_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_fqid_pool_free(pool: *mut Range, fqid: u32) {
    with(pool, (), |range| {
        range.used.lock().unwrap_or_else(PoisonError::into_inner).remove(&fqid);
    });
}

/// # Safety
/// As USDPAA says: a pool of `qman_fqid_pool_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qman_fqid_pool_used(pool: *mut Range) -> u32 {
    with(pool, 0, |range| range.used.lock().unwrap_or_else(PoisonError::into_inner).len() as u32)
}
