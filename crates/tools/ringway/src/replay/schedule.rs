//! When each frame of a replay is due.

use crate::link::TransmitTime;
use crate::units::Rate;
use std::time::Duration;

/// What decides when frames are due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timing {
    /// The times that they were recorded at, so many times as fast. Positive.
    Recorded { speed: f64 },
    /// A rate.
    Rate(Rate),
    /// The port alone.
    Unpaced,
}

/// From the times of frames to those at which they are due, both in nanoseconds since the beginning.
#[derive(Debug)]
pub struct Schedule(Clock);

#[derive(Debug)]
enum Clock {
    /// `last`: when the frame before was recorded, by a clock of this speed. `left_out`: of pauses
    /// that were longer than `max_gap`, so far.
    Recorded {
        slowness: f64,
        max_gap: u64,
        last: u64,
        left_out: u64,
    },
    Rate {
        times: TransmitTime,
        next: u64,
    },
    Unpaced,
}

/// What a port with a rate may be behind by, in nanoseconds: the rest is not made up for.
const CATCH_UP: u64 = 10_000_000;

impl Schedule {
    /// No pause is longer than `max_gap`, which is for the times of files.
    pub fn new(timing: Timing, max_gap: Option<Duration>) -> Schedule {
        let max_gap = max_gap.map_or(u64::MAX, |gap| gap.as_nanos() as u64);
        Schedule(match timing {
            Timing::Recorded { speed } => {
                Clock::Recorded { slowness: speed.recip(), max_gap, last: 0, left_out: 0 }
            }
            Timing::Rate(rate) => Clock::Rate { times: TransmitTime::new(rate, 0), next: 0 },
            Timing::Unpaced => Clock::Unpaced,
        })
    }

    /// When the next frame is due, which was recorded at `time`; `None`: as soon as there is room.
    #[inline]
    pub fn due(&self, time: u64) -> Option<u64> {
        match &self.0 {
            Clock::Recorded { slowness, max_gap, last, left_out } => {
                let at = (time as f64 * slowness) as u64;
                let beyond = at.saturating_sub(*last).saturating_sub(*max_gap);
                Some(at.saturating_sub(left_out + beyond))
            }
            Clock::Rate { next, .. } => Some(*next),
            Clock::Unpaced => None,
        }
    }

    /// The frame has gone, which had so many bytes, and was recorded at `time`.
    #[inline]
    pub fn advance(&mut self, length: usize, time: u64) {
        match &mut self.0 {
            Clock::Recorded { slowness, max_gap, last, left_out } => {
                let at = (time as f64 * *slowness) as u64;
                *left_out += at.saturating_sub(*last).saturating_sub(*max_gap);
                *last = at;
            }
            Clock::Rate { times, next } => *next += times.of(length),
            Clock::Unpaced => {}
        }
    }

    /// It is `now`, and the next frame has not gone. Returns by how much everything from now on is later
    /// than planned: a rate is not exceeded for long to make up for a port that took nothing.
    #[inline]
    pub fn slip(&mut self, now: u64) -> u64 {
        let Clock::Rate { next, .. } = &mut self.0 else { return 0 };
        let slipped = now.saturating_sub(next.saturating_add(CATCH_UP));
        *next += slipped;
        slipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn recorded_times_are_scaled() {
        let due = |speed, time| Schedule::new(Timing::Recorded { speed }, None).due(time);
        assert_eq!(due(1.0, 123_456_789), Some(123_456_789));
        assert_eq!(due(2.0, 1_000_000), Some(500_000));
        assert_eq!(due(0.5, 1_000_000), Some(2_000_000));
        assert_eq!(Schedule::new(Timing::Unpaced, None).due(7), None);
    }

    /// What is longer than the longest pause is left out; what is shorter stays as it is.
    #[test]
    fn long_gaps_are_capped() {
        let gap = Some(Duration::from_secs(1));
        let mut schedule = Schedule::new(Timing::Recorded { speed: 2.0 }, gap);
        let second = 1_000_000_000;
        let mut seen = Vec::new();
        for time in [0, second, 3601 * second, 3602 * second, 3605 * second] {
            seen.extend(schedule.due(time));
            assert_eq!(schedule.due(time), seen.last().copied(), "it may be asked again");
            schedule.advance(60, time);
        }
        assert_eq!(seen, [0, second / 2, 3 * second / 2, 2 * second, 3 * second]);
    }

    #[test]
    fn a_rate_decides_alone() {
        let mut schedule = Schedule::new(Timing::Rate(Rate::Bits(8e9)), None);
        let mut seen = Vec::new();
        for length in [100, 1000, 60] {
            seen.extend(schedule.due(1 << 40));
            schedule.advance(length, 0);
        }
        assert_eq!(seen, [0, 100, 1100]);
    }

    #[test]
    fn a_long_pause_is_not_made_up_for() {
        let mut schedule = Schedule::new(Timing::Rate(Rate::Packets(1e6)), None);
        assert_eq!(schedule.slip(CATCH_UP), 0);
        assert_eq!(schedule.slip(60_000_000_000), 60_000_000_000 - CATCH_UP);
        assert_eq!(schedule.due(0), Some(60_000_000_000 - CATCH_UP));
        let mut recorded = Schedule::new(Timing::Recorded { speed: 1.0 }, None);
        assert_eq!((recorded.slip(60_000_000_000), recorded.due(5)), (0, Some(5)));
    }

    proptest! {
        /// Whenever the sender looks, what is due is what the rate allows.
        #[test]
        fn what_is_due_at_any_time_is_the_rate(pps in 10.0f64..1e6, looks in proptest::collection::vec(0u64..5_000_000, 1..50)) {
            let mut schedule = Schedule::new(Timing::Rate(Rate::Packets(pps)), None);
            let (mut now, mut sent) = (0, 0u64);
            for step in looks {
                now += step;
                prop_assert_eq!(schedule.slip(now), 0);
                while schedule.due(0).unwrap() <= now {
                    schedule.advance(60, 0);
                    sent += 1;
                }
                let allowed = (now as f64 * pps / 1e9).floor() + 1.0;
                prop_assert!((sent as f64 - allowed).abs() <= 1.0, "{sent} of {allowed}");
            }
        }
    }
}
