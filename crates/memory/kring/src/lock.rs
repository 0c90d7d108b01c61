//! A lock in shared memory that survives its holder.
//!
//! The word says which [thread](Thread) holds it. When a thread dies, the kernel itself marks the
//! word, as that of a robust mutex: in any process that has the memory, of whatever pid namespace, the
//! next one to try finds the mark. What the mark misses (a lock that was held around another one, a
//! machine without robust lists) is found by asking for the thread, where its id means something.
//!
//! ```text
//!   63 .. 32              31        30           29 .. 0
//!   pid namespace         waiters   holder died  thread id      0: not held
//!                         \________ the kernel's futex word ___/
//! ```
//!
//! The kernel compares thread ids alone. So a thread that is killed within the few instructions around
//! taking or giving back a lock can mark one that a thread of another namespace with the same id holds;
//! then two may be at one ring for a moment. Each reads what the other writes with the same distrust as
//! anything else in shared memory.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use crate::{sys::RobustList, thread::Thread};

/// See the file's description. 0: not held.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Lock(AtomicU64);

ringway_region::shared_struct!(Lock { 0 });

/// The lock, held; given back on drop.
#[derive(Debug)]
pub struct Guard<'a> {
    lock: &'a Lock,
    robust: RobustList,
    /// What the thread holds besides.
    outer: usize,
}

/// The kernel's mark in a futex (`FUTEX_OWNER_DIED`).
const HOLDER_DIED: u64 = 1 << 30;

/// The kernel's word in the lock.
const FUTEX: usize = if cfg!(target_endian = "big") { 4 } else { 0 };

impl Lock {
    /// Takes the lock, unless another thread that lives has it. A thread that takes it, and then
    /// looks, either sees what another has announced before trying, or the other sees the lock taken.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_>> {
        let me = Thread::current();
        let outer = me.robust.announce(self.futex());
        let guard = Guard { lock: self, robust: me.robust, outer };
        match self.0.compare_exchange(0, me.name, SeqCst, SeqCst) {
            Ok(_) => Some(guard),
            Err(holder) => self.inherit(holder, &me, guard),
        }
    }

    fn futex(&self) -> *const AtomicU32 {
        (&raw const self.0).wrapping_byte_add(FUTEX).cast()
    }

    #[cold]
    fn inherit<'a>(&'a self, holder: u64, me: &Thread, guard: Guard<'a>) -> Option<Guard<'a>> {
        let taken =
            is_dead(holder, me) && self.0.compare_exchange(holder, me.name, SeqCst, SeqCst).is_ok();
        if taken {
            return Some(guard);
        }
        guard.forget();
        None
    }

    /// Whether a thread that lives has it.
    pub(crate) fn is_held(&self) -> bool {
        match self.0.load(Acquire) {
            0 => false,
            holder => !is_dead(holder, &Thread::current()),
        }
    }
}

fn is_dead(holder: u64, me: &Thread) -> bool {
    holder & HOLDER_DIED != 0 || holder != me.name && me.knows_dead(holder)
}

impl Guard<'_> {
    /// Keeps the lock for good: until its memory is put to another use.
    pub fn keep(self) {
        self.forget();
    }

    /// The word is left as it is, and what was held before is what is held.
    fn forget(self) {
        self.robust.restore(self.outer);
        std::mem::forget(self);
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lock.0.store(0, Release);
        self.robust.restore(self.outer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let lock = Lock::default();
        let guard = lock.try_lock();
        assert!(guard.is_some() && lock.is_held() && lock.try_lock().is_none());
        std::thread::scope(|s| assert!(s.spawn(|| lock.try_lock().is_none()).join().unwrap()));
        drop(guard);
        assert!(!lock.is_held() && lock.try_lock().is_some());
    }

    #[test]
    #[cfg(not(miri))]
    fn a_thread_that_was_not_waited_for_holds_nothing() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let lock = Lock::default();
        let namespace = Thread::current().name >> 32 << 32;
        lock.0.store(namespace | u64::from(child.id()), Relaxed);
        while lock.try_lock().is_none() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    /// The kernel has marked the word before the thread can be joined: nothing is waited for.
    #[test]
    #[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn the_dead_hold_nothing() {
        let lock = Lock::default();
        std::thread::scope(|s| {
            s.spawn(|| std::mem::forget(lock.try_lock().unwrap())).join().unwrap();
        });
        assert_eq!(lock.0.load(Relaxed) & HOLDER_DIED, HOLDER_DIED);
        assert!(!lock.is_held() && lock.try_lock().is_some());
    }

    /// The same of the inner one of two; of the outer one the thread's id tells.
    #[test]
    #[cfg(not(miri))]
    fn the_dead_hold_neither_of_two() {
        let locks = [Lock::default(), Lock::default()];
        std::thread::scope(|s| {
            s.spawn(|| locks.each_ref().map(|lock| std::mem::forget(lock.try_lock().unwrap())))
                .join()
                .unwrap();
        });
        // A joined thread may linger in /proc for an instant: the kernel says when it is gone.
        while !locks.iter().all(|lock| lock.try_lock().is_some()) {
            std::thread::yield_now();
        }
    }

    /// A lock that is given back in between is not forgotten.
    #[test]
    #[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn what_was_held_before_is_held_afterwards() {
        let locks = [Lock::default(), Lock::default()];
        std::thread::scope(|s| {
            s.spawn(|| {
                std::mem::forget(locks[0].try_lock().unwrap());
                drop(locks[1].try_lock().unwrap());
                locks[1].try_lock().unwrap().keep();
                assert!(locks[1].try_lock().is_none());
            })
            .join()
            .unwrap();
        });
        assert_eq!(locks[0].0.load(Relaxed) & HOLDER_DIED, HOLDER_DIED);
        assert_eq!(locks[1].0.load(Relaxed) & HOLDER_DIED, 0, "kept, and not held");
    }

    /// Of a thread in another pid namespace nothing is known: only the kernel says that it has died.
    #[test]
    fn a_thread_of_another_namespace_is_alive_until_marked() {
        let lock = Lock::default();
        let me = Thread::current().name;
        lock.0.store(me ^ 1 << 40, Relaxed);
        assert!(lock.is_held() && lock.try_lock().is_none());
        lock.0.fetch_or(HOLDER_DIED, Relaxed);
        assert!(!lock.is_held() && lock.try_lock().is_some());
    }

    /// A number in memory that is no thread's, in any namespace.
    #[test]
    fn nonsense_holds_nothing() {
        for nonsense in [0xdead_beef_2fff_ffff, 1 << 32, 0x7_0040_0000] {
            let lock = Lock(AtomicU64::new(nonsense));
            assert!(!lock.is_held() && lock.try_lock().is_some(), "{nonsense:#x}");
        }
    }
}
