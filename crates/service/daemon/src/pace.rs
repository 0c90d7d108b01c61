//! How much of its time the loop spends on something that any user can have it do: a little at once, and a
//! small part in the long run.

use std::time::{Duration, Instant};

/// What may be spent at once.
const AT_ONCE: Duration = Duration::from_millis(50);
/// In the long run, one part of so many.
const PARTS: u32 = 20;

pub struct Pace {
    /// What was spent, less what has been earned since.
    spent: Duration,
    at: Instant,
}

impl Pace {
    pub fn new(now: Instant) -> Pace {
        Pace { spent: Duration::ZERO, at: now }
    }

    fn spent_by(&self, now: Instant) -> Duration {
        self.spent.saturating_sub(now.saturating_duration_since(self.at) / PARTS)
    }

    /// How long to wait before the next time.
    pub fn wait(&self, now: Instant) -> Duration {
        self.spent_by(now).saturating_sub(AT_ONCE).saturating_mul(PARTS)
    }

    /// It took from `begin` to `end`.
    pub fn spend(&mut self, begin: Instant, end: Instant) {
        self.spent = self.spent_by(end) + end.saturating_duration_since(begin);
        self.at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_long_run_it_is_a_small_part() {
        let begin = Instant::now();
        let (mut pace, mut now, mut busy) = (Pace::new(begin), begin, Duration::ZERO);
        let each = Duration::from_millis(7);
        while now < begin + Duration::from_secs(60) {
            let waits = pace.wait(now);
            // Some at once.
            assert!(busy >= AT_ONCE || waits == Duration::ZERO);
            now += waits;
            pace.spend(now, now + each);
            (now, busy) = (now + each, busy + each);
        }
        assert!(busy >= Duration::from_secs(2) && busy < Duration::from_millis(3200), "{busy:?}");
        assert_eq!(pace.wait(now + Duration::from_secs(60)), Duration::ZERO);
    }
}
