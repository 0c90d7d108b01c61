//! The programs of an interface with filters, action programs, timestamps, or VLAN tags beside frames: `redirect.bpf.c`,
//! and `ringway_redirect` of `host.bpf.c`, with a look at each frame in between; and what redirects beside the
//! traffic control. They are made anew with
//! each change, so a queue without a filter costs one comparison a filter, and an interface that never
//! had any of these has the plain programs.

use std::os::fd::{AsRawFd, BorrowedFd};

use ringway_filter::{
    Assembler, CONTEXT, Ebpf, Label, Operand, Packet, STACK, Size, alu, jump, reg::*, translate,
};
use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::filter::{Counter, Filter};
use crate::tags::{self, Tags};
use crate::timestamps::{self, Stamp};
use crate::{INJECTED, QUEUES};

pub(crate) const XDP_PASS: u32 = 2;
const XDP_REDIRECT: u32 = 4;
const TCX_NEXT: u32 = -1i32 as u32;
/// A copy for the stack of what it has sent to a group: no interface has received it.
const PACKET_LOOPBACK: u32 = 5;
/// Offsets in `struct __sk_buff`.
const SKB_PKT_TYPE: i16 = 4;
const SKB_MARK: i16 = 8;
const SKB_QUEUE_MAPPING: i16 = 12;
/// Offsets in `struct xdp_md`.
pub(crate) const MD_DATA: i16 = 0;
pub(crate) const MD_DATA_END: i16 = 4;
const MD_RX_QUEUE_INDEX: i16 = 16;
/// Helpers of the kernel.
const MAP_LOOKUP_ELEM: u32 = 1;
pub(crate) const REDIRECT: u32 = 23;
const CHANGE_TYPE: u32 = 32;
const GET_HASH_RECALC: u32 = 34;
pub(crate) const XDP_ADJUST_HEAD: u32 = 44;
const REDIRECT_MAP: u32 = 51;
const REDIRECT_PEER: u32 = 155;
/// `PACKET_OTHERHOST`.
const OTHERS: u32 = 3;

/// Survives filters and calls.
const QUEUE: u8 = R9;
/// Where the key of a look-up is, below what a filter uses.
const KEY: i16 = -STACK - 8;

/// What the frames of some queues go through, and those queues.
pub(crate) struct Place<'a> {
    pub action: Option<&'a Action>,
    pub filter: Option<&'a Filter>,
    pub queues: Vec<u32>,
}

/// The program. Frames of queues without a filter go to the socket in `sockets`, as do those that a
/// filter takes; where there is no socket, and else, to the stack. Before that, an action program decides which
/// go on. Frames with the mark in `marks` in
/// front go to the stack without it. With a `stamp`, frames have their timestamps in front; with `tags`, those
/// that stand beside them within.
pub(crate) fn program(
    sockets: BorrowedFd<'_>,
    marks: Option<BorrowedFd<'_>>,
    stamp: Option<Stamp<'_>>,
    tags: Option<Tags>,
    places: &[Place<'_>],
) -> Result<Vec<Ebpf>, ringway_filter::Error> {
    let mut asm = Assembler::new();
    let ends = Ends { redirect: asm.label(), pass: asm.label() };
    asm.set(CONTEXT, Operand::Register(R1));
    asm.load(Size::Word, QUEUE, CONTEXT, MD_RX_QUEUE_INDEX);
    if let Some(marks) = marks {
        take_mark_off(&mut asm, marks, ends.pass);
    }
    if let Some(tags) = tags {
        tags.put_in(&mut asm, ends.pass);
    }
    let starts: Vec<_> = places.iter().map(|_| asm.label()).collect();
    for (place, &start) in places.iter().zip(&starts) {
        for &queue in &place.queues {
            asm.branch(jump::EQ, QUEUE, Operand::Constant(queue), start);
        }
    }
    asm.jump(ends.redirect);
    let has_actions = places.iter().any(|place| place.action.is_some());
    let packet = if has_actions { Packet::XdpByCopy } else { Packet::Xdp };
    let mut functions: Vec<(Label, &Action)> = Vec::new();
    for (place, start) in places.iter().zip(starts) {
        asm.place(start);
        if let Some(action) = place.action {
            let known = functions.iter().find(|(_, other)| std::ptr::eq(*other, action));
            let function = known.map_or_else(|| asm.label(), |(function, _)| *function);
            if known.is_none() {
                functions.push((function, action));
            }
            let passed = asm.label();
            let next = if place.filter.is_some() { passed } else { ends.redirect };
            action.decide(&mut asm, function, next, ends.pass);
            asm.place(passed);
        }
        if let Some(taken) = place.filter {
            filter(&mut asm, packet, taken, Some(sockets), &ends);
        }
    }
    asm.place(ends.redirect);
    if let Some(stamp) = stamp {
        let lead = asm.label();
        stamp.put_on(&mut asm, lead);
        asm.place(lead);
    }
    asm.set_map(R1, sockets.as_raw_fd());
    asm.set(R2, Operand::Register(QUEUE));
    asm.set(R3, Operand::Constant(XDP_PASS));
    asm.call(REDIRECT_MAP);
    if stamp.is_some() || tags.is_some() {
        let led = asm.label();
        asm.branch(jump::EQ, R0, Operand::Constant(XDP_REDIRECT), led);
        if stamp.is_some() {
            timestamps::take_off(&mut asm);
        }
        asm.jump(ends.pass);
        asm.place(led);
    }
    asm.exit();
    if asm.place(ends.pass) {
        if let Some(tags) = tags {
            tags.take_out(&mut asm);
        }
        asm.set(R0, Operand::Constant(XDP_PASS));
        asm.exit();
    }
    for (function, action) in functions {
        asm.place(function);
        asm.append(action.insns());
    }
    asm.finish()
}

/// Where the stack's frames are diverted to: the pair's end, which has so many queues, from an
/// interface that has so many.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Target {
    pub pair: u32,
    pub rings: u32,
    pub queues: u32,
}

