//! Commands that share room among several rings: each gets its share of it.

use std::time::Instant;

use ringway::{Port, Turns};
use ringway_doc::{self as doc, fairness::BusyPipe};

use crate::{forward::Path, link::Settings, reflect::reflect, relay::Relay};

const RINGS: usize = 3;
/// Frames for which there is room in a round: fewer than come by one ring.
const ROOM: usize = 10;

/// A pipe that is always full, and a narrow one to which its frames go.
fn pipes(name: &str) -> (BusyPipe, [Port; 2], Port) {
    let (busy, from) = BusyPipe::new(name, RINGS, |name| doc::open(name).unwrap());
    let to = doc::open(&format!("{name}n{{1@conf:slots=16")).unwrap();
    (busy, [from, to], doc::open(&format!("{name}n}}1")).unwrap())
}

/// Rounds of a command, of which each moves what it can.
fn assert_fair(
    command: &str,
    (mut busy, mut ports, mut sink): (BusyPipe, [Port; 2], Port),
    mut round: impl FnMut(&mut [Port; 2]),
) {
    while !busy.is_over() {
        ports[0].split().1.iter_mut().for_each(|rx| _ = rx.sync());
        round(&mut ports);
        let mut rx = sink.rx(0);
        rx.sync();
        rx.batch(ROOM).for_each(|frame| busy.count(frame.len()));
        rx.sync();
        ports[1].tx(0).sync();
        busy.fill();
    }
    busy.assert_fair(command);
}

#[test]
fn rings_share_the_room_to_send() {
    let mut path = Path::default();
    assert_fair("bridge", pipes("fab"), |[from, to]| _ = path.forward(from, to));

    let (mut busy, mut port) = BusyPipe::new("far", RINGS, |name| doc::open(name).unwrap());
    let mut turns = Turns::default();
    while !busy.is_over() {
        port.split().1.iter_mut().for_each(|rx| _ = rx.sync());
        reflect(&mut port, &mut turns, |_| true);
        busy.count_returned(ROOM);
        port.tx(0).sync();
        busy.fill();
    }
    busy.assert_fair("pong");
}

#[test]
fn rings_share_the_memory_of_a_link() {
    let (busy, ports, mut sink) = pipes("fal");
    let settings = Settings { memory: 1 << 13, lossless: true, ..Settings::default() };
    let mut relay = Relay::new(ports, [settings; 2], 0, RINGS, Instant::now());
    let mut busy = busy;
    while !busy.is_over() {
        relay.step(Instant::now());
        let mut rx = sink.rx(0);
        rx.sync();
        rx.batch(ROOM).for_each(|frame| busy.count(frame.len()));
        rx.sync();
        busy.fill();
    }
    busy.assert_fair("shape");
}
