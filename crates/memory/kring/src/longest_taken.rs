//! The longest frame that the other side of a driver has taken lately: what tells a queue that is full, which takes
//! frames of each length now and then, from a peer that takes none of that length.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long a length counts as taken without having been taken again: the other end may have a smaller MTU by now.
const MEMORY: Duration = Duration::from_secs(2);

/// Lengths that were taken. Those that were not are looked up with a clock, and nothing else is.
#[derive(Debug)]
pub struct LongestTaken {
    begin: Instant,
    /// Bytes of the longest; 0: none was taken.
    longest: AtomicU32,
    /// When it was known to be taken last, in nanoseconds since the beginning.
    known: AtomicU64,
    /// The longest since then.
    recent: AtomicU32,
}

impl LongestTaken {
    /// None has been taken.
    pub fn none() -> LongestTaken {
        let begin = Instant::now();
        let (longest, known, recent) = Default::default();
        LongestTaken { begin, longest, known, recent }
    }

    /// A frame was taken.
    #[inline]
    pub fn taken(&self, bytes: u32) {
        if bytes > self.recent.load(Relaxed) {
            self.recent.fetch_max(bytes, Relaxed);
        }
    }

    /// Whether a frame as long as this, or longer, was taken lately.
    #[cold]
    pub fn has_taken(&self, bytes: u32, now: Instant) -> bool {
        let now = now.saturating_duration_since(self.begin).as_nanos() as u64;
        let recent = self.recent.load(Relaxed);
        let age = now.saturating_sub(self.known.load(Relaxed));
        if recent >= self.longest.load(Relaxed) || age > MEMORY.as_nanos() as u64 {
            self.longest.store(recent, Relaxed);
            self.known.store(now, Relaxed);
            self.recent.store(0, Relaxed);
        }
        bytes <= self.longest.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_forgotten_if_no_such_frame_is_taken_again() {
        let lengths = LongestTaken::none();
        let second = Duration::from_secs(1);
        let begin = lengths.begin;
        assert!(!lengths.has_taken(60, begin));
        lengths.taken(1400);
        assert!(lengths.has_taken(1400, begin) && !lengths.has_taken(1401, begin));
        // Now and then one finds room.
        for seconds in 1..10 {
            lengths.taken(1400);
            assert!(lengths.has_taken(1400, begin + seconds * second));
        }
        // None does any more: shorter ones do.
        lengths.taken(1000);
        assert!(lengths.has_taken(1400, begin + 11 * second), "it may be full");
        assert!(!lengths.has_taken(1400, begin + 12 * second));
        assert!(lengths.has_taken(1000, begin + 13 * second));
        // Its MTU is as it was.
        lengths.taken(1400);
        assert!(lengths.has_taken(1400, begin + 13 * second));
    }
}
