//! What the design promises of a path, and whether a figure keeps it.

use std::fmt;

/// A promise about an experiment's median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// At least so many millions of packets a second, and so many times what memif gives.
    Mpps { at_least: f64, memif_times: Option<f64> },
    /// At most so many cycles a packet.
    Cycles { at_most: f64 },
    /// At most so many milliseconds.
    Milliseconds { at_most: f64 },
}

impl Target {
    pub fn mpps(at_least: f64) -> Target {
        Target::Mpps { at_least, memif_times: None }
    }

    pub fn cycles(at_most: f64) -> Target {
        Target::Cycles { at_most }
    }

    pub fn milliseconds(at_most: f64) -> Target {
        Target::Milliseconds { at_most }
    }

    /// Adds the comparison with memif.
    pub fn and_memif_times(self, times: f64) -> Target {
        match self {
            Target::Mpps { at_least, .. } => Target::Mpps { at_least, memif_times: Some(times) },
            others => others,
        }
    }

    /// Whether it compares with memif.
    pub fn is_relative(&self) -> bool {
        matches!(self, Target::Mpps { memif_times: Some(_), .. })
    }

    /// Says whether `figure` keeps the promise, and by how much not. Without a `memif` figure the
    /// comparison with it is left out.
    pub fn verdict(&self, figure: f64, memif: Option<f64>) -> String {
        let (missed_by, of) = match *self {
            Target::Mpps { at_least, memif_times } => {
                let relative = memif_times.zip(memif).map_or(0.0, |(times, memif)| times * memif);
                let limit = at_least.max(relative);
                (limit - figure, limit)
            }
            Target::Cycles { at_most } | Target::Milliseconds { at_most } => {
                (figure - at_most, at_most)
            }
        };
        match missed_by > 0.0 {
            true => format!("missed by {:.0} %", (missed_by / of * 100.0).ceil()),
            false => "met".into(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Mpps { at_least, memif_times: None } => write!(f, ">= {at_least}"),
            Target::Mpps { at_least, memif_times: Some(times) } => {
                write!(f, ">= {at_least} and {times} x memif")
            }
            Target::Cycles { at_most } | Target::Milliseconds { at_most } => {
                write!(f, "<= {at_most}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harder_of_two_limits_counts() {
        let target = Target::mpps(80.0).and_memif_times(3.0);
        assert_eq!(target.verdict(90.0, Some(20.0)), "met");
        assert_eq!(target.verdict(90.0, Some(40.0)), "missed by 25 %");
        assert_eq!(target.verdict(60.0, Some(20.0)), "missed by 25 %");
        assert_eq!(target.verdict(80.0, None), "met");
    }

    #[test]
    fn fewer_cycles_are_better() {
        assert_eq!(Target::cycles(20.0).verdict(19.9, None), "met");
        assert_eq!(Target::cycles(20.0).verdict(25.0, None), "missed by 25 %");
    }
}
