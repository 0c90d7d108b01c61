//! Frames pass whole between a guest and a port's rings, in every way in which a guest may use its queues.

use crate::common::{Port, machine, obey, setups};
use proptest::prelude::*;
use ringway_vhost::guest::{GUEST_BASE, Setup};

const HEADER: usize = 12;

/// A frame of `len` bytes that is like no other.
fn frame(len: usize, seed: u8) -> Vec<u8> {
    let mut frame: Vec<u8> =
        (0..len).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect();
    // No tag, no IP.
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

fn with_header(frame: &[u8]) -> Vec<u8> {
    [&[0; HEADER], frame].concat()
}

/// From the machine: `frames` in chains whose pieces have up to `piece` bytes.
fn sends(setup: Setup, frames: &[Vec<u8>], piece: usize, header_len: usize) {
    let (mut guest, mut connection) = machine(setup);
    let mut port = Port::new();
    let mut arrived = Vec::new();
    let mut left = frames.iter();
    let mut next = left.next();
    let (mut reaped, mut idle) = (0, 0);
    while arrived.len() < frames.len() {
        while let Some(frame) = next.filter(|frame| guest.send(0, &with_header(frame), piece)) {
            let _ = frame;
            next = left.next();
        }
        let moved = connection.send((&port.tx, header_len), 8);
        assert_eq!(moved.dropped(), 0, "{moved:?}");
        idle = if moved.frames == 0 && !moved.no_room { idle + 1 } else { 0 };
        assert!(idle < 3, "{setup:?}: nothing moves after {} frames", arrived.len());
        arrived.extend(port.sent());
        reaped += guest.reap(0);
    }
    reaped += guest.reap(0);
    assert_eq!(reaped, frames.len(), "{setup:?}");
    for (arrived, sent) in arrived.iter().zip(frames) {
        assert_eq!(arrived[..header_len], [0; HEADER][..header_len]);
        assert!(arrived[header_len..] == **sent, "{setup:?}: a frame of {} bytes", sent.len());
    }
}

/// To the machine, which offers buffers of `buffer` bytes.
fn receives(setup: Setup, frames: &[Vec<u8>], buffer: u32, header_len: usize) {
    let (mut guest, mut connection) = machine(setup);
    let mut port = Port::new();
    let mut arrived = Vec::new();
    let mut left = frames.iter();
    let mut next = left.next();
    let mut idle = 0;
    while arrived.len() < frames.len() {
        while guest.offer_buffer(0, buffer) {}
        while let Some(frame) =
            next.filter(|frame| port.give(&with_header(frame)[HEADER - header_len..], 1000))
        {
            let _ = frame;
            next = left.next();
        }
        let moved = connection.receive((&port.rx, header_len), 8);
        assert_eq!(moved.dropped(), 0, "{moved:?}");
        let before = arrived.len();
        while let Some(frame) = guest.receive(0) {
            arrived.push(frame);
        }
        idle = if arrived.len() == before { idle + 1 } else { 0 };
        assert!(idle < 3, "{setup:?}: nothing moves after {} frames", arrived.len());
    }
    for (arrived, sent) in arrived.iter().zip(frames) {
        assert_eq!(arrived[..10], [0; 10]);
        assert!(arrived[HEADER..] == **sent, "{setup:?}: a frame of {} bytes", sent.len());
    }
}

#[test]
fn frames_pass_in_every_way() {
    for setup in setups() {
        let short: Vec<_> = (0..300usize).map(|i| frame(14 + i * 5, i as u8)).collect();
        let long = [60, 9000, 14, 40_000, 1514].map(|len| frame(len, 7));
        for header_len in [0, HEADER] {
            sends(setup, &short, 700, header_len);
            receives(setup, &short, 2048, header_len);
            sends(setup, &long, 2048, header_len);
            if setup.mergeable {
                receives(setup, &long, 1500, header_len);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Queues, frames and pieces of any size.
    #[test]
    fn frames_of_any_size_in_any_pieces(
        bits in 0u32..16,
        size in prop::sample::select(vec![16u16, 64, 256]),
        lens in prop::collection::vec(14usize..3000, 1..80),
        piece in 300usize..2048,
        with in any::<bool>(),
    ) {
        let setup = Setup { size, ..setups().nth(bits as usize).unwrap() };
        let frames: Vec<_> = lens.iter().map(|len| frame(*len, *len as u8)).collect();
        let header_len = if with { HEADER } else { 0 };
        sends(setup, &frames, piece, header_len);
        if setup.mergeable {
            receives(setup, &frames, piece as u32, header_len);
        }
    }
}

/// A queue that is stopped goes on where it was, also in the middle of its ring.
#[test]
fn a_queue_goes_on_where_it_was_stopped() {
    for setup in setups() {
        let (mut guest, mut connection) = machine(setup);
        let mut port = Port::new();
        for round in 0..100u8 {
            let sent = frame(100, round);
            assert!(guest.send(0, &with_header(&sent), 2048));
            connection.send((&port.tx, 0), 8);
            assert_eq!(port.sent(), [sent], "{setup:?}");
            assert_eq!(guest.reap(0), 1);
            guest.stop(1).unwrap();
            obey(&mut connection).unwrap();
            let base = guest.stopped_at().unwrap();
            assert!(guest.send(0, &with_header(&frame(60, round)), 2048));
            assert_eq!(connection.send((&port.tx, 0), 8).frames, 0, "it is stopped");
            guest.set_up(1, base).unwrap();
            obey(&mut connection).unwrap();
            assert_eq!(connection.send((&port.tx, 0), 8).frames, 1, "{setup:?}, round {round}");
            port.sent();
            assert_eq!(guest.reap(0), 1);
        }
    }
}

/// A front end that connects again may know no place, and say that the queue is at its beginning: the used ring knows better.
#[test]
fn a_split_queue_goes_on_where_its_used_ring_is() {
    for setup in setups().filter(|setup| !setup.packed) {
        let (mut guest, mut connection) = machine(setup);
        let mut port = Port::new();
        for round in 0..100u8 {
            for seed in [round, 255] {
                assert!(guest.send(0, &with_header(&frame(100, seed)), 2048));
            }
            guest.stop(1).unwrap();
            guest.set_up(1, 0).unwrap();
            obey(&mut connection).unwrap();
            connection.send((&port.tx, 0), 8);
            assert_eq!(connection.fault(), None, "{setup:?}, round {round}");
            assert_eq!(port.sent(), [frame(100, round), frame(100, 255)]);
            assert_eq!(guest.reap(0), 2);
        }
    }
}

/// What is sent by a queue that the guest has disabled goes nowhere, and is counted; nothing is received by one.
#[test]
fn disabled_queues() {
    let (mut guest, mut connection) = machine(Setup::default());
    let mut port = Port::new();
    guest.enable(0, false).unwrap();
    guest.enable(1, false).unwrap();
    obey(&mut connection).unwrap();
    assert!(!connection.is_up());
    assert!(guest.send(0, &with_header(&frame(60, 1)), 2048) && guest.offer_buffer(0, 2048));
    assert!(port.give(&frame(60, 1), 2048));
    let moved = connection.send((&port.tx, 0), 8);
    assert_eq!((moved.frames, moved.disabled, guest.reap(0)), (0, 1, 1));
    assert_eq!(connection.receive((&port.rx, 0), 8).frames, 0);
    guest.enable(0, true).unwrap();
    obey(&mut connection).unwrap();
    assert!(connection.is_up());
    assert_eq!(connection.receive((&port.rx, 0), 8).frames, 1);
}

/// A queue that the front end has enabled is disabled until the message is read: frames that were offered behind it wait for
/// that.
#[test]
fn frames_wait_for_the_message_that_enables_their_queue() {
    let (mut guest, mut connection) = machine(Setup::default());
    let mut port = Port::new();
    guest.enable(1, false).unwrap();
    obey(&mut connection).unwrap();
    guest.enable(1, true).unwrap();
    assert!(guest.send(0, &with_header(&frame(60, 1)), 2048));
    let moved = connection.send((&port.tx, 0), 8);
    assert_eq!((moved.frames, moved.disabled), (0, 0));
    obey(&mut connection).unwrap();
    assert_eq!(connection.send((&port.tx, 0), 8).frames, 1);
    assert_eq!(port.sent(), [frame(60, 1)]);
}

/// A guest without interrupts has none; with them it has one for many frames.
#[test]
fn interrupts() {
    for setup in setups() {
        let (mut guest, mut connection) = machine(setup);
        let mut port = Port::new();
        let mut round = |guest: &mut ringway_vhost::guest::Guest| {
            for seed in 0..4 {
                assert!(guest.offer_buffer(0, 2048) && port.give(&frame(60, seed), 2048));
            }
            let _ = guest.is_interrupted(0);
            assert_eq!(connection.receive((&port.rx, 0), 8).frames, 4);
            let is_interrupted = guest.is_interrupted(0);
            (0..4).for_each(|_| assert!(guest.receive(0).is_some()));
            is_interrupted
        };
        for _ in 0..40 {
            guest.ask_for_interrupt(0, true);
            assert!(round(&mut guest), "{setup:?}");
            guest.ask_for_interrupt(0, false);
            assert!(!round(&mut guest), "{setup:?}");
        }
    }
}

/// A guest tells that it offers something, where the card sleeps, and not where it does not.
#[test]
fn kicks() {
    for setup in setups() {
        let (mut guest, mut connection) = machine(setup);
        let mut port = Port::new();
        for round in 0..100 {
            connection.arm(true);
            assert!(!connection.offers(true));
            assert!(guest.send(0, &with_header(&frame(60, 0)), 2048));
            assert!(connection.arm(true), "{setup:?}: it was told, in round {round}");
            assert!(connection.offers(true));
            // Now it is awake.
            connection.send((&port.tx, 0), 8);
            assert!(guest.send(0, &with_header(&frame(60, 0)), 2048));
            if !setup.events {
                assert!(!connection.arm(true), "{setup:?}: it was not asked");
            }
            connection.send((&port.tx, 0), 8);
            port.sent();
            guest.reap(0);
        }
    }
}

/// Frames of a flow come back by the pair of queues that they left by.
#[test]
fn flows_keep_their_queues() {
    let setup = Setup { pairs: 4, ..Setup::default() };
    let (mut guest, mut connection) = machine(setup);
    let mut port = Port::new();
    let flow = |number: u8, back: bool| {
        let [a, b] = if back { [2, number] } else { [number, 2] };
        let ip = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, a, 10, 0, 0, b, 0, 9, 0, 9];
        [&[2; 12][..], &[8, 0], &ip, &[0; 30]].concat()
    };
    for number in 10..40 {
        let pair = usize::from(number) % 4;
        assert!(guest.send(pair, &with_header(&flow(number, false)), 2048));
        connection.send((&port.tx, 0), 8);
        port.sent();
        for pair in 0..4 {
            guest.reap(pair);
            guest.offer_buffer(pair, 2048);
        }
        assert!(port.give(&flow(number, true), 2048));
        assert_eq!(connection.receive((&port.rx, 0), 8).frames, 1);
        let arrived = (0..4).filter(|pair| guest.receive(*pair).is_some()).collect::<Vec<_>>();
        assert_eq!(arrived, [pair], "flow {number}");
    }
    // Also while another pair is disabled.
    guest.enable(2, false).unwrap();
    obey(&mut connection).unwrap();
    for number in (10..40).filter(|number| number % 4 != 1) {
        let pair = usize::from(number) % 4;
        assert!(guest.send(pair, &with_header(&flow(number, false)), 2048));
        connection.send((&port.tx, 0), 8);
        port.sent();
        guest.reap(pair);
        guest.offer_buffer(pair, 2048);
        assert!(port.give(&flow(number, true), 2048));
        connection.receive((&port.rx, 0), 8);
        let arrived = (0..4).filter(|pair| guest.receive(*pair).is_some()).collect::<Vec<_>>();
        assert_eq!(arrived, [pair], "flow {number}");
    }
}

/// While a machine migrates, each page that was written is noted: buffers and rings.
#[test]
fn pages_that_are_written_are_noted() {
    for packed in [false, true] {
        let setup = Setup { packed, ..Setup::default() };
        let (mut guest, mut connection) = machine(setup);
        let mut port = Port::new();
        let log = std::fs::File::from(
            rustix::fs::memfd_create("log", rustix::fs::MemfdFlags::CLOEXEC).unwrap(),
        );
        let size = 4096;
        log.set_len(size).unwrap();
        guest.migrate(&log, size).unwrap();
        obey(&mut connection).unwrap();
        let noted = || {
            let mut bits = vec![0u8; size as usize];
            std::os::unix::fs::FileExt::read_exact_at(&log, &mut bits, 0).unwrap();
            let pages =
                (0..8 * size).filter(|page| bits[*page as usize / 8] >> (page % 8) & 1 != 0);
            pages.map(|page| page * 4096).collect::<Vec<_>>()
        };
        assert_eq!(noted(), []);
        let before = guest.read(0, ringway_vhost::guest::MEMORY as usize);
        assert!(guest.offer_buffer(0, 2048));
        let offered = guest.read(0, before.len());
        assert!(port.give(&frame(1000, 3), 2048));
        assert_eq!(connection.receive((&port.rx, 0), 8).frames, 1);
        let after = guest.read(0, before.len());
        let changed = (0..before.len())
            .step_by(4096)
            .filter(|at| offered[*at..at + 4096] != after[*at..at + 4096]);
        let changed: Vec<_> = changed.map(|at| GUEST_BASE + at as u64).collect();
        let noted = noted();
        assert!(
            changed.len() >= 2 && changed.iter().all(|page| noted.contains(page)),
            "{noted:x?}"
        );
        assert!(guest.receive(0).is_some());
    }
}

/// A machine that has moved here is announced by its address.
#[test]
fn announcements() {
    let (guest, mut connection) = machine(Setup::default());
    assert_eq!(connection.take_announcement(), None);
    guest.announce([2, 0, 0, 0, 0, 9]).unwrap();
    obey(&mut connection).unwrap();
    let frame = connection.take_announcement().unwrap();
    assert_eq!(frame[..14], [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 9, 0x80, 0x35]);
    assert_eq!(connection.take_announcement(), None);
}
