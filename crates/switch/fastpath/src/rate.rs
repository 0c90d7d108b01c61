//! How much a port may send: a rate and a burst, as the worker and the program reckon with them.
//!
//! Time is counted in what it earns: bytes, or frames, at the rate since the clock's beginning. A bucket is one
//! number, how much of that is spent. The number is no more than a burst behind what is earned, so what
//! was not sent in time is forfeited. It may be ahead: a frame longer than the burst passes when the bucket is
//! full, and leaves a debt.

/// Units that a nanosecond earns: whole ones, and 2^64ths of one. A multiplication each for the time that has
/// passed, and no division.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    pub(crate) whole: u64,
    pub(crate) fraction: u64,
}

impl Rate {
    const SECOND: u64 = 1_000_000_000;

    /// So many units a second.
    pub fn per_second(units: u64) -> Rate {
        Rate::new(units, Rate::SECOND)
    }

    /// Bytes, by bits a second.
    pub fn of_bits(bits_per_second: u64) -> Rate {
        Rate::new(bits_per_second, 8 * Rate::SECOND)
    }

    fn new(units: u64, nanoseconds: u64) -> Rate {
        // Rounded up, so that a time that earns whole units earns all of them.
        let fraction = (u128::from(units % nanoseconds) << 64).div_ceil(u128::from(nanoseconds));
        Rate { whole: units / nanoseconds, fraction: fraction as u64 }
    }

    /// What so many nanoseconds earn. It wraps around.
    #[inline]
    pub fn earned(self, nanoseconds: u64) -> u64 {
        let part = (u128::from(nanoseconds) * u128::from(self.fraction)) >> 64;
        nanoseconds.wrapping_mul(self.whole).wrapping_add(part as u64)
    }
}

/// What a port may send: so much for as long as it likes, and a burst at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub rate: Rate,
    pub burst: u64,
}

/// Bytes of headers that each further segment of a frame that is not cut up yet is taken to have: of Ethernet,
/// IPv4 and TCP with its timestamps.
pub const SEGMENT_HEADERS: u32 = 66;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_second_earns_the_rate() {
        for units in [1, 999, 1_000_000_000, 12_500_000_000, 123_456_789_012] {
            let earned = Rate::per_second(units).earned(1_000_000_000);
            assert_eq!(earned, units);
        }
        assert_eq!(Rate::of_bits(8_000_000_000), Rate::per_second(1_000_000_000));
        assert_eq!(Rate::of_bits(4).earned(20_000_000_000), 10);
    }

    proptest! {
        /// Against whole numbers of any length: never less, and more by what 2^64ths are too coarse for.
        #[test]
        fn what_is_earned_is_exact(bits in 1u64..=1 << 50, ns in any::<u64>()) {
            let exact = u128::from(bits) * u128::from(ns) / 8_000_000_000;
            let earned = Rate::of_bits(bits).earned(ns);
            let more = earned.wrapping_sub(exact as u64);
            prop_assert!(more <= 1, "{} for {}", earned, exact);
        }
    }
}
