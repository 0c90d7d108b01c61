//! Why the kernel has lost a frame. It says no more than that it has (EBUSY), for a peer whose ring is full, and for
//! a peer that takes no frames of that length: the other end of a veth pair may have a smaller MTU.
//!
//! Where a ring is full, frames of each length find room now and then. So a frame is held to be too long if none of
//! its length or longer has been taken: the TX ring still has what the kernel has consumed, as it was, and
//! what it has lost is marked there.

use std::borrow::Borrow;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::rings::{Desc, Producer};
use crate::sys::Ring;

/// What is known of the lengths that the kernel takes from a TX ring.
#[derive(Debug, Default)]
pub(crate) struct Lengths {
    /// The longest that it has taken, of those that were looked at.
    taken: AtomicU32,
}

/// A frame that the kernel has consumed, and lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostFrame {
    pub bytes: u32,
    /// None so long has been taken.
    pub too_long: bool,
}

impl Lengths {
    /// The frame that the kernel has consumed last was lost.
    #[cold]
    pub fn lost<R: Borrow<Ring<Desc>>>(&self, tx: &Producer<Desc, R>) -> LostFrame {
        let consumed = tx.size() - tx.pending();
        let (bytes, mut at) = frame(tx, 0, consumed);
        for i in 0..at {
            tx.replace_consumed(i, Desc { length: 0, ..tx.peek_consumed(i) });
        }
        let mut taken = self.taken.load(Relaxed);
        while taken < bytes && at < consumed {
            let (length, next) = frame(tx, at, consumed);
            (taken, at) = (taken.max(length), next);
        }
        self.taken.fetch_max(taken, Relaxed);
        LostFrame { bytes, too_long: taken < bytes }
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
