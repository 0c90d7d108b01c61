//! A ring whose packets somebody else moves: the program publishes, a worker does the rest.
//!
//! The service line is the worker's alone. Nothing here waits for it: `tail` is what the
//! worker has published by now.

use std::sync::Arc;

use ringway_abi::{Dir, NS_BUF_CHANGED};
use ringway_kring::{Accepted, Doorbell, Driver, Kring};
use ringway_region::RingView;

/// Driver of one ring of a VALE port, on the program's side.
#[derive(Debug)]
pub struct WorkerServed {
    /// What the worker sleeps on.
    pub worker: Arc<Doorbell>,
}

impl Driver for WorkerServed {
    #[inline]
    fn sync(&self, kring: &Kring, Accepted { head, cur }: Accepted) {
        let csb = kring.csb();
        let (ring, from) = (kring.ring(), kring.bounded(csb.app.head()));
        let news = ring.distance(from, head);
        if kring.dir() == Dir::Rx {
            take_note(ring, from, head);
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
        let matters = kring.dir() == Dir::Tx || csb.service.has_waited();
        if matters && csb.service.kick(&csb.app, || self.worker.notify()) {
            kring.note(|c| &c.kicks, 1);
        }
    }
}

/// The program has put other buffers into slots that it gives back; from now on they are the
/// slots' own.
#[inline]
fn take_note(ring: &RingView, from: u32, to: u32) {
    let mut at = from;
    while at != to {
        let slot = ring.slot(at);
        if slot.flags & NS_BUF_CHANGED != 0 {
            ring.set_slot(at, slot.buf_idx, slot.len, slot.flags & !NS_BUF_CHANGED);
        }
        at = ring.next(at);
    }
}
