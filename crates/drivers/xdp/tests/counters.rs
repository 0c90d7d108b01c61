//! What the kernel counts on a socket comes to the counters of whoever has it.

mod common;

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use common::nic::{nics, wait};
use common::{SIZES, Wire, frame_queue, send};
use ringway_nic_setup::{Interface, in_netns, open_nic_port};
use ringway_testkit::{frame, skip_without_root};
use ringway_vale::{Bridge, PortConfig};
use ringway_xdp::{Desc, Lost, Rings, kick_tx, statistics};

/// Descriptors that lead nowhere: as a hostile or broken holder of the socket would write them.
#[test]
fn invalid_descriptors() {
    if skip_without_root("invalid_descriptors") {
        return;
    }
    let wire = Wire::new();
    let [a, b] = nics(&wire);
    assert_eq!((a.rings.tx_driver.lost(), b.rings.rx_driver.lost()), Default::default());

    let sizes = common::nic::SIZES;
    let mut raw = Rings::map(a.as_fd(), &sizes).unwrap();
    for i in 0..3 {
        let bad = Desc { address: 1 << 40, length: 60, options: 0 };
        assert_eq!(raw.tx.free(1), 1);
        raw.tx.write(0, bad);
        raw.tx.submit(1);
        kick_tx(a.as_fd()).unwrap();
        assert_eq!(statistics(a.as_fd()).unwrap().tx_invalid_descs, i + 1);
    }
    assert_eq!(a.rings.tx_driver.lost(), Lost { bad_slot: 3, ..Lost::default() });

    // The first that the kernel will look at is the one that is wrong: it takes the next. Linux 6.18
    // does not count it anywhere.
    let mut raw = Rings::map(b.as_fd(), &sizes).unwrap();
    let posted = raw.fill.pending();
    raw.fill.write(0_u32.wrapping_sub(posted), 1 << 40);
    assert_eq!(a.rings.send(0..1, 60), 1);
    wait([&b]);
    assert_eq!(b.rings.receive(), [frame(0, 60)]);
    let bad_slot = statistics(b.as_fd()).unwrap().rx_invalid_descs;
    assert_eq!(b.rings.rx_driver.lost(), Lost { bad_slot, ..Lost::default() });
}

/// A bridge that has no time for an interface tells what was lost there, to whoever asks.
#[test]
fn what_a_bridge_misses() {
    if skip_without_root("what_a_bridge_misses") {
        return;
    }
    let wire = Wire::new();
    let (_program, mut a) = frame_queue(&wire.a, "a0");
    let open = || open_nic_port(&Interface::by_name("b0").unwrap());
    let port = in_netns(wire.b.fd().as_fd(), open).unwrap().unwrap();
    // Nobody looks at it before it is on a bridge: its buffers are used up.
    for i in 0..4 * SIZES.tx + 3000 {
        while !send(&mut a, &frame(i, 60)) {
            a.flush().unwrap();
        }
    }
    a.flush().unwrap();
    let sent = u64::from(4 * SIZES.tx + 3000) - a.counters().tx_lost;

    let bridge = Bridge::start("misses").unwrap();
    let counters = std::sync::Arc::default();
    bridge.attach(Box::new(port), PortConfig::default(), std::sync::Arc::clone(&counters)).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        bridge.count();
        let totals: ringway_vale::Totals = counters.totals();
        // What has found no buffer was sent, too.
        let (seen, lost) = (totals.sent_packets, totals.drops.ring_full);
        if seen == sent {
            assert!(lost > 0 && lost < seen, "{totals:?}");
            return;
        }
        assert!(seen < sent && Instant::now() < deadline, "{totals:?} of {sent}");
        std::thread::yield_now();
    }
}
