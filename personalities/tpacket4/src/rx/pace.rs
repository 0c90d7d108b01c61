//! How long the mover rests between two looks.
//!
//! To be woken costs a thread some microseconds, and as much what wakes it: the sender, or the kernel's work on its CPU. Where
//! packets come faster than that, to be woken for each is most of what they cost. So the mover rests, and moves many at
//! once, as a NIC does that holds back its interrupts.

use std::time::{Duration, Instant};

/// What a wake-up costs, about: packets that come faster are many.
const WAKE: Duration = Duration::from_micros(5);
/// Packets that show how fast they come.
const FEW: u32 = 8;
/// The longest rest, by which a packet may be late: about as long as NICs hold back interrupts.
const LONGEST: Duration = Duration::from_micros(100);
/// To rest for less is not worth it.
const SHORTEST: Duration = Duration::from_micros(2);
/// How late it counts at most to run after a rest: a process may have been stopped.
const LATEST: Duration = Duration::from_millis(1);
/// A rest that takes too long is tried again after so many times as long as it took: little is lost by that.
const RETRY: u32 = 100;

/// How fast packets come.
pub struct Pace {
    /// When that was last reckoned, and how many there had been.
    since: Instant,
    moved: u32,
    /// How many there were at the last look.
    seen: u32,
    /// When the last rest was to end, if there was one, and whether the mover has run since.
    until: Option<Instant>,
    is_over: bool,
    /// How much later than that it ran: where other threads want its CPU, that may be long.
    overslept: Duration,
}

impl Pace {
    /// From `now` on, when `moved` packets were moved: that number counts on.
    pub fn new(now: Instant, moved: u32) -> Pace {
        let overslept = Duration::ZERO;
        Pace { since: now, moved, seen: moved, until: None, is_over: true, overslept }
    }

    /// How long to rest after a look. `most` packets may come meanwhile, and no more than half of them should. `None`: they are
    /// too few, so that each is worth a wake-up, or so many that the mover has no time to rest.
    pub fn rest(&mut self, now: Instant, moved: u32, most: u32) -> Option<Duration> {
        let last = self.until.map_or(Duration::MAX, |until| now.saturating_duration_since(until));
        if !std::mem::replace(&mut self.is_over, true) {
            self.overslept = (self.overslept * 3 + last.min(LATEST)) / 4;
        }
        let found = moved.wrapping_sub(std::mem::replace(&mut self.seen, moved));
        let packets = moved.wrapping_sub(self.moved);
        let took = now.saturating_duration_since(self.since);
        if packets < FEW && took < FEW * WAKE {
            return None;
        }
        (self.since, self.moved) = (now, moved);
        if found >= most || packets * WAKE < took {
            return None;
        }
        let time = took.saturating_mul(most / 2) / packets.max(1);
        // Where a rest would take too long it is tried again some time: how long it takes may have changed.
        let late = if last > RETRY * self.overslept { Duration::ZERO } else { self.overslept };
        let rest = time.saturating_sub(late).min(LONGEST);
        if rest < SHORTEST {
            return None;
        }
        (self.until, self.is_over) = (Some(now + rest), false);
        Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn nanos(n: u64) -> Duration {
        Duration::from_nanos(n)
    }

    /// The last rest of a mover that oversleeps by `late`, and what came meanwhile: a packet each `gap`, to where 256 may wait.
    fn steady(gap: Duration, late: Duration) -> Option<(Duration, u32)> {
        let begin = Instant::now();
        let moved = |now: Instant| ((now - begin).as_nanos() / gap.as_nanos()) as u32;
        let (mut pace, mut now, mut last) = (Pace::new(begin, u32::MAX), begin, None);
        for _ in 0..500 {
            let before = moved(now);
            match pace.rest(now, before.wrapping_sub(1), 256) {
                Some(rest) => {
                    now += rest + late;
                    last = Some((rest, moved(now) - before));
                }
                // It looks again, or is woken by a packet.
                None => now += gap.max(nanos(1_000)),
            }
        }
        last
    }

    #[test]
    fn few_packets_are_each_worth_a_wake() {
        assert_eq!(steady(nanos(20_000), nanos(0)), None);
        assert_eq!(steady(nanos(20_000_000), nanos(0)), None);
    }

    #[test]
    fn many_packets_wait_for_one_another_and_leave_room() {
        assert_eq!(steady(nanos(1250), nanos(0)), Some((LONGEST, 80)));
        for late in [0, 3_000, 8_000] {
            let (rest, packets) = steady(nanos(100), nanos(late)).unwrap();
            assert!(rest <= nanos(12_800 - late + 500), "{rest:?}");
            assert!((100..140).contains(&packets), "{packets}");
        }
    }

    #[test]
    fn a_mover_that_would_oversleep_rests_seldom() {
        let begin = Instant::now();
        let (gap, late) = (nanos(50), nanos(60_000));
        let (mut pace, mut now, mut rests) = (Pace::new(begin, 0), begin, 0);
        for _ in 0..1000 {
            let moved = ((now - begin).as_nanos() / gap.as_nanos()) as u32;
            let rest = pace.rest(now, moved, 256);
            rests += u32::from(rest.is_some());
            now += rest.map_or(nanos(1_000), |rest| rest + late);
        }
        assert!((1..30).contains(&rests), "{rests}");
    }

    #[test]
    fn a_mover_that_is_behind_does_not_rest() {
        let begin = Instant::now();
        let mut pace = Pace::new(begin, 0);
        let after = |micros: u64| begin + nanos(micros * 1_000);
        assert_eq!(pace.rest(after(10), 1024, 256), None);
        assert!(pace.rest(after(20), 1124, 256).is_some());
        // A program that gives hardly any frames: they would be gone before the rest is over.
        assert_eq!(pace.rest(after(30), 1224, 100), None);
        assert_eq!(pace.rest(after(31), 1244, 22), None);
    }

    #[test]
    fn the_end_of_a_flow_is_noticed_at_the_next_look() {
        let begin = Instant::now();
        let mut pace = Pace::new(begin, u32::MAX - 5);
        let after = |micros: u64| begin + nanos(micros * 1_000);
        assert_eq!(pace.rest(after(40), 34, 256), Some(LONGEST));
        assert_eq!(pace.rest(after(140), 34, 256), None);
        // One behind the other, as the answers to requests that wait for each.
        for (n, micros) in (0..100).zip((150..).step_by(25)) {
            assert_eq!(pace.rest(after(micros), 35 + n, 256), None);
        }
    }
}
