//! The rings of a monitor, on its program's side: others fill the rx rings, and the tx ring is
//! there for show (S-MON-3).

use ringway_abi::Dir;
use ringway_kring::{Accepted, Driver, Kring};

/// Driver of both kinds of rings of a monitor.
#[derive(Debug)]
pub struct Monitor;

impl Driver for Monitor {
    #[inline]
    fn sync(&self, kring: &Kring, Accepted { head, cur }: Accepted) {
        let app = &kring.csb().app;
        kring.count(kring.ring().distance(kring.bounded(app.head()), head));
        app.publish(head, cur);
    }

    /// The tx ring of any monitor, and the rx rings when the monitored port has left netmap
    /// mode (S-MON-8).
    #[inline]
    fn fails(&self, kring: &Kring) -> bool {
        kring.dir() == Dir::Tx || kring.is_ended()
    }
}
