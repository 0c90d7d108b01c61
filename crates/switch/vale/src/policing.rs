//! How much of what a port sends goes on: frames over its rate are dropped.

use ringway_fastpath::SEGMENT_HEADERS;
use ringway_switch_port::{Burst, Frame, FrameStatus};

use crate::{bucket::Bucket, vnet::further_segments};

impl Bucket {
    /// Marks the frames that are too many; if `under_way`, not the first, of which others have got a part already.
    /// Those that go on are [paid](Self::pay) for when they do.
    #[inline(never)]
    pub fn check(&mut self, burst: &mut Burst<'_>, under_way: bool) {
        let mut left = self.left();
        for at in usize::from(under_way)..burst.frames.len() {
            let Some(frame) = burst.frames.get(at).filter(|f| f.status == FrameStatus::Fine) else {
                continue;
            };
            let bytes = wire_bytes(frame, burst) as i64;
            if bytes <= left || left >= self.burst() as i64 {
                left -= bytes;
            } else if let Some(frame) = burst.frames.get_mut(at) {
                frame.status = FrameStatus::OverRate;
            }
        }
    }

    /// These frames of a burst are done with.
    #[inline(never)]
    pub fn pay(&mut self, burst: &Burst<'_>, sent: usize) {
        let fine = burst.frames.iter().take(sent).filter(|f| f.status == FrameStatus::Fine);
        self.take(fine.map(|frame| wire_bytes(frame, burst)).sum());
    }
}

