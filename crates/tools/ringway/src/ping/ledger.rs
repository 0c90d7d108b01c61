//! Which pings are answered, and which are lost, doubled, late or overtaken.

use serde::Serialize;
use std::collections::VecDeque;
use std::time::Duration;

/// Pings that are remembered after they are settled, to tell what comes twice from what comes late.
const REMEMBERED: usize = 1024;
/// Pings that are waited for at once, at most: older ones are given up.
const MOST: usize = 1 << 20;

/// What has been counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counts {
    pub sent: u64,
    /// Pings that were answered in time.
    pub answered: u64,
    /// Pings that were not.
    pub lost: u64,
    /// Answers to lost pings.
    pub late: u64,
    /// Answers to pings that had been answered.
    pub duplicated: u64,
    /// First answers that came after the answer to a later ping.
    pub reordered: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Answered,
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Ping {
    sent: Duration,
    state: State,
}

/// The pings of a run; times are since its start.
pub struct Ledger {
    timeout: Duration,
    pub counts: Counts,
    /// Those that are remembered, by sequence number.
    pings: VecDeque<Ping>,
    /// Sequence number of the first of them, and of the first that may still be waited for.
    first: u64,
    unsettled: u64,
    waiting: usize,
    /// Sequence number after the latest that was answered.
    latest: u64,
}

impl Ledger {
    pub fn new(timeout: Duration) -> Ledger {
        Ledger {
            timeout,
            counts: Counts::default(),
            pings: VecDeque::new(),
            first: 0,
            unsettled: 0,
            waiting: 0,
            latest: 0,
        }
    }

    /// Pings whose answers may still come in time.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// When the oldest of them is given up.
    pub fn next_timeout(&self) -> Option<Duration> {
        let oldest = self.pings.get((self.unsettled - self.first) as usize)?;
        Some(oldest.sent + self.timeout)
    }

    /// The next ping goes out. Sequence numbers count from 0.
    pub fn send(&mut self, now: Duration) {
        if self.waiting == MOST {
            self.give_up_before(Duration::MAX, 1);
        }
        self.pings.push_back(Ping { sent: now, state: State::Waiting });
        self.counts.sent += 1;
        self.waiting += 1;
    }

    /// An answer has come. Its round-trip time, if it is the first, and in time.
    pub fn answer(&mut self, sequence: u64, now: Duration) -> Option<Duration> {
        let Some(at) = sequence.checked_sub(self.first) else {
            self.counts.late += 1;
            return None;
        };
        let ping = usize::try_from(at).ok().and_then(|at| self.pings.get_mut(at))?;
        match ping.state {
            State::Answered => {
                self.counts.duplicated += 1;
                None
            }
            State::Lost => {
                self.counts.late += 1;
                None
            }
            State::Waiting => {
                ping.state = State::Answered;
                let time = now.saturating_sub(ping.sent);
                self.waiting -= 1;
                self.counts.answered += 1;
                self.counts.reordered += u64::from(sequence < self.latest);
                self.latest = self.latest.max(sequence + 1);
                self.give_up_before(Duration::ZERO, 0);
                Some(time)
            }
        }
    }

    /// Pings that have waited too long are lost.
    pub fn expire(&mut self, now: Duration) {
        if let Some(before) = now.checked_sub(self.timeout) {
            self.give_up_before(before, usize::MAX);
        }
    }

    /// Gives up pings that were sent before then, at most so many, and forgets old ones.
    fn give_up_before(&mut self, then: Duration, most: usize) {
        let mut left = most;
        while let Some(ping) = self.pings.get_mut((self.unsettled - self.first) as usize) {
            if ping.state == State::Waiting {
                if ping.sent > then || left == 0 {
                    break;
                }
                ping.state = State::Lost;
                left -= 1;
                self.waiting -= 1;
                self.counts.lost += 1;
            }
            self.unsettled += 1;
        }
        while self.pings.len() > REMEMBERED && self.first < self.unsettled {
            self.pings.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    fn counts(answered: u64, lost: u64, late: u64, duplicated: u64, reordered: u64) -> Counts {
        Counts { sent: 4, answered, lost, late, duplicated, reordered }
    }

    #[test]
    fn every_fate_is_counted() {
        let mut ledger = Ledger::new(10 * MS);
        (0..4).for_each(|n| ledger.send(n * MS));
        assert_eq!(ledger.answer(1, 5 * MS), Some(4 * MS));
        assert_eq!(ledger.answer(0, 6 * MS), Some(6 * MS), "overtaken");
        assert_eq!(ledger.answer(1, 7 * MS), None, "a second time");
        assert_eq!((ledger.waiting(), ledger.next_timeout()), (2, Some(12 * MS)));
        ledger.expire(12 * MS);
        assert_eq!(ledger.waiting(), 1);
        assert_eq!(ledger.answer(2, 13 * MS), None, "too late");
        assert_eq!(ledger.answer(3, 13 * MS), Some(10 * MS));
        assert_eq!(ledger.answer(4, 13 * MS), None, "never sent");
        assert_eq!(ledger.counts, counts(3, 1, 1, 1, 1));
        assert_eq!(ledger.next_timeout(), None);
    }

    #[test]
    fn settled_pings_are_forgotten() {
        let mut ledger = Ledger::new(MS);
        for n in 0..10 * REMEMBERED as u64 {
            ledger.send(Duration::ZERO);
            assert!(ledger.answer(n, Duration::ZERO).is_some());
            assert!(ledger.pings.len() <= REMEMBERED);
        }
        assert_eq!(ledger.answer(0, Duration::ZERO), None);
        assert_eq!((ledger.counts.late, ledger.counts.duplicated), (1, 0));
    }

    proptest! {
        /// Whatever comes, in whatever order: each ping has one fate.
        #[test]
        fn each_ping_is_waited_for_answered_or_lost(
            steps in proptest::collection::vec((0u8..4, 0u64..300, 0u32..4), 0..400),
        ) {
            let mut ledger = Ledger::new(20 * MS);
            let mut now = Duration::ZERO;
            for (kind, sequence, pause) in steps {
                now += pause * MS;
                match kind {
                    0 | 1 => ledger.send(now),
                    2 => drop(ledger.answer(sequence, now)),
                    _ => ledger.expire(now),
                }
                let Counts { sent, answered, lost, .. } = ledger.counts;
                prop_assert_eq!(sent, answered + lost + ledger.waiting() as u64);
                let oldest = ledger.next_timeout();
                prop_assert_eq!(oldest.is_some(), ledger.waiting() > 0);
                prop_assert!(kind != 3 || oldest.is_none_or(|oldest| oldest > now));
            }
        }
    }
}
