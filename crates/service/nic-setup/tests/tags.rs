//! VLAN tags that stand beside frames, as the stack at the far end of a veth pair leaves them: programs
//! have them in the frame, and the stack has the frame as it came.

#[path = "../../../drivers/xdp/tests/common/mod.rs"]
mod common;

use std::sync::Arc;

use common::{
    Wire, attach_again, in_front, nic::Nic, nic::region, nic::wait, open, recv, stay_on_one_cpu,
    wait_readable,
};
use ringway_filter::compile;
use ringway_nic_setup::{AttachMode, Filter, Interface, Mode, QueueRules, XdpProgram};
use ringway_region::Timestamps;
use ringway_testkit::{Heard, PacketSocket, frame, skip_without_root, tagged};
use ringway_xdp::{FrameQueue, RX_HEADROOM};

/// Kinds and values of tags: with a priority, of a provider, and all bits.
const TAGS: [(u16, u16); 3] = [(0x8100, 0x6005), (0x88a8, 9), (0x8100, 0xffff)];

/// With every kind of timestamps, and without.
const TIMESTAMPS: [Option<Timestamps>; 3] =
    [None, Some(Timestamps::Software), Some(Timestamps::Hardware)];

/// The program at `b0`, and a socket that it leads to.
fn receiver(
    wire: &Wire,
    mode: AttachMode,
    timestamps: Option<Timestamps>,
) -> (XdpProgram, FrameQueue) {
    let attach = || XdpProgram::attach_as(&Interface::by_name("b0").unwrap(), &[mode], timestamps);
    let mut program = attach_again(&wire.b, attach);
    let (xsk, umem) = open(&wire.b, "b0", 0, Mode::preference(mode)).unwrap();
    program.set_queue(0, &xsk.socket).unwrap();
    (program, FrameQueue::new(xsk.socket, umem).unwrap())
}

/// The next frame of the socket.
fn take(queue: &mut FrameQueue) -> Vec<u8> {
    wait_readable(&*queue);
    let mut frames = recv(queue);
    assert_eq!(frames.len(), 1);
    frames.remove(0)
}

fn filter(expression: &str, one_in: u32) -> QueueRules {
    let filter = Filter::new("b0", compile(expression).unwrap(), one_in).unwrap();
    vec![Arc::new(filter).into()]
}

#[test]
fn a_program_has_tags_in_its_frames() {
    if skip_without_root("a_program_has_tags_in_its_frames") {
        return;
    }
    let wire = Wire::new();
    let sender = PacketSocket::new(&wire.a, "a0");
    for timestamps in TIMESTAMPS {
        let (mut program, mut queue) = receiver(&wire, AttachMode::Native, timestamps);
        for filtered in [false, true] {
            let filters = if filtered { filter("len > 0", 1) } else { vec![] };
            program.set_rules(filters).unwrap();
            for length in [14, 15, 60, 1514] {
                let bytes = frame(1, length);
                sender.send(&bytes);
                assert_eq!(take(&mut queue), bytes);
                for (kind, value) in TAGS {
                    let _tagging = wire.a.tag("a0", kind, value);
                    sender.send(&bytes);
                    assert_eq!(take(&mut queue), tagged(&bytes, kind, value), "{timestamps:?}");
                    if length == 60 {
                        // Behind it the one that is in the frame already.
                        let inner = tagged(&bytes, 0x8100, 7);
                        sender.send(&inner);
                        assert_eq!(take(&mut queue), tagged(&inner, kind, value));
                    }
                }
            }
        }
    }
}

/// In front of a frame with a tag there is its timestamp.
#[test]
fn timestamps_stand_in_front_of_the_tagged_frame() {
    if skip_without_root("timestamps_stand_in_front_of_the_tagged_frame") {
        return;
    }
    let wire = Wire::new();
    let sender = PacketSocket::new(&wire.a, "a0");
    let (_program, mut queue) = receiver(&wire, AttachMode::Native, Some(Timestamps::Software));
    let _tagging = wire.a.tag("a0", 0x8100, 5);
    let mut last = 1;
    for number in 0..100 {
        sender.send(&frame(number, 60));
        wait_readable(&queue);
        let mut address = None;
        queue.take(1, |received| address = Some(received.address));
        let address = address.expect("it was readable");
        assert_eq!(address % 2048, u64::from(RX_HEADROOM));
        let time = in_front(&queue, address);
        assert!(time >= last, "{time} after {last}");
        last = time;
        queue.give_back();
    }
}

