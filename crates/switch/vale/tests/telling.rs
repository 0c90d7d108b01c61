//! When a program that sleeps is told of packets, and of slots that are free again: in time, and not for each.

mod common;

use common::{BROADCAST, Client, header, mac};
use ringway_switch_port::{Backpressure, Burst, Drops, PacketIo, Source};
use ringway_vale::RingPort;

const SLOTS: u32 = 64;

/// So many frames or slots more, the flush behind them, idle or not, and whether the program is told then.
type Step = (u32, bool, bool);

fn frame() -> Vec<u8> {
    [&header(BROADCAST, mac(1))[..], &[0; 46]].concat()
}

/// Delivers so many frames, of 60 bytes each.
fn deliver(port: &mut RingPort, count: u32) {
    let mut frames = vec![frame(); count as usize];
    let mut burst = Burst::default().recycle(Source::default());
    for frame in &mut frames {
        burst.push_private(frame);
        burst.end_frame();
    }
    burst.read_headers();
    let mut drops = Drops::default();
    let delivered = port.deliver(0, &burst.frames, &burst, &mut drops);
    assert_eq!((delivered.packets, drops), (count.into(), Drops::default()));
}

#[test]
fn a_receiver_is_told_of_a_quarter_of_its_ring_or_when_no_more_comes() {
    let client = Client::new([1, 1], [SLOTS; 2], 0);
    let mut port = client.port();
    let csb = client.rx[0].csb();
    let (mut tail, mut bytes) = (0, 0);
    let cases: [&[Step]; 7] = [
        &[(16, false, true)],
        &[(15, false, false), (1, false, true)],
        &[(15, false, false), (0, false, true), (0, false, false)],
        &[(1, true, true), (0, true, false)],
        &[(0, true, false), (0, false, false)],
        &[(3, false, false), (0, true, true)],
        &[(3, false, false), (20, false, true)],
    ];
    for (n, flushes) in cases.into_iter().enumerate() {
        csb.app.arm();
        for &(count, idle, is_told) in flushes {
            deliver(&mut port, count);
            // What is delivered is not to be seen before.
            assert_eq!((csb.service.hwtail(), csb.service.bytes()), (tail, bytes), "case {n}");
            port.flush(idle);
            (tail, bytes) = ((tail + count) % SLOTS, bytes + 60 * u64::from(count));
            assert_eq!((csb.service.hwtail(), csb.service.bytes()), (tail, bytes), "case {n}");
            assert_eq!(client.rx_bell.drain(), is_told, "case {n}: {count} more");
        }
        client.receive(0, usize::MAX);
        client.rx_bell.drain();
    }
}

/// Collects what there is, and is done with so many slots of it.
fn take(port: &mut RingPort, slots: u32) {
    let mut burst = Burst::default().recycle(Source::default());
    burst.limit = u32::MAX;
    let found = port.collect(0, &mut burst, &mut Drops::default());
    drop(burst);
    assert!(found >= slots);
    if found == slots { port.release(0) } else { port.release_some(0, slots) }
}

#[test]
fn a_sender_is_told_of_half_of_its_ring_or_of_all_that_it_has_sent() {
    let client = Client::new([1, 1], [SLOTS; 2], 0);
    let mut port = client.port();
    let csb = client.tx[0].csb();
    let (mut cur, mut bytes) = (0, 0);
    // Frames that are sent, and slots that are taken of them.
    let cases: [(u32, &[Step]); 6] = [
        (40, &[(32, false, true), (8, false, true)]),
        (40, &[(31, false, false), (1, false, true), (8, true, true)]),
        (40, &[(5, false, false), (0, false, true), (0, false, false), (35, false, true)]),
        (3, &[(1, true, true), (0, true, false), (1, false, false), (1, false, true)]),
        (3, &[(2, false, false), (0, true, true), (1, true, true)]),
        (1, &[(1, false, true), (0, false, false)]),
    ];
    for (n, (count, steps)) in cases.into_iter().enumerate() {
        for _ in 0..count {
            client.fill(0, &frame(), 60, 0, None);
        }
        client.tx_sync(0);
        for &(slots, idle, is_told) in steps {
            csb.app.arm();
            if slots > 0 {
                take(&mut port, slots);
            }
            assert_eq!((csb.service.hwcur(), csb.service.bytes()), (cur, bytes), "case {n}");
            port.complete(idle);
            (cur, bytes) = ((cur + slots) % SLOTS, bytes + 60 * u64::from(slots));
            assert_eq!((csb.service.hwcur(), csb.service.bytes()), (cur, bytes), "case {n}");
            assert_eq!(csb.service.hwtail(), (cur + SLOTS - 1) % SLOTS, "case {n}");
            assert_eq!(client.tx_bell.drain(), is_told, "case {n}: {slots} more");
        }
        client.tx_sync(0);
    }
}

/// A sender that waits for a lossless port is told at once that it does, and not that it does not.
#[test]
fn a_sender_is_told_that_it_waits() {
    let client = Client::new([1, 1], [SLOTS; 2], 0);
    let mut port = client.port();
    let csb = client.tx[0].csb();
    for (held, is_told) in [(true, true), (false, false), (true, true)] {
        csb.app.arm();
        port.hold_back(0, held);
        assert_eq!((csb.service.holds_back(), client.tx_bell.drain()), (held, is_told));
    }
}
