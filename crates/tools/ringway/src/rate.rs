//! Paces a sender: a token bucket that may be overdrawn by one burst.
//!
//! The sender sends a whole burst when the balance is not negative, pays for it, and waits for an
//! event or until the balance is back at zero. So bursts leave in one piece and the average is
//! exact. What a late wake-up missed is sent afterwards, up to [`CATCH_UP`].

use crate::units::Rate;
use std::time::{Duration, Instant};

/// Missed time that may be made up for.
const CATCH_UP: Duration = Duration::from_millis(10);

/// Lets through so many units (packets or bits) a second.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate: Rate,
    per_second: f64,
    balance: f64,
    seen: Instant,
}

impl Pacer {
    /// The rate is positive.
    pub fn new(rate: Rate, now: Instant) -> Pacer {
        let (Rate::Packets(per_second) | Rate::Bits(per_second)) = rate;
        Pacer { rate, per_second, balance: 0.0, seen: now }
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
    pub fn spend(&mut self, packets: u64, bytes: u64) {
        self.balance -= match self.rate {
            Rate::Packets(_) => packets as f64,
            Rate::Bits(_) => 8.0 * bytes as f64,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sends bursts for a simulated second, waking up `late` after each wait.
    fn packets_in_a_second(rate: f64, burst: u64, late: Duration) -> f64 {
        let start = Instant::now();
        let mut now = start;
        let mut pacer = Pacer::new(Rate::Packets(rate), now);
        let mut sent = 0.0;
        while now < start + Duration::from_secs(1) {
            let wait = pacer.wait(now);
            if wait.is_zero() {
                pacer.spend(burst, 60 * burst);
                sent += burst as f64;
            } else {
                now += wait + late;
            }
        }
        sent
    }

    #[test]
    fn the_first_burst_leaves_at_once_and_whole() {
        let now = Instant::now();
        let mut pacer = Pacer::new(Rate::Packets(1000.0), now);
        assert_eq!(pacer.wait(now), Duration::ZERO);
        pacer.spend(100, 6000);
        assert_eq!(pacer.wait(now), Duration::from_millis(100));
        assert_eq!(pacer.wait(now + Duration::from_millis(100)), Duration::ZERO);
    }

    #[test]
    fn bits_are_counted_of_whole_frames() {
        let now = Instant::now();
        let mut pacer = Pacer::new(Rate::Bits(8000.0), now);
        pacer.spend(2, 500);
        assert_eq!(pacer.wait(now), Duration::from_millis(500));
    }

    #[test]
    fn a_long_pause_is_not_made_up_for() {
        let start = Instant::now();
        let mut pacer = Pacer::new(Rate::Packets(1e6), start);
        let later = start + Duration::from_secs(60);
        let mut sent = 0.0;
        while pacer.wait(later).is_zero() {
            pacer.spend(1000, 60_000);
            sent += 1000.0;
        }
        assert!(sent <= 1e6 * CATCH_UP.as_secs_f64() + 1000.0, "{sent}");
    }

    #[test]
    fn a_clock_that_steps_back_does_no_harm() {
        let start = Instant::now();
        let mut pacer = Pacer::new(Rate::Packets(1000.0), start + Duration::from_secs(1));
        pacer.spend(1, 60);
        assert_eq!(pacer.wait(start), Duration::from_millis(1));
    }

    proptest! {
        #[test]
        fn the_average_is_exact_to_one_burst(
            rate in 10.0f64..1e7, burst in 1u64..512, late_us in 0u64..1000,
        ) {
            let sent = packets_in_a_second(rate, burst, Duration::from_micros(late_us));
            let slack = burst as f64 + rate * 0.002 + 1.0;
            prop_assert!((sent - rate).abs() <= slack, "{sent} of {rate}");
        }
    }
}
