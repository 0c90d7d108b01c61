//! Null ports: memory and bookkeeping, no packets (S-NULL-1).

use ringway_abi::Dir;
use ringway_kring::{Accepted, Driver, Kring};

/// Driver of both rings of a null port: nothing moves.
#[derive(Debug, Default)]
pub struct Null;

impl Driver for Null {
    #[inline]
    fn sync(&self, _kring: &Kring, _accepted: Accepted) {}
}

/// Driver of both rings of a null port that takes what is sent, at once and unseen: it shows what
/// a ring costs by itself.
#[derive(Debug, Default)]
pub struct Sink;

impl Driver for Sink {
    #[inline]
    fn sync(&self, kring: &Kring, Accepted { head, .. }: Accepted) {
        let ring = kring.ring();
        let sent = ring.distance(kring.hwcur(), head);
        match kring.dir() {
            Dir::Tx => kring.csb().service.publish(head, ring.prev(head)),
            Dir::Rx => kring.csb().service.publish(head, kring.hwtail()),
        }
        kring.count(sent);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use ringway_kring::Outcome;

    use super::*;
    use crate::tests::{move_to, rings};

    #[test]
    fn s_null_1_moves_nothing() {
        let [tx, rx] = rings();
        move_to(&tx, 5, 5);
        assert_eq!((tx.sync(&Null), rx.sync(&Null)), (Outcome::Done, Outcome::Done));
        assert_eq!((tx.ring().tail(), rx.ring().tail()), (15, 0));
    }

    #[test]
    fn a_sink_consumes_all_and_delivers_nothing() {
        let [tx, rx] = rings();
        for round in 1..40u32 {
            let head = round * 7 % 16;
            move_to(&tx, head, head);
            assert_eq!(tx.sync(&Sink), Outcome::Done);
            assert_eq!(tx.ring().tail(), tx.ring().prev(head));
        }
        assert_eq!(tx.counters().packets.load(Relaxed), 39 * 7);
        rx.csb().service.publish(0, 4);
        assert_eq!(rx.sync(&Sink), Outcome::Done);
        move_to(&rx, 3, 3);
        assert_eq!(rx.sync(&Sink), Outcome::Done);
        assert_eq!((rx.csb().service.hwcur(), rx.ring().tail()), (3, 4), "what was there stays");
    }
}
