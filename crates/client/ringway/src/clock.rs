//! CLOCK_TAI, by which frames have their times, and the time of day.

use rustix::time::{ClockId, DynamicClockId, clock_gettime, clock_gettime_dynamic};

/// Seconds that CLOCK_TAI is ahead of the time of day: of [timestamps](crate::RxFrame::timestamp)
/// by that clock they are to be subtracted for a time since 1970. 0 where nothing has told the
/// kernel of leap seconds.
pub fn tai_ahead() -> i64 {
    const SECOND: i64 = 1_000_000_000;
    let real = clock_gettime(ClockId::Realtime);
    let tai = clock_gettime_dynamic(DynamicClockId::Tai).unwrap_or(real);
    // Read one after the other: rounded.
    let ahead = (tai.tv_sec - real.tv_sec) * SECOND + tai.tv_nsec - real.tv_nsec;
    (ahead + SECOND / 2).div_euclid(SECOND)
}
