//! Filters: what matches goes to the socket, the rest to the stack, whose sockets do not notice.

#[path = "../../../drivers/xdp/tests/common/mod.rs"]
mod common;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};

use common::{Wire, endpoint, recv, stay_on_one_cpu, wait_readable};
use ringway_filter::compile;
use ringway_nic_setup::{AttachMode, Filter, FilterCounters, QueueRule, XdpProgram};
use ringway_testkit::{Netns, skip_without_root};
use ringway_xdp::FrameQueue;

const A: &str = "10.1.1.1";

/// Sockets of the stack at `a0`, on two ports, and one at `b0` that sends to them.
struct Stack {
    at: [UdpSocket; 2],
    sender: UdpSocket,
}

const PORTS: [u16; 2] = [53, 54];

fn filter(expression: &str, one_in: u32) -> Arc<Filter> {
    Arc::new(Filter::new("a0", compile(expression).unwrap(), one_in).unwrap())
}

fn bind(netns: &Netns, address: &str, port: u16) -> UdpSocket {
    let socket = netns.enter(|| UdpSocket::bind((address, port)).unwrap());
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket
}

impl Stack {
    fn new(wire: &Wire) -> Stack {
        wire.a.run(&format!("ip address add {A}/24 dev a0"));
        wire.b.run("ip address add 10.1.1.2/24 dev b0");
        let at = PORTS.map(|port| bind(&wire.a, A, port));
        let stack = Stack { at, sender: bind(&wire.b, "10.1.1.2", 9) };
        // ARP goes its way before any filter is there.
        stack.send(0, 0);
        stack.hear(0);
        stack
    }

    fn send(&self, port: usize, number: u32) {
        self.sender.send_to(&number.to_be_bytes(), (A, PORTS[port])).unwrap();
    }

    fn hear(&self, port: usize) -> u32 {
        let mut bytes = [0; 4];
        assert_eq!(self.at[port].recv(&mut bytes).unwrap(), 4);
        u32::from_be_bytes(bytes)
    }
}

/// The numbers in the next frames of the socket.
fn take(queue: &mut FrameQueue, count: usize) -> Vec<u32> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        wait_readable(&queue);
        let number = |frame: Vec<u8>| u32::from_be_bytes(frame[42..46].try_into().unwrap());
        numbers.extend(recv(queue).into_iter().map(number));
    }
    numbers
}

fn end_of(wire: &Wire, mode: AttachMode) -> (XdpProgram, FrameQueue) {
    let (program, xsk, umem) = endpoint(&wire.a, "a0");
    assert_eq!(program.mode(), mode);
    (program, FrameQueue::new(xsk.socket, umem).unwrap())
}

/// All of `sent` to either port, one for one: half to the socket, half to the stack.
fn divides(mode: AttachMode) {
    let wire = Wire::new();
    if mode == AttachMode::Generic {
        // veth's native hook is refused where the peer may send on more queues.
        let netns = wire.b.name().unwrap();
        wire.a.run(&format!(
            "ip link del a0 && ip link add a0 numrxqueues 1 numtxqueues 1 type veth \
             peer name b0 numrxqueues 2 numtxqueues 2 netns {netns}"
        ));
        wire.a.run("ip link set a0 up");
        wire.b.run("ip link set b0 up");
    }
    let stack = Stack::new(&wire);
    let (mut program, mut queue) = end_of(&wire, mode);
    let dns = filter("udp dst port 53", 1);
    program.set_rules(vec![dns.clone().into()]).unwrap();
    for number in 0..100 {
        stack.send(0, number);
        stack.send(1, number);
        assert_eq!(stack.hear(1), number);
    }
    assert_eq!(take(&mut queue, 100), (0..100).collect::<Vec<_>>());
    let counted = dns.counters().unwrap();
    assert_eq!((counted.matched, counted.taken), (100, 100));
    assert!(counted.passed >= 100);

    // Without a socket for the queue, what matches is the stack's, too.
    program.unset_queue(0);
    stack.send(0, 7);
    assert_eq!(stack.hear(0), 7);
    let left = dns.counters().unwrap();
    assert_eq!((left.matched, left.taken), (101, 100));
    assert!(left.passed > counted.passed);
    program.set_queue(0, queue.socket()).unwrap();

    program.set_rules(vec![]).unwrap();
    stack.send(1, 7);
    assert_eq!(take(&mut queue, 1), [7], "without a filter all of the queue is led to the socket");
}