/// The program at an interface's egress: what the filter takes is redirected, as by `ringway_redirect`;
/// else it goes its way.
pub(crate) fn egress_redirect(
    taken: &Filter,
    to: Target,
) -> Result<Vec<Ebpf>, ringway_filter::Error> {
    let mut asm = Assembler::new();
    let ends = Ends { redirect: asm.label(), pass: asm.label() };
    asm.set(CONTEXT, Operand::Register(R1));
    tags::put_into_skb(&mut asm);
    filter(&mut asm, Packet::Skb, taken, None, &ends);
    if asm.place(ends.redirect) {
        tags::take_out_of_skb(&mut asm);
        if to.rings > 1 {
            choose_ring(&mut asm, to);
        }
        asm.set(R1, Operand::Constant(to.pair));
        asm.set(R2, Operand::Constant(0));
        asm.call(REDIRECT);
        asm.exit();
    }
    if asm.place(ends.pass) {
        tags::take_out_of_skb(&mut asm);
        asm.set(R0, Operand::Constant(TCX_NEXT));
        asm.exit();
    }
    asm.finish()
}

/// The program at an interface's ingress. It redirects a frame to the pair if the frame's queue is redirected and
/// the queue's filter takes it. The stack gets all other frames, and those that programs have sent to it. In
/// `settings`: for each queue whether it is redirected, and the pair.
pub(crate) fn ingress_redirect(
    settings: BorrowedFd<'_>,
    queues: u32,
    places: &[Place<'_>],
) -> Result<Vec<Ebpf>, ringway_filter::Error> {
    let mut asm = Assembler::new();
    let [redirect, pass, unmarked] = [asm.label(), asm.label(), asm.label()];
    asm.set(CONTEXT, Operand::Register(R1));
    asm.load(Size::Word, R1, CONTEXT, SKB_PKT_TYPE);
    asm.branch(jump::EQ, R1, Operand::Constant(PACKET_LOOPBACK), pass);
    asm.load(Size::Word, R1, CONTEXT, SKB_MARK);
    asm.branch(jump::NE, R1, Operand::Constant(INJECTED), unmarked);
    // Kernels before 6.4 take no constant there.
    asm.set(R1, Operand::Constant(0));
    asm.store(Size::Word, CONTEXT, SKB_MARK, Operand::Register(R1));
    asm.jump(pass);
    asm.place(unmarked);
    receive_queue(&mut asm, queues);
    if queues > QUEUES {
        // Behind the queues the pair stands.
        asm.branch(jump::GE, QUEUE, Operand::Constant(QUEUES), pass);
    }
    look_up_at(&mut asm, settings, Operand::Register(QUEUE), pass);
    asm.load(Size::Word, R1, R0, 0);
    asm.branch(jump::EQ, R1, Operand::Constant(0), pass);
    let starts: Vec<_> = places.iter().map(|_| asm.label()).collect();
    for (place, &start) in places.iter().zip(&starts) {
        for &queue in &place.queues {
            asm.branch(jump::EQ, QUEUE, Operand::Constant(queue), start);
        }
    }
    asm.jump(redirect);
    for (place, start) in places.iter().zip(starts) {
        asm.place(start);
        let Some(taken) = place.filter else {
            asm.jump(redirect);
            continue;
        };
        let ends = Ends { redirect: asm.label(), pass: asm.label() };
        tags::put_into_skb(&mut asm);
        filter(&mut asm, Packet::Skb, taken, None, &ends);
        for (end, then) in [(ends.redirect, redirect), (ends.pass, pass)] {
            if asm.place(end) {
                tags::take_out_of_skb(&mut asm);
                asm.jump(then);
            }
        }
    }
    asm.place(redirect);
    // The stack behind the pair has nothing to do with it.
    asm.set(R1, Operand::Register(CONTEXT));
    asm.set(R2, Operand::Constant(OTHERS));
    asm.call(CHANGE_TYPE);
    look_up_at(&mut asm, settings, Operand::Constant(QUEUES), pass);
    asm.load(Size::Word, R1, R0, 0);
    asm.set(R2, Operand::Constant(0));
    asm.call(REDIRECT_PEER);
    asm.exit();
    asm.place(pass);
    asm.set(R0, Operand::Constant(TCX_NEXT));
    asm.exit();
    asm.finish()
}

/// `QUEUE` = the one by which the frame came in, as the filters of the sockets have it (`packet/filter.rs`).
fn receive_queue(asm: &mut Assembler, queues: u32) {
    asm.set(QUEUE, Operand::Constant(0));
    if queues > 1 {
        let first = asm.label();
        asm.load(Size::Word, R1, CONTEXT, SKB_QUEUE_MAPPING);
        asm.branch(jump::EQ, R1, Operand::Constant(0), first);
        asm.add(R1, Operand::Constant(-1i32 as u32));
        asm.compute(alu::MOD, R1, Operand::Constant(queues));
        asm.set(QUEUE, Operand::Register(R1));
        asm.place(first);
    }
}

/// As `queue_of` in `host.bpf.c`.
fn choose_ring(asm: &mut Assembler, Target { rings, queues, .. }: Target) {
    let (by_flow, chosen) = (asm.label(), asm.label());
    asm.load(Size::Word, R7, CONTEXT, SKB_QUEUE_MAPPING);
    asm.branch(jump::EQ, R7, Operand::Constant(0), by_flow);
    asm.add(R7, Operand::Constant(-1i32 as u32));
    asm.compute(alu::MOD, R7, Operand::Constant(queues));
    asm.jump(chosen);
    asm.place(by_flow);
    asm.set(R1, Operand::Register(CONTEXT));
    asm.call(GET_HASH_RECALC);
    asm.compute(alu::MOV, R7, Operand::Register(R0));
    asm.compute_wide(alu::MUL, R7, Operand::Constant(queues));
    asm.compute_wide(alu::RSH, R7, Operand::Constant(32));
    asm.place(chosen);
    asm.compute(alu::MOD, R7, Operand::Constant(rings));
    asm.add(R7, Operand::Constant(1));
    asm.store(Size::Word, CONTEXT, SKB_QUEUE_MAPPING, Operand::Register(R7));
}

struct Ends {
    redirect: Label,
    pass: Label,
}

/// As `ringway_generic` in `redirect.bpf.c`.
fn take_mark_off(asm: &mut Assembler, marks: BorrowedFd<'_>, pass: Label) {
    const LEN: u32 = size_of::<[u64; 2]>() as u32;
    let unmarked = asm.label();
    look_up_only(asm, marks, unmarked);
    asm.load(Size::Double, R4, R0, 0);
    asm.branch_wide(jump::EQ, R4, Operand::Constant(0), unmarked);
    asm.load(Size::Word, R2, CONTEXT, MD_DATA);
    asm.load(Size::Word, R3, CONTEXT, MD_DATA_END);
    asm.set(R4, Operand::Register(R2));
    asm.add(R4, Operand::Constant(LEN));
    asm.branch_wide(jump::GT, R4, Operand::Register(R3), unmarked);
    for at in [0, 8] {
        asm.load(Size::Double, R1, R2, at);
        asm.load(Size::Double, R4, R0, at);
        asm.branch_wide(jump::NE, R1, Operand::Register(R4), unmarked);
    }
    asm.set(R1, Operand::Register(CONTEXT));
    asm.set(R2, Operand::Constant(LEN));
    asm.call(XDP_ADJUST_HEAD);
    asm.jump(pass);
    asm.place(unmarked);
}

/// Goes to one end or the other, and counts. `sockets`: those of the queues, if what matches may be for none: a queue
/// may be left to the stack.
fn filter(
    asm: &mut Assembler,
    packet: Packet,
    filter: &Filter,
    sockets: Option<BorrowedFd<'_>>,
    ends: &Ends,
) {
    let [accept, reject, left] = std::array::from_fn(|_| asm.label());
    translate(&filter.program, packet, asm, accept, reject);
    if asm.place(accept) {
        if let Some(sockets) = sockets {
            look_up_at(asm, sockets, Operand::Register(QUEUE), left);
        }
        find_counters(asm, filter, ends.redirect);
        count(asm, Counter::Matched.offset());
        if filter.one_in > 1 {
            sample(asm, filter.one_in, ends.pass);
        }
        count(asm, Counter::Taken.offset());
        asm.jump(ends.redirect);
    }
    if asm.place(left) {
        find_counters(asm, filter, ends.pass);
        count(asm, Counter::Matched.offset());
        count(asm, Counter::Passed.offset());
        asm.jump(ends.pass);
    }
    if asm.place(reject) {
        find_counters(asm, filter, ends.pass);
        count(asm, Counter::Passed.offset());
        asm.jump(ends.pass);
    }
}

/// `R0` = this CPU's counters.
fn find_counters(asm: &mut Assembler, filter: &Filter, otherwise: Label) {
    look_up_only(asm, filter.map(), otherwise);
}

/// `R0` = the value of a map that has one. It is there; the verifier wants to hear where it goes on if not.
pub(crate) fn look_up_only(asm: &mut Assembler, map: BorrowedFd<'_>, otherwise: Label) {
    look_up_at(asm, map, Operand::Constant(0), otherwise);
}

/// The same of the value at `key`.
fn look_up_at(asm: &mut Assembler, map: BorrowedFd<'_>, key: Operand, otherwise: Label) {
    asm.store(Size::Word, R10, KEY, key);
    asm.set_map(R1, map.as_raw_fd());
    asm.set(R2, Operand::Register(R10));
    asm.add(R2, Operand::Constant(KEY as u32));
    asm.call(MAP_LOOKUP_ELEM);
    asm.branch_wide(jump::EQ, R0, Operand::Constant(0), otherwise);
}

/// One more in the counter so many bytes behind `R0`.
pub(crate) fn count(asm: &mut Assembler, offset: i16) {
    asm.load(Size::Double, R1, R0, offset);
    asm.add(R1, Operand::Constant(1));
    asm.store(Size::Double, R0, offset, Operand::Register(R1));
}

/// Goes on with one match in so many; the others pass.
fn sample(asm: &mut Assembler, one_in: u32, pass: Label) {
    let taken = asm.label();
    let store = |asm: &mut Assembler| {
        asm.store(Size::Double, R0, Counter::Skip.offset(), Operand::Register(R1));
    };
    asm.load(Size::Double, R1, R0, Counter::Skip.offset());
    asm.branch_wide(jump::EQ, R1, Operand::Constant(0), taken);
    asm.add(R1, Operand::Constant(-1i32 as u32));
    store(asm);
    count(asm, Counter::Passed.offset());
    asm.jump(pass);
    asm.place(taken);
    asm.set_double(R1, u64::from(one_in - 1));
    store(asm);
}
