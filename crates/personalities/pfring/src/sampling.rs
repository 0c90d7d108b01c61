//! Sampling: one packet in so many, on the average.

/// Which packets are passed on.
#[derive(Clone, Debug)]
pub struct Sampling {
    rate: u32,
    countdown: u32,
    shift: u32,
}

impl Sampling {
    /// One of `rate`; all of them if that is 0 or 1.
    pub fn new(rate: u32) -> Sampling {
        Sampling { rate, countdown: rate, shift: 0 }
    }

    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// Whether the next packet is one of them; `random` is below the rate.
    #[inline]
    pub fn takes(&mut self, random: impl FnOnce(u32) -> u32) -> bool {
        if self.rate <= 1 {
            return true;
        }
        if self.countdown > 1 {
            self.countdown -= 1;
            return false;
        }
        let next = random(self.rate);
        self.countdown = (self.rate - self.shift.min(self.rate)).saturating_add(next);
        self.shift = next;
        true
    }
}

/// Numbers that look random (xorshift, G. Marsaglia).
#[derive(Clone, Debug)]
pub struct Random(u32);

impl Random {
    pub fn new(seed: u32) -> Random {
        Random(seed | 1)
    }

    /// One below `bound`.
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        ((u64::from(self.0) * u64::from(bound)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_so_many_is_taken() {
        for rate in [0u32, 1, 2, 10, 1000] {
            let (mut sampling, mut random) = (Sampling::new(rate), Random::new(7));
            let count = 100_000 * rate.max(1) / rate.max(10);
            let packets = count.max(100_000);
            let taken = (0..packets).filter(|_| sampling.takes(|rate| random.below(rate))).count();
            let expected = packets / rate.max(1);
            assert!(
                (taken as i64 - i64::from(expected)).abs() <= 2,
                "{rate}: {taken} of {packets}"
            );
        }
    }
}
