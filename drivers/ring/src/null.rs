//! The null port: memory and bookkeeping, no packets (S-NULL-1).
//!
//! netmap's null port moves nothing at all; ours also completes what is sent, at once and
//! unseen, so that it shows what a ring costs by itself.

use ringway_abi::Dir;
use ringway_kring::{Accepted, Driver, Kring};

/// Driver of both rings of a null port.
#[derive(Debug, Default)]
pub struct Null;

impl Driver for Null {
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
    use std::sync::Arc;

    use ringway_kring::Outcome;
    use ringway_region::{Layout, Region, RingInit, Sizes};

    use super::*;

    #[test]
    fn s_null_1_consumes_all_and_delivers_nothing() {
        let sizes = Sizes::private([1, 1], [16, 16], 0, 0);
        let region = Arc::new(Region::create(7, Layout::new(&sizes, 0).unwrap()).unwrap());
        let make = |object, dir| {
            let init = RingInit { dir, ringid: 0, num_slots: 16 };
            Kring::create(&region, object, &init, &[]).unwrap()
        };
        let (tx, rx) = (make(0, Dir::Tx), make(1, Dir::Rx));
        for round in 1..40u32 {
            let head = round * 7 % 16;
            tx.ring().set_head(head);
            tx.ring().set_cur(head);
            assert_eq!(tx.sync(&Null), Outcome::Done);
            assert_eq!(tx.ring().tail(), tx.ring().prev(head));
        }
        assert_eq!(rx.sync(&Null), Outcome::Done);
        assert_eq!(rx.ring().tail(), 0);
    }
}
