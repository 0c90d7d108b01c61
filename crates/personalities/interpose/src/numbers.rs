//! Sets of numbers of descriptors, without a lock.

use std::{
    ffi::c_int,
    sync::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
};

/// Numbers that can be a personality's.
pub const SIZE: usize = 1 << 16;

/// A set of numbers of descriptors: those that the table of descriptors has.
pub struct Numbers([AtomicU64; SIZE / 64]);

impl Numbers {
    pub const fn new() -> Numbers {
        Numbers([const { AtomicU64::new(0) }; SIZE / 64])
    }

    fn word(&self, fd: c_int) -> Option<(&AtomicU64, u64)> {
        Some((self.0.get(fd as u32 as usize / 64)?, 1 << (fd % 64)))
    }

    pub fn insert(&self, fd: c_int) {
        if let Some((word, bit)) = self.word(fd) {
            word.fetch_or(bit, AcqRel);
        }
    }

    /// Returns whether it was in it.
    pub fn remove(&self, fd: c_int) -> bool {
        self.word(fd).is_some_and(|(word, bit)| word.fetch_and(!bit, AcqRel) & bit != 0)
    }

    #[inline]
    pub fn has(&self, fd: c_int) -> bool {
        self.word(fd).is_some_and(|(word, bit)| word.load(Acquire) & bit != 0)
    }

    /// The numbers in it, from the lowest.
    pub fn each(&self) -> impl Iterator<Item = c_int> {
        let words = (0..).step_by(64).zip(&self.0).filter(|(_, word)| word.load(Relaxed) != 0);
        words.flat_map(|(first, _)| first..first + 64).filter(|fd| self.has(*fd))
    }
}
