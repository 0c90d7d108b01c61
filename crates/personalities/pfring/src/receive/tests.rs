//! Rings on ports of a registry in this process, that get more than they read.

use ringway_doc::fairness::BusyPipe;
use ringway_live_capture::{Live, Opened, Settings};

use std::sync::Arc;

use super::*;

fn live(port: &str) -> Live {
    let port = ringway_doc::open(port).unwrap();
    Live::new(port, &Settings::default(), None).ok().unwrap()
}

fn ring(devices: impl IntoIterator<Item = Live>) -> Ring {
    let source = |live: Live| {
        let opened = Opened::Port(Arc::new(live));
        Source::over("device".into(), true, 0, opened, Settings::default()).unwrap()
    };
    let sources = devices.into_iter().map(source).collect();
    let ring = Ring::over("devices", MAX_CAPLEN, 0, sources).unwrap();
    ring.set_enabled(true);
    ring
}

/// The next packet's length, if there is one.
fn next(ring: &Ring) -> Option<u32> {
    let mut length = 0;
    let got = ring.next(false, |reader, _| length = reader.header.len);
    matches!(got, Some(Got::Packet(_))).then_some(length)
}

/// A ring of several devices, all of which have packets all the time.
#[test]
fn devices_share_the_reader() {
    let (mut busy, devices) = BusyPipe::several("pffair", 3, live);
    let ring = ring(devices);
    while !busy.is_over() {
        busy.count(next(&ring).expect("a packet") as usize);
        busy.fill();
    }
    busy.assert_fair("PF_RING, several devices");
}

/// A loop that gives a turn's packets in one go, of a port with more rings than have a burst in a turn.
#[test]
fn rings_share_the_turns_of_a_loop() {
    const RINGS: usize = 10;
    let (mut busy, device) = BusyPipe::new("pfloop", RINGS, live);
    let ring = ring([device]);
    let mut packets = 0;
    let result = ring.each(false, |header, _| {
        busy.count(header.len as usize);
        packets += 1;
        if packets % TURN == 0 {
            busy.fill();
        }
        if busy.is_over() {
            ring.shut_down();
        }
    });
    assert_eq!(result, 0);
    busy.assert_fair("PF_RING, a loop");
}

/// A device with nothing but packets that the ring does not take has its turn, and no more.
#[test]
fn unwanted_packets_of_a_device_do_not_hold_up_the_others() {
    const VLAN: u8 = 7;
    const SLOTS: usize = 2048;
    let [mut unwanted, mut wanted] = ["pfun", "pfwa"]
        .map(|name| ringway_doc::open(&format!("{name}{{1@conf:slots={SLOTS}")).unwrap());
    let ring = ring(["pfun}1", "pfwa}1"].map(live));
    ring.admission.set_vlan(VLAN.into());
    let mut frame = [0x22; 60];
    while unwanted.tx(0).push(&frame) {}
    unwanted.tx(0).sync();
    frame[12..16].copy_from_slice(&[0x81, 0, 0, VLAN]);
    for _ in 0..2 {
        assert!(wanted.tx(0).push(&frame));
    }
    wanted.tx(0).sync();
    assert_eq!([next(&ring), next(&ring)], [Some(60); 2]);
    let mut taken = || {
        let mut tx = unwanted.tx(0);
        tx.sync();
        tx.space()
    };
    assert!(taken() <= TURN as usize, "{} of the unwanted before two that are wanted", taken());
    assert_eq!(next(&ring), None);
    // The last that was looked at goes back with the next read.
    assert!(taken() >= SLOTS - 2, "in the end, all");
}
