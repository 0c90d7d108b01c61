//! Pools of buffers.

use std::{ffi::c_int, ptr};

use ringway_qbman::{Depletion, POOLS, manager};

use crate::{
    abi::{bm_buffer, bm_pool_state, bman_pool, bman_pool_params},
    argument::{In, Out},
    buffers::{DEPLETION, DYNAMIC_BPID, NO_RELEASE, ONLY_RELEASE, PoolRef, THRESH},
    thread::{Bman, bman},
};

/// Buffers of a call.
const MOST: usize = 8;
/// The address in a buffer.
const ADDRESS: u64 = (1 << 48) - 1;
/// `BMAN_RELEASE_FLAG_NOW`, `BM_PIRQ_BSCN`.
const NOW: u32 = 8;
const BSCN: u32 = 1;

/// # Safety
/// As USDPAA says: parameters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_new_pool(params: In<bman_pool_params>) -> *mut bman_pool {
    let new = || {
        let mut params = params.get()?;
        let has = |flag| params.flags & flag != 0;
        if has(THRESH) && !has(DYNAMIC_BPID) || has(DEPLETION) && params.cb.is_none() {
            return None;
        }
        if has(DEPLETION) && !bman(false, |_| true) {
            return None;
        }
        let ids = &manager().pool_ids;
        if has(DYNAMIC_BPID) {
            params.bpid = ids.alloc(1, 1, false).ok()?.0;
        } else if params.bpid as usize >= POOLS {
            return None;
        }
        let Some(pool) = PoolRef::new(params) else {
            if has(DYNAMIC_BPID) {
                ids.release(params.bpid, 1);
            }
            return None;
        };
        if has(THRESH) {
            let [entry, exit, ..] = params.thresholds;
            let _ = manager().pools.set_depletion(pool.bpid(), Depletion { entry, exit });
        }
        if has(DEPLETION) {
            bman((), |bman| bman.pools.borrow_mut().push((pool, false)));
        }
        Some(pool.ptr())
    };
    new().unwrap_or(ptr::null_mut())
}

/// # Safety
/// As USDPAA says: a pool of `bman_new_pool`, in the thread that made it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_free_pool(pool: *mut bman_pool) {
    let Some(pool) = PoolRef::get(pool) else { return };
    let _ = pool.flush();
    bman((), |bman| bman.pools.borrow_mut().retain(|(other, _)| *other != pool));
    if pool.has(THRESH) {
        let _ = manager().pools.set_depletion(pool.bpid(), Depletion::default());
    }
    if pool.has(DYNAMIC_BPID) {
        manager().pool_ids.release(pool.bpid().into(), 1);
    }
    pool.free();
}

/// # Safety
/// As USDPAA says: a pool of `bman_new_pool`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_get_params(pool: *const bman_pool) -> *const bman_pool_params {
    PoolRef::get(pool).map_or(ptr::null(), PoolRef::params)
}

/// # Safety
/// As USDPAA says: a pool of `bman_new_pool`, and `num` buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_release(
    pool: *mut bman_pool,
    bufs: In<bm_buffer>,
    num: u8,
    flags: u32,
) -> c_int {
    let num = usize::from(num);
    let Some(pool) = PoolRef::get(pool) else { return -libc::EINVAL };
    if num == 0 || num > MOST || pool.has(NO_RELEASE) {
        return -libc::EINVAL;
    }
    let mut addresses = [0; MOST];
    for (place, address) in addresses.iter_mut().enumerate().take(num) {
        let Some(buffer) = bufs.at(place) else { return -libc::EINVAL };
        *address = buffer.swap_bytes() & ADDRESS;
    }
    let released = pool.release(&addresses[..num], flags & NOW != 0);
    released.map_or(-libc::EBUSY, |()| 0)
}

/// # Safety
/// As USDPAA says: a pool of `bman_new_pool`, and room for `num` buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_acquire(
    pool: *mut bman_pool,
    bufs: Out<bm_buffer>,
    num: u8,
    _flags: u32,
) -> c_int {
    let num = usize::from(num);
    let Some(pool) = PoolRef::get(pool) else { return -libc::EINVAL };
    if num == 0 || num > MOST || pool.has(ONLY_RELEASE) || !bufs.exists() {
        return -libc::EINVAL;
    }
    let mut addresses = [0; MOST];
    if pool.acquire(&mut addresses[..num]).is_err() {
        return -libc::ENOMEM;
    }
    for (place, address) in addresses.iter().enumerate().take(num) {
        bufs.put_at(place, (u64::from(pool.bpid()) << 48 | address).swap_bytes());
    }
    num as c_int
}

