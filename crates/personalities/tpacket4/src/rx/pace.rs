//! How long the mover rests between two looks.
//!
//! To be woken costs a thread some microseconds, and as much what wakes it: the sender, or the kernel's work on its CPU. Where
//! packets come faster than that, to be woken for each is most of what they cost. So the mover rests, and moves many at
//! once, as a NIC does that holds back its interrupts.
//!
//! A switch's worker is woken by its senders, and would wake the mover. With the program's thread, which looks all the time, and
//! the sender there are more threads than a small machine has CPUs. There the mover takes no more than its [`share`]: of a thread
//! that has had more, the kernel takes the CPU, and gives it back at its next tick, some milliseconds later, also if all others have
//! nothing to do by then.
//!
//! All times are nanoseconds of one clock.

/// What a wake-up costs, about: packets that come faster are many.
const WAKE: u64 = 5_000;
/// Packets that show how fast they come.
const FEW: u64 = 8;
/// The longest rest, by which a packet may be late: about as long as NICs hold back interrupts.
const LONGEST: u64 = 100_000;
/// To rest for less is not worth it.
const SHORTEST: u64 = 2_000;
/// The shortest rest of one that takes its share: one that is shorter may be over before it has begun.
const SHARE: u64 = 30_000;
/// How late it counts at most to run after a rest: a process may have been stopped.
const LATEST: u64 = 1_000_000;
/// A rest that takes too long is tried again after so many times as long as it took: little is lost by that.
const RETRY: u64 = 100;

/// How long a mover rests that has run for so long, so that the kernel lets it run at once when the rest is over.
pub fn share(ran: u64) -> u64 {
    ran.clamp(SHARE, LONGEST)
}

/// How fast packets come.
pub struct Pace {
    /// When that was last reckoned, and how many there had been.
    since: u64,
    moved: u32,
    /// How many there were at the last look.
    seen: u32,
    /// When the last rest was to end, and whether the mover has run since.
    until: u64,
    is_over: bool,
    /// How much later than that it ran: where other threads want its CPU, that may be long.
    overslept: u64,
}

impl Pace {
    /// From `now` on, when `moved` packets were moved: that number counts on.
    pub fn new(now: u64, moved: u32) -> Pace {
        Pace { since: now, moved, seen: moved, until: 0, is_over: true, overslept: 0 }
    }

    /// How long to rest after a look. `most` packets may come meanwhile, and no more than half of them should. `None`: they are
    /// too few, so that each is worth a wake-up, or so many that the mover has no time to rest.
    pub fn rest(&mut self, now: u64, moved: u32, most: u32) -> Option<u64> {
        let last = now.saturating_sub(self.until);
        if !std::mem::replace(&mut self.is_over, true) {
            self.overslept = (self.overslept * 3 + last.min(LATEST)) / 4;
        }
        let found = moved.wrapping_sub(std::mem::replace(&mut self.seen, moved));
        let (packets, took) = self.reckon(now, moved)?;
        if found >= most || packets * WAKE < took {
            return None;
        }
        let time = took.saturating_mul((most / 2).into()) / packets.max(1);
        // Where a rest would take too long it is tried again some time: how long it takes may have changed.
        let late = if last > RETRY * self.overslept { 0 } else { self.overslept };
        let rest = time.saturating_sub(late).min(LONGEST);
        if rest < SHORTEST {
            return None;
        }
        (self.until, self.is_over) = (now + rest, false);
        Some(rest)
    }

    /// How long to rest after a look of a mover that has run for so long since the last rest. `None`: packets are too few.
    pub fn share(&mut self, now: u64, moved: u32, ran: u64) -> Option<u64> {
        let (packets, took) = self.reckon(now, moved)?;
        (packets * WAKE >= took).then(|| share(ran))
    }

    /// The packets since the last time, and how long they took. `None`: too few to tell how fast they come.
    fn reckon(&mut self, now: u64, moved: u32) -> Option<(u64, u64)> {
        let packets = u64::from(moved.wrapping_sub(self.moved));
        let took = now.saturating_sub(self.since);
        if packets < FEW && took < FEW * WAKE {
            return None;
        }
        (self.since, self.moved) = (now, moved);
        Some((packets, took))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last rest of a mover that oversleeps by `late`, and what came meanwhile: a packet each `gap`, to where 256 may wait.
    fn steady(gap: u64, late: u64) -> Option<(u64, u32)> {
        let moved = |now: u64| (now / gap) as u32;
        let (mut pace, mut now, mut last) = (Pace::new(0, u32::MAX), 0, None);
        for _ in 0..500 {
            let before = moved(now);
            match pace.rest(now, before.wrapping_sub(1), 256) {
                Some(rest) => {
                    now += rest + late;
                    last = Some((rest, moved(now) - before));
                }
                // It looks again, or is woken by a packet.
                None => now += gap.max(1_000),
            }
        }
        last
    }

    #[test]
    fn few_packets_are_each_worth_a_wake() {
        assert_eq!(steady(20_000, 0), None);
        assert_eq!(steady(20_000_000, 0), None);
    }

    #[test]
    fn many_packets_wait_for_one_another_and_leave_room() {
        assert_eq!(steady(1_250, 0), Some((LONGEST, 80)));
        for late in [0, 3_000, 8_000] {
            let (rest, packets) = steady(100, late).unwrap();
            assert!(rest <= 12_800 - late + 500, "{rest}");
            assert!((100..140).contains(&packets), "{packets}");
        }
    }

    #[test]
    fn a_mover_that_would_oversleep_rests_seldom() {
        let (gap, late) = (50, 60_000);
        let (mut pace, mut now, mut rests) = (Pace::new(0, 0), 0, 0);
        for _ in 0..10_000 {
            let rest = pace.rest(now, (now / gap) as u32, 256);
            rests += u32::from(rest.is_some());
            now += rest.map_or(1_000, |rest| rest + late);
        }
        assert!((2..40).contains(&rests), "{rests}");
    }

    #[test]
    fn a_mover_that_is_behind_does_not_rest() {
        let mut pace = Pace::new(0, 0);
        assert_eq!(pace.rest(10_000, 1024, 256), None);
        assert!(pace.rest(20_000, 1124, 256).is_some());
        // A program that gives hardly any frames: they would be gone before the rest is over.
        assert_eq!(pace.rest(30_000, 1224, 100), None);
        assert_eq!(pace.rest(31_000, 1244, 22), None);
    }

    #[test]
    fn a_mover_that_shares_rests_for_as_long_as_it_ran() {
        let mut pace = Pace::new(0, 0);
        assert_eq!(pace.share(10_000, 1024, 9_000), Some(SHARE));
        assert_eq!(pace.share(100_000, 5120, 60_000), Some(60_000));
        // It may have been stopped.
        assert_eq!(pace.share(10_100_000, 9216, 9_900_000), Some(LONGEST));
        // One packet in 20 us: each is worth a wake-up.
        for (n, now) in (0..100).zip((10_200_000..).step_by(20_000)) {
            assert_eq!(pace.share(now, 9216 + n, 1_000), None);
        }
    }

    #[test]
    fn the_end_of_a_flow_is_noticed_at_the_next_look() {
        let mut pace = Pace::new(0, u32::MAX - 5);
        assert_eq!(pace.rest(40_000, 34, 256), Some(LONGEST));
        assert_eq!(pace.rest(140_000, 34, 256), None);
        // One behind the other, as the answers to requests that wait for each.
        for (n, now) in (0..100).zip((150_000..).step_by(25_000)) {
            assert_eq!(pace.rest(now, 35 + n, 256), None);
        }
    }
}
