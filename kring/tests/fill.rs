//! How full a ring is: by the cursors of both sides, whatever stands in memory.
#![cfg(not(any(loom, miri)))]

use std::sync::Arc;

use ringway_abi::Dir;
use ringway_kring::Kring;
use ringway_region::{Layout, Region, RingInit, Sizes};

const SLOTS: u32 = 64;

fn ring(dir: Dir) -> Kring {
    let layout = Layout::new(&Sizes::PRIVATE, 0).expect("a layout");
    let region = Arc::new(Region::create(2, layout).expect("a region"));
    let init = RingInit { dir, ringid: 0, num_slots: SLOTS };
    let bufs: Vec<_> = (2..2 + SLOTS).collect();
    Kring::create(&region, 1, &init, &bufs).expect("a ring")
}

#[test]
fn slots_with_packets() {
    let tx = ring(Dir::Tx);
    assert_eq!(tx.fill(), 0);
    tx.csb().app.publish(40, 40);
    assert_eq!(tx.fill(), 40, "sent and not taken");
    tx.csb().service.publish(30, 29);
    assert_eq!(tx.fill(), 10);
    tx.csb().app.publish(29, 29);
    assert_eq!(tx.fill(), SLOTS - 1, "all that there is");

    let rx = ring(Dir::Rx);
    assert_eq!(rx.fill(), 0);
    rx.csb().service.publish(0, 40);
    assert_eq!(rx.fill(), 40, "received and not released");
    rx.csb().app.publish(35, 38);
    assert_eq!(rx.fill(), 5);
}

#[test]
fn scribbled_cursors_fill_no_more_than_there_is() {
    for dir in [Dir::Tx, Dir::Rx] {
        let ring = ring(dir);
        for head in [0, 1, SLOTS - 1, SLOTS, u32::MAX] {
            for tail in [0, 1, SLOTS - 1, SLOTS, u32::MAX] {
                ring.csb().app.publish(head, head);
                ring.csb().service.publish(tail, tail);
                assert!(ring.fill() < SLOTS, "{dir:?} {head} {tail}");
            }
        }
    }
}
