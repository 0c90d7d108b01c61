//! How many threads sleep for a set, so that a change of the set can tell whether to wake any.
//!
//! ```text
//!   a thread that waits:  count itself; look at the set; sleep
//!   another thread:       change the set; look whether any thread is counted; wake all
//! ```
//!
//! Whichever comes first, one of them sees the other, without a lock: `tests/loom.rs` runs this code.

#[cfg(not(loom))]
use std::sync::atomic;

#[cfg(loom)]
use loom::sync::atomic;

use atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
    fence,
};

/// The count in the lower half of a word. Above it the process's generation: a child of `fork` has none of
/// its parent's threads.
pub struct Sleepers(AtomicU32);

const HALF: u32 = u16::BITS;
const COUNT: u32 = u16::MAX as u32;

fn count_of(word: u32, generation: u32) -> u32 {
    if word >> HALF == generation & COUNT { word & COUNT } else { 0 }
}

impl Sleepers {
    /// Without any.
    #[cfg(not(loom))]
    pub const fn new() -> Sleepers {
        Sleepers(AtomicU32::new(0))
    }

    /// Without any.
    #[cfg(loom)]
    pub fn new() -> Sleepers {
        Sleepers(AtomicU32::new(0))
    }

    fn change(&self, generation: u32, by: impl Fn(u32) -> u32) {
        let changed = |word| Some(generation << HALF | by(count_of(word, generation)));
        let _ = self.0.fetch_update(SeqCst, Relaxed, changed);
    }

    /// The calling thread is about to sleep, if it then finds the set as it was.
    #[inline]
    pub fn begin(&self, generation: u32) {
        self.change(generation, |count| count + 1);
        fence(SeqCst);
    }

    /// The calling thread sleeps no longer.
    #[inline]
    pub fn end(&self, generation: u32) {
        self.change(generation, |count| count.saturating_sub(1));
    }

    /// None are counted any more: they have left without saying so.
    pub fn forget(&self, generation: u32) {
        self.change(generation, |_| 0);
    }

    /// Whether there are any; those that come later see what the caller has changed before.
    pub fn are_there(&self, generation: u32) -> bool {
        fence(SeqCst);
        count_of(self.0.load(SeqCst), generation) > 0
    }
}

impl Default for Sleepers {
    fn default() -> Sleepers {
        Sleepers::new()
    }
}
