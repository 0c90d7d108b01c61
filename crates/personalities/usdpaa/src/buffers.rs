//! Pools of buffers, as objects of the program's: `struct bman_pool`.

use std::{
    cell::UnsafeCell,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering::*},
    },
};

use ringway_qbman::{Error, manager};

use crate::abi::{bman_pool, bman_pool_params};

/// Objects that there are at most.
const OBJECTS: usize = 512;
/// Buffers that a pool with a stockpile keeps back at most.
const STOCKPILE: usize = 64;

/// `BMAN_POOL_FLAG_*`.
pub const NO_RELEASE: u32 = 1;
pub const ONLY_RELEASE: u32 = 2;
pub const DEPLETION: u32 = 4;
pub const DYNAMIC_BPID: u32 = 8;
pub const THRESH: u32 = 0x10;
const WITH_STOCKPILE: u32 = 0x20;

/// An object: a place in a table that stays, so that a pointer to one that was freed is found out.
struct Slot {
    is_used: AtomicBool,
    bpid: AtomicU32,
    flags: AtomicU32,
    params: UnsafeCell<bman_pool_params>,
    stock: Mutex<Vec<u64>>,
}

// SAFETY: `params` is written by the one who takes the place, before the program gets it; then it is only read.
unsafe impl Sync for Slot {}

const NO_PARAMS: bman_pool_params = bman_pool_params {
    bpid: 0,
    flags: 0,
    cb: None,
    cb_ctx: std::ptr::null_mut(),
    thresholds: [0; 4],
};

static TABLE: [Slot; OBJECTS] = [const {
    Slot {
        is_used: AtomicBool::new(false),
        bpid: AtomicU32::new(0),
        flags: AtomicU32::new(0),
        params: UnsafeCell::new(NO_PARAMS),
        stock: Mutex::new(Vec::new()),
    }
}; OBJECTS];

/// An object that is in use.
#[derive(Clone, Copy)]
pub struct PoolRef(&'static Slot);

impl PartialEq for PoolRef {
    fn eq(&self, other: &PoolRef) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl PoolRef {
    /// The one that a program means, if it is one.
    #[inline]
    pub fn get(pool: *const bman_pool) -> Option<PoolRef> {
        let offset = (pool as usize).checked_sub(TABLE.as_ptr() as usize)?;
        let slot = TABLE.get(offset / size_of::<Slot>())?;
        let is_one = offset % size_of::<Slot>() == 0 && slot.is_used.load(Acquire);
        is_one.then_some(PoolRef(slot))
    }

    /// One with these parameters; `None` when there are too many.
    pub fn new(params: bman_pool_params) -> Option<PoolRef> {
        static TAKING: Mutex<()> = Mutex::new(());
        let _taking = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = TABLE.iter().find(|slot| !slot.is_used.load(Acquire))?;
        // SAFETY: nobody uses the place, and nobody else takes it.
        unsafe { *slot.params.get() = params };
        slot.bpid.store(params.bpid, Relaxed);
        slot.flags.store(params.flags, Relaxed);
        slot.is_used.store(true, Release);
        Some(PoolRef(slot))
    }

    pub fn free(self) {
        self.0.is_used.store(false, Release);
    }

    pub fn ptr(self) -> *mut bman_pool {
        (&raw const *self.0).cast_mut().cast()
    }

    /// For the program to read.
    pub fn params(self) -> *const bman_pool_params {
        self.0.params.get()
    }

    pub fn callback(self) -> bman_pool_params {
        // SAFETY: it is not written while the place is in use.
        unsafe { *self.0.params.get() }
    }

    #[inline]
    pub fn bpid(self) -> u8 {
        self.0.bpid.load(Relaxed) as u8
    }

    #[inline]
    pub fn has(self, flag: u32) -> bool {
        self.0.flags.load(Relaxed) & flag != 0
    }

    fn stock(self) -> Option<MutexGuard<'static, Vec<u64>>> {
        let stock = || self.0.stock.lock().unwrap_or_else(PoisonError::into_inner);
        self.has(WITH_STOCKPILE).then(stock)
    }

    /// Gives buffers back, at once or when there are many.
    #[inline]
    pub fn release(self, buffers: &[u64], is_now: bool) -> Result<(), Error> {
        let pools = &manager().pools;
        let Some(mut stock) = self.stock().filter(|_| !is_now) else {
            return pools.release(self.bpid(), buffers);
        };
        if stock.len() + buffers.len() > STOCKPILE {
            let left = stock.len() / 2;
            pools.release(self.bpid(), stock.get(left..).unwrap_or_default())?;
            stock.truncate(left);
        }
        stock.extend_from_slice(buffers);
        Ok(())
    }

    /// Fills all of it, or nothing.
    #[inline]
    pub fn acquire(self, buffers: &mut [u64]) -> Result<(), Error> {
        let pools = &manager().pools;
        let Some(mut stock) = self.stock() else { return pools.acquire(self.bpid(), buffers) };
        let own = stock.len().min(buffers.len());
        let (kept, wanted) = buffers.split_at_mut(own);
        pools.acquire(self.bpid(), wanted)?;
        let left = stock.len() - own;
        for (buffer, taken) in kept.iter_mut().zip(stock.drain(left..)) {
            *buffer = taken;
        }
        Ok(())
    }

    /// Gives back what is kept.
    pub fn flush(self) -> Result<(), Error> {
        let Some(mut stock) = self.stock() else { return Ok(()) };
        manager().pools.release(self.bpid(), &stock)?;
        stock.clear();
        Ok(())
    }
}
