//! The paths of a packet. Each case moves [`PACKETS`] packets of 60 bytes in its counted parts, in
//! one thread, after one turn of the rings that is not counted.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use ringway_abi::Dir;
use ringway_kring::{Doorbell, Driver, Kring, Outcome};
use ringway_region::{Layout, Region, RingInit, Sizes};
use ringway_ring::{PipeRx, PipeTx, Sink};
use ringway_xdp::{RX_HEADROOM, RingSizes, fake::FakeKernel};

use crate::{
    counted, machine, packet_mode, pcap, pfring, ports, queues, switch, tpacket4, usdpaa_reflector,
};

/// Packets that each case counts: a multiple of every batch.
pub const PACKETS: u32 = 16 * SLOTS;

pub const SLOTS: u32 = 1024;
pub const LENGTH: u16 = 60;

pub struct Case {
    pub name: &'static str,
    pub run: fn(),
}

pub const CASES: &[Case] = &[
    Case { name: "machine-rx-64", run: || machine::to(64, false) },
    Case { name: "machine-rx-packed-64", run: || machine::to(64, true) },
    Case { name: "machine-tx-64", run: || machine::from(64, false) },
    Case { name: "machine-tx-packed-64", run: || machine::from(64, true) },
    Case { name: "monitor-64", run: || ports::monitored(64) },
    Case { name: "null-1", run: || null(1) },
    Case { name: "null-64", run: || null(64) },
    Case { name: "packet-rx-64", run: || packet_mode::receive(64) },
    Case { name: "pcap-pipe-64", run: pcap::pipe },
    Case { name: "pcap-switch-64", run: pcap::switch },
    Case { name: "pfring-cluster-64", run: pfring::cluster },
    Case { name: "pfring-parsed-64", run: || pfring::receive(true) },
    Case { name: "pfring-short-64", run: || pfring::receive(false) },
    Case { name: "pipe-1", run: || pipe(1) },
    Case { name: "pipe-64", run: || pipe(64) },
    Case { name: "pipe-256", run: || pipe(256) },
    Case { name: "queues-1", run: || queues::reflector(1) },
    Case { name: "queues-16", run: || queues::reflector(16) },
    Case { name: "switch-1", run: || switch::worker(1, switch::PLAIN) },
    Case { name: "switch-64", run: || switch::worker(64, switch::PLAIN) },
    Case { name: "switch-128", run: || switch::worker(128, switch::PLAIN) },
    Case { name: "switch-1514-64", run: || switch::worker(64, switch::LONG) },
    Case { name: "switch-flood-64", run: || switch::worker(64, switch::FLOOD) },
    Case { name: "switch-fragments-64", run: || switch::worker(64, switch::FRAGMENTS) },
    Case { name: "switch-headers-64", run: || switch::worker(64, switch::HEADERS) },
    Case { name: "switch-program-64", run: || switch::programs(64) },
    Case { name: "switch-vlan-64", run: || switch::worker(64, switch::VLAN) },
    Case { name: "tpacket4-rx-64", run: tpacket4::receive },
    Case { name: "tpacket4-tx-64", run: tpacket4::send },
    Case { name: "usdpaa-1", run: || usdpaa_reflector::reflect(1) },
    Case { name: "usdpaa-32", run: || usdpaa_reflector::reflect(32) },
    Case { name: "wake-1", run: ports::woken },
    Case { name: "xdp-rx-1", run: || xdp_rx(1) },
    Case { name: "xdp-rx-64", run: || xdp_rx(64) },
    Case { name: "xdp-tx-1", run: || xdp_tx(1) },
    Case { name: "xdp-tx-64", run: || xdp_tx(64) },
];

/// Those of a program in C under the preload library: how it is called, and the batch.
pub const PRELOADED: &[(&str, &str, u32)] = &[
    ("preload-null-1", "null", 1),
    ("preload-null-64", "null", 64),
    ("preload-ioctl-1", "ioctl", 1),
    ("preload-ioctl-64", "ioctl", 64),
    ("preload-poll-1", "poll", 1),
    ("preload-poll-64", "poll", 64),
];

/// Sending and bookkeeping alone: a port that takes what is sent.
fn null(batch: u32) {
    let [tx, _] = rings(0);
    repeat(batch, || {
        put(&tx, batch);
        sync(&tx, &Sink);
    });
}

