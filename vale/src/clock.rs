//! What time it is for a bridge: coarse, monotonic, and looked at a few times a second only.

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since some fixed moment.
pub type Millis = u64;

/// Where a bridge gets its time from. A test gives it a clock of its own, and never sleeps.
pub struct Clock(Box<dyn Fn() -> Millis + Send>);

impl Clock {
    /// A clock that shows what `now` returns. It must not go back.
    pub fn new(now: impl Fn() -> Millis + Send + 'static) -> Clock {
        Clock(Box::new(now))
    }

    pub(crate) fn now(&self) -> Millis {
        (self.0)()
    }
}

/// The kernel's, to about four milliseconds, without a system call.
impl Default for Clock {
    fn default() -> Self {
        Clock::new(|| {
            let now = clock_gettime(ClockId::MonotonicCoarse);
            now.tv_sec as Millis * 1000 + now.tv_nsec as Millis / 1_000_000
        })
    }
}
