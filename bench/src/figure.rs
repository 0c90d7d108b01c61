//! What one run of an experiment gives.

use std::iter::Sum;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::roles::Count;
use crate::usage::Usage;

/// A figure in the experiment's unit and, where it was measured, what it took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figure {
    pub value: f64,
    pub spent: Option<Spent>,
    /// Ticks of the time-stamp counter that go by for each packet.
    pub cycles: Option<f64>,
    pub percentiles: Option<Percentiles>,
    /// Percent of what was sent that did not arrive.
    pub lost: Option<f64>,
    /// Packets a second that have arrived of a load beside it.
    pub load: Option<f64>,
}

impl Figure {
    /// With what was lost of so many millions a second that were sent. Each side counts for a time of its own: rates are
    /// compared.
    pub fn of_sent(self, sent: f64) -> Figure {
        let arrived = self.value;
        let lost = (sent > 0.0).then(|| ((1.0 - arrived / sent) * 100.0).max(0.0));
        Figure { lost, ..self }
    }
}

/// Microseconds that so many percent of the round trips took at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p99_9: f64,
}

impl Percentiles {
    /// Of nanoseconds.
    pub fn of(times: &Histogram<u64>) -> Percentiles {
        let at = |percent| times.value_at_percentile(percent) as f64 / 1e3;
        Percentiles { p50: at(50.0), p90: at(90.0), p99: at(99.0), p99_9: at(99.9) }
    }
}

impl From<f64> for Figure {
    fn from(value: f64) -> Figure {
        Figure { value, ..Figure::default() }
    }
}

impl From<&Count> for Figure {
    /// Millions of packets a second.
    fn from(count: &Count) -> Figure {
        Figure { value: count.mpps(), cycles: count.cycles_per_packet(), ..Figure::default() }
    }
}

/// What the contestant's processes spent on so many packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    pub usage: Usage,
    pub packets: f64,
}

impl Spent {
    /// Percent of the CPU time that went into the contestant's own code; nothing if no time went
    /// into anything.
    pub fn own_percent(&self) -> Option<f64> {
        self.usage.user_percent()
    }

    /// Nanoseconds of CPU time for each packet, the kernel's work among it.
    pub fn cpu_ns_per_packet(&self) -> Option<f64> {
        let total = self.usage.user + self.usage.system;
        (self.packets > 0.0).then(|| total as f64 / self.packets)
    }

    /// Nanoseconds of the contestant's own code for each packet.
    pub fn own_ns_per_packet(&self) -> Option<f64> {
        (self.packets > 0.0).then(|| self.usage.user as f64 / self.packets)
    }
}

/// The kernel tells user time from its own by looking now and then, so one run says little.
impl Sum for Spent {
    fn sum<I: Iterator<Item = Spent>>(runs: I) -> Spent {
        runs.fold(Spent::default(), |all, run| Spent {
            usage: all.usage + run.usage,
            packets: all.packets + run.packets,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up_to_a_share_and_a_price() {
        let run = Spent { usage: Usage { user: 500, system: 9500 }, packets: 100.0 };
        let idle = Spent::default();
        let spent: Spent = [run, idle, run].into_iter().sum();
        assert_eq!(spent.own_percent(), Some(5.0));
        assert_eq!(spent.own_ns_per_packet(), Some(5.0));
        assert_eq!(spent.cpu_ns_per_packet(), Some(100.0));
        assert_eq!((idle.own_percent(), idle.own_ns_per_packet()), (None, None));
    }
}
