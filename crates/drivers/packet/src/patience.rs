//! How long a frame waits that the kernel says to have no room for.
//!
//! ENOBUFS stands for a queue that is full, which passes, and for a device that will never have the frame: a veth
//! pair whose other end has a smaller MTU, say. Which of them it is, time tells; and what is as long as a frame that was
//! given up is not waited for again, for a while.

use std::time::{Duration, Instant};

/// A device takes something within this time, if it does anything at all.
const WAIT: Duration = Duration::from_millis(50);
/// And the kernel is asked so often: a program may have slept meanwhile.
const TRIES: u32 = 4;
/// How long it is remembered which length was refused.
const MEMORY: Duration = Duration::from_secs(1);

/// Of a socket that sends frames in their order.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// When the first frame was refused for the first time, and how often since.
    waits: Option<(Instant, u32)>,
    /// The length that was given up last, and when.
    given_up: Option<(u32, Instant)>,
}

impl Patience {
    /// The kernel has taken frames, of which the longest that it did not cut has so many bytes. So long ones have room.
    #[inline]
    pub fn taken(&mut self, longest: u32) {
        self.waits = None;
        self.given_up = self.given_up.filter(|(length, _)| longest < *length);
    }

    /// What was waited for is gone, or something else is in its way: the next wait begins anew.
    pub fn end_wait(&mut self) {
        self.waits = None;
    }

    /// Whether a frame is waited for.
    #[cfg(test)]
    pub fn is_waiting(&self) -> bool {
        self.waits.is_some()
    }

    /// Whether frames that are [taken](Self::taken) may change anything.
    pub fn remembers(&self) -> bool {
        self.waits.is_some() || self.given_up.is_some()
    }

    /// There is no room for the first frame, of `bytes` bytes; `None`: the kernel cuts it, and its length tells nothing of
    /// others. Whether it is to be given up.
    #[cold]
    pub fn is_over(&mut self, bytes: Option<u32>, now: Instant) -> bool {
        let remembered = self.given_up.filter(|(length, at)| {
            bytes.is_some_and(|bytes| bytes >= *length)
                && now.saturating_duration_since(*at) < MEMORY
        });
        let known = remembered.map(|(length, _)| length);
        let (since, tries) = self.waits.unwrap_or((now, 0));
        let tries = tries.saturating_add(1);
        if known.is_some() || (tries >= TRIES && now.saturating_duration_since(since) >= WAIT) {
            self.waits = None;
            self.given_up = known.or(bytes).map(|length| (length, now)).or(self.given_up);
            return true;
        }
        self.waits = Some((since, tries));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_given_up_when_it_has_waited_and_was_tried() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut patience = Patience::default();
        // Tried often, and too soon; waited for long, and hardly tried.
        for ms in 0..49 {
            assert!(!patience.is_over(Some(1514), at(ms)), "{ms}");
        }
        assert!(patience.is_waiting());
        assert!(patience.is_over(Some(1514), at(50)));
        assert!(!patience.is_waiting());
        let mut patience = Patience::default();
        for (ms, over) in [(0, false), (100, false), (200, false), (300, true)] {
            assert_eq!(patience.is_over(Some(1514), at(ms)), over, "{ms}");
        }
    }

    #[test]
    fn what_is_taken_begins_anew() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut patience = Patience::default();
        for ms in [0, 10, 20, 49] {
            assert!(!patience.is_over(Some(60), at(ms)));
        }
        patience.taken(1514);
        for (ms, over) in [(60, false), (80, false), (100, false), (109, false), (110, true)] {
            assert_eq!(patience.is_over(Some(60), at(ms)), over, "{ms}");
        }
    }

    #[test]
    fn longer_ones_are_not_waited_for_again_for_a_while() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut patience = Patience::default();
        for (ms, over) in [(0, false), (20, false), (40, false), (60, true)] {
            assert_eq!(patience.is_over(Some(1200), at(ms)), over);
        }
        assert!(patience.is_over(Some(1514), at(61)));
        assert!(patience.is_over(Some(1200), at(900)));
        // A shorter one has its own time.
        assert!(!patience.is_over(Some(1199), at(901)));
        patience.taken(1199);
        // It was refused until 900.
        assert!(patience.is_over(Some(1200), at(1899)));
        assert!(patience.is_over(Some(1200), at(2898)));
        // To the millisecond.
        assert!(!patience.is_over(Some(1200), at(3898)));
    }
    /// One full queue is no reason to drop frames of that length while the device takes such.
    #[test]
    fn what_has_room_again_is_waited_for_again() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut patience = Patience::default();
        for (ms, over) in [(0, false), (20, false), (40, false), (60, true)] {
            assert_eq!(patience.is_over(Some(1200), at(ms)), over);
        }
        patience.taken(1200);
        assert!(!patience.is_over(Some(1200), at(70)));
        assert!(!patience.is_over(Some(1514), at(80)));
    }

    /// The time before the link went does not count when it is back.
    #[test]
    fn a_wait_that_ended_does_not_count() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut patience = Patience::default();
        for ms in [0, 10, 20] {
            assert!(!patience.is_over(Some(60), at(ms)));
        }
        patience.end_wait();
        assert!(!patience.is_waiting());
        assert!(!patience.is_over(Some(60), at(10_000)));
    }

    /// A long frame that the kernel cuts may wait for room, and says nothing of frames that it does not cut.
    #[test]
    fn the_length_of_a_frame_that_is_cut_tells_nothing() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut patience = Patience::default();
        for (bytes, first) in [(None, 0), (Some(1200), 100), (None, 200)] {
            for (ms, over) in [(0, false), (20, false), (40, false), (60, true)] {
                assert_eq!(patience.is_over(bytes, at(first + ms)), over, "{bytes:?} {ms}");
            }
        }
        assert!(patience.is_over(Some(1200), at(270)));
    }
}
