//! How long the signals of one user's doorbells may take of the threads that give them.
//!
//! To signal a doorbell takes time for each of its listeners, which its other holders choose. A user may have
//! thousands of doorbells, each just quick enough for the worker of a switch, and a single frame for all
//! signals all of them in one round. So all doorbells of a user share an allowance: what their signals take
//! beyond the usual. Where it is used up, the keeper signals them.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

/// May be taken at once.
const AT_ONCE: Duration = Duration::from_millis(4);
/// As many times as long as a signal has taken is it until that may be taken again.
const RECOVERY: u32 = 4;

/// What the doorbells of one user share.
#[derive(Debug)]
pub struct SignalAllowance {
    made: Instant,
    /// When all that was taken has come back, in nanoseconds since then.
    whole_at: AtomicU64,
}

impl Default for SignalAllowance {
    fn default() -> SignalAllowance {
        SignalAllowance { made: Instant::now(), whole_at: AtomicU64::new(0) }
    }
}

impl SignalAllowance {
    /// Whether there is nothing left.
    pub(crate) fn is_used_up(&self, now: Instant) -> bool {
        self.whole_at.load(Relaxed) > self.at(now) + nanoseconds(AT_ONCE * RECOVERY)
    }

    /// A signal has taken so long.
    pub(crate) fn take(&self, taken: Duration, now: Instant) {
        let (now, more) = (self.at(now), nanoseconds(taken * RECOVERY));
        let then = |before: u64| Some(before.max(now) + more);
        // It always succeeds.
        let _ = self.whole_at.fetch_update(Relaxed, Relaxed, then);
    }

    fn at(&self, now: Instant) -> u64 {
        nanoseconds(now.saturating_duration_since(self.made))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_comes_back() {
        let allowance = SignalAllowance::default();
        let at = |millis| allowance.made + Duration::from_millis(millis);
        allowance.take(AT_ONCE, at(100));
        assert!(!allowance.is_used_up(at(100)), "to the last of it");
        allowance.take(Duration::from_millis(10), at(100));
        for (millis, is_used_up) in [(100, true), (139, true), (140, false)] {
            assert_eq!(allowance.is_used_up(at(millis)), is_used_up, "at {millis} ms");
        }
        // There is never more than the whole of it.
        allowance.take(AT_ONCE + Duration::from_nanos(1), at(10_000));
        assert!(allowance.is_used_up(at(10_000)) && !allowance.is_used_up(at(10_001)));
    }
}