/// # Safety
/// As USDPAA says: a pool of `bman_new_pool`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_flush_stockpile(pool: *mut bman_pool, _flags: u32) -> c_int {
    match PoolRef::get(pool) {
        Some(pool) => pool.flush().map_or(-libc::EBUSY, |()| 0),
        None => -libc::EINVAL,
    }
}

/// # Safety
/// As USDPAA says: room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_query_pools(state: Out<bm_pool_state>) -> c_int {
    let pools = &manager().pools;
    let with_buffers = (0..POOLS as u8).filter(|pool| pools.free(*pool) > 0);
    let available = with_buffers.fold(0, |all, pool| all | 1u64 << pool);
    // From the most significant bit of the first word.
    let words = |bits: u64| [(bits as u32).reverse_bits(), ((bits >> 32) as u32).reverse_bits()];
    let is_put = state.put(bm_pool_state {
        reserved: [0; 10],
        available: words(available),
        reserved2: [0; 2],
        depleted: words(pools.depleted()),
    });
    if is_put { 0 } else { -libc::EINVAL }
}

/// # Safety
/// As USDPAA says: a pool of `bman_new_pool`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_query_free_buffers(pool: *mut bman_pool) -> u32 {
    PoolRef::get(pool).map_or(0, |pool| manager().pools.free(pool.bpid()) as u32)
}

/// # Safety
/// As USDPAA says: a pool of `bman_new_pool`, and four numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_update_pool_thresholds(
    pool: *mut bman_pool,
    thresholds: In<u32>,
) -> c_int {
    let (Some(pool), Some(entry), Some(exit)) =
        (PoolRef::get(pool), thresholds.at(0), thresholds.at(1))
    else {
        return -libc::EINVAL;
    };
    let set = manager().pools.set_depletion(pool.bpid(), Depletion { entry, exit });
    set.map_or(-libc::EINVAL, |()| 0)
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_shutdown_pool(bpid: u32) -> c_int {
    let Some(pool) = u8::try_from(bpid).ok().filter(|pool| usize::from(*pool) < POOLS) else {
        return -libc::EINVAL;
    };
    while manager().pools.acquire_up_to(pool, &mut [0; 64]) > 0 {}
    0
}

impl Bman {
    fn is_told(&self) -> bool {
        let depleted = manager().pools.depleted();
        self.pools.borrow().iter().all(|(pool, was)| (depleted >> pool.bpid() & 1 != 0) == *was)
    }

    /// Arms what the program wants to be woken by, or wakes it at once.
    pub fn arm(&self) {
        if self.sources.get() & BSCN == 0 {
            return;
        }
        let pools = &manager().pools;
        if !pools.arm(&self.notifier, pools.depleted()) || !self.is_told() {
            self.notifier.raise();
        }
    }

    /// Hands changes of depletion to callbacks: whether there were any.
    fn poll(&self) -> bool {
        if self.is_polling.replace(true) {
            return false;
        }
        let mut any = false;
        for place in 0.. {
            // Callbacks may make pools and free them.
            let told = self.pools.borrow().get(place).copied();
            let Some((pool, was)) = told else { break };
            let is = manager().pools.depleted() >> pool.bpid() & 1 != 0;
            if is == was {
                continue;
            }
            any = true;
            if let Some(place) = self.pools.borrow_mut().get_mut(place) {
                place.1 = is;
            }
            let params = pool.callback();
            if let Some(callback) = params.cb {
                let handle = (&raw const *self).cast_mut().cast();
                // SAFETY: the program's function, with its pool and its pointer.
                unsafe { callback(handle, pool.ptr(), params.cb_ctx, is.into()) };
            }
        }
        self.is_polling.set(false);
        any
    }
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_poll_slow() -> u32 {
    bman(0, |bman| if bman.poll() { BSCN } else { 0 })
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_poll() {
    bman((), |bman| {
        bman.poll();
    });
}

/// # Safety
/// None of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bman_rcr_is_empty() -> c_int {
    1
}
