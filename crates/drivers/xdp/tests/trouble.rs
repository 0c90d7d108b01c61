//! Everything the kernel may answer to a sender, and that no buffer is lost by it.

mod common;

use std::os::fd::AsFd;

use common::{CHUNKS, SIZES, Wire, frame_queue, recv, send, set_send_buffer, wait_readable};
use ringway_testkit::{frame, skip_without_root};
use ringway_xdp::{FrameQueue, KickOutcome, can_be_mapped, is_bound, kick_rx, statistics};
use rustix::io::Errno;

/// Sends until the queue has taken `n` frames or refuses one, and flushes.
fn burst(queue: &mut FrameQueue, n: u32, length: usize) -> (u32, KickOutcome) {
    let taken = (0..n).take_while(|&i| send(queue, &frame(i, length))).count() as u32;
    (taken, queue.flush().unwrap())
}

#[test]
fn frames_of_bad_length_are_refused_and_counted() {
    if skip_without_root("frames_of_bad_length_are_refused_and_counted") {
        return;
    }
    let wire = Wire::new();
    let (_program, mut a) = frame_queue(&wire.a, "a0");
    assert!(a.send(13).is_none());
    assert!(a.send(2049).is_none());
    let counters = a.counters();
    assert_eq!((counters.tx_too_short, counters.tx_too_long), (1, 1));
    assert_eq!((counters.tx_packets, a.tx_in_flight()), (0, 0));
}

/// Fits a chunk, but not the wire: the kernel drops it and the next one still goes.
#[test]
fn a_frame_beyond_the_mtu_is_lost_alone() {
    if skip_without_root("a_frame_beyond_the_mtu_is_lost_alone") {
        return;
    }
    let wire = Wire::new();
    let (_a_program, mut a) = frame_queue(&wire.a, "a0");
    let (_b_program, mut b) = frame_queue(&wire.b, "b0");
    assert!(send(&mut a, &frame(1, 1519)));
    assert!(send(&mut a, &frame(2, 60)));
    assert_eq!(a.flush(), Ok(KickOutcome::Sent));
    wait_readable(&b);
    assert_eq!(recv(&mut b), [frame(2, 60)]);
    assert_eq!((a.counters().tx_lost, a.tx_in_flight()), (1, 0));
}

/// The kernel says the same of frames that are too long for the other end, and of frames that have no room there.
#[test]
fn frames_beyond_the_mtu_of_the_other_end_are_too_long() {
    if skip_without_root("frames_beyond_the_mtu_of_the_other_end_are_too_long") {
        return;
    }
    let wire = Wire::new();
    let (_a_program, mut a) = frame_queue(&wire.a, "a0");
    wire.b.run("ip link set b0 mtu 1000");
    for round in 1..=3 {
        for length in [60, 1200, 1000, 1018, 1019] {
            assert!(send(&mut a, &frame(1, length)));
        }
        assert_eq!(a.flush(), Ok(KickOutcome::Sent));
        let counters = a.counters();
        assert_eq!((counters.tx_lost, counters.tx_lost_too_long), (2 * round, 2 * round));
        assert_eq!(counters.tx_lost_bytes, round * (1200 + 1019));
    }
}

#[test]
fn a_peer_that_is_down_loses_frames_and_no_buffers() {
    if skip_without_root("a_peer_that_is_down_loses_frames_and_no_buffers") {
        return;
    }
    let wire = Wire::new();
    let (_program, mut a) = frame_queue(&wire.a, "a0");
    wire.b.run("ip link set b0 down");
    let mut taken = 0;
    while taken < 2 * CHUNKS {
        taken += burst(&mut a, 64, 60).0;
        assert_eq!(a.tx_in_flight(), 0, "after {taken}");
    }
    assert_eq!(a.counters().tx_lost, u64::from(taken));
}

/// The peer's ring takes 256 frames: the rest is lost, with its buffers back at once.
#[test]
fn a_peer_that_is_full_loses_frames_and_no_buffers() {
    if skip_without_root("a_peer_that_is_full_loses_frames_and_no_buffers") {
        return;
    }
    let (a, _) = into_a_slow_peer(4 << 20, KickOutcome::Sent);
    let lost = a.counters().tx_lost;
    assert!(lost > 0 && lost < u64::from(SIZES.tx), "{lost}");
    assert_eq!(a.counters().tx_lost_too_long, 0);
}

/// A send buffer that is full before the peer is holds frames back, and none is lost.
#[test]
fn a_send_buffer_that_is_full_loses_nothing() {
    if skip_without_root("a_send_buffer_that_is_full_loses_nothing") {
        return;
    }
    let (a, flushes) = into_a_slow_peer(100_000, KickOutcome::Again);
    assert_eq!(a.counters().tx_lost, 0);
    assert!(flushes > 1);
}

