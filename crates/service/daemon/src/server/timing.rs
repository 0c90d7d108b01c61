//! How long a request takes, and what it waits for meanwhile.

use std::{
    fmt,
    time::{Duration, Instant},
};

use ringway_proto::Request;
use ringway_registry::Subject;

/// What takes longer is told.
const SLOW: Duration = Duration::from_secs(1);

/// Of one request.
pub(super) struct Timing {
    /// `None`: it takes as long as nothing happens, and is not timed.
    begin: Option<Instant>,
    waits: Option<(What, Instant)>,
    longest: Option<(What, Duration)>,
}

/// What a request waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Work of its own, or of another request.
    Work(Subject),
    /// The end of what it has closed.
    Closing,
}

impl Timing {
    pub fn of(request: &Request, now: Instant) -> Timing {
        let follows = matches!(request, Request::Events { wait: true, .. });
        Timing { begin: (!follows).then_some(now), waits: None, longest: None }
    }

    /// How long it takes by now; `None`: it waits for events.
    pub fn took(&self, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.begin?))
    }

    /// From now on it waits for this.
    pub fn wait(&mut self, what: What, now: Instant) {
        self.waits = Some((what, now));
    }

    /// What it has waited for is there.
    pub fn go_on(&mut self, now: Instant) {
        let Some((what, since)) = self.waits.take() else { return };
        let waited = now.saturating_duration_since(since);
        if self.longest.as_ref().is_none_or(|(_, longest)| waited > *longest) {
            self.longest = Some((what, waited));
        }
    }

    /// If it took long: how long, and what it waited for most.
    pub fn slow(&self, now: Instant) -> Option<(Duration, Option<&(What, Duration)>)> {
        let took = self.took(now)?;
        (took > SLOW).then_some((took, self.longest.as_ref()))
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Closing => write!(f, "what it has closed"),
            What::Work(Subject::Interface(0, index)) => write!(f, "interface {index}"),
            What::Work(Subject::Interface(netns, index)) => {
                write!(f, "interface {index} of network namespace {netns}")
            }
            What::Work(Subject::Device(name)) => {
                // What tells its namespace is behind a zero.
                write!(f, "device {}", name.split('\0').next().unwrap_or_default())
            }
            What::Work(Subject::User(uid)) => write!(f, "a check of a program of user {uid}"),
            What::Work(Subject::Memory(uid)) => write!(f, "memory that user {uid} has closed"),
            What::Work(Subject::Names(uid)) => write!(f, "a look at interfaces of user {uid}"),
            What::Work(Subject::Counters(_) | Subject::Received) => {
                write!(f, "counters of an interface")
            }
            What::Work(Subject::Switch(name)) => write!(f, "the worker of {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_longest_is_told() {
        let begin = Instant::now();
        let at = |millis| begin + Duration::from_millis(millis);
        let mut timing = Timing::of(&Request::Barrier, begin);
        let interface = What::Work(Subject::Interface(0, 7));
        timing.wait(What::Work(Subject::Names(1)), at(0));
        timing.go_on(at(100));
        timing.wait(interface.clone(), at(100));
        timing.go_on(at(900));
        timing.go_on(at(950));
        timing.wait(What::Closing, at(950));
        timing.go_on(at(1000));
        assert_eq!(timing.slow(at(1000)), None);
        let longest = (interface, Duration::from_millis(800));
        assert_eq!(timing.slow(at(1100)), Some((Duration::from_millis(1100), Some(&longest))));
        assert_eq!(longest.0.to_string(), "interface 7");
        let device = What::Work(Subject::Device("p0\0key".into()));
        assert_eq!(device.to_string(), "device p0");
    }

    #[test]
    fn a_client_that_waits_for_events_is_not_slow() {
        let begin = Instant::now();
        let later = begin + Duration::from_secs(3600);
        for (wait, took) in [(true, None), (false, Some(later - begin))] {
            let timing = Timing::of(&Request::Events { from: 0, wait }, begin);
            assert_eq!(timing.took(later), took, "{wait}");
            assert_eq!(timing.slow(later).is_some(), !wait, "{wait}");
        }
    }
}