#[test]
fn what_matches_goes_to_the_socket_and_the_rest_to_the_stack() {
    if skip_without_root("what_matches_goes_to_the_socket_and_the_rest_to_the_stack") {
        return;
    }
    divides(AttachMode::Native);
}

#[test]
fn filters_work_in_generic_mode() {
    if skip_without_root("filters_work_in_generic_mode") {
        return;
    }
    divides(AttachMode::Generic);
}

#[test]
fn one_in_so_many_is_taken() {
    if skip_without_root("one_in_so_many_is_taken") {
        return;
    }
    let wire = Wire::new();
    let stack = Stack::new(&wire);
    let (mut program, mut queue) = end_of(&wire, AttachMode::Native);
    // The sender stays where it is, so it is one CPU that counts.
    stay_on_one_cpu();
    let sampled = filter("udp dst port 53", 10);
    program.set_rules(vec![sampled.clone().into()]).unwrap();
    for number in 0..100 {
        stack.send(0, number);
        if number % 10 != 0 {
            assert_eq!(stack.hear(0), number);
        }
    }
    assert_eq!(take(&mut queue, 10), (0..100).step_by(10).collect::<Vec<_>>());
    let FilterCounters { matched, taken, passed } = sampled.counters().unwrap();
    assert_eq!((matched, taken), (100, 10));
    assert!(passed >= 90);
}

#[test]
fn a_change_loses_nothing_that_matches_before_and_after() {
    if skip_without_root("a_change_loses_nothing_that_matches_before_and_after") {
        return;
    }
    /// No more at a time than the rings hold.
    const BURST: u32 = 100;
    let wire = Wire::new();
    let stack = Stack::new(&wire);
    let (mut program, mut queue) = end_of(&wire, AttachMode::Native);
    let all = [filter("udp dst port 53", 1), filter("udp", 1), filter("src host 10.1.1.2", 1)];
    program.set_rules(vec![all[0].clone().into()]).unwrap();
    std::thread::scope(|scope| {
        let (going, over) = channel::<()>();
        scope.spawn(|| {
            let (over, mut first) = (over, 0);
            while over.try_recv() == Err(TryRecvError::Empty) {
                (first..first + BURST).for_each(|number| stack.send(0, number));
                let expected: Vec<_> = (first..first + BURST).collect();
                assert_eq!(take(&mut queue, BURST as usize), expected);
                first += BURST;
            }
        });
        for next in all.iter().cycle().skip(1).take(20) {
            let taken = || next.counters().unwrap().taken;
            let before = taken();
            program.set_rules(vec![next.clone().into()]).unwrap();
            // Each takes some before the next comes.
            let deadline = Instant::now() + Duration::from_secs(30);
            while taken() == before {
                assert!(Instant::now() < deadline, "it takes nothing");
                std::thread::yield_now();
            }
        }
        drop(going);
    });
}

#[test]
fn each_queue_has_its_filter() {
    if skip_without_root("each_queue_has_its_filter") {
        return;
    }
    let wire = Wire::new();
    let (mut program, _queue) = end_of(&wire, AttachMode::Native);
    let (a, b) = (filter("udp", 1), filter("tcp", 2));
    let at = |filter: &Arc<Filter>| QueueRule::from(filter.clone());
    program.set_rules(vec![at(&a), QueueRule::default(), at(&b), at(&a)]).unwrap();
    let name = |program: &XdpProgram| {
        let queues = program.rules().iter();
        queues.map(|q| q.filter.as_ref().map(Arc::as_ptr)).collect::<Vec<_>>()
    };
    let (pa, pb) = (Some(Arc::as_ptr(&a)), Some(Arc::as_ptr(&b)));
    assert_eq!(name(&program), [pa, None, pb, pa]);
    program.set_rules(vec![QueueRule::default(), at(&b)]).unwrap();
    assert_eq!(name(&program), [None, pb]);
}
