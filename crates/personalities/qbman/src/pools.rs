//! Pools of buffers: addresses that are taken and given back, and what happens when few are left.

use std::{
    mem,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::*},
    },
};

use crate::{Error, Notifier, channel::Wake, lock::lock};

/// Pools have numbers below this.
pub const POOLS: usize = 64;
/// Buffers that a pool holds at most.
pub const MOST_BUFFERS: usize = 1 << 22;

/// When a pool is depleted: at `entry` free buffers or fewer, until there are `exit` or more. Never, where both are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depletion {
    /// It begins.
    pub entry: u32,
    /// It ends.
    pub exit: u32,
}

#[derive(Default)]
#[repr(align(64))]
struct Pool {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    free: Vec<u64>,
    depletion: Depletion,
}

impl Inner {
    /// Whether the pool is depleted, where it was or was not before.
    fn is_depleted(&self, was: bool) -> bool {
        let Depletion { entry, exit } = self.depletion;
        let free = self.free.len();
        if entry == 0 && exit == 0 {
            return false;
        }
        free <= entry as usize || was && free < exit as usize
    }
}

/// The pools.
pub struct Pools {
    pools: Box<[Pool]>,
    /// A bit for each pool.
    depleted: AtomicU64,
    sleepers: Mutex<Vec<Arc<Notifier>>>,
}

impl Pools {
    pub(crate) fn new() -> Pools {
        let pools = (0..POOLS).map(|_| Pool::default()).collect();
        Pools { pools, depleted: AtomicU64::new(0), sleepers: Mutex::default() }
    }

    fn pool(&self, pool: u8) -> Result<&Pool, Error> {
        self.pools.get(usize::from(pool)).ok_or(Error::NoPool(pool))
    }

    /// Looks, with the pool's lock, whether it has come to be depleted, or has stopped being so.
    fn changed(&self, pool: u8, inner: &Inner) -> bool {
        let bit = 1 << pool;
        let was = self.depleted.load(Relaxed) & bit != 0;
        let is = inner.is_depleted(was);
        if is != was {
            self.depleted.fetch_xor(bit, AcqRel);
        }
        is != was
    }

    fn tell(&self, changed: bool) {
        if changed {
            Wake(mem::take(&mut *lock(&self.sleepers))).now();
        }
    }

    /// Gives buffers to a pool: all of them, or none.
    ///
    /// # Errors
    /// [`Error::NoPool`]; [`Error::Full`] beyond [`MOST_BUFFERS`].
    pub fn release(&self, pool: u8, buffers: &[u64]) -> Result<(), Error> {
        let place = self.pool(pool)?;
        let mut inner = lock(&place.inner);
        if inner.free.len() + buffers.len() > MOST_BUFFERS {
            return Err(Error::Full(pool));
        }
        inner.free.extend_from_slice(buffers);
        let changed = self.changed(pool, &inner);
        drop(inner);
        self.tell(changed);
        Ok(())
    }

    fn take(&self, pool: u8, buffers: &mut [u64], least: usize) -> Result<usize, Error> {
        let place = self.pool(pool)?;
        let mut inner = lock(&place.inner);
        let count = inner.free.len().min(buffers.len());
        if count < least {
            return Err(Error::Depleted(pool));
        }
        let left = inner.free.len() - count;
        for (buffer, taken) in buffers.iter_mut().zip(inner.free.drain(left..)) {
            *buffer = taken;
        }
        let changed = self.changed(pool, &inner);
        drop(inner);
        self.tell(changed);
        Ok(count)
    }

    /// Takes as many buffers as there is room for: all of them, or none.
    ///
    /// # Errors
    /// [`Error::NoPool`]; [`Error::Depleted`] where there are fewer.
    pub fn acquire(&self, pool: u8, buffers: &mut [u64]) -> Result<(), Error> {
        let least = buffers.len();
        self.take(pool, buffers, least).map(drop)
    }

    /// Takes as many buffers as there is room for, or as there are; how many. None from a pool that is not there.
    pub fn acquire_up_to(&self, pool: u8, buffers: &mut [u64]) -> usize {
        self.take(pool, buffers, 0).unwrap_or(0)
    }

    /// Free buffers of a pool; none in a pool that is not there.
    pub fn free(&self, pool: u8) -> usize {
        self.pool(pool).map_or(0, |pool| lock(&pool.inner).free.len())
    }

    /// When a pool is depleted.
    ///
    /// # Errors
    /// [`Error::NoPool`].
    pub fn set_depletion(&self, pool: u8, depletion: Depletion) -> Result<(), Error> {
        let place = self.pool(pool)?;
        let mut inner = lock(&place.inner);
        inner.depletion = depletion;
        let changed = self.changed(pool, &inner);
        drop(inner);
        self.tell(changed);
        Ok(())
    }

    /// Which pools are depleted: a bit for each.
    pub fn depleted(&self) -> u64 {
        self.depleted.load(Acquire)
    }

    /// Has a sleeper woken when that changes; not if it is no longer `seen`.
    pub fn arm(&self, sleeper: &Arc<Notifier>, seen: u64) -> bool {
        let mut sleepers = lock(&self.sleepers);
        if !sleepers.iter().any(|other| Arc::ptr_eq(other, sleeper)) {
            sleepers.push(sleeper.clone());
        }
        drop(sleepers);
        self.depleted() == seen
    }

    /// Takes a sleeper off.
    pub fn disarm(&self, sleeper: &Arc<Notifier>) {
        lock(&self.sleepers).retain(|other| !Arc::ptr_eq(other, sleeper));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_or_none() {
        let pools = Pools::new();
        pools.release(3, &[1, 2, 3]).unwrap();
        let mut four = [0; 4];
        assert_eq!(pools.acquire(3, &mut four), Err(Error::Depleted(3)));
        assert_eq!(pools.free(3), 3);
        assert_eq!(pools.acquire_up_to(3, &mut four), 3);
        four.sort_unstable();
        assert_eq!(four, [0, 1, 2, 3]);
        assert_eq!(pools.free(3), 0);
        assert_eq!(pools.release(64, &[1]), Err(Error::NoPool(64)));
        assert_eq!(pools.acquire_up_to(255, &mut four), 0);
    }

    #[test]
    fn depletion_has_two_thresholds_and_wakes() {
        let pools = Pools::new();
        pools.release(1, &[1, 2, 3, 4]).unwrap();
        pools.set_depletion(1, Depletion { entry: 1, exit: 3 }).unwrap();
        let sleeper = Arc::new(Notifier::new().unwrap());
        assert!(pools.arm(&sleeper, 0));
        let mut three = [0; 3];
        pools.acquire(1, &mut three).unwrap();
        assert_eq!(pools.depleted(), 2);
        assert_eq!(lock(&pools.sleepers).len(), 0);
        assert!(!pools.arm(&sleeper, 0));
        pools.release(1, &three[..1]).unwrap();
        assert_eq!(pools.depleted(), 2);
        pools.release(1, &three[1..2]).unwrap();
        assert_eq!(pools.depleted(), 0);
        pools.set_depletion(1, Depletion::default()).unwrap();
        pools.acquire(1, &mut three).unwrap();
        assert_eq!(pools.depleted(), 0);
    }
}
