//! How far the worker is with the frames that the program in the kernel hands over: a flow leaves the
//! worker's path when it has no frames there any more.
//!
//! The program numbers what it hands over, and a frame may be between its number and the socket when the
//! worker finds nothing more there. So the worker counts: it is through when it has had as many frames as
//! there are numbers. A frame that was lost on the way would be missing for ever. So the worker keeps what the
//! number was when it found nothing: where it finds nothing again a while later, frames with numbers up to that
//! have come, or were lost, however many more there are by now. And it counts what the kernel says to have lost.
//!
//! What the worker has delivered may wait for the kernel yet, where an interface takes no more: until that has left, the flow
//! stays. No longer than such a frame is kept there: an interface for which more comes all the time keeps no flow of others
//! from the kernel's path.

use std::sync::Arc;

use ringway_fastpath::FastPath;
use ringway_switch_port::{Port, PortIndex};

use crate::clock::Millis;

/// Longer than any frame is on its way.
const ON_ITS_WAY: Millis = 5;

/// Longer than an interface that takes nothing is given before a frame for it is lost.
const KEPT: Millis = 100;

/// What the worker knows of one port.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InOrder {
    /// Frames that it has had, or knows to be lost.
    received: u64,
    /// Of these, frames that were lost; and how many the kernel has counted.
    lost: u64,
    counted: u64,
    /// No frame with a number up to this is to come.
    seen: u64,
    /// What it has told the program.
    told: u64,
    /// The last number as it was when nothing was found, and when that was.
    earlier: Option<(u64, Millis)>,
    /// A number that the worker was through with, since when: what it has delivered may wait for the kernel.
    through: Option<(u64, Millis)>,
}

impl InOrder {
    /// From the frames on that come after so many.
    pub fn new(begun: u64) -> InOrder {
        InOrder { received: begun, seen: begun, told: begun, ..InOrder::default() }
    }

    /// How many frames there were so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// How many frames the program has handed over so far; the port is to look for those that are missing.
    #[inline(never)]
    pub fn look(
        &self,
        fast: &Option<Arc<FastPath>>,
        index: PortIndex,
        port: &mut dyn Port,
    ) -> Option<u64> {
        let begun = fast.as_ref()?.begun(index);
        if self.is_missing(begun) {
            port.expect();
        }
        Some(begun)
    }

    /// Whether there is something to look for, when so many were handed over.
    fn is_missing(&self, begun: u64) -> bool {
        begun != self.told
    }

    /// So many frames were found.
    pub fn note_found(&mut self, frames: u32) {
        self.received += u64::from(frames);
    }

    /// The kernel has counted so many more of the port's frames as lost.
    pub fn note_lost(&mut self, frames: u64) {
        self.counted += frames;
    }

    /// None was found, after `begun` had been read. `have_left`: whether what was delivered has. Returns whether
    /// frames were lost: the port is to [count](Self::note_lost) them.
    #[inline(never)]
    pub fn note_none(
        &mut self,
        begun: u64,
        now: Millis,
        port: PortIndex,
        fast: &FastPath,
        have_left: impl FnOnce() -> bool,
    ) -> bool {
        // Not before: those that the socket had yet may have come before these.
        if self.counted > self.lost {
            self.received += self.counted - self.lost;
            self.lost = self.counted;
        }
        let mut is_short = false;
        if self.received >= begun {
            // More than there are numbers: frames of no program.
            (self.received, self.seen, self.earlier) = (begun, begun, None);
        } else {
            let &mut (number, since) = self.earlier.get_or_insert((begun, now));
            if now >= since + ON_ITS_WAY {
                is_short = number > self.received;
                self.lost += number.saturating_sub(self.received);
                (self.received, self.seen) = (self.received.max(number), number);
                self.earlier = (self.received < begun).then_some((begun, now));
            }
        }
        self.tell(now, port, fast, have_left);
        is_short
    }