/// Sends as many frames as the TX ring holds to a peer that looks twice a second, and goes on until
/// each has arrived or is lost. Returns the sender and how often it had to flush again.
fn into_a_slow_peer(send_buffer: usize, first_flush: KickOutcome) -> (FrameQueue, u32) {
    let wire = Wire::new();
    wire.hold_frames_at_b(500);
    let (_a_program, mut a) = frame_queue(&wire.a, "a0");
    let (_b_program, mut b) = frame_queue(&wire.b, "b0");
    set_send_buffer(&a, send_buffer);
    assert_eq!(burst(&mut a, SIZES.tx, 1000), (SIZES.tx, first_flush));

    let (mut arrived, mut flushes) = (0, 0);
    while arrived + a.counters().tx_lost < u64::from(SIZES.tx) {
        wait_readable(&b);
        arrived += recv(&mut b).len() as u64;
        a.flush().unwrap();
        flushes += 1;
    }
    assert_eq!(a.flush(), Ok(KickOutcome::Sent));
    assert_eq!((a.tx_in_flight(), a.counters().tx_bad_completion), (0, 0));
    assert_eq!((b.rx_posted(), b.counters().rx_bad_desc), (CHUNKS / 2, 0));
    (a, flushes)
}

/// A received frame starts 256 bytes into its chunk and may not leave it.
#[test]
fn a_frame_too_long_for_a_chunk_is_dropped_and_counted_by_the_kernel() {
    if skip_without_root("a_frame_too_long_for_a_chunk_is_dropped_and_counted_by_the_kernel") {
        return;
    }
    let wire = Wire::new();
    wire.a.run("ip link set a0 mtu 2000");
    wire.b.run("ip link set b0 mtu 2000");
    let (_a_program, mut a) = frame_queue(&wire.a, "a0");
    let (_b_program, mut b) = frame_queue(&wire.b, "b0");
    assert_eq!(b.max_rx_frame(), 1792);
    for length in [1793, 1792] {
        assert!(send(&mut a, &frame(length, length as usize)));
    }
    assert_eq!(a.flush(), Ok(KickOutcome::Sent));
    wait_readable(&b);
    assert_eq!(recv(&mut b), [frame(1792, 1792)]);
    assert_eq!(statistics(&b).unwrap().rx_dropped, 1);
}

#[test]
fn a_link_that_goes_down_keeps_what_is_queued_until_it_is_up() {
    if skip_without_root("a_link_that_goes_down_keeps_what_is_queued_until_it_is_up") {
        return;
    }
    let wire = Wire::new();
    let (_a_program, mut a) = frame_queue(&wire.a, "a0");
    let (_b_program, mut b) = frame_queue(&wire.b, "b0");
    assert!(is_bound(&a));
    wire.a.run("ip link set a0 down");
    assert!(is_bound(&a));
    assert_eq!(burst(&mut a, 10, 60), (10, KickOutcome::LinkDown));
    assert_eq!(a.tx_in_flight(), 10);
    let (more, outcome) = burst(&mut a, 2 * CHUNKS, 60);
    assert_eq!((10 + more, outcome), (a.tx_in_flight(), KickOutcome::LinkDown));
    assert_eq!(a.counters().tx_ring_full, 1);

    wire.a.run("ip link set a0 up");
    assert_eq!(a.flush(), Ok(KickOutcome::Sent));
    assert_eq!(a.tx_in_flight(), 0);
    wait_readable(&b);
    assert_eq!(recv(&mut b)[0], frame(0, 60));
}

/// What was for a link that is down is given up: its chunks are free at once, and none of it is sent later.
#[test]
fn what_is_given_up_is_not_sent() {
    if skip_without_root("what_is_given_up_is_not_sent") {
        return;
    }
    let wire = Wire::new();
    let (_a_program, mut a) = frame_queue(&wire.a, "a0");
    let (_b_program, mut b) = frame_queue(&wire.b, "b0");
    for _ in 0..3 {
        wire.a.run("ip link set a0 down");
        assert_eq!(burst(&mut a, 10, 60), (10, KickOutcome::LinkDown));
        assert!(send(&mut a, &frame(10, 60)), "staged");
        assert_eq!((a.discard(), a.tx_in_flight(), a.waiting()), (11, 0, (0, 0)));
        wire.a.run("ip link set a0 up");
        assert_eq!(burst(&mut a, 1, 100), (1, KickOutcome::Sent));
        assert_eq!(a.tx_pending(), 0);
        wait_readable(&b);
        assert_eq!(recv(&mut b), [frame(0, 100)]);
        while a.tx_in_flight() > 0 {
            assert_eq!(a.flush(), Ok(KickOutcome::Sent));
        }
        assert_eq!(a.counters().tx_bad_completion, 0);
    }
    assert_eq!(statistics(&a).unwrap().tx_invalid_descs, 33);
}

#[test]
fn a_deleted_interface_is_gone_for_good() {
    if skip_without_root("a_deleted_interface_is_gone_for_good") {
        return;
    }
    let wire = Wire::new();
    let (_program, mut a) = frame_queue(&wire.a, "a0");
    assert_eq!(can_be_mapped(a.as_fd(), &SIZES), Ok(true));
    wire.pair.delete();
    assert!(!is_bound(&a) && !is_bound(&a));
    // That says nothing about the kernel.
    assert_eq!(can_be_mapped(a.as_fd(), &SIZES), Err(Errno::NETDOWN));
    assert_eq!(kick_rx(&a), Ok(KickOutcome::Gone));
    assert_eq!(burst(&mut a, 10, 60), (10, KickOutcome::Gone));
    assert_eq!(burst(&mut a, 10, 60), (10, KickOutcome::Gone));
    assert_eq!(a.tx_in_flight(), 20);
    assert_eq!(recv(&mut a), Vec::<Vec<u8>>::new());
}
