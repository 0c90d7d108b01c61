//! Taking turns at a ring that several parties fill: the rx ring of a monitor.
//!
//! A switch's worker, and the processes that move the packets of what is monitored, put copies into it;
//! the registry takes it away from all of them, and gives its memory to another ring.
//!
//! ```text
//!   to fill it                            to take it away
//!   take the lock                         id: 0
//!   another id than mine: it is gone      take the lock, and keep it;
//!   fill it                                 it is held: try again later
//!   give the lock back                    make another ring of the memory: the lock is free
//! ```
//!
//! A party that has the lock, and sees its id, fills the ring before it can be taken away. One that
//! comes later sees another id, if it ever gets the lock. This is all there is to it, and it is what
//! the model checker runs (`tests/loom.rs`).

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering::*, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering::*, fence};

/// A lock that is never waited for. Taking it is an acquire, giving it back a release.
pub trait TryLock {
    /// What holds it.
    type Guard<'a>
    where
        Self: 'a;

    /// Takes it, unless it is held.
    fn try_lock(&self) -> Option<Self::Guard<'_>>;

    /// Keeps the lock for good.
    fn keep(guard: Self::Guard<'_>);
}

/// See the file's description.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Feed<L> {
    /// Of the party that is filling the ring.
    pub(crate) lock: L,
    /// Which ring this is, of all that were ever made here; 0: it is not to be filled.
    pub(crate) id: AtomicU32,
    /// Not 0: nothing more will come (S-MON-8).
    pub(crate) ended: AtomicU32,
}

/// What becomes of an attempt to fill a ring.
#[derive(Debug)]
pub enum Turn<G> {
    /// The ring is the one that was meant, until this is dropped.
    Mine(G),
    /// Another party is filling it.
    Busy,
    /// It is another ring by now, or none.
    Gone,
}

impl<G> Turn<G> {
    /// Whether the ring may be filled.
    pub fn is_mine(&self) -> bool {
        matches!(self, Turn::Mine(_))
    }
}

impl<L: TryLock> Feed<L> {
    /// One that stands in memory that is not shared: otherwise zeroes are one.
    #[cfg(loom)]
    pub fn new(lock: L) -> Feed<L> {
        Feed { lock, id: AtomicU32::new(0), ended: AtomicU32::new(0) }
    }

    /// The right to fill ring `id`.
    #[inline]
    pub fn try_feed(&self, id: u32) -> Turn<L::Guard<'_>> {
        let Some(guard) = self.lock.try_lock() else { return Turn::Busy };
        if self.id.load(Relaxed) == id { Turn::Mine(guard) } else { Turn::Gone }
    }

    /// Which ring it is.
    pub fn id(&self) -> u32 {
        self.id.load(Relaxed)
    }

    /// It is ring `id` from now on.
    pub fn set_id(&self, id: u32) {
        self.id.store(id, Relaxed);
    }

    /// Takes the ring away. False: it is being filled at the moment; try again.
    pub fn take_away(&self) -> bool {
        self.set_id(0);
        self.lock.try_lock().map(L::keep).is_some()
    }
}

/// To be called before the memory of a ring that was [taken away](Feed::take_away), with its lock, is
/// written for another ring: a party that takes the new ring's lock sees the new ring's id.
pub fn before_reuse() {
    fence(Release);
}
