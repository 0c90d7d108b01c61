//! How far the worker is with the frames that the program in the kernel hands over: a flow leaves the
//! worker's path when it has no frames there any more.
//!
//! The program numbers what it hands over, and a frame may be between its number and the socket when the
//! worker finds nothing more there. So the worker counts: it is through when it has had as many frames as
//! there are numbers. A frame that was lost on the way would be missing for ever; where no number was
//! given for a while, none is on its way.
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
    /// Frames that it has had, by their number.
    received: u64,
    /// What it has told the program.
    told: u64,
    /// The last number, and since when there was no other.
    last: (u64, Millis),
    /// Since when the worker is through, and what it has delivered may wait for the kernel.
    through: Option<Millis>,
}

impl InOrder {
    /// From the frames on that come after so many.
    pub fn new(begun: u64) -> InOrder {
        InOrder { received: begun, told: begun, last: (begun, 0), through: None }
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
        self.through = None;
    }

    /// None was found, after `begun` had been read. `have_left`: whether what was delivered has.
    #[inline(never)]
    pub fn note_none(
        &mut self,
        begun: u64,
        now: Millis,
        port: PortIndex,
        fast: &FastPath,
        have_left: impl FnOnce() -> bool,
    ) {
        if begun != self.last.0 {
            self.last = (begun, now);
        }
        let are_through = self.received >= begun || now >= self.last.1 + ON_ITS_WAY;
        if !are_through {
            return;
        }
        let through = *self.through.get_or_insert(now);
        if !self.is_missing(begun) || now >= through + KEPT || have_left() {
            (self.received, self.told) = (begun, begun);
            fast.set_drained(port, begun);
        }
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
        order.note_none(2, 150, 3, &fast, || false);
        order.note_none(2, 249, 3, &fast, || false);
        assert!(order.is_missing(2), "from the last that was delivered on");
        order.note_none(2, 250, 3, &fast, || false);
        assert!(!order.is_missing(2));
    }
}