/// Bytes that a frame has on a wire, cut up if it is to be.
fn wire_bytes(frame: &Frame, burst: &Burst<'_>) -> u64 {
    let header = u32::from(burst.source.header_len);
    let bytes = u64::from(frame.len.saturating_sub(header));
    if header == 0 {
        return bytes;
    }
    bytes + u64::from(further_segments(frame, burst)) * u64::from(SEGMENT_HEADERS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bucket::RateLimit, clock::Micros};
    use proptest::prelude::*;
    use ringway_switch_port::Source;
    use ringway_vnet::Header;
    use std::cell::Cell;

    thread_local! {
        static NOW: Cell<Micros> = const { Cell::new(0) };
    }

    fn bucket(bits_per_second: u64, burst_bytes: u64) -> Bucket {
        let limit = RateLimit { bits_per_second, burst_bytes };
        Bucket::new(limit.limit(), || NOW.get())
    }

    /// Which of frames of these lengths pass.
    fn pass(bucket: &mut Bucket, lengths: &[u32]) -> Vec<bool> {
        let mut burst = Burst::default();
        for len in lengths {
            burst.end_frame();
            burst.frames.last_mut().unwrap().len = *len;
        }
        bucket.check(&mut burst, false);
        bucket.pay(&burst, lengths.len());
        burst.frames.iter().map(|frame| frame.status == FrameStatus::Fine).collect()
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        NOW.set(5_000_000);
        // A byte each microsecond.
        let mut bucket = bucket(8_000_000, 1000);
        assert_eq!(pass(&mut bucket, &[600, 600, 400, 1]), [true, false, true, false]);
        NOW.set(5_000_100);
        assert_eq!(pass(&mut bucket, &[60, 60, 40]), [true, false, true]);
        NOW.set(9_000_000);
        assert_eq!(pass(&mut bucket, &[500, 500, 1]), [true, true, false], "a burst, however long");
    }

    #[test]
    fn a_frame_longer_than_the_burst_passes_and_is_paid_for() {
        NOW.set(0);
        let mut bucket = bucket(8_000_000, 1000);
        assert_eq!(pass(&mut bucket, &[5000, 60]), [true, false]);
        for (now, passes) in [(3000, false), (4059, false), (4060, true)] {
            NOW.set(now);
            assert_eq!(pass(&mut bucket, &[60]), [passes], "at {now}");
        }
        NOW.set(5059);
        assert_eq!(pass(&mut bucket, &[5000]), [false], "it is not full");
    }

    /// Behind a virtio-net header, what is to be cut up counts as it is on a wire.
    #[test]
    fn segments_have_headers() {
        let bytes = |gso_type, gso_size, len: usize| {
            let header = Header { gso_type, gso_size, ..Header::default() }.emit();
            let mut packet = [&header[..], &vec![0; len]].concat();
            let source = Source { header_len: 12, ..Source::default() };
            let mut burst = Burst::default().recycle(source);
            burst.push_private(&mut packet);
            burst.end_frame();
            burst.read_headers();
            wire_bytes(&burst.frames[0], &burst)
        };
        assert_eq!(bytes(0, 0, 1514), 1514);
        assert_eq!(bytes(0, 700, 1514), 1514, "a size without a type");
        // TCP: 10 segments of 1448 bytes.
        assert_eq!(bytes(1, 1448, 66 + 14480), 10 * 1514);
        assert_eq!(bytes(1, 0, 9000), 9000, "nonsense");
    }

    #[test]
    fn a_frame_is_paid_for_once_when_it_goes_on() {
        NOW.set(0);
        let mut bucket = bucket(8_000_000, 1000);
        let mut burst = Burst::default();
        for _ in 0..3 {
            burst.end_frame();
            burst.frames.last_mut().unwrap().len = 600;
        }
        let mut first = burst.private(&mut Vec::new()).frames;
        bucket.check(&mut burst, false);
        bucket.pay(&burst, 0);
        std::mem::swap(&mut burst.frames, &mut first);
        bucket.check(&mut burst, false);
        bucket.pay(&burst, 1);
        let statuses =
            |burst: &Burst<'_>| burst.frames.iter().map(|f| f.status).collect::<Vec<_>>();
        let (fine, over) = (FrameStatus::Fine, FrameStatus::OverRate);
        assert_eq!(statuses(&burst), [fine, over, over]);
        // A frame that has gone a part of its way goes on.
        burst.frames.iter_mut().for_each(|f| (f.status, f.len) = (fine, 600));
        bucket.check(&mut burst, true);
        assert_eq!(statuses(&burst), [fine, over, over]);
    }

    proptest! {
        /// Against a bucket that is filled by fractions: whatever comes when, the same passes.
        #[test]
        fn what_passes_is_what_a_plain_bucket_lets_pass(
            bits in prop_oneof![8u64..10_000, 10_000u64..1_000_000_000_000],
            burst in 1u64..200_000,
            begin in prop_oneof![Just(0u64), 0u64..1 << 50],
            steps in prop::collection::vec((prop_oneof![Just(0u64), 0u64..2000, 0u64..10_000_000], 1u32..70_000), 1..200),
        ) {
            NOW.set(begin);
            let mut bucket = bucket(bits, burst);
            // In 8000ths of a byte: a bit of a millisecond.
            const UNIT: i128 = 8_000_000;
            let mut level = burst as i128 * UNIT;
            let mut passed = 0u128;
            for (later, len) in steps {
                NOW.set(NOW.get() + later);
                level = (level + later as i128 * bits as i128).min(burst as i128 * UNIT);
                let passes = pass(&mut bucket, &[len])[0];
                let needed = i128::from(len) * UNIT;
                // The bucket has whole bytes, and may not have begun with one.
                let slack = 2 * UNIT;
                let full = burst as i128 * UNIT;
                if level >= needed + slack || level >= full && passed == 0 {
                    prop_assert!(passes, "{} of {} are there for {}", level / UNIT, burst, len);
                } else if level + slack < needed && level + slack < full {
                    prop_assert!(!passes, "{} of {} are there for {}", level / UNIT, burst, len);
                }
                if passes {
                    level -= needed;
                    passed += u128::from(len);
                }
            }
            let time = u128::from(NOW.get() - begin);
            let most = u128::from(burst) + time * u128::from(bits) / 8_000_000 + 70_000;
            prop_assert!(passed <= most, "{} of {}", passed, most);
        }
    }
}
