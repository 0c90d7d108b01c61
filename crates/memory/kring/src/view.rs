//! The program's view of a ring.

use ringway_region::RingView;

use crate::{cursor::Cursors, kring::Kring};

/// Where a program keeps its cursors: in the ring itself, or, in CSB mode, in memory of its
/// own. What is read there is not believed.
pub trait View {
    /// The program's `head` and `cur`. `head` is read first: what was written before it can be
    /// read afterwards.
    fn cursors(&self) -> Cursors;

    /// The tail that stands there, which the program may have scribbled over.
    fn tail(&self) -> u32;

    /// Cursors that make no sense are to be `at` (S-SYNC-8).
    fn repair(&self, at: u32);

    /// Tells the program how far `kring` is: up to `hwtail`, which was read before this.
    fn publish_tail(&self, kring: &Kring, hwtail: u32);
}

impl View for RingView {
    #[inline]
    fn cursors(&self) -> Cursors {
        Cursors { head: self.head(), cur: self.cur() }
    }

    #[inline]
    fn tail(&self) -> u32 {
        RingView::tail(self)
    }

    fn repair(&self, at: u32) {
        self.set_head(at);
        self.set_cur(at);
    }

    #[inline]
    fn publish_tail(&self, _kring: &Kring, hwtail: u32) {
        self.set_tail(hwtail);
    }
}
