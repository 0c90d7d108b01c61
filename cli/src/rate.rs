//! Paces a sender: a token bucket that may be overdrawn by one burst.
//!
//! The sender sends a whole burst when the balance is not negative, pays for it, and waits for an
//! event or until the balance is back at zero. So bursts leave in one piece and the average is
//! exact. What a late wake-up missed is sent afterwards, up to [`CATCH_UP`].

use std::time::{Duration, Instant};

/// Missed time that may be made up for.
const CATCH_UP: Duration = Duration::from_millis(10);

/// Lets through so many units (packets or bits) a second.
#[derive(Clone, Debug)]
pub struct Pacer {
    per_second: f64,
    balance: f64,
    seen: Instant,
}

impl Pacer {
    /// `per_second` is positive.
    pub fn new(per_second: f64, now: Instant) -> Pacer {
        Pacer { per_second, balance: 0.0, seen: now }
    }

    /// How long to wait before the next burst; zero: send now.
    pub fn wait(&mut self, now: Instant) -> Duration {
        let passed = now.saturating_duration_since(self.seen).as_secs_f64();
        self.seen = self.seen.max(now);
        let most = self.per_second * CATCH_UP.as_secs_f64();
        self.balance = (self.balance + passed * self.per_second).min(most);
        Duration::try_from_secs_f64(-self.balance / self.per_second).unwrap_or(Duration::ZERO)
    }

    /// Pays for what was sent.
    pub fn spend(&mut self, units: f64) {
        self.balance -= units;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sends bursts for a simulated second, waking up `late` after each wait.
    fn packets_in_a_second(rate: f64, burst: f64, late: Duration) -> f64 {
        let start = Instant::now();
        let mut now = start;
        let mut pacer = Pacer::new(rate, now);
        let mut sent = 0.0;
        while now < start + Duration::from_secs(1) {
            let wait = pacer.wait(now);
            if wait.is_zero() {
                pacer.spend(burst);
                sent += burst;
            } else {
                now += wait + late;
            }
        }
        sent
    }

    #[test]
    fn the_first_burst_leaves_at_once_and_whole() {
        let now = Instant::now();
        let mut pacer = Pacer::new(1000.0, now);
        assert_eq!(pacer.wait(now), Duration::ZERO);
        pacer.spend(100.0);
        assert_eq!(pacer.wait(now), Duration::from_millis(100));
        assert_eq!(pacer.wait(now + Duration::from_millis(100)), Duration::ZERO);
    }

    #[test]
    fn a_long_pause_is_not_made_up_for() {
        let start = Instant::now();
        let mut pacer = Pacer::new(1e6, start);
        let later = start + Duration::from_secs(60);
        let mut sent = 0.0;
        while pacer.wait(later).is_zero() {
            pacer.spend(1000.0);
            sent += 1000.0;
        }
        assert!(sent <= 1e6 * CATCH_UP.as_secs_f64() + 1000.0, "{sent}");
    }

    #[test]
    fn a_clock_that_steps_back_does_no_harm() {
        let start = Instant::now();
        let mut pacer = Pacer::new(1000.0, start + Duration::from_secs(1));
        pacer.spend(1.0);
        assert_eq!(pacer.wait(start), Duration::from_millis(1));
    }

    proptest! {
        #[test]
        fn the_average_is_exact_to_one_burst(
            rate in 10.0f64..1e7, burst in 1.0f64..512.0, late_us in 0u64..1000,
        ) {
            let sent = packets_in_a_second(rate, burst, Duration::from_micros(late_us));
            let slack = burst + rate * 0.002 + 1.0;
            prop_assert!((sent - rate).abs() <= slack, "{sent} of {rate}");
        }
    }
}
