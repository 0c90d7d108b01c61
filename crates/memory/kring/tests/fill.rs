//! How full a ring is: by the cursors of both sides, whatever stands in memory, and whether or not its driver
//! publishes the program's.
#![cfg(not(any(loom, miri)))]

use std::sync::Arc;

use ringway_abi::Dir;
use ringway_kring::{Accepted, Driver, Kring, Outcome};
use ringway_region::{Layout, Region, RingInit, Sizes};

const SLOTS: u32 = 64;
const OBJECT: u32 = 1;

fn region() -> Arc<Region> {
    let layout = Layout::new(&Sizes::PRIVATE, 0).expect("a layout");
    Arc::new(Region::create(2, layout).expect("a region"))
}

fn ring(region: &Arc<Region>, dir: Dir) -> Kring {
    let init = RingInit { dir, ringid: 0, num_slots: SLOTS };
    let bufs: Vec<_> = (2..2 + SLOTS).collect();
    Kring::create(region, OBJECT, &init, &bufs).expect("a ring")
}

/// What drives the ring: for a party that reads what is published, or for the kernel, which does not.
struct Quiet {
    publishes: bool,
}

impl Driver for Quiet {
    fn sync(&self, kring: &Kring, Accepted { head, cur }: Accepted) {
        if self.publishes {
            kring.csb().app.publish(head, cur);
        }
    }
}

/// The program goes on to `head`.
fn go_on(kring: &Kring, driver: &Quiet, head: u32) {
    kring.ring().set_head(head);
    kring.ring().set_cur(head);
    assert_eq!(kring.sync(driver), Outcome::Done);
}

#[test]
fn slots_with_packets() {
    for publishes in [true, false] {
        let driver = Quiet { publishes };
        let tx = ring(&region(), Dir::Tx);
        assert_eq!(tx.fill(), 0);
        go_on(&tx, &driver, 40);
        assert_eq!(tx.fill(), 40, "sent and not taken");
        tx.csb().service.publish(30, 29);
        assert_eq!(tx.fill(), 10);
        go_on(&tx, &driver, 40);
        go_on(&tx, &driver, 29);
        assert_eq!(tx.fill(), SLOTS - 1, "all that there is");

        let rx = ring(&region(), Dir::Rx);
        assert_eq!(rx.fill(), 0);
        rx.csb().service.publish(0, 40);
        assert_eq!(rx.fill(), 40, "received and not released");
        go_on(&rx, &driver, 35);
        assert_eq!(rx.fill(), 5);
        go_on(&rx, &driver, 40);
        assert_eq!(rx.fill(), 0);
    }
}

#[test]
fn scribbled_cursors_fill_no_more_than_there_is() {
    /// Where `rhead` is in a control block, and how long that is: `docs/shared-memory.md`.
    const RHEAD: u64 = 136;
    const BLOCK: u64 = 512;
    for dir in [Dir::Tx, Dir::Rx] {
        let region = region();
        let ring = ring(&region, dir);
        let rhead = region.layout().memsize() + u64::from(OBJECT) * BLOCK + RHEAD;
        for head in [0, 1, SLOTS - 1, SLOTS, u32::MAX] {
            for tail in [0, 1, SLOTS - 1, SLOTS, u32::MAX] {
                rustix::io::pwrite(region.memfd(), &head.to_ne_bytes(), rhead).expect("a memfd");
                ring.csb().app.publish(head, head);
                ring.csb().service.publish(tail, tail);
                assert!(ring.fill() < SLOTS, "{dir:?} {head} {tail}");
            }
        }
    }
}
