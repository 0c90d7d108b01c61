//! Parties that fill a monitor's ring, and the registry that takes it away from them, under a model
//! checker that runs the shipped code through every order of its steps.
//!
//! * No two fill the ring at the same time.
//! * When it has been taken away none fills it, and its memory can be given to another ring.
//! * A party that meant the old ring does not fill the new one.
//!
//! How it was checked that these models can fail: with `try_feed` looking at the id before it takes
//! the lock, and without the fence of `before_reuse`, a ring is filled that was not meant; with
//! `take_away` not taking the lock, the ring is written by two.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p ringway-kring --release --test loom_feed
//! ```
#![cfg(loom)]

use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, Ordering::*},
    thread,
};
use ringway_kring::{Feed, TryLock, before_reuse};

/// A lock as the one in shared memory, for holders that do not die.
#[derive(Default)]
struct Lock(AtomicBool);

struct Guard(&'static Lock);

impl TryLock for &'static Lock {
    type Guard<'a> = Guard;

    fn try_lock(&self) -> Option<Guard> {
        let taken = self.0.compare_exchange(false, true, Acquire, Relaxed);
        taken.is_ok().then(|| Guard(self))
    }

    fn keep(guard: Guard) {
        std::mem::forget(guard);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.store(false, Release);
    }
}

const OLD: u32 = 1;
const NEW: u32 = 2;

/// A ring: what is in it says for which ring it was meant.
struct Ring {
    feed: Feed<&'static Lock>,
    lock: &'static Lock,
    slots: UnsafeCell<Vec<u32>>,
}

// SAFETY: what the models are about; loom checks it.
unsafe impl Sync for Ring {}
// SAFETY: as above.
unsafe impl Send for Ring {}

impl Ring {
    /// Ring [`OLD`].
    fn new() -> &'static Ring {
        let lock: &'static Lock = Box::leak(Box::default());
        let (feed, slots) = (Feed::new(lock), UnsafeCell::new(Vec::new()));
        feed.set_id(OLD);
        Box::leak(Box::new(Ring { feed, lock, slots }))
    }

    /// Fills the ring, if it is the one that is meant and no other party is at it.
    fn fill(&self, id: u32) -> bool {
        let turn = self.feed.try_feed(id);
        if turn.is_mine() {
            // SAFETY: see `Ring`.
            self.slots.with_mut(|slots| unsafe { (*slots).push(id) });
        }
        turn.is_mine()
    }

    /// Gives the memory to ring [`NEW`], unless a party is at it: as `Kring::create` does, which
    /// writes zeroes over all.
    fn replace(&self) -> bool {
        if !self.feed.take_away() {
            return false;
        }
        // SAFETY: see `Ring`.
        self.slots.with_mut(|slots| unsafe { (*slots).clear() });
        before_reuse();
        self.lock.0.store(false, Relaxed);
        self.feed.set_id(NEW);
        true
    }

    fn slots(&self) -> Vec<u32> {
        // SAFETY: see `Ring`.
        self.slots.with(|slots| unsafe { (*slots).clone() })
    }
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.check(model);
}

#[test]
fn one_at_a_time() {
    check(|| {
        let ring = Ring::new();
        let other = thread::spawn(|| ring.fill(OLD));
        let filled = [ring.fill(OLD), other.join().unwrap()];
        let times = filled.iter().filter(|filled| **filled).count();
        assert!(times >= 1, "a lock that is held is held by one that fills the ring");
        assert_eq!(ring.slots().len(), times);
    });
}

#[test]
fn a_ring_that_was_replaced_is_not_filled() {
    check(|| {
        let ring = Ring::new();
        let feeder = thread::spawn(|| (ring.fill(OLD), ring.fill(OLD)));
        let replaced = ring.replace();
        let filled = feeder.join().unwrap();
        let expected = match filled {
            _ if replaced => 0,
            (first, second) => usize::from(first) + usize::from(second),
        };
        assert_eq!(ring.slots(), vec![OLD; expected]);
    });
}

/// A worker that was told of the new ring, and a process that was not.
#[test]
fn the_new_ring_is_filled_by_its_own() {
    check(|| {
        let ring = Ring::new();
        let stale = thread::spawn(|| ring.fill(OLD));
        let replaced = ring.replace();
        let filled = replaced && ring.fill(NEW);
        stale.join().unwrap();
        if replaced {
            assert_eq!(ring.slots(), vec![NEW; usize::from(filled)]);
        }
    });
}