/// Both ends of a pipe.
fn pipe(batch: u32) {
    let [tx, rx] = rings(0);
    let sender = PipeTx { peer: rx.clone(), receiver: doorbell() };
    let receiver = PipeRx { peer: tx.clone(), sender: doorbell() };
    let step = || {
        put(&tx, batch);
        sync(&tx, &sender);
        sync(&rx, &receiver);
        assert_eq!(take(&rx), batch);
    };
    // The receiver's wait for more than a little to come: nothing comes while it waits here.
    let no_wait = || rx.owner().backoff.store(0, Relaxed);
    (0..SLOTS / batch).for_each(|_| step());
    for _ in 0..PACKETS / batch {
        no_wait();
        counted(step);
    }
}

/// A client that receives from an interface.
fn xdp_rx(batch: u32) {
    let mut kernel = FakeKernel::new(RingSizes::default()).unwrap();
    let [_, rx] = rings(RX_HEADROOM);
    let driver = kernel.rx(rx.ring().region().layout()).unwrap();
    sync(&rx, &driver);
    let step = || {
        sync(&rx, &driver);
        assert_eq!(take(&rx), batch);
    };
    for turn in 0..(SLOTS + PACKETS) / batch {
        assert_eq!(kernel.receive(batch, LENGTH.into()), batch);
        if turn < SLOTS / batch { step() } else { counted(step) }
    }
}

/// A client that sends to an interface.
fn xdp_tx(batch: u32) {
    let mut kernel = FakeKernel::new(RingSizes::default()).unwrap();
    let [tx, _] = rings(RX_HEADROOM);
    let driver = kernel.tx(tx.ring().region().layout()).unwrap();
    let step = || {
        put(&tx, batch);
        sync(&tx, &driver);
    };
    for turn in 0..(SLOTS + PACKETS) / batch {
        if turn < SLOTS / batch {
            step()
        } else {
            counted(step)
        }
        assert_eq!(kernel.send(), batch);
    }
}

/// A region with one tx and one rx ring, which have all buffers that they need.
pub fn rings(headroom: u32) -> [Kring; 2] {
    let sizes = Sizes::private([1, 1], [SLOTS, SLOTS], 0, 0);
    let region = Arc::new(Region::create(2, Layout::new(&sizes, headroom).unwrap()).unwrap());
    [(Dir::Tx, 0), (Dir::Rx, 1)].map(|(dir, object)| {
        let first = 2 + object * SLOTS;
        let bufs: Vec<u32> = (first..first + SLOTS).collect();
        let init = RingInit { dir, ringid: 0, num_slots: SLOTS };
        Kring::create(&region, object, &init, &bufs).unwrap()
    })
}

pub fn doorbell() -> Arc<Doorbell> {
    Arc::new(Doorbell::new().unwrap())
}

/// Fills `batch` slots, as a program does: no payload is touched.
#[inline]
pub fn put(tx: &Kring, batch: u32) {
    let ring = tx.ring();
    let mut at = ring.head();
    assert!(ring.distance(at, ring.tail()) >= batch, "the ring is full");
    for _ in 0..batch {
        ring.set_slot(at, ring.slot(at).buf_idx, LENGTH, 0);
        at = ring.next(at);
    }
    ring.set_head(at);
    ring.set_cur(at);
}

/// Takes all received slots, and releases them with the next sync; returns how many.
#[inline]
pub fn take(rx: &Kring) -> u32 {
    let ring = rx.ring();
    let (mut at, tail, mut taken) = (ring.head(), ring.tail(), 0);
    while at != tail {
        assert_eq!(ring.slot(at).len, LENGTH);
        at = ring.next(at);
        taken += 1;
    }
    ring.set_head(at);
    ring.set_cur(at);
    taken
}

#[inline]
pub fn sync(kring: &Kring, driver: &impl Driver) {
    assert_eq!(kring.sync(driver), Outcome::Done);
}

/// Once around the ring, then the counted packets.
fn repeat(batch: u32, step: impl Fn()) {
    (0..SLOTS / batch).for_each(|_| step());
    (0..PACKETS / batch).for_each(|_| counted(&step));
}
