//! A ring whose packets somebody else moves: the program publishes, a worker does the rest.
//!
//! The service line is the worker's alone. Nothing here waits for it: `tail` is what the
//! worker has published by now.

use std::sync::Arc;

use ringway_abi::{Dir, NS_BUF_CHANGED};
use ringway_kring::{Accepted, Doorbell, Driver, Kring, Yielding};

/// Driver of one ring of a VALE port, on the program's side.
#[derive(Debug)]
pub struct WorkerServed {
    /// What the worker sleeps on.
    pub worker: Arc<Doorbell>,
    yielding: Yielding,
}

impl WorkerServed {
    /// `worker` is what the worker sleeps on.
    pub fn new(worker: Arc<Doorbell>) -> WorkerServed {
        WorkerServed { worker, yielding: Yielding::new() }
    }
}

impl Driver for WorkerServed {
    #[inline]
    fn sync(&self, kring: &Kring, Accepted { head, cur }: Accepted) {
        let csb = kring.csb();
        let (ring, from) = (kring.ring(), kring.bounded(csb.app.head()));
        let news = ring.distance(from, head);
        if kring.dir() == Dir::Rx {
            // The program has put other buffers into slots that it gives back; from now on they are the slots' own.
            kring.consume(from, head, NS_BUF_CHANGED);
        }
        csb.app.publish(head, cur);
        // What a sender has published that was killed before it could tell is still to be told of.
        let untold = kring.dir() == Dir::Tx && csb.service.hwcur() != head;
        if news == 0 && !untold {
            return;
        }
        kring.count(news);
        // Released receive slots matter to nobody who sleeps, for a full ring drops (S-VALE-10),
        // unless the worker has ever said that they do.
        let sends = kring.dir() == Dir::Tx;
        if (sends || csb.service.has_waited())
            && csb.service.kick(&csb.app, || self.worker.notify())
        {
            kring.note(|c| &c.kicks, 1);
        }
        if sends && csb.app.is_asked_to_yield(&csb.service) {
            self.yielding.once();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use ringway_abi::NS_REPORT;
    use ringway_kring::Outcome;

    use super::*;
    use crate::tests::{move_to, rings};

    fn served() -> WorkerServed {
        WorkerServed::new(Arc::new(Doorbell::new().unwrap()))
    }

    /// Moves head and cur, and syncs; whether the worker was told.
    fn tells(kring: &Kring, driver: &WorkerServed, head: u32, cur: u32) -> bool {
        let kicks = kring.counters().kicks.load(Relaxed);
        move_to(kring, head, cur);
        assert_eq!(kring.sync(driver), Outcome::Done);
        assert_eq!((kring.csb().app.head(), kring.csb().app.cur()), (head, cur));
        let told = driver.worker.drain();
        assert_eq!(kring.counters().kicks.load(Relaxed), kicks + u64::from(told));
        told
    }

    #[test]
    fn a_worker_that_sleeps_is_told_once_of_what_is_sent() {
        let ([tx, _], driver) = (rings(), served());
        assert!(!tells(&tx, &driver, 2, 2), "it does not sleep");
        tx.csb().service.publish(2, 1);
        tx.csb().service.arm();
        assert!(!tells(&tx, &driver, 2, 2), "there is nothing new");
        assert!(tells(&tx, &driver, 5, 5));
        assert!(!tells(&tx, &driver, 6, 6), "that sleep was ended");
        assert_eq!(tx.counters().packets.load(Relaxed), 6);
    }

    /// Not the receiver: what it releases makes no room elsewhere.
    #[test]
    fn a_sender_that_is_asked_to_yield_does_so_at_its_next_sync() {
        let ([tx, rx], driver) = (rings(), served());
        rx.csb().service.publish(0, 9);
        assert_eq!(rx.sync(&driver), Outcome::Done);
        for (kring, is_still_asked) in [(&tx, false), (&rx, true)] {
            kring.csb().service.ask_to_yield();
            tells(kring, &driver, 3, 3);
            assert_eq!(kring.csb().app.is_asked_to_yield(&kring.csb().service), is_still_asked);
        }
    }

    /// A sender that was killed between the two has published, and not told.
    #[test]
    fn what_was_published_and_not_told_is_told_by_the_next_sync() {
        let ([tx, _], driver) = (rings(), served());
        tells(&tx, &driver, 4, 4);
        tx.csb().service.arm();
        assert!(tells(&tx, &driver, 4, 4));
        assert_eq!(tx.counters().packets.load(Relaxed), 4);
    }

    /// Of released slots a worker is told only if it has ever waited for some (S-VALE-10).
    #[test]
    fn released_slots_are_told_to_a_worker_that_waits_for_them() {
        let ([_, rx], driver) = (rings(), served());
        rx.csb().service.publish(0, 9);
        assert_eq!(rx.sync(&driver), Outcome::Done);
        assert!(!tells(&rx, &driver, 3, 3));
        rx.csb().service.arm();
        assert!(!tells(&rx, &driver, 3, 5), "none was released");
        assert!(tells(&rx, &driver, 4, 5));
        assert_eq!(rx.counters().packets.load(Relaxed), 4);
    }

    /// The flag of a released slot has done its work; those that the program keeps have theirs to do.
    #[test]
    fn released_slots_keep_the_buffers_that_the_program_has_put_there() {
        let ([tx, rx], driver) = (rings(), served());
        rx.csb().service.publish(0, 9);
        assert_eq!(rx.sync(&driver), Outcome::Done);
        const OTHER: u16 = NS_REPORT;
        for kring in [&tx, &rx] {
            for at in 0..4 {
                kring.ring().set_slot(at, 40 + at, 60, OTHER | (NS_BUF_CHANGED * (at as u16 % 2)));
            }
            tells(kring, &driver, 2, 2);
        }
        let slots = |kring: &Kring| {
            [0, 1, 2, 3]
                .map(|at| kring.ring().slot(at))
                .map(|slot| (slot.buf_idx, slot.len, slot.flags))
        };
        let changed = OTHER | NS_BUF_CHANGED;
        let kept = [(40, 60, OTHER), (41, 60, changed), (42, 60, OTHER), (43, 60, changed)];
        assert_eq!(slots(&tx), kept, "the worker looks at those of a sender");
        let released = [(40, 60, OTHER), (41, 60, OTHER), (42, 60, OTHER), (43, 60, changed)];
        assert_eq!(slots(&rx), released);
    }
}
