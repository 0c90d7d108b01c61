//! A monitor of what a port sends sees what the others got, and a slow one its share of each ring and of
//! each direction.

mod common;

use std::sync::Arc;

use common::{BROADCAST, Client, bytes, header, mac, watched::Watched};
use ringway_abi::{Dir, NS_TXMON};
use ringway_kring::{Doorbell, Kring};
use ringway_mirror::{Mirror, MirrorMode, Mirrors};
use ringway_region::RingInit;
use ringway_switch_port::{Burst, Frame, PortMirrors};
use ringway_vale::{Clock, Forwarding, MirrorSources, PortConfig, SteppedBridge, SwitchMirror};

/// A receiver at which the sender's packets have just arrived when the sender writes others into its buffers.
fn moment(receiver: &Client, sender: &Client) -> Watched<impl FnMut(&[Frame], &Burst<'_>) + use<>> {
    let sent = sender.tx[0].clone();
    let look = move |_: &[Frame], _: &Burst<'_>| {
        let sent = sent.ring();
        for at in 0..sent.num_slots() {
            let slot = sent.slot(at);
            sent.buf(slot.buf_idx).unwrap().write(0, &[0xee; 60]);
            sent.set_slot(at, slot.buf_idx, 17, slot.flags);
        }
    };
    Watched { port: receiver.port(), look }
}

#[test]
fn a_monitor_sees_what_was_delivered() {
    let mut bridge = SteppedBridge::new(&Forwarding::Flood, Clock::new(|| 0)).unwrap();
    let [sender, receiver, monitor] = [(); 3].map(|()| Client::new([1, 1], [16, 16], 0));
    let place = bridge.attach(Box::new(sender.port()), PortConfig::default()).unwrap();
    let moment = moment(&receiver, &sender);
    bridge.attach(Box::new(moment), PortConfig::default()).unwrap();
    // The monitor's ring is another of its own region.
    let bufs: Vec<u32> = (2..18).collect();
    let init = RingInit { dir: Dir::Rx, ringid: 0, num_slots: 16 };
    let ring = Kring::create(&monitor.region, 0, &init, &bufs).unwrap();
    let mirror =
        Mirror::new(ring.clone(), Arc::new(Doorbell::new().unwrap()), MirrorMode::CopySent);
    let tx = vec![Mirrors::from_iter([mirror])];
    bridge.set_mirrors(place, PortMirrors { tx, rx: vec![] });

    let frames: Vec<Vec<u8>> =
        (1..4).map(|n| [&header(BROADCAST, mac(n))[..], &[n; 46]].concat()).collect();
    for frame in &frames {
        sender.fill(0, frame, frame.len() as u16, 0, None);
    }
    sender.tx_sync(0);
    bridge.round();
    bridge.flush_idle();
    assert_eq!(bytes(receiver.receive(0, usize::MAX)), frames);
    let view = ring.ring();
    let seen: Vec<Vec<u8>> = (0..ring.hwtail())
        .map(|at| {
            let slot = view.slot(at);
            let mut bytes = vec![0; slot.len.into()];
            view.buf(slot.buf_idx).unwrap().copy_to(slot.len.into(), &mut bytes);
            bytes
        })
        .collect();
    assert_eq!(seen, frames);
}

/// The same for a mirror of the bridge.
#[test]
fn a_mirror_shows_what_was_delivered() {
    for directions in [[true, false], [false, true]] {
        let mut bridge = SteppedBridge::new(&Forwarding::Flood, Clock::new(|| 0)).unwrap();
        let [sender, receiver, probe] = [(); 3].map(|()| Client::new([1, 1], [16, 16], 0));
        bridge.attach(Box::new(sender.port()), PortConfig::default()).unwrap();
        let moment = moment(&receiver, &sender);
        bridge.attach(Box::new(moment), PortConfig::default()).unwrap();
        let to = bridge.attach(Box::new(probe.port()), PortConfig::default()).unwrap();
        let ([sent, received], counters) = (directions, Arc::default());
        let from = MirrorSources::All;
        let mirror = SwitchMirror { from, sent, received, to, filter: None, counters };
        bridge.set_switch_mirrors(vec![mirror]);
        let frames: Vec<Vec<u8>> =
            (1..4).map(|n| [&header(BROADCAST, mac(n))[..], &[n; 46]].concat()).collect();
        for frame in &frames {
            sender.fill(0, frame, frame.len() as u16, 0, None);
        }
        sender.tx_sync(0);
        bridge.round();
        bridge.flush_idle();
        assert_eq!(bytes(receiver.receive(0, usize::MAX)), frames);
        assert_eq!(bytes(probe.receive(0, usize::MAX)), frames);
    }
}

/// Rings of the port that is watched.
const RINGS: usize = 3;

/// What a port sends and what it receives by a ring share one of the monitor's. However little its
/// reader takes, it sees some of both, and of every ring.
#[test]
fn a_slow_monitor_has_its_share_of_every_ring_and_direction() {
    const TAKEN: u32 = 3;
    for most in [1, TAKEN, 40] {
        let mut bridge = SteppedBridge::new(&Forwarding::default(), Clock::new(|| 0)).unwrap();
        let clients = [(); 2].map(|()| Client::new([RINGS as u32; 2], [64, 64], 0));
        let [watched, _] = clients
            .each_ref()
            .map(|c| bridge.attach(Box::new(c.port()), PortConfig::default()).unwrap());
        let monitor = Client::new([1, RINGS as u32], [16, 16], 0);
        let bell = Arc::new(Doorbell::new().unwrap());
        let mirrors = |mode| {
            let mirror = |ring: &Kring| Mirror::new(ring.clone(), bell.clone(), mode);
            monitor.rx.iter().map(|ring| Mirrors::from_iter([mirror(ring)])).collect()
        };
        let (tx, rx) = (mirrors(MirrorMode::CopySent), mirrors(MirrorMode::CopyReceived));
        bridge.set_mirrors(watched, PortMirrors { tx, rx });

        let mut seen = [[0u32; 2]; RINGS];
        for _ in 0..300 {
            for (n, client) in (1..).zip(&clients) {
                // Each to the other, so that it comes by the ring by which it was sent.
                let frame = [&header(mac(3 - n), mac(n))[..], &[7; 46]].concat();
                for ring in 0..RINGS {
                    client.tx_sync(ring);
                    let view = client.tx[ring].ring();
                    while view.head() != view.tail() {
                        client.fill(ring, &frame, 60, 0, None);
                    }
                    client.tx_sync(ring);
                }
            }
            bridge.round();
            for client in &clients {
                (0..RINGS).for_each(|ring| _ = client.receive(ring, usize::MAX));
            }
            for (ring, seen) in monitor.rx.iter().zip(&mut seen) {
                let (view, mut at) = (ring.ring(), ring.ring().head());
                for _ in 0..most {
                    if at == ring.hwtail() {
                        break;
                    }
                    seen[usize::from(view.slot(at).flags & NS_TXMON != 0)] += 1;
                    at = view.next(at);
                }
                view.set_head(at);
                ring.csb().app.publish(at, at);
            }
        }
        let all: u32 = seen.iter().flatten().sum();
        let least = all / (2 * RINGS as u32) / 2;
        assert!(seen.iter().flatten().all(|seen| *seen >= least), "{most} at a time: {seen:?}");
    }
}
