//! When packets were received.

use std::time::{SystemTime, UNIX_EPOCH};

use ringway::tai_ahead;

use crate::abi::pcap_pkthdr;

const SECOND: i64 = 1_000_000_000;

/// Makes headers with times in them.
pub struct Clock {
    nanoseconds: bool,
    /// What the clock of the kernel's timestamps, CLOCK_TAI, is ahead of the time of day: seconds.
    tai_ahead: i64,
}

impl Clock {
    /// `stamps` where there will be timestamps of the kernel's.
    pub fn new(nanoseconds: bool, stamps: bool) -> Clock {
        Clock { nanoseconds, tai_ahead: if stamps { tai_ahead() } else { 0 } }
    }

    /// A header with the time of now, for what has just been found in a ring.
    pub fn now(&self) -> pcap_pkthdr {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        pcap_pkthdr {
            seconds: now.as_secs() as i64,
            fraction: self.fraction(now.subsec_nanos().into()),
            ..pcap_pkthdr::default()
        }
    }

    /// Puts in what the kernel or the NIC has said: nanoseconds of CLOCK_TAI.
    pub fn stamp(&self, header: &mut pcap_pkthdr, time: u64) {
        let time = time as i64;
        header.seconds = time.div_euclid(SECOND) - self.tai_ahead;
        header.fraction = self.fraction(time.rem_euclid(SECOND));
    }

    fn fraction(&self, nanoseconds: i64) -> i64 {
        if self.nanoseconds { nanoseconds } else { nanoseconds / 1000 }
    }
}

/// Puts in a time of day: seconds, and nanoseconds.
#[inline]
pub fn put(header: &mut pcap_pkthdr, [seconds, fraction]: [u32; 2], nanoseconds: bool) {
    header.seconds = seconds.into();
    header.fraction = if nanoseconds { fraction } else { fraction / 1000 }.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_precision_that_is_asked_for() {
        for (nanoseconds, fraction) in [(false, 123_456), (true, 123_456_789)] {
            let mut header = pcap_pkthdr::default();
            put(&mut header, [1_700_000_000, 123_456_789], nanoseconds);
            assert_eq!((header.seconds, header.fraction), (1_700_000_000, fraction));
        }
    }

    #[test]
    fn kernels_timestamps_are_times_of_day() {
        for (nanoseconds, fraction) in [(false, 123_456), (true, 123_456_789)] {
            let clock = Clock { nanoseconds, tai_ahead: 37 };
            let mut header = clock.now();
            clock.stamp(&mut header, 1_700_000_037_123_456_789);
            assert_eq!((header.seconds, header.fraction), (1_700_000_000, fraction));
        }
    }
}
