//! Which frames a link loses.

use super::random::Random;

/// How frames are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    #[default]
    None,
    /// Each with the same probability.
    Random(f64),
    /// Each bit is wrong with that probability, and each frame with a wrong bit is lost.
    BitErrors(f64),
    /// In bursts, by the model of Gilbert and Elliott.
    Burst(Burst),
}

/// A link that is good or bad, and may change before each frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// The probability that a good link becomes bad.
    pub begins: f64,
    /// The probability that a bad link becomes good.
    pub ends: f64,
    /// The probability that a bad link loses a frame.
    pub lost_bad: f64,
    /// The probability that a good link loses a frame.
    pub lost_good: f64,
}

impl Loss {
    /// The share of frames of this length that is lost in the long run.
    pub fn expected(&self, length: usize) -> f64 {
        match *self {
            Loss::None => 0.0,
            Loss::Random(probability) => probability,
            Loss::BitErrors(rate) => any_of(8 * length, rate),
            Loss::Burst(Burst { begins, ends, lost_bad, lost_good }) => {
                let bad = if begins > 0.0 { begins / (begins + ends) } else { 0.0 };
                bad * lost_bad + (1.0 - bad) * lost_good
            }
        }
    }
}

/// The probability that something happens at least once in so many trials.
fn any_of(trials: usize, probability: f64) -> f64 {
    -(trials as f64 * (-probability).ln_1p()).exp_m1()
}

/// Loses frames, one way or the other.
#[derive(Clone, Debug)]
pub struct LossModel {
    loss: Loss,
    is_bad: bool,
}

impl LossModel {
    /// Begins with a good link.
    pub fn new(loss: Loss) -> LossModel {
        LossModel { loss, is_bad: false }
    }

    /// Whether the next frame is lost.
    #[inline]
    pub fn loses(&mut self, length: usize, random: &mut Random) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::Random(probability) => random.chance(probability),
            Loss::BitErrors(rate) => random.chance(any_of(8 * length, rate)),
            Loss::Burst(burst) => {
                let change = if self.is_bad { burst.ends } else { burst.begins };
                self.is_bad ^= random.chance(change);
                random.chance(if self.is_bad { burst.lost_bad } else { burst.lost_good })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lost(loss: Loss, frames: usize, length: usize) -> Vec<bool> {
        let (mut model, mut random) = (LossModel::new(loss), Random::new(11));
        (0..frames).map(|_| model.loses(length, &mut random)).collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64
    }

    #[test]
    fn nothing_and_everything_can_be_lost() {
        assert_eq!(share(&lost(Loss::None, 1000, 60)), 0.0);
        assert_eq!(share(&lost(Loss::Random(1.0), 1000, 60)), 1.0);
        assert_eq!(share(&lost(Loss::BitErrors(0.0), 1000, 60)), 0.0);
        assert_eq!(share(&lost(Loss::BitErrors(1.0), 1000, 60)), 1.0);
    }

    #[test]
    fn longer_frames_have_more_bits_to_be_wrong() {
        let loss = Loss::BitErrors(1e-5);
        assert!((loss.expected(1250) - 0.095_163).abs() < 1e-5, "1 - (1 - 1e-5)^10000");
        for length in [60, 1250] {
            let (got, wanted) = (share(&lost(loss, 200_000, length)), loss.expected(length));
            assert!((got - wanted).abs() < 5.0 * (wanted / 200_000.0).sqrt(), "{got} for {wanted}");
        }
    }

    #[test]
    fn bursts_are_as_long_as_the_link_is_bad() {
        let loss = Loss::Burst(Burst { begins: 0.01, ends: 0.2, lost_bad: 1.0, lost_good: 0.0 });
        let lost = lost(loss, 400_000, 60);
        let bursts = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
        let length = lost.iter().filter(|lost| **lost).count() as f64 / bursts as f64;
        assert!((length - 5.0).abs() < 0.3, "{length} frames, and not 1 / 0.2");
        assert!((share(&lost) - 0.01 / 0.21).abs() < 0.004, "{}", share(&lost));
    }

    proptest! {
        #[test]
        fn in_the_long_run_it_is_what_was_asked(
            begins in 0.001f64..0.2, ends in 0.05f64..1.0, lost_bad in 0.0f64..=1.0, lost_good in 0.0f64..0.2,
        ) {
            let loss = Loss::Burst(Burst { begins, ends, lost_bad, lost_good });
            let (got, wanted) = (share(&lost(loss, 100_000, 60)), loss.expected(60));
            // Neighbours depend on each other: fewer frames than there are count.
            let independent = 100_000.0 * (begins + ends).min(1.0) / 2.0;
            let slack = 6.0 * (0.25 / independent).sqrt();
            prop_assert!((got - wanted).abs() <= slack, "{got} for {wanted}");
        }
    }
}
