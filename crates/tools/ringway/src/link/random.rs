//! Random numbers that can be had again: the same seed gives the same ones.

/// A generator of random numbers.
#[derive(Clone, Debug)]
pub struct Random(fastrand::Rng);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(fastrand::Rng::with_seed(seed))
    }

    /// At least 0, and less than 1.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.0.u64(..) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Whether something happens that has this probability. What never happens takes no number.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.uniform() < probability
    }

    /// Of the exponential distribution with the mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    /// Of the normal distribution with the mean 0 and the deviation 1: Box and Muller's method.
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Of the Pareto distribution with the least value 1.
    pub fn pareto(&mut self, shape: f64) -> f64 {
        (self.exponential() / shape).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: usize = 200_000;

    /// The share of samples up to each bound.
    fn shares(mut draw: impl FnMut(&mut Random) -> f64, bounds: [f64; 4]) -> [f64; 4] {
        let mut random = Random::new(7);
        let samples: Vec<f64> = (0..SAMPLES).map(|_| draw(&mut random)).collect();
        bounds.map(|bound| samples.iter().filter(|s| **s <= bound).count() as f64 / SAMPLES as f64)
    }

    fn assert_close(got: [f64; 4], wanted: [f64; 4]) {
        for (got, wanted) in got.into_iter().zip(wanted) {
            // Five deviations of a share of so many samples.
            let slack = 5.0 * (wanted * (1.0 - wanted) / SAMPLES as f64).sqrt();
            assert!((got - wanted).abs() <= slack, "{got} for {wanted}");
        }
    }

    /// Held against the distributions' functions, at four places.
    #[test]
    fn distributions_are_what_they_are_called() {
        let at = [0.1, 0.25, 0.5, 0.9];
        assert_close(shares(Random::uniform, at), at);
        let at = [0.1, 0.5, 1.0, 3.0];
        assert_close(shares(Random::exponential, at), at.map(|x: f64| 1.0 - f64::exp(-x)));
        let at = [-1.959_964, -0.674_490, 0.0, 1.281_552];
        assert_close(shares(Random::normal, at), [0.025, 0.25, 0.5, 0.9]);
        let at = [1.1, 1.5, 2.0, 5.0];
        assert_close(shares(|r| r.pareto(2.5), at), at.map(|x: f64| 1.0 - x.powf(-2.5)));
    }

    #[test]
    fn a_seed_gives_the_same_numbers_again() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [(); 100].map(|()| random.uniform().to_bits())
        };
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(6));
    }

    #[test]
    fn what_never_happens_takes_no_number() {
        let mut random = Random::new(1);
        let before = random.clone().uniform();
        assert!(!random.chance(0.0));
        assert_eq!(random.uniform(), before);
        assert!((0..1000).all(|_| random.chance(1.0)));
    }
}
