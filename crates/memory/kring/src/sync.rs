//! A sync: the program's cursors are checked, the driver moves what they tell it to, and the program
//! learns how far the driver is (S-SYNC).

use std::sync::atomic::Ordering::Relaxed;

use ringway_abi::Dir;

use crate::{
    cursor::{Cursors, Window},
    driver::{Accepted, Driver, Outcome},
    kring::Kring,
    view::View,
};

/// The program's cursors were outside what it holds; the ring was reinitialised (S-SYNC-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadIndex;

impl Kring {
    /// Reconciles the program's view with the driver: NIOCTXSYNC or NIOCRXSYNC of one ring.
    #[inline]
    pub fn sync(&self, driver: &(impl Driver + ?Sized)) -> Outcome {
        self.sync_view(self.ring(), driver)
    }

    /// As [`sync`](Self::sync), of a program whose cursors are in `view`.
    #[inline]
    pub fn sync_view(&self, view: &impl View, driver: &(impl Driver + ?Sized)) -> Outcome {
        let Some(_guard) = self.try_lock() else { return Outcome::Busy };
        let (accepted, outcome) = match self.accept(view) {
            Ok(accepted) => (accepted, Outcome::Done),
            Err(BadIndex) if let Some(accepted) = self.accept_news(view, driver) => {
                (accepted, Outcome::Done)
            }
            // S-SYNC-3: the ring is put right, and the call succeeds.
            Err(BadIndex) => {
                self.reinit(view);
                if self.dir() == Dir::Tx {
                    return Outcome::Reinitialised;
                }
                // On RX the sync goes on, as in netmap: with nothing released if an index was outside the ring; if
                // only their order was wrong, with what the program's `head` releases.
                let head = self.bounded(self.owner().rhead.load(Relaxed));
                (Accepted { head, cur: head }, Outcome::Reinitialised)
            }
        };
        let fails = driver.fails(self);
        if fails && self.dir() == Dir::Tx {
            return Outcome::Failed;
        }
        if !fails {
            driver.sync(self, accepted);
        }
        // A receive ring whose source has ended still delivers the packets that are in it.
        self.refresh(view, driver.tail(self));
        if fails { Outcome::Failed } else { outcome }
    }

    #[inline]
    fn accept(&self, view: &impl View) -> Result<Accepted, BadIndex> {
        let Cursors { head, cur } = view.cursors();
        let owner = self.owner();
        let slots = self.ring().num_slots();
        let start = self.bounded(owner.rhead.load(Relaxed));
        let end = match self.dir() {
            Dir::Tx => self.bounded(owner.rtail.load(Relaxed)),
            Dir::Rx => self.hwtail(),
        };
        // S-SYNC-4: up to the tail that the program was told.
        let window = Window { start, end, slots };
        if !window.admits(Cursors { head, cur }) {
            return Err(BadIndex);
        }
        owner.rhead.store(head, Relaxed);
        Ok(Accepted { head, cur })
    }

    /// A receiver may go beyond the tail that it was told, if there is more by now (S-SYNC-5): not
    /// every driver has taken that in before it is asked.
    #[cold]
    fn accept_news(&self, view: &impl View, driver: &(impl Driver + ?Sized)) -> Option<Accepted> {
        if self.dir() == Dir::Tx || driver.fails(self) {
            return None;
        }
        let head = self.bounded(self.owner().rhead.load(Relaxed));
        driver.sync(self, Accepted { head, cur: head });
        self.accept(view).ok()
    }

    /// Tells the program the new tail; a `tail` that it scribbled over is restored
    /// (S-SYNC-6, S-SYNC-7).
    #[inline]
    fn refresh(&self, view: &impl View, tail: u32) {
        self.owner().rtail.store(tail, Relaxed);
        view.publish_tail(self, tail);
    }

    /// The program's cursors are in `view` from now on, which is told where the ring stands
    /// (S-CSB-3); the ring's own are not looked at before [`leave_csb`](Self::leave_csb).
    pub fn enter_csb(&self, view: &impl View) {
        self.refresh(view, self.hwtail());
        self.csb_mode().turn_on();
    }

    /// The process that had the ring to itself has gone. If that was in CSB mode, the ring's cursors
    /// are brought up to date for the next.
    pub fn leave_csb(&self) {
        if self.csb_mode().is_on() {
            let head = self.bounded(self.owner().rhead.load(Relaxed));
            self.ring().repair(head);
            self.refresh(self.ring(), self.hwtail());
        }
        self.csb_mode().clear();
    }

    #[cold]
    fn reinit(&self, view: &impl View) {
        let (ring, n) = (self.ring(), self.ring().num_slots());
        let layout = ring.region().layout();
        for i in 0..n {
            let slot = ring.slot(i);
            if slot.buf_idx < 2 || slot.buf_idx >= layout.bufs.total {
                ring.set_slot(i, 0, 0, slot.flags);
            } else if u32::from(slot.len) > layout.bufs.size {
                ring.set_slot(i, slot.buf_idx, 0, slot.flags);
            }
        }
        let (Cursors { head, cur }, tail) = (view.cursors(), view.tail());
        if head >= n || cur >= n || tail >= n {
            // Everything before the last accepted head may be on its way already.
            let (rhead, hwtail) = (self.bounded(self.owner().rhead.load(Relaxed)), self.hwtail());
            view.repair(rhead);
            view.publish_tail(self, hwtail);
            self.owner().rhead.store(rhead, Relaxed);
            self.owner().rtail.store(hwtail, Relaxed);
        } else {
            self.owner().rhead.store(head, Relaxed);
            self.owner().rtail.store(tail, Relaxed);
        }
        self.note(|c| &c.bad_index, 1);
    }
}
