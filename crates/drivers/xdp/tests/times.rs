//! When frames were received, as the interface's XDP program says.

mod common;

use std::os::fd::AsFd;

use common::{Wire, frame_queue, open, send, wait_readable};
use ringway_nic_setup::{AttachMode, Interface, Mode, XdpProgram, in_netns};
use ringway_region::Timestamps;
use ringway_testkit::{frame, skip_without_root};
use ringway_xdp::FrameQueue;
use rustix::time::{DynamicClockId, clock_gettime_dynamic};

fn now() -> u64 {
    let now = clock_gettime_dynamic(DynamicClockId::Tai).unwrap();
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The times of the frames that are there.
fn times(queue: &mut FrameQueue) -> Vec<u64> {
    let mut times = Vec::new();
    queue.recv(u32::MAX, |frame| times.push(frame.time));
    times
}

/// A frame that is looked at late has the time at which it came; none has that of another, and those
/// for which nobody asked have none.
#[test]
fn of_arrival_not_of_the_look() {
    if skip_without_root("of_arrival_not_of_the_look") {
        return;
    }
    let wire = Wire::new();
    let (_sender, mut from) = frame_queue(&wire.a, "a0");
    let attach = || {
        let interface = Interface::by_name("b0")?;
        XdpProgram::attach_as(&interface, &[AttachMode::Native], Some(Timestamps::Software))
    };
    let mut program = in_netns(wire.b.fd().as_fd(), attach).unwrap().unwrap();
    let (xsk, umem) = open(&wire.b, "b0", 0, Mode::preference(program.mode())).unwrap();
    program.set_queue(0, &xsk.socket).unwrap();
    let mut to = FrameQueue::new(xsk.socket, umem).unwrap().with_timestamps();

    let mut arrive = |to: &mut FrameQueue| {
        let before = now();
        assert!(send(&mut from, &frame(0, 60)));
        from.flush().unwrap();
        wait_readable(&*to);
        before..=now()
    };
    arrive(&mut to);
    assert_eq!(times(&mut to), [0], "nobody asked");
    arrive(&mut to);
    to.read_times(true);
    assert_eq!(times(&mut to), [0], "it was there before");
    for i in 0..3000 {
        let bounds = arrive(&mut to);
        let found = times(&mut to);
        assert!(found.len() == 1 && bounds.contains(&found[0]), "{i}: {found:?}, not {bounds:?}");
    }
    to.read_times(false);
    arrive(&mut to);
    assert_eq!(times(&mut to), [0], "nobody asks any more");
}
