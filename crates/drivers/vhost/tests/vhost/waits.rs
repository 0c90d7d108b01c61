//! What a card waits for is what keeps it from going on, and nothing that is there already.

use crate::common::{Port, SLOTS, machine, obey, setups};
use ringway_vhost::guest::Setup;

const HEADER: [u8; 12] = [0; 12];

/// A frame of a flow between the hosts `a` and `b`.
fn flow(a: u8, b: u8) -> Vec<u8> {
    let ip = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, a, 10, 0, 0, b, 0, 9, 0, 9];
    [&[2; 12][..], &[8, 0], &ip, &[0; 30]].concat()
}

/// Buffers that are too few for the next frame end no sleep, and the guest tells of further ones.
#[test]
fn buffers_that_are_too_few() {
    for setup in setups().filter(|setup| setup.mergeable) {
        let (mut guest, mut connection) = machine(setup);
        let mut port = Port::new();
        let frame = flow(1, 2).repeat(15);
        for round in 0..50 {
            assert!(port.give(&frame, 2048));
            for _ in 0..3 {
                assert!(guest.offer_buffer(0, 100));
                let moved = connection.receive((&port.rx, 0), 8);
                assert!(moved.frames == 0 && moved.no_room, "{setup:?}, {round}: {moved:?}");
                connection.arm(false);
                assert!(!connection.offers(false), "{setup:?}, round {round}");
            }
            assert!(guest.offer_buffer(0, 2048));
            assert!(connection.arm(false), "{setup:?}: it was told, in round {round}");
            assert!(connection.offers(false), "{setup:?}, round {round}");
            assert_eq!(connection.receive((&port.rx, 0), 8).frames, 1, "{setup:?}, {round}");
            assert_eq!(guest.receive(0).map(|got| got.len()), Some(12 + frame.len()));
        }
    }
}

/// A queue without buffers keeps the others' frames for a while. Then its own are dropped, and counted, until it has some.
#[test]
fn a_queue_that_offers_nothing() {
    let (mut guest, mut connection) = machine(Setup { pairs: 2, ..Setup::default() });
    let mut port = Port::new();
    for pair in 0..2 {
        let sent = [&HEADER[..], &flow(10 + pair, 2)].concat();
        assert!(guest.send(pair.into(), &sent, 2048));
    }
    connection.send((&port.tx, 0), 8);
    port.sent();
    assert!(connection.patience().is_some() && connection.can_receive());
    while guest.offer_buffer(0, 2048) {}
    for pair in [1, 0, 1, 0, 0] {
        assert!(port.give(&flow(2, 10 + pair), 2048));
    }
    let first = connection.receive((&port.rx, 0), 8);
    assert!(first.no_room && first.frames == 0 && first.dropped() == 0, "{first:?}");
    connection.arm(false);
    assert!(!connection.offers(false), "the other queue has kept nobody");
    let mut moved = first;
    while moved.no_room {
        std::thread::yield_now();
        moved = connection.receive((&port.rx, 0), 8);
    }
    assert_eq!((moved.frames, moved.no_buffers), (3, 2));
    // It is not waited for any more, and gets what comes once it has buffers.
    assert!(port.give(&flow(2, 11), 2048));
    assert_eq!(connection.receive((&port.rx, 0), 8).no_buffers, 1);
    assert!(guest.offer_buffer(1, 2048) && port.give(&flow(2, 11), 2048));
    assert_eq!(connection.receive((&port.rx, 0), 8).frames, 1);
    assert!(guest.receive(1).is_some());
}

/// Frames are of no use to a machine that has no queue for them, though it sends.
#[test]
fn a_machine_that_only_sends() {
    let (guest, mut connection) = machine(Setup::default());
    assert!(connection.can_receive());
    guest.enable(0, false).unwrap();
    obey(&mut connection).unwrap();
    assert!(connection.is_up() && !connection.can_receive());
}

/// Slots that are too few for the next frame end no wait for room.
#[test]
fn slots_that_are_too_few() {
    let (mut guest, mut connection) = machine(Setup::default());
    let port = Port::new();
    let frame = [&HEADER[..], &flow(1, 2).repeat(60)].concat();
    let mut moved = connection.send((&port.tx, 0), 8);
    while !moved.no_room {
        assert!(guest.send(0, &frame, 2048));
        moved = connection.send((&port.tx, 0), 8);
        guest.reap(0);
    }
    let free = port.tx.distance(port.tx.head(), port.tx.tail());
    assert!(free > 0 && free < SLOTS / 4, "{free}");
    assert_eq!(port.tx.cur(), port.tx.tail());
}
