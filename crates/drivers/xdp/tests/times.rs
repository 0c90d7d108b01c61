//! When frames were received, as the XDP program of a switch's interface says while it is asked.

mod common;

use std::os::fd::AsFd;

use common::{Wire, attach_again, frame_queue, open, send, wait_readable};
use ringway_nic_setup::{AttachMode, Interface, Mode, XdpProgram};
use ringway_testkit::{Heard, PacketSocket, frame, skip_without_root};
use ringway_xdp::{FrameQueue, TimeFlag};
use rustix::time::{DynamicClockId, clock_gettime_dynamic};

fn now() -> u64 {
    let now = clock_gettime_dynamic(DynamicClockId::Tai).unwrap();
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The times of the frames that are there.
fn times(queue: &mut FrameQueue) -> Vec<u64> {
    let mut times = Vec::new();
    queue.take_timed(u32::MAX, |_, time| times.push(time));
    queue.give_back();
    times
}

fn attach(wire: &Wire, mode: AttachMode) -> (XdpProgram, TimeFlag) {
    let attach = || XdpProgram::attach_for_switch(&Interface::by_name("b0")?, &[mode]);
    let mut program = attach_again(&wire.b, attach);
    let flag = program.take_time_flag().expect("this kernel has times");
    (program, TimeFlag::map(flag.as_fd()).unwrap())
}

/// A frame that is looked at late has the time at which it came; none has that of another, and those that
/// came while times were not asked for have none.
#[test]
fn of_arrival_not_of_the_look() {
    if skip_without_root("of_arrival_not_of_the_look") {
        return;
    }
    let wire = Wire::new();
    let (_sender, mut from) = frame_queue(&wire.a, "a0");
    for mode in [AttachMode::Native, AttachMode::Generic] {
        let (mut program, flag) = attach(&wire, mode);
        let (xsk, umem) = open(&wire.b, "b0", 0, Mode::preference(mode)).unwrap();
        program.set_queue(0, &xsk.socket).unwrap();
        let mut to = FrameQueue::new(xsk.socket, umem).unwrap();
        let mut arrive = |to: &FrameQueue| {
            let before = now();
            assert!(send(&mut from, &frame(0, 60)));
            from.flush().unwrap();
            wait_readable(to);
            before..=now()
        };
        for _ in 0..2 {
            flag.set(false);
            arrive(&to);
            assert_eq!(times(&mut to), [0], "{mode}: not asked for");
            arrive(&to);
            flag.set(true);
            assert_eq!(times(&mut to), [0], "{mode}: it was there before");
            for i in 0..1500 {
                let bounds = arrive(&to);
                let found = times(&mut to);
                assert!(
                    found.len() == 1 && bounds.contains(&found[0]),
                    "{mode}, {i}: {found:?}, not {bounds:?}"
                );
            }
        }
        // The program does not ask any longer than the port is there.
        drop(flag);
        arrive(&to);
        assert_eq!(times(&mut to), [0], "{mode}: the port has gone");
    }
}

/// What no socket takes the stack has as it was.
#[test]
fn the_stack_has_frames_as_they_came() {
    if skip_without_root("the_stack_has_frames_as_they_came") {
        return;
    }
    let wire = Wire::new();
    let sender = PacketSocket::new(&wire.a, "a0");
    let stack = PacketSocket::new(&wire.b, "b0");
    for mode in [AttachMode::Native, AttachMode::Generic] {
        let (_program, flag) = attach(&wire, mode);
        for (number, wanted) in [true, false, true].into_iter().enumerate() {
            flag.set(wanted);
            let bytes = frame(number as u32, 60);
            sender.send(&bytes);
            assert_eq!(stack.hear(), Heard { tag: None, bytes }, "{mode}");
        }
    }
}
