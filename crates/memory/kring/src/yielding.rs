//! Yielding the processor (`sched_yield`), where it comes back soon.
//!
//! Two parties of a ring may share a processor. The kernel lets the running party finish its time slice
//! of some milliseconds, also when it wakes the other, and a ring is full or empty after some
//! microseconds. A party that yields ends its slice. If a third process is there that computes, the
//! yield lasts a slice of that: so yields that took long are paid for. Each in a row doubles the number
//! of occasions that pass without a yield.

use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// Longer than a party takes to fill or to empty a ring, and shorter than a time slice.
const SOON: Duration = Duration::from_micros(500);

/// Occasions that pass without a yield, at most, after a long yield.
const MOST: u32 = 1023;

/// Whether a party yields. Threads may share it.
#[derive(Debug, Default)]
pub struct Yielding {
    /// Occasions that are still to pass.
    left: AtomicU32,
    /// As many as there were after the last yield.
    without: AtomicU32,
}

impl Yielding {
    /// No yield has taken long yet.
    pub const fn new() -> Yielding {
        Yielding { left: AtomicU32::new(0), without: AtomicU32::new(0) }
    }

    /// Whether the party yields on this occasion.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        match self.left.load(Relaxed) {
            0 => true,
            left => {
                self.left.store(left - 1, Relaxed);
                false
            }
        }
    }

    /// Yields if the party yields on this occasion.
    pub fn once(&self) {
        if self.is_due() {
            let begun = Instant::now();
            thread::yield_now();
            self.note(begun.elapsed());
        }
    }

    /// How long a yield took.
    pub(crate) fn note(&self, took: Duration) {
        let without = match took < SOON {
            true => 0,
            false => (self.without.load(Relaxed) * 2 + 1).min(MOST),
        };
        self.without.store(without, Relaxed);
        self.left.store(without, Relaxed);
    }
}

/// Looks in vain before a yield: as long as it takes.
const LOOKS: u32 = 16;

/// The looks of a program that does not wait: it syncs again and again until something has come. If it
/// shares a processor with the party that is to bring something, each of its looks is in vain for the whole
/// of its time slice. So it yields after some of them.
#[derive(Debug, Default)]
pub struct Looking {
    in_vain: AtomicU32,
    yielding: Yielding,
}

impl Looking {
    /// The program has looked.
    #[inline]
    pub fn looked(&self, found: bool) {
        let in_vain = self.in_vain.load(Relaxed);
        match found {
            true if in_vain == 0 => {}
            true => self.in_vain.store(0, Relaxed),
            false => {
                let yields = in_vain + 1 == LOOKS;
                self.in_vain.store(if yields { 0 } else { in_vain + 1 }, Relaxed);
                if yields {
                    self.yielding.once();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On which of so many occasions it yields, if each yield takes so long.
    fn yields(yielding: &Yielding, occasions: u32, took: Duration) -> Vec<u32> {
        let mut yields = Vec::new();
        for occasion in 0..occasions {
            if yielding.is_due() {
                yields.push(occasion);
                yielding.note(took);
            }
        }
        yields
    }

    #[test]
    fn long_yields_become_rare_and_a_short_one_brings_them_back() {
        let yielding = Yielding::new();
        assert_eq!(yields(&yielding, 4, SOON / 2), [0, 1, 2, 3]);
        assert_eq!(yields(&yielding, 32, SOON), [0, 2, 6, 14, 30]);
        let rare = yields(&yielding, 100_000, SOON).len();
        assert!((95..110).contains(&rare), "{rare}");
        yielding.note(SOON / 2);
        assert_eq!(yields(&yielding, 3, SOON / 2), [0, 1, 2]);
    }

    /// Each occasion is noted by `left`, where the last yield took long.
    #[test]
    fn a_program_that_looks_yields_after_some_looks_in_vain() {
        let looking = Looking::default();
        let occasions = |looking: &Looking| 1000 - looking.yielding.left.load(Relaxed);
        looking.yielding.left.store(1000, Relaxed);
        for _ in 0..3 {
            (1..LOOKS).for_each(|_| looking.looked(false));
            looking.looked(true);
        }
        assert_eq!(occasions(&looking), 0, "it found something in time");
        for looks in [LOOKS, 3 * LOOKS] {
            let before = occasions(&looking);
            (0..looks).for_each(|_| looking.looked(false));
            assert_eq!(occasions(&looking) - before, looks / LOOKS);
        }
    }
}
