//! An interface as a port of a bridge, without one: what a look finds, and what is sent of what is delivered.

mod common;

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use common::{Wire, frame_queue, recv, send, wait_readable};
use ringway_nic_setup::{AttachMode, Interface, Mode, PortAttachment, in_netns, open_nic_port_as};
use ringway_switch_port::{Configure, Drops, PacketIo, Wake, under_test};
use ringway_testkit::{Netns, frame, skip_without_root, tagged};
use ringway_xdp::{FrameCounters, FrameQueue, KickOutcome, NicPort};

/// Bytes of a chunk, by which a look's limit is reckoned.
const CHUNK: u32 = 2048;

fn open(netns: &Netns, name: &str) -> NicPort<PortAttachment> {
    let open = || {
        let modes = Mode::preference(AttachMode::Native);
        open_nic_port_as(&Interface::by_name(name).unwrap(), AttachMode::Native, modes, false)
    };
    in_netns(netns.fd().as_fd(), open).unwrap().unwrap()
}

/// Frames of one look, and how many pieces the kernel had them in. They are released.
fn look(port: &mut NicPort<PortAttachment>, limit: u32, drops: &mut Drops) -> (Vec<Vec<u8>>, u32) {
    under_test::look(port, 0, limit, drops)
}

/// Sends all, which veth has room for.
fn send_all(from: &mut FrameQueue, frames: &[Vec<u8>]) {
    frames.iter().for_each(|frame| assert!(send(from, frame)));
    let deadline = Instant::now() + Duration::from_secs(30);
    while from.flush() != Ok(KickOutcome::Sent) {
        assert!(Instant::now() < deadline, "they are not sent");
    }
}

/// Has the port send frames on any ring, at once; packets and bytes that it has taken.
fn deliver(
    port: &mut NicPort<PortAttachment>,
    ring: usize,
    frames: &[Vec<u8>],
    drops: &mut Drops,
) -> (u64, u64) {
    let delivered = under_test::deliver(port, ring, frames, drops);
    port.flush(true);
    delivered
}

/// That many frames of the other end.
fn recv_all(queue: &mut FrameQueue, count: usize) -> Vec<Vec<u8>> {
    let mut frames = recv(queue);
    while frames.len() < count {
        wait_readable(&*queue);
        frames.extend(recv(queue));
    }
    frames
}

/// So many chunks at most as the limit has, but those of one frame at the least, and no more than 128.
#[test]
fn a_look_is_bounded() {
    if skip_without_root("a_look_is_bounded") {
        return;
    }
    let wire = Wire::new();
    let mut port = open(&wire.a, "a0");
    let (_program, mut far) = frame_queue(&wire.b, "b0");
    let mut drops = Drops::default();
    let lengths = (0..200).map(|i| 14 + 7 * i as usize);
    let sent: Vec<_> = (0..).zip(lengths).map(|(i, length)| frame(i, length)).collect();
    let received = || {
        let packets = wire.a.run("cat /sys/class/net/a0/statistics/rx_packets");
        packets.trim().parse::<usize>().unwrap()
    };
    for (limit, most) in [
        (u32::MAX, 128),
        (129 * CHUNK, 128),
        (100 * CHUNK, 100),
        (100 * CHUNK - 1, 99),
        (33 * CHUNK, 33),
        (CHUNK, 32),
        (0, 32),
    ] {
        let before = received();
        send_all(&mut far, &sent);
        let deadline = Instant::now() + Duration::from_secs(30);
        while received() < before + sent.len() {
            assert!(Instant::now() < deadline, "frames are on their way for ever");
        }
        let (mut found, mut largest) = (Vec::new(), 0);
        while found.len() < sent.len() {
            let (frames, taken) = look(&mut port, limit, &mut drops);
            assert_eq!(frames.len(), taken as usize, "each in one chunk");
            assert!(frames.len() <= most, "{} of {most}", frames.len());
            largest = largest.max(frames.len());
            if taken == 0 {
                port.arm();
                wait_readable(port.doorbell());
                port.drain();
            }
            found.extend(frames);
        }
        assert!(found == sent, "limit {limit}");
        // Where a frame has one chunk always, one is the least.
        assert!(largest == most || limit < 32 * CHUNK, "{largest} of {most}");
    }
    assert_eq!(drops, Drops::default());
}

/// What an interface cannot send is counted by why, and the others are sent.
#[test]
fn what_is_delivered_is_on_the_wire() {
    if skip_without_root("what_is_delivered_is_on_the_wire") {
        return;
    }
    let wire = Wire::new();
    let mut port = open(&wire.a, "a0");
    let (_program, mut far) = frame_queue(&wire.b, "b0");
    let mut drops = Drops::default();
    assert_eq!((port.tx_rings(), port.rx_rings(), port.receives()), (1, 1, true));
    let frames: Vec<_> = [14, 15, 20, 21, 60, 1514]
        .into_iter()
        .map(|length| frame(length as u32, length))
        .chain([tagged(&frame(900, 1510), 0x8100, 7)])
        .collect();
    let bytes = frames.iter().map(|frame| frame.len() as u64).sum();
    // There is no ring 5: it is that of the remainder.
    for ring in [0, 5] {
        assert_eq!(deliver(&mut port, ring, &frames, &mut drops), (7, bytes));
        assert!(recv_all(&mut far, 7) == frames);
    }
    assert_eq!(drops, Drops::default());

    // Longer than the interface sends with a tag, empty, and shorter than an Ethernet header.
    let odd = [frame(1, 1519), frame(2, 0), frame(3, 13), frame(4, 60)];
    assert_eq!(deliver(&mut port, 0, &odd, &mut drops), (1, 60));
    assert!(recv_all(&mut far, 1) == odd[3..]);
    assert_eq!(drops, Drops { too_short: 2, too_long: 1, ..Drops::default() });

    port.set_max_frame(100);
    assert_eq!(deliver(&mut port, 0, &[frame(6, 104), frame(7, 105)], &mut drops), (1, 104));
    assert!(recv_all(&mut far, 1) == [frame(6, 104)]);
    assert_eq!(drops, Drops { too_short: 2, too_long: 2, ..Drops::default() });
}

/// What a queue has done is counted, and what it refuses by why: also of frames that no chunk holds, on a
/// socket whose packets have one buffer each.
#[test]
fn a_queue_counts_what_it_takes_and_refuses() {
    if skip_without_root("a_queue_counts_what_it_takes_and_refuses") {
        return;
    }
    let wire = Wire::new();
    let (_one, mut near) = frame_queue(&wire.a, "a0");
    let (_other, mut far) = frame_queue(&wire.b, "b0");
    let chunk = near.max_tx_frame();
    assert_eq!((chunk, near.max_rx_frame()), (CHUNK, CHUNK - 256));
    assert!(near.send(13).is_none() && near.send(chunk + 1).is_none());
    for length in [chunk + 1, 19 * chunk] {
        assert!(!near.send_parts(length, |_| panic!("there is no room")));
    }
    let frames = [frame(1, 14), frame(2, 1514)];
    send_all(&mut near, &frames);
    assert!(recv_all(&mut far, 2) == frames);
    let expected = FrameCounters {
        tx_packets: 2,
        tx_bytes: 14 + 1514,
        tx_too_long: 3,
        tx_too_short: 1,
        ..FrameCounters::default()
    };
    assert_eq!(near.counters(), expected);
    let expected = FrameCounters { rx_packets: 2, rx_bytes: 14 + 1514, ..FrameCounters::default() };
    assert_eq!(far.counters(), expected);
}
