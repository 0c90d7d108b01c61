//! The time, which a simulation tells.

use std::time::{Duration, Instant};

#[cfg(feature = "faults")]
thread_local! {
    static TOLD: std::cell::Cell<Option<Instant>> = const { std::cell::Cell::new(None) };
}

/// What time it is.
pub(crate) fn now() -> Instant {
    #[cfg(feature = "faults")]
    if let Some(told) = TOLD.get() {
        return told;
    }
    Instant::now()
}

/// Waits so long; told time goes on at once.
pub(crate) fn sleep(time: Duration) {
    #[cfg(feature = "faults")]
    if let Some(told) = TOLD.get() {
        return TOLD.set(Some(told + time));
    }
    std::thread::sleep(time);
}

/// From now on it is that time on this thread, until it is told another.
#[cfg(feature = "faults")]
pub fn tell(now: Instant) {
    TOLD.set(Some(now));
}
