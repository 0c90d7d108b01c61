//! How long a frame takes at a rate.

use crate::units::Rate;

/// The times that frames take at a rate, which add up exactly: what is cut off of one nanosecond is part
/// of the next frame's time.
#[derive(Clone, Debug)]
pub struct TransmitTime {
    per_frame: f64,
    per_byte: f64,
    fraction: f64,
}

impl TransmitTime {
    /// At a rate, which is positive. `overhead`: bytes that each frame takes beside its own, where bits
    /// are counted.
    pub fn new(rate: Rate, overhead: u32) -> TransmitTime {
        let (per_frame, per_byte) = match rate {
            Rate::Packets(pps) => (1e9 / pps, 0.0),
            Rate::Bits(bps) => (f64::from(overhead) * 8e9 / bps, 8e9 / bps),
        };
        TransmitTime { per_frame, per_byte, fraction: 0.0 }
    }

    /// Nanoseconds that the next frame takes, which has so many bytes.
    #[inline]
    pub fn of(&mut self, length: usize) -> u64 {
        let time = self.fraction + self.per_frame + self.per_byte * length as f64;
        let whole = time as u64;
        self.fraction = time - whole as f64;
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bits_are_counted_with_what_goes_with_a_frame() {
        // A frame of 60 bytes takes 672 bits of Ethernet, with its CRC, preamble and gap.
        let mut time = TransmitTime::new(Rate::Bits(1e9), 24);
        assert_eq!([time.of(60), time.of(1514)], [672, 12_304]);
        assert_eq!(TransmitTime::new(Rate::Bits(1e9), 0).of(125), 1000);
    }

    proptest! {
        #[test]
        fn times_add_up(pps in 0.1f64..1e8, frames in 1u32..2000) {
            let mut time = TransmitTime::new(Rate::Packets(pps), 0);
            let sum: u64 = (0..frames).map(|_| time.of(60)).sum();
            let exact = f64::from(frames) * 1e9 / pps;
            prop_assert!((sum as f64 - exact).abs() < 1.0 + exact * 1e-12, "{sum} of {exact}");
        }

        #[test]
        fn the_split_into_frames_makes_no_difference(
            bps in 1e3f64..1e11, lengths in proptest::collection::vec(1usize..9000, 1..200),
        ) {
            let mut time = TransmitTime::new(Rate::Bits(bps), 0);
            let sum: u64 = lengths.iter().map(|&length| time.of(length)).sum();
            let exact = lengths.iter().sum::<usize>() as f64 * 8e9 / bps;
            prop_assert!((sum as f64 - exact).abs() < 1.0 + exact * 1e-12, "{sum} of {exact}");
        }
    }
}
