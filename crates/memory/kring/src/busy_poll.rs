//! Looking for a moment before a sleep, where that has paid of late.
//!
//! A sleep and its end cost some 10 µs, more in a virtual machine, and the party at the other end has
//! to make a system call for it. In a steady stream the next packet is there sooner. A party that looks
//! until then does not sleep at all; looks in vain have used a processor for which others may
//! have waited. So looks in vain are paid for: each in a row doubles the number of waits that go
//! without.
//!
//! The party that is waited for may share the processor. Then looks are in vain unless the party
//! [yields](Yielding) between them. After looks in vain the next ones try the other way.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use crate::yielding::Yielding;

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
    /// Whether it yields between the looks.
    yields: AtomicBool,
    yielding: Yielding,
}

impl BusyPoll {
    /// Nothing was in vain yet.
    pub const fn new() -> BusyPoll {
        BusyPoll {
            left: AtomicU32::new(0),
            without: AtomicU32::new(0),
            yields: AtomicBool::new(false),
            yielding: Yielding::new(),
        }
    }

    /// A wait begins: how to look, if it is to.
    pub(crate) fn begin(&self) -> Option<Moment> {
        match self.left.load(Relaxed) {
            0 => {
                let yields = self.yields.load(Relaxed) && self.yielding.is_due();
                Some(Moment { begun: Instant::now(), yields })
            }
            left => {
                self.left.store(left - 1, Relaxed);
                None
            }
        }
    }

    /// What the looks of a wait have come to.
    pub(crate) fn end(&self, looks: &Looks) {
        if looks.yielded {
            self.yielding.note(looks.took);
        }
        // Where another had the processor meanwhile, a sleep would have been as good.
        let without = match looks.found && looks.took < MOMENT {
            true => 0,
            false => {
                self.yields.store(!looks.yielded, Relaxed);
                (self.without.load(Relaxed) * 2 + 1).min(MOST)
            }
        };
        self.without.store(without, Relaxed);
        self.left.store(without, Relaxed);
    }
}

/// The time for looks.
pub(crate) struct Moment {
    begun: Instant,
    yields: bool,
}

/// The looks of a wait.
pub(crate) struct Looks {
    /// Whether the last has found something.
    pub found: bool,
    took: Duration,
    yielded: bool,
}

impl Moment {
    /// Looks until it is over.
    pub fn find(&self, mut look: impl FnMut() -> bool) -> Looks {
        let end = |found| Looks { found, took: self.begun.elapsed(), yielded: self.yields };
        loop {
            if self.yields {
                thread::yield_now();
            }
            for _ in 0..LOOKS {
                spin_loop();
                if look() {
                    return end(true);
                }
            }
            if self.begun.elapsed() >= MOMENT {
                return end(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(1);

    /// Of so many waits, those that look, and whether they yield; each takes so long.
    fn looks(poll: &BusyPoll, waits: u32, found: bool, took: Duration) -> Vec<(u32, bool)> {
        let mut looked = Vec::new();
        for wait in 0..waits {
            if let Some(moment) = poll.begin() {
                looked.push((wait, moment.yields));
                poll.end(&Looks { found, took, yielded: moment.yields });
            }
        }
        looked
    }

    #[test]
    fn looks_in_vain_become_rare_and_one_that_finds_brings_them_back() {
        let poll = BusyPoll::new();
        let in_turns = [(0, false), (2, true), (6, false), (14, true), (30, false)];
        assert_eq!(looks(&poll, 32, false, MOMENT), in_turns);
        let rare = looks(&poll, 100_000, false, MOMENT).len();
        assert!((95..110).contains(&rare), "{rare}");
        poll.end(&Looks { found: true, took: SHORT, yielded: true });
        assert_eq!(looks(&poll, 3, true, SHORT).len(), 3);
    }

    #[test]
    fn the_way_to_look_that_finds_something_stays() {
        let poll = BusyPoll::new();
        assert_eq!(looks(&poll, 2, true, SHORT), [(0, false), (1, false)]);
        // Found too late: another had the processor.
        assert_eq!(looks(&poll, 1, true, MOMENT), [(0, false)]);
        assert_eq!(looks(&poll, 4, true, SHORT), [(1, true), (2, true), (3, true)]);
        assert_eq!(looks(&poll, 1, false, MOMENT), [(0, true)]);
        assert_eq!(looks(&poll, 3, true, SHORT), [(1, false), (2, false)]);
    }

    /// A process that computes has taken its time slice.
    #[test]
    fn long_yields_become_rare() {
        let poll = BusyPoll::new();
        let long = Duration::from_millis(3);
        let looked = looks(&poll, 100_000, false, long);
        let yields: Vec<_> = (0..).zip(looked).filter(|(_, it)| it.1).map(|(at, _)| at).collect();
        assert_eq!(yields, [1, 4, 9, 18, 35, 68], "of the looks");
    }

    #[test]
    fn a_moment_ends_with_what_is_found() {
        for yields in [false, true] {
            let poll = BusyPoll { yields: AtomicBool::new(yields), ..BusyPoll::new() };
            let moment = poll.begin().unwrap();
            let mut left = 3;
            let looks = moment.find(|| {
                left -= 1;
                left == 0
            });
            assert!(looks.found && looks.yielded == yields);
            let looks = moment.find(|| false);
            assert!(!looks.found && looks.took >= MOMENT);
            let looks = moment.find(|| true);
            assert!(looks.found && looks.took >= MOMENT, "it is over");
        }
    }
}
