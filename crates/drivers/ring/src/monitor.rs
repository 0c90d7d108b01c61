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

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use ringway_kring::Outcome;

    use super::*;
    use crate::tests::{move_to, rings};

    #[test]
    fn s_mon_3_tx_rings_fail() {
        let [tx, rx] = rings();
        assert_eq!((tx.sync(&Monitor), rx.sync(&Monitor)), (Outcome::Failed, Outcome::Done));
    }

    /// What others have filled in is read and released, until the monitored port has left.
    #[test]
    fn s_mon_8_rx_rings_fail_when_the_monitored_port_has_left() {
        let [_, rx] = rings();
        rx.csb().service.publish(0, 5);
        assert_eq!(rx.sync(&Monitor), Outcome::Done);
        move_to(&rx, 3, 4);
        assert_eq!(rx.sync(&Monitor), Outcome::Done);
        let app = &rx.csb().app;
        assert_eq!((app.head(), app.cur(), rx.counters().packets.load(Relaxed)), (3, 4, 3));
        rx.end();
        move_to(&rx, 4, 4);
        assert_eq!(rx.sync(&Monitor), Outcome::Failed);
        assert_eq!(app.head(), 3, "nobody fills it again");
    }
}