/// Filters see the tag; what does not match, is not in the sample, or comes by a queue without a
/// socket, the stack has as it was: with one tag, which was beside the frame and is there.
#[test]
fn the_stack_has_frames_as_they_came() {
    if skip_without_root("the_stack_has_frames_as_they_came") {
        return;
    }
    stay_on_one_cpu();
    let wire = Wire::new();
    let sender = PacketSocket::new(&wire.a, "a0");
    let stack = PacketSocket::new(&wire.b, "b0");
    let bytes = frame(1, 60);
    let send = |value| {
        let _tagging = wire.a.tag("a0", 0x8100, value);
        sender.send(&bytes);
    };
    let untouched = |value| Heard { tag: Some((0x8100, value)), bytes: bytes.clone() };
    for timestamps in TIMESTAMPS {
        let (mut program, mut queue) = receiver(&wire, AttachMode::Native, timestamps);
        program.set_rules(filter("vlan 5 and ether proto 0x88b5", 1)).unwrap();
        for _ in 0..3 {
            send(0x2005);
            assert_eq!(take(&mut queue), tagged(&bytes, 0x8100, 0x2005));
            send(0x2006);
            assert_eq!(stack.hear(), untouched(0x2006));
            sender.send(&bytes);
            assert_eq!(stack.hear(), Heard { tag: None, bytes: bytes.clone() });
        }
        // Of what this processor sees, the next that matches is in the sample, and the one behind it is not.
        program.set_rules(filter("vlan", 2)).unwrap();
        send(7);
        assert_eq!(take(&mut queue), tagged(&bytes, 0x8100, 7));
        send(8);
        assert_eq!(stack.hear(), untouched(8));
        program.set_rules(vec![]).unwrap();
        program.unset_queue(0);
        send(9);
        assert_eq!(stack.hear(), untouched(9));
        // What is tagged in its data, the stack untags itself.
        sender.send(&tagged(&bytes, 0x8100, 9));
        assert_eq!(stack.hear(), untouched(9));
        assert_eq!(recv(&mut queue), [[0u8; 0]; 0]);
    }
}

/// A frame of several buffers, and one that only its tag makes longer than one.
#[test]
fn frames_of_several_buffers() {
    if skip_without_root("frames_of_several_buffers") {
        return;
    }
    let wire = Wire::new();
    wire.set_mtu(9000);
    let sender = PacketSocket::new(&wire.a, "a0");
    let nic = Nic::new(&wire.b, "b0", &region(), 0);
    for length in [1787, 1788, 1789, 1792, 1793, 3580, 3584, 9014] {
        let bytes = frame(length as u32, length);
        let _tagging = wire.a.tag("a0", 0x8100, 5);
        sender.send(&bytes);
        wait([&nic]);
        assert!(nic.rings.receive() == [tagged(&bytes, 0x8100, 5)], "{length} bytes");
    }
    nic.rings.sync_rx();
}

/// In generic mode the kernel tells programs of no tags: those that stand beside frames are lost.
#[test]
fn generic_mode_has_the_tags_in_frames_alone() {
    if skip_without_root("generic_mode_has_the_tags_in_frames_alone") {
        return;
    }
    let wire = Wire::new();
    let sender = PacketSocket::new(&wire.a, "a0");
    let stack = PacketSocket::new(&wire.b, "b0");
    let (mut program, mut queue) = receiver(&wire, AttachMode::Generic, None);
    let bytes = frame(1, 60);
    sender.send(&tagged(&bytes, 0x8100, 5));
    assert_eq!(take(&mut queue), tagged(&bytes, 0x8100, 5));
    let _tagging = wire.a.tag("a0", 0x8100, 5);
    sender.send(&bytes);
    assert_eq!(take(&mut queue), bytes);
    program.unset_queue(0);
    sender.send(&bytes);
    assert_eq!(stack.hear(), Heard { tag: Some((0x8100, 5)), bytes });
}
