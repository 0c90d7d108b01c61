//! CPU time, split between a program's own code and the kernel's work.
//!
//! The kernel's part includes softirqs that run while the program has the CPU: a veth pair's
//! receiver is served by the sender's system calls.

use std::iter::Sum;
use std::ops::{Add, Sub};
use std::{fs, io};

use rustix::param::clock_ticks_per_second;
use serde::{Deserialize, Serialize};

use crate::sys;

/// Nanoseconds of CPU time of all threads of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub user: u64,
    pub system: u64,
}

impl Usage {
    /// What this process has used.
    pub fn mine() -> io::Result<Usage> {
        let usage = sys::usage()?;
        let nanoseconds =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Ok(Usage { user: nanoseconds(usage.ru_utime), system: nanoseconds(usage.ru_stime) })
    }

    /// What process `pid` has used, in steps of a clock tick (10 ms).
    pub fn of(pid: u32) -> io::Result<Usage> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let tick = 1_000_000_000 / clock_ticks_per_second();
        let [user, system] = ticks(&stat)
            .ok_or_else(|| io::Error::other(format!("no times in /proc/{pid}/stat: {stat:?}")))?;
        Ok(Usage { user: user * tick, system: system * tick })
    }

    /// The program's own part, in percent; nothing when no time was counted.
    pub fn user_percent(&self) -> Option<f64> {
        let total = self.user + self.system;
        (total > 0).then(|| self.user as f64 * 100.0 / total as f64)
    }
}

impl Sub for Usage {
    type Output = Usage;

    fn sub(self, earlier: Usage) -> Usage {
        // The kernel estimates the split, and may take a little of one part back.
        Usage {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

impl Add for Usage {
    type Output = Usage;

    fn add(self, other: Usage) -> Usage {
        Usage { user: self.user + other.user, system: self.system + other.system }
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Usage>>(usages: I) -> Usage {
        usages.fold(Usage::default(), Usage::add)
    }
}

/// `utime` and `stime` of a `/proc/PID/stat`: the 12th and 13th field behind the program's name,
/// which may hold anything but ends with the last parenthesis.
fn ticks(stat: &str) -> Option<[u64; 2]> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some([fields.next()?.parse().ok()?, fields.next()?.parse().ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let stat = "77 (a) 1 (b) S 1 2 3 4 5 6 7 8 9 10 140 60 0 0 20 0 1 0";
        assert_eq!(ticks(stat), Some([140, 60]));
        assert_eq!(ticks("77 (a) S 1"), None);
    }

    #[test]
    fn the_share_is_that_of_what_was_counted() {
        assert_eq!(Usage { user: 5, system: 95 }.user_percent(), Some(5.0));
        assert_eq!(Usage::default().user_percent(), None);
        let (later, earlier) = (Usage { user: 4, system: 9 }, Usage { user: 5, system: 2 });
        assert_eq!(later - earlier, Usage { user: 0, system: 7 });
    }
}
