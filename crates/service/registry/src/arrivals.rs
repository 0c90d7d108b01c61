//! Whether a port that takes all frames of its interface gets any of them: by what both have counted, from one look to
//! the next.

use std::time::{Duration, Instant};

use ringway_proto::NicMode;

/// Looks in a row that find the port without a frame, before that is told. The counts of a card are up to some seconds
/// old, and a burst may come between the looks at the card and at the port.
const LOOKS: u32 = 3;

/// Frames that the interface receives from one look to the next without the port being missed in them: some are for
/// the card itself, or for the driver.
const FEW: u64 = 10;

/// What a look has found.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    /// What the interface has received, by its own count.
    pub received: u64,
    /// What has become of frames at the port: those that its rings were given, and those that were dropped there.
    pub got: u64,
}

/// What is to be told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The interface has received so many frames in that time, and the port none.
    Misses(u64, Duration),
    /// The port gets frames again, after so many were received in that time.
    Gets(u64, Duration),
}

/// What was found of a port so far.
#[derive(Default)]
pub(crate) struct Arrivals {
    /// The last look, and the first since when the port has got nothing.
    last: Option<(Look, Since)>,
    is_missing: bool,
}

#[derive(Clone, Copy)]
struct Since {
    time: Instant,
    received: u64,
    /// Looks that have found that the interface had received some, and the port none.
    looks: u32,
}

impl Arrivals {
    /// Whether the interface receives frames, and the port gets none.
    pub fn are_missing(&self) -> bool {
        self.is_missing
    }

    /// Takes note of a look. `are_waiting`: whether frames wait for the port's program, which does not read them. It is
    /// asked only where that matters.
    pub fn look(
        &mut self,
        look: Look,
        now: Instant,
        are_waiting: impl FnOnce() -> bool,
    ) -> Option<News> {
        let anew = Since { time: now, received: look.received, looks: 0 };
        let (before, mut since) = self.last.unwrap_or((look, anew));
        let is_more = look.received.checked_sub(before.received).is_some_and(|more| more >= FEW);
        since.looks = since.looks.saturating_add(is_more.into());
        let is_about_to_be_told = since.looks >= LOOKS || self.is_missing;
        let gets = look.got != before.got || (is_about_to_be_told && are_waiting());
        let frames = look.received.saturating_sub(since.received);
        let time = now.saturating_duration_since(since.time);
        let was_missing = self.is_missing;
        self.is_missing = !gets && is_about_to_be_told;
        // While it is told, times without traffic are part of it.
        let goes_on = !gets && (is_more || self.is_missing);
        self.last = Some((look, if goes_on { since } else { anew }));
        match (was_missing, self.is_missing) {
            (false, true) => Some(News::Misses(frames, time)),
            (true, false) => Some(News::Gets(frames, time)),
            _ => None,
        }
    }

    /// The port takes some of the frames alone, or none can come: nothing follows from what it gets. True if it was told
    /// that it gets none.
    pub fn forget(&mut self) -> bool {
        std::mem::take(self).is_missing
    }
}

/// What to try where a port gets nothing.
pub(crate) fn remedy(name: &str, mode: NicMode) -> String {
    match mode {
        NicMode::Packet => format!(
            "see whether a program in front takes them (`ip -d link show {name}`), or run \
             `ringway doctor {name} --try`"
        ),
        _ => format!("run `ringway doctor {name} --try`, or open it as netmap:{name}@mode=packet"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// What is told at each look, a second after the one before: what the interface has received, what the port has
    /// got, and whether frames wait.
    fn told(looks: &[(u64, u64, bool)]) -> Vec<Option<News>> {
        let (mut arrivals, mut now) = (Arrivals::default(), Instant::now());
        let mut look = |&(received, got, waiting): &(u64, u64, bool)| {
            now += SECOND;
            arrivals.look(Look { received, got }, now, || waiting)
        };
        looks.iter().map(&mut look).collect()
    }

    #[test]
    fn a_port_that_gets_nothing_is_told_once_and_so_is_the_end() {
        let looks = [
            (70, 5, false),
            (80, 5, false),
            (95, 5, false),
            (105, 5, false),
            (900, 5, false),
            (900, 5, false),
            (903, 6, false),
            (913, 6, false),
            (923, 6, false),
            (933, 6, false),
        ];
        let mut expected: Vec<Option<News>> = looks.iter().map(|_| None).collect();
        expected[3] = Some(News::Misses(35, 3 * SECOND));
        expected[6] = Some(News::Gets(833, 6 * SECOND));
        expected[9] = Some(News::Misses(30, 3 * SECOND));
        assert_eq!(told(&looks), expected);
    }

    /// The ways in which a port rightly gets nothing, or seems to.
    #[test]
    fn what_is_no_loss_is_not_told() {
        let cases = [
            ("it gets them all", [0, 1, 2, 3, 4, 5].map(|n| (n * 50, n * 50, false))),
            ("it gets one in a thousand", [0, 1, 2, 3, 4, 5].map(|n| (n * 1000, n, false))),
            ("nothing is sent to it", [(7, 7, false); 6]),
            (
                "a few frames are for the card",
                [0, 1, 2, 3, 4, 5].map(|n| (n * (FEW - 1), 0, false)),
            ),
            ("its program does not read", [0, 1, 2, 3, 4, 5].map(|n| (n * 50, 0, true))),
            (
                "bursts, counted late",
                [0, 50, 50, 100, 100, 150].map(|received| (received, 0, false)),
            ),
            ("the card counts anew", [500, 600, 700, 3, 50, 60].map(|n| (n, 0, false))),
        ];
        for (why, looks) in cases {
            assert!(told(&looks).iter().all(Option::is_none), "{why}");
        }
    }

    /// Frames that wait in a socket of the port end it, too: they have reached the port.
    #[test]
    fn frames_that_wait_end_it() {
        let mut looks: Vec<_> = (0..5).map(|n| (n * 50, 0, false)).collect();
        looks.push((250, 0, true));
        let told = told(&looks);
        assert_eq!(told[3], Some(News::Misses(150, 3 * SECOND)));
        assert_eq!(told[5], Some(News::Gets(250, 5 * SECOND)));
    }

    #[test]
    fn a_port_that_takes_some_alone_begins_anew() {
        let (mut arrivals, now) = (Arrivals::default(), Instant::now());
        let look = |arrivals: &mut Arrivals, received| {
            arrivals.look(Look { received, got: 0 }, now, || false).is_some()
        };
        let told = [0, 50, 100].map(|received| look(&mut arrivals, received));
        assert_eq!((told, arrivals.forget()), ([false; 3], false));
        let told = [150, 200, 250, 300].map(|received| look(&mut arrivals, received));
        assert_eq!(told, [false, false, false, true]);
        assert!(arrivals.are_missing() && arrivals.forget() && !arrivals.are_missing());
    }
}
