//! An interface as a port of a bridge, without one.

mod common;

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use common::{IGNORED, Wire};
use ringway_nic_setup::{Source, open_packet_port};
use ringway_packet::PacketPort;
use ringway_switch_port::{Drops, PacketIo, Wake};
use ringway_testkit::skip_without_root;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

fn open(wire: &Wire) -> PacketPort {
    let ifindex = wire.b.run("cat /sys/class/net/b0/ifindex").trim().parse().unwrap();
    let source = Source {
        interface: "b0",
        ifindex,
        queue: 0,
        queues: 1,
        ignored_mark: IGNORED,
        hardware_time: false,
    };
    wire.b.enter(|| open_packet_port(&source, 1514).unwrap())
}

/// An interface that goes down, and comes up again, wakes its worker, and does not keep it awake.
#[test]
fn who_has_gone_down_is_heard_once() {
    if skip_without_root("who_has_gone_down_is_heard_once") {
        return;
    }
    let wire = Wire::new(1, 1500);
    let port = open(&wire);
    for state in ["down", "up"] {
        wire.b.run(&format!("ip link set b0 {state}"));
        let deadline = Instant::now() + Duration::from_secs(30);
        let rings = || {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::from_borrowed_fd(port.doorbell(), PollFlags::IN)], Some(&now))
                == Ok(1)
        };
        while rings() {
            assert!(Instant::now() < deadline, "{state}: its doorbell does not rest");
            port.drain();
        }
    }
}

/// What nobody collects fills the blocks, and what comes then is counted.
#[test]
fn what_the_kernel_drops_is_counted() {
    if skip_without_root("what_the_kernel_drops_is_counted") {
        return;
    }
    let wire = Wire::new(1, 1500);
    wire.a.run("ip addr add 10.5.0.1/24 dev a0");
    wire.a.run("ip neigh add 10.5.0.2 lladdr 02:00:00:00:00:02 dev a0");
    let mut port = open(&wire);
    let socket = wire.a.enter(|| UdpSocket::bind("10.5.0.1:9").unwrap());
    let (mut sent, mut drops) = (0, Drops::default());
    let deadline = Instant::now() + Duration::from_secs(60);
    while drops.ring_full == 0 {
        assert!(Instant::now() < deadline, "{sent} frames, and none was dropped");
        for _ in 0..1000 {
            // Refused only while too much is on its way.
            sent += u64::from(socket.send_to(&[1; 1400], "10.5.0.2:9").is_ok());
        }
        port.count_lost(&mut drops);
    }
    // Once.
    let before = drops.ring_full;
    port.count_lost(&mut drops);
    assert_eq!(drops, Drops { ring_full: before, ..Drops::default() });
    assert!(before < sent);
}
