//! Action programs: each verdict does what it says, beside a filter and without; what could see the kernel's
//! memory is refused, and what the verifier says comes back.

#[path = "../../../drivers/xdp/tests/common/mod.rs"]
mod common;

use std::sync::Arc;

use common::{Wire, attach, endpoint, recv, wait_readable};
use ringway_action::{PASS_TO_KERNEL, Program};
use ringway_filter::{Ebpf, compile};
use ringway_nic_setup::{Action, ActionCounters, AttachMode, Filter, QueueRule};
use ringway_testkit::{PacketSocket, frame, skip_without_root};
use ringway_xdp::FrameQueue;

const fn insn(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Ebpf {
    let registers = if cfg!(target_endian = "big") { to << 4 | from } else { from << 4 | to };
    Ebpf { code, registers, offset, immediate }
}

const EXIT: Ebpf = insn(0x95, 0, 0, 0, 0);

/// `after` with the first 18 bytes of the frame at `r2`; shorter frames pass.
fn with_frame(after: &[Ebpf]) -> Program {
    let start = [
        insn(0xb7, 0, 0, 0, 2),  // r0 = XDP_PASS
        insn(0x61, 2, 1, 0, 0),  // r2 = data
        insn(0x61, 3, 1, 4, 0),  // r3 = data_end
        insn(0xbf, 4, 2, 0, 0),  // r4 = r2
        insn(0x07, 4, 0, 0, 18), // r4 += 18
        insn(0x3d, 3, 4, 1, 0),  // if r3 >= r4 skip
        EXIT,
    ];
    Program::new([&start, after].concat()).unwrap()
}

/// The verdict is the last byte of the frame's number, which a function of the program's own reads.
fn by_number() -> Program {
    with_frame(&[
        insn(0xbf, 1, 2, 0, 0), // r1 = r2
        insn(0x85, 0, 1, 0, 1), // r0 = function(r1)
        EXIT,
        insn(0x71, 0, 1, 17, 0), // r0 = *(u8 *)(r1 + 17)
        EXIT,
    ])
}

fn take(queue: &mut FrameQueue) -> Vec<u8> {
    wait_readable(&queue);
    let mut frames = recv(queue);
    assert_eq!(frames.len(), 1);
    frames.remove(0)
}

/// A frame with that verdict; `number` tells it from others.
fn verdict(number: u32, verdict: u32) -> Vec<u8> {
    frame(number << 8 | verdict, 60)
}

fn decides(mode: AttachMode) {
    let wire = Wire::new();
    let _other = wire.b.veth(&wire.a, "c0", "c1");
    if mode == AttachMode::Generic {
        // veth's native hook is refused where the peer may send on more queues.
        let netns = wire.a.name().unwrap();
        wire.b.run(&format!(
            "ip link del b0 && ip link add b0 numrxqueues 1 numtxqueues 1 type veth \
             peer name a0 numrxqueues 2 numtxqueues 2 netns {netns}"
        ));
        wire.b.run("ip link set b0 up");
        wire.a.run("ip link set a0 up");
    }
    // A veth takes what its peer's program sends if it has a program itself.
    let _receive = ["a0", "c1"].map(|name| attach(&wire.a, name).unwrap());
    let (mut program, xsk, umem) = endpoint(&wire.b, "b0");
    assert_eq!(program.mode(), mode);
    let mut queue = FrameQueue::new(xsk.socket, umem).unwrap();
    let [sender, other] = ["a0", "c1"].map(|name| PacketSocket::new(&wire.a, name));
    let stack = PacketSocket::new(&wire.b, "b0");
    let target = wire.b.ifindex("c0");
    let action = || Arc::new(Action::new("b0", by_number(), vec![target]).unwrap());
    let all = Arc::new(Filter::new("b0", compile("ether[14] = 0").unwrap(), 1).unwrap());
    for filter in [None, Some(all)] {
        let action = action();
        program
            .set_rules(vec![QueueRule { action: Some(action.clone()), filter: filter.clone() }])
            .unwrap();
        for number in 0..20 {
            let sends = |verdict_: u32| {
                let bytes = verdict(number, verdict_);
                sender.send(&bytes);
                bytes
            };
            for gone in [0, 1, 6, 255] {
                sends(gone);
            }
            let passed = sends(2);
            assert_eq!(take(&mut queue), passed);
            let sent = sends(3);
            assert_eq!(sender.hear().bytes, sent);
            let redirected = sends(4);
            assert_eq!(other.hear().bytes, redirected);
            let to_stack = sends(PASS_TO_KERNEL);
            assert_eq!(stack.hear().bytes, to_stack);
        }
        let counters =
            ActionCounters { passed: 20, dropped: 80, sent: 20, to_stack: 20, redirected: 20 };
        assert_eq!(action.counters().unwrap(), counters);
        if filter.is_some() {
            // What it lets pass, the filter may not.
            let refused = frame(1 << 24 | 2, 60);
            sender.send(&refused);
            assert_eq!(stack.hear().bytes, refused);
        }
        assert!(sender.try_hear().is_none() && other.try_hear().is_none());
        assert!(stack.try_hear().is_none());
        assert!(recv(&mut queue).is_empty());
    }
}

#[test]
fn each_verdict_does_what_it_says() {
    if !skip_without_root("each_verdict_does_what_it_says") {
        decides(AttachMode::Native);
    }
}

#[test]
fn each_verdict_does_what_it_says_in_generic_mode() {
    if !skip_without_root("each_verdict_does_what_it_says_in_generic_mode") {
        decides(AttachMode::Generic);
    }
}

/// A filter that reads where the frame says, beside an action program.
#[test]
fn filters_go_on_beside_an_action() {
    if skip_without_root("filters_go_on_beside_an_action") {
        return;
    }
    let wire = Wire::new();
    let (mut program, ..) = endpoint(&wire.b, "b0");
    let pass = Program::new(vec![insn(0xb7, 0, 0, 0, 2), EXIT]).unwrap();
    let action = Arc::new(Action::new("b0", pass, vec![]).unwrap());
    for expression in ["udp port 53", "tcp[tcpflags] & tcp-syn != 0 and len > 100", "vlan 5"] {
        let filter = Filter::new("b0", compile(expression).unwrap(), 10).unwrap();
        let rule = QueueRule { action: Some(action.clone()), filter: Some(Arc::new(filter)) };
        program.set_rules(vec![rule, action.clone().into()]).unwrap();
    }
}

#[test]
fn the_verifier_keeps_the_kernels_memory() {
    if skip_without_root("the_verifier_keeps_the_kernels_memory") {
        return;
    }
    let leak = with_frame(&[insn(0x7b, 2, 1, 0, 0), EXIT]).insns().to_vec();
    for (insns, words) in [
        // The context's address into the frame, and back as a number.
        (leak, "leaks addr into packet"),
        (vec![insn(0xbf, 0, 1, 0, 0), EXIT], "leaks addr as return value"),
        // Uninitialised stack.
        (vec![insn(0x79, 0, 10, -8, 0), EXIT], "invalid read from stack"),
        // Memory of the kernel's by its address.
        (vec![insn(0xb7, 1, 0, 0, 0), insn(0x79, 0, 1, 0, 0), EXIT], "invalid mem access"),
        // Beyond the frame.
        (vec![insn(0x61, 2, 1, 0, 0), insn(0x71, 0, 2, 0, 0), EXIT], "outside of the packet"),
        // No end.
        (vec![insn(0xb7, 0, 0, 0, 2), insn(0x55, 0, 0, -1, 5), EXIT], "nfinite loop"),
        (vec![insn(0xb7, 0, 0, 0, 2)], "last insn is not an exit"),
        (vec![EXIT], "R0 !read_ok"),
    ] {
        let program = Program::new(insns).unwrap();
        let error = Action::new("b0", program, vec![]).err().unwrap().to_string();
        assert!(error.contains(words) && error.starts_with("b0: "), "{error}");
    }
}
