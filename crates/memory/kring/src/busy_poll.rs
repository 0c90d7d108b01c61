//! Looking for a moment before a sleep, where that has paid of late.
//!
//! A sleep and its end cost some 10 µs, more in a virtual machine, and the party at the other end has
//! to make a system call for it. In a steady stream the next packet is there sooner. A party that looks
//! until then does not sleep at all; looks in vain have used a processor for which others may
//! have waited. So looks in vain are paid for: each in a row doubles the number of waits that go
//! without.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::{Duration, Instant},
};

/// How long a party looks: about as long as two wake-ups take.
const MOMENT: Duration = Duration::from_micros(20);

/// Looks between two looks at the clock.
const LOOKS: u32 = 8;

/// Waits that go without looking, at most, between two that look: an idle party looks for 20 µs in a
/// thousand waits.
const MOST: u32 = 1023;

/// Whether the waits of a party [begin](crate::Waiter::busy_poll) with some looks. Threads may share it.
#[derive(Debug, Default)]
pub struct BusyPoll {
    /// Waits that are to go without.
    left: AtomicU32,
    /// As many as there were after the last time that it was in vain.
    without: AtomicU32,
}

impl BusyPoll {
    /// Nothing was in vain yet.
    pub const fn new() -> BusyPoll {
        BusyPoll { left: AtomicU32::new(0), without: AtomicU32::new(0) }
    }

    /// A wait begins: until when to look, if it is to.
    pub(crate) fn begin(&self) -> Option<Moment> {
        match self.left.load(Relaxed) {
            0 => Some(Moment { end: Instant::now() + MOMENT }),
            left => {
                self.left.store(left - 1, Relaxed);
                None
            }
        }
    }

    /// Whether the looks of a wait have found something in time.
    pub(crate) fn end(&self, found: bool) {
        let without = match found {
            true => 0,
            false => (self.without.load(Relaxed) * 2 + 1).min(MOST),
        };
        self.without.store(without, Relaxed);
        self.left.store(without, Relaxed);
    }
}

/// The time for looks.
pub(crate) struct Moment {
    end: Instant,
}

impl Moment {
    /// Looks until it is over. Whether a look has found something, and in time: where another had the processor
    /// meanwhile, a sleep would have been as good.
    pub fn find(&self, mut look: impl FnMut() -> bool) -> [bool; 2] {
        loop {
            for _ in 0..LOOKS {
                spin_loop();
                if look() {
                    return [true, Instant::now() < self.end];
                }
            }
            if Instant::now() >= self.end {
                return [false; 2];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of so many waits, those that look.
    fn looks(poll: &BusyPoll, waits: u32, found: bool) -> Vec<u32> {
        let mut looked = Vec::new();
        for wait in 0..waits {
            if poll.begin().is_some() {
                looked.push(wait);
                poll.end(found);
            }
        }
        looked
    }

    #[test]
    fn looks_in_vain_become_rare_and_one_that_finds_brings_them_back() {
        let poll = BusyPoll::new();
        assert_eq!(looks(&poll, 32, false), [0, 2, 6, 14, 30]);
        let rare = looks(&poll, 100_000, false).len();
        assert!((95..110).contains(&rare), "{rare}");
        poll.end(true);
        assert_eq!(looks(&poll, 5, true), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_moment_ends_with_what_is_found() {
        let moment = BusyPoll::new().begin().unwrap();
        let mut left = 3;
        let look = || {
            left -= 1;
            left == 0
        };
        assert_eq!(moment.find(look), [true; 2]);
        assert_eq!(moment.find(|| false), [false; 2]);
        assert_eq!(moment.find(|| true), [true, false], "it is over");
    }
}
