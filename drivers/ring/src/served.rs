//! A ring whose packets somebody else moves: the program publishes, a worker does the rest.
//!
//! The service line is the worker's alone. Nothing here waits for it: `tail` is what the
//! worker has published by now.

use std::sync::Arc;

use ringway_abi::Dir;
use ringway_kring::{Accepted, Bell, Driver, Kring};

/// Driver of one ring of a VALE port, on the program's side.
#[derive(Debug)]
pub struct Served {
    /// What the worker sleeps on.
    pub worker: Arc<Bell>,
}

impl Driver for Served {
    #[inline]
    fn sync(&self, kring: &Kring, Accepted { head, cur }: Accepted) {
        let csb = kring.csb();
        let news = kring.ring().distance(kring.bounded(csb.app.head()), head);
        csb.app.publish(head, cur);
        if news == 0 {
            return;
        }
        kring.count(news);
        // Released receive slots matter to nobody who sleeps, for a full ring drops (S-VALE-10),
        // unless the worker has ever said that they do.
        let matters = kring.dir() == Dir::Tx || csb.service.has_waited();
        if matters && csb.service.must_kick(&csb.app) {
            self.worker.ring();
            kring.note(|c| &c.kicks, 1);
        }
    }
}