    /// Tells the program how far the worker is.
    fn tell(
        &mut self,
        now: Millis,
        port: PortIndex,
        fast: &FastPath,
        have_left: impl FnOnce() -> bool,
    ) {
        if self.seen == self.told {
            return;
        }
        let (number, since) = *self.through.get_or_insert((self.seen, now));
        let number = if have_left() {
            self.through = None;
            self.seen
        } else if now >= since + KEPT {
            self.through = (number < self.seen).then_some((self.seen, now));
            number
        } else {
            return;
        };
        self.told = number;
        fast.set_drained(port, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_on_its_way_is_waited_for_and_one_that_was_lost_is_not() {
        let fast = FastPath::unshared([1, 2]).unwrap();
        let mut order = InOrder::new(10);
        assert!(!order.is_missing(10) && order.is_missing(12));
        order.note_found(1);
        order.note_none(12, 100, 3, &fast, || true);
        assert!(order.is_missing(12), "the twelfth is on its way");
        order.note_none(12, 104, 3, &fast, || true);
        assert!(order.is_missing(12));
        order.note_found(1);
        order.note_none(12, 104, 3, &fast, || true);
        assert!(!order.is_missing(12));
        order.note_none(13, 110, 3, &fast, || true);
        assert!(order.is_missing(13));
        order.note_none(13, 115, 3, &fast, || true);
        assert!(!order.is_missing(13), "the thirteenth was lost");
        order.note_found(2);
        order.note_none(14, 116, 3, &fast, || true);
        assert!(!order.is_missing(14), "one more than there are numbers");
        order.note_none(15, 117, 3, &fast, || true);
        assert!(order.is_missing(15), "which is no other's number");
    }

    /// The program is not told while something waits for the kernel.
    #[test]
    fn what_was_delivered_has_left_first() {
        let fast = FastPath::unshared([1, 2]).unwrap();
        let mut order = InOrder::new(0);
        order.note_found(1);
        order.note_none(1, 100, 3, &fast, || false);
        order.note_none(1, 199, 3, &fast, || false);
        assert!(order.is_missing(1));
        order.note_none(1, 199, 3, &fast, || true);
        assert!(!order.is_missing(1));
        order.note_none(1, 201, 3, &fast, || panic!("there is nothing to tell"));
    }

    /// What an interface has waiting for it all the time keeps no flow of another's.
    #[test]
    fn what_never_leaves_is_not_waited_for() {
        let fast = FastPath::unshared([1, 2]).unwrap();
        let mut order = InOrder::new(0);
        order.note_found(1);
        order.note_none(1, 100, 3, &fast, || false);
        order.note_found(1);
        order.note_none(2, 199, 3, &fast, || false);
        assert_eq!(order.told, 0);
        order.note_none(2, 200, 3, &fast, || false);
        assert_eq!(order.told, 1, "although another was delivered meanwhile");
        order.note_none(2, 299, 3, &fast, || false);
        assert!(order.is_missing(2));
        order.note_none(2, 300, 3, &fast, || false);
        assert!(!order.is_missing(2));
    }

    /// Frames that were lost are not missing for ever where more come all the time, one in each millisecond.
    #[test]
    fn a_loss_is_noticed_while_more_comes() {
        let fast = FastPath::unshared([1, 2]).unwrap();
        let mut order = InOrder::new(0);
        let mut begun = 1000;
        let mut was_short = false;
        for now in 100..120 {
            was_short |= order.note_none(begun, now, 3, &fast, || true);
            begun += 1;
            order.note_found(1);
        }
        assert!(was_short);
        assert!(begun - order.received() < 10, "{order:?} of {begun}");
        assert!(begun - order.told < 15, "{order:?} of {begun}");
        // The kernel knows of all of them, but for one.
        order.note_lost(999);
        order.note_none(begun, 120, 3, &fast, || true);
        assert!(begun - order.received() < 10, "they are not counted twice: {order:?} of {begun}");
        order.note_lost(1);
        order.note_none(begun, 121, 3, &fast, || true);
        assert_eq!((order.received(), order.told), (begun, begun));
    }

    /// What the kernel counts as lost counts only when the socket is empty: those in it have come before.
    #[test]
    fn what_the_kernel_has_lost_is_not_waited_for() {
        let fast = FastPath::unshared([1, 2]).unwrap();
        let mut order = InOrder::new(0);
        order.note_lost(40);
        order.note_found(59);
        assert_eq!(order.received(), 59);
        order.note_none(100, 100, 3, &fast, || true);
        assert_eq!(order.received(), 99);
        order.note_found(1);
        order.note_none(100, 100, 3, &fast, || true);
        assert_eq!((order.received(), order.told), (100, 100));
    }
}
