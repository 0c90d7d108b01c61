//! What time it is for a bridge.

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since some fixed moment.
pub type Millis = u64;

/// Microseconds since some fixed moment.
pub type Micros = u64;

/// What a fine clock shows now.
pub type Fine = fn() -> Micros;

/// Where a bridge gets its time from. A test gives it a clock of its own, and never sleeps.
pub struct Clock {
    /// Monotonic, and looked at a few times a second only.
    coarse: Box<dyn Fn() -> Millis + Send>,
    /// For turns that take long.
    fine: Fine,
}

impl Clock {
    /// A clock that shows what `now` returns. It must not go back. No turn takes long by it.
    pub fn new(now: impl Fn() -> Millis + Send + 'static) -> Clock {
        Clock { coarse: Box::new(now), fine: || 0 }
    }

    /// The same, by which turns take as long as `fine` says.
    pub fn with_fine(self, fine: Fine) -> Clock {
        Clock { fine, ..self }
    }

    pub(crate) fn now(&self) -> Millis {
        (self.coarse)()
    }

    pub(crate) fn fine(&self) -> Fine {
        self.fine
    }
}

/// The kernel's: to about four milliseconds, and to the microsecond; mostly without a system call.
impl Default for Clock {
    fn default() -> Self {
        let coarse = Clock::new(|| {
            let now = clock_gettime(ClockId::MonotonicCoarse);
            now.tv_sec as Millis * 1000 + now.tv_nsec as Millis / 1_000_000
        });
        coarse.with_fine(|| {
            let now = clock_gettime(ClockId::Monotonic);
            now.tv_sec as Micros * 1_000_000 + now.tv_nsec as Micros / 1000
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_it_is_as_late_as_the_kernel_says() {
        let (coarse, fine) = (Clock::default(), Clock::default().fine());
        let nanoseconds = |clock| {
            let now = clock_gettime(clock);
            now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
        };
        let is_between = |clock, unit: u64, now: &dyn Fn() -> u64| {
            let before = nanoseconds(clock) / unit;
            let now = now();
            (before..=nanoseconds(clock) / unit).contains(&now)
        };
        assert!(is_between(ClockId::MonotonicCoarse, 1_000_000, &|| coarse.now()));
        assert!(is_between(ClockId::Monotonic, 1000, &fine));
    }

    #[test]
    fn it_shows_what_it_is_given() {
        let clock = Clock::new(|| 7).with_fine(|| 9);
        assert_eq!((clock.now(), clock.fine()()), (7, 9));
        assert_eq!(Clock::new(|| 7).fine()(), 0, "no turn takes long");
    }
}
