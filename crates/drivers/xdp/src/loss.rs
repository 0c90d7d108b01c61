//! Why the kernel has lost a frame. It says no more than that it has (EBUSY), for a peer whose ring is full, and for
//! a peer that takes no frames of that length: the other end of a veth pair may have a smaller MTU.
//!
//! Other devices than such pairs have no other end with an MTU: what they lose had no room, also where they take nothing
//! at all, as a tap whose machine is stopped. At a pair, where a ring is full, frames of each length find room now and then. So a frame is held to be too long if none of
//! its length or longer has been taken lately: the TX ring still has what the kernel has consumed, as it was, and
//! what it has lost is marked there.

use std::borrow::Borrow;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use ringway_kring::LongestTaken;

use crate::rings::{Desc, Producer};
use crate::sys::Ring;

/// The length of a descriptor that the kernel is to pass over: longer than any chunk.
pub(crate) const PASSED_OVER: u32 = u32::MAX;

/// What is known of the lengths that the kernel takes from a TX ring.
#[derive(Debug)]
pub(crate) struct Lengths {
    /// The interface is an end of a pair.
    is_pair: bool,
    /// The longest that it has taken, of those that were looked at.
    taken: LongestTaken,
    /// How many it had consumed by then: those are not looked at again.
    looked_at: AtomicU32,
}

/// A frame that the kernel has consumed, and lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostFrame {
    pub bytes: u32,
    /// The interface is an end of a pair, and none so long has been taken lately.
    pub too_long: bool,
}

impl Lengths {
    /// None has been taken.
    pub fn none(is_pair: bool) -> Lengths {
        Lengths { is_pair, taken: LongestTaken::none(), looked_at: AtomicU32::new(0) }
    }

    /// The frame that the kernel has consumed last was lost.
    #[cold]
    pub fn lost<R: Borrow<Ring<Desc>>>(&self, tx: &Producer<Desc, R>, now: Instant) -> LostFrame {
        let (consumed, there) = (tx.consumed(), tx.size() - tx.pending());
        let new = consumed.wrapping_sub(self.looked_at.load(Relaxed)).min(there);
        let (bytes, mut at) = frame(tx, 0, there);
        for i in 0..at {
            tx.replace_consumed(i, Desc { length: 0, ..tx.peek_consumed(i) });
        }
        while at < new {
            let (length, next) = frame(tx, at, there);
            if length != PASSED_OVER {
                self.taken.taken(length);
            }
            at = next;
        }
        self.looked_at.store(consumed, Relaxed);
        let too_long = self.is_pair && !self.taken.has_taken(bytes, now);
        LostFrame { bytes, too_long }
    }
}

/// The bytes of the frame whose last descriptor is the `at`th of those that the kernel has consumed, newest first, and
/// where the one before it ends.
fn frame<R: Borrow<Ring<Desc>>>(tx: &Producer<Desc, R>, at: u32, end: u32) -> (u32, u32) {
    let (mut length, mut next) = (tx.peek_consumed(at).length, at + 1);
    while next < end {
        let part = tx.peek_consumed(next);
        // A part that does not go on is the end of another frame.
        if !part.goes_on() {
            break;
        }
        length = length.saturating_add(part.length);
        next += 1;
    }
    (length, next)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fake::FakeKernel;
    use crate::rings::{RingSizes, Rings};

    /// What the kernel has consumed, newest last; whether the last of these is too long.
    fn lost(
        rings: &mut Rings,
        kernel: &mut FakeKernel,
        lengths: &Lengths,
        sent: &[u32],
        now: Instant,
    ) -> bool {
        for length in sent {
            assert_eq!(rings.tx.free(1), 1);
            rings.tx.write(0, Desc { address: 0, length: *length, options: 0 });
            rings.tx.submit(1);
            assert_eq!(kernel.send(), 1);
            let done = rings.completion.available(1);
            rings.completion.release(done);
        }
        lengths.lost(&rings.tx, now).too_long
    }

    #[test]
    fn a_frame_is_too_long_if_none_so_long_was_taken() {
        let sizes = RingSizes { fill: 8, completion: 8, rx: 8, tx: 8 };
        let mut kernel = FakeKernel::new(sizes).unwrap();
        let mut rings = kernel.rings().unwrap();
        let (lengths, now) = (Lengths::none(true), Instant::now());
        let mut lost = |sent: &[u32]| lost(&mut rings, &mut kernel, &lengths, sent, now);
        assert!(lost(&[60, 1500, 9000]));
        // What was lost counts as nothing taken, whether it is looked at once more or not.
        assert!(lost(&[9000]));
        // Descriptors that were to be passed over were not sent.
        assert!(lost(&[PASSED_OVER, PASSED_OVER, 60, 9000]));
        assert!(!lost(&[1500]));
        // One such frame got through in between, more than a ring ago.
        assert!(!lost(&[9000, 60, 60, 60, 9000]));
        assert!(!lost(&[60, 60, 60, 60, 60, 60, 60, 60, 60, 9000]));
        assert!(lost(&[9001]));
    }

    /// Nothing is taken by a tap whose machine is stopped, however long that lasts, and no frame is too long for it.
    #[test]
    fn a_device_without_another_end_loses_for_want_of_room() {
        let sizes = RingSizes { fill: 8, completion: 8, rx: 8, tx: 8 };
        for (is_pair, expected) in [(true, [true, false, true]), (false, [false; 3])] {
            let mut kernel = FakeKernel::new(sizes).unwrap();
            let mut rings = kernel.rings().unwrap();
            let (lengths, begin) = (Lengths::none(is_pair), Instant::now());
            let found =
                [(0, &[60][..]), (1, &[1400, 1400]), (9, &[1400])].map(|(seconds, sent)| {
                    let now = begin + Duration::from_secs(seconds);
                    lost(&mut rings, &mut kernel, &lengths, sent, now)
                });
            assert_eq!(found, expected, "an end of a pair: {is_pair}");
        }
    }

    /// The other end may have a smaller MTU by now.
    #[test]
    fn a_length_that_is_not_taken_any_more_is_too_long() {
        let sizes = RingSizes { fill: 8, completion: 8, rx: 8, tx: 8 };
        let mut kernel = FakeKernel::new(sizes).unwrap();
        let mut rings = kernel.rings().unwrap();
        let (lengths, begin) = (Lengths::none(true), Instant::now());
        let mut lost = |seconds: u64, sent: &[u32]| {
            let now = begin + Duration::from_secs(seconds);
            lost(&mut rings, &mut kernel, &lengths, sent, now)
        };
        assert!(!lost(0, &[1400, 1400]));
        assert!(!lost(1, &[1000, 1400]));
        assert!(lost(3, &[1000, 1400]));
        assert!(!lost(4, &[1000, 1000]));
        assert!(!lost(4, &[1400, 1400]));
    }
}
