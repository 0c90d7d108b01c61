//! CLOCK_TAI, by which frames have their times, and the time of day.

use rustix::time::{ClockId, DynamicClockId, clock_gettime, clock_gettime_dynamic};

/// Seconds that CLOCK_TAI is ahead of the time of day: of [timestamps](crate::RxFrame::timestamp)
/// by that clock they are to be subtracted for a time since 1970. 0 where nothing has told the
/// kernel of leap seconds.
///
/// ```
/// # let _monitored = ringway_doc::open("vale0:a")?;
/// # use ringway_doc as Port;
/// use std::time::{Duration, UNIX_EPOCH};
/// use ringway::tai_ahead;
///
/// let mut port = Port::open("vale0:a/t")?;
/// for frame in port.rx(0).batch(64) {
///     let tai = Duration::from_nanos(frame.timestamp().map_or(0, u64::from));
///     let ahead = Duration::from_secs(tai_ahead().unsigned_abs());
///     println!("{:?}", UNIX_EPOCH + tai.saturating_sub(ahead));
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
pub fn tai_ahead() -> i64 {
    const SECOND: i64 = 1_000_000_000;
    let real = clock_gettime(ClockId::Realtime);
    let tai = clock_gettime_dynamic(DynamicClockId::Tai).unwrap_or(real);
    // Read one after the other: rounded.
    let ahead = (tai.tv_sec - real.tv_sec) * SECOND + tai.tv_nsec - real.tv_nsec;
    (ahead + SECOND / 2).div_euclid(SECOND)
}
