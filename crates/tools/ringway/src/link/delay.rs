//! How long frames are on their way.

use super::random::Random;

/// A distribution of times, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Delay {
    Constant(f64),
    Uniform {
        min: f64,
        max: f64,
    },
    /// Of which nothing is less than 0.
    Normal {
        mean: f64,
        deviation: f64,
    },
    Exponential {
        min: f64,
        mean: f64,
    },
    /// With a long tail: the least value is more than 0, and the mean more than that.
    Pareto {
        min: f64,
        mean: f64,
    },
}

impl Default for Delay {
    fn default() -> Delay {
        Delay::Constant(0.0)
    }
}

/// No frame is on its way for longer than ten minutes.
const MOST: f64 = 600e9;

impl Delay {
    /// A frame's time.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        let time = match *self {
            Delay::Constant(time) => time,
            Delay::Uniform { min, max } => min + (max - min) * random.uniform(),
            Delay::Normal { mean, deviation } => mean + deviation * random.normal(),
            Delay::Exponential { min, mean } => min + (mean - min) * random.exponential(),
            Delay::Pareto { min, mean } => min * random.pareto(mean / (mean - min)),
        };
        time.clamp(0.0, MOST).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLES: usize = 100_000;

    fn sorted(delay: Delay) -> Vec<f64> {
        let mut random = Random::new(3);
        let mut times: Vec<f64> = (0..SAMPLES).map(|_| delay.draw(&mut random) as f64).collect();
        times.sort_by(f64::total_cmp);
        times
    }

    fn mean(times: &[f64]) -> f64 {
        times.iter().sum::<f64>() / times.len() as f64
    }

    #[test]
    fn constant_is_constant() {
        let times = sorted(Delay::Constant(1e6));
        assert_eq!([times[0], times[SAMPLES - 1]], [1e6; 2]);
        assert_eq!(sorted(Delay::default())[SAMPLES - 1], 0.0);
    }

    #[test]
    fn nothing_comes_before_it_was_sent_or_after_ten_minutes() {
        assert_eq!(sorted(Delay::Normal { mean: 0.0, deviation: 1e6 })[0], 0.0);
        let late = sorted(Delay::Pareto { min: 1e9, mean: 1.000_1e12 });
        assert_eq!(late[SAMPLES - 1], MOST);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, ..Default::default() })]
        #[test]
        fn least_values_means_and_medians_are_what_was_asked(min in 1e3f64..1e6, more in 1e3f64..1e6) {
            let close = |got: f64, wanted: f64, by: f64| (got - wanted).abs() <= by * wanted;
            let times = sorted(Delay::Uniform { min, max: min + more });
            prop_assert!(times[0] >= min - 1.0 && times[SAMPLES - 1] <= min + more + 1.0);
            prop_assert!(close(mean(&times), min + more / 2.0, 0.02));
            let times = sorted(Delay::Exponential { min, mean: min + more });
            prop_assert!(times[0] >= min - 1.0 && close(mean(&times), min + more, 0.03));
            let wanted = min + more * std::f64::consts::LN_2;
            prop_assert!(close(times[SAMPLES / 2], wanted, 0.03));
            let times = sorted(Delay::Normal { mean: 10.0 * more, deviation: more });
            prop_assert!(close(times[SAMPLES / 2], 10.0 * more, 0.01));
            prop_assert!(close(times[SAMPLES * 9 / 10] - 10.0 * more, 1.281_55 * more, 0.04));
            let shape = (min + more) / more;
            let times = sorted(Delay::Pareto { min, mean: min + more });
            prop_assert!(times[0] >= min - 1.0);
            prop_assert!(close(times[SAMPLES / 2], min * 2f64.powf(1.0 / shape), 0.08));
        }
    }
}
