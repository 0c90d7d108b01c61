//! A worker that panics: the port that it had in hand is lost, and told of; the others go on.

mod common;

use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, Once},
};

use common::{BROADCAST, Client, barrier, bytes, header, listen, mac};
use ringway_kring::Doorbell;
use ringway_switch_port::{
    Backpressure, Burst, Configure, Delivered, Drops, Frame, Mirrored, PacketIo, Wake,
};
use ringway_vale::{Bridge, Forward, Lost, Packet, PortConfig, Verdict};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    Collect,
    Deliver,
    Flush,
    Complete,
    Arm,
}

/// A port that makes its worker panic.
struct Faulty {
    bug: Bug,
    doorbell: Arc<Doorbell>,
    sends: bool,
}

impl Faulty {
    fn meet(&self, bug: Bug) {
        assert_ne!(self.bug, bug, "as asked for");
    }
}

impl PacketIo for Faulty {
    fn tx_rings(&self) -> usize {
        usize::from(self.sends)
    }

    fn receives(&self) -> bool {
        true
    }

    fn collect<'a>(&'a mut self, _ring: usize, _burst: &mut Burst<'a>, _drops: &mut Drops) -> u32 {
        self.meet(Bug::Collect);
        0
    }

    fn release(&mut self, _ring: usize) {}

    fn deliver(
        &mut self,
        _ring: usize,
        frames: &[Frame],
        _burst: &Burst<'_>,
        _drops: &mut Drops,
    ) -> Delivered {
        self.meet(Bug::Deliver);
        Delivered { packets: frames.len() as u64, bytes: 0 }
    }

    fn flush(&mut self, _idle: bool) {
        self.meet(Bug::Flush);
    }

    fn complete(&mut self, _idle: bool) {
        self.meet(Bug::Complete);
    }
}

impl Wake for Faulty {
    fn arm(&mut self) {
        self.meet(Bug::Arm);
    }

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    fn is_edge_triggered(&self) -> bool {
        true
    }

    fn drain(&self) {}
}

impl Backpressure for Faulty {}
impl Configure for Faulty {}
impl Mirrored for Faulty {}

fn faulty(bug: Bug) -> Box<Faulty> {
    Box::new(Faulty { bug, doorbell: Arc::new(Doorbell::new().unwrap()), sends: true })
}

/// Their panics are not shown: each is meant.
fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let show = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.to_string().contains("as asked for") {
                show(info);
            }
        }));
    });
}

struct World {
    bridge: Bridge,
    told: Arc<Doorbell>,
    clients: [Client; 2],
}

impl World {
    fn new(name: &str) -> World {
        quiet();
        let (bridge, told) = (Bridge::start(name).unwrap(), Arc::new(Doorbell::new().unwrap()));
        bridge.report_to(told.clone());
        let clients = [(); 2].map(|()| Client::new([1, 1], [64, 64], 0));
        World { bridge, told, clients }
    }

    /// A frame from the client `from` to all, which the other one gets.
    fn exchange(&self, from: usize) {
        let (sender, receiver) = (&self.clients[from], &self.clients[1 - from]);
        let frame = header(BROADCAST, mac(from as u8));
        sender.send(&frame);
        sender.drained(0);
        barrier(&self.bridge);
        assert_eq!(bytes(receiver.receive(0, usize::MAX)), [frame.to_vec()]);
    }

    fn lost(&self) -> Lost {
        listen(&self.told);
        self.told.drain();
        self.bridge.take_lost()
    }
}

/// Wherever the worker panics over a port, that port is lost and no other, and its place can be had
/// again when it was detached.
#[test]
fn the_port_in_hand_is_lost() {
    for bug in [Bug::Collect, Bug::Deliver, Bug::Flush, Bug::Complete, Bug::Arm] {
        let world = World::new("vale-panics");
        let [a, b] = &world.clients;
        a.attach(&world.bridge);
        let bad = world.bridge.attach(faulty(bug), PortConfig::default(), Arc::default()).unwrap();
        b.attach(&world.bridge);
        if bug == Bug::Deliver {
            // The port that sends to it is in hand as well.
            a.send(&header(BROADCAST, mac(0)));
            assert_eq!(world.lost(), Lost { ports: vec![0, bad], all: false }, "{bug:?}");
            world.bridge.detach(0);
            assert_eq!(world.clients[0].attach(&world.bridge).0, 0);
        } else {
            assert_eq!(world.lost(), Lost { ports: vec![bad], all: false }, "{bug:?}");
        }
        let next = faulty(Bug::None);
        let index = world.bridge.attach(next, PortConfig::default(), Arc::default()).unwrap();
        assert_eq!(index, 3, "{bug:?}: its place is kept until it is detached");
        world.bridge.detach(bad);
        let index = faulty(Bug::None);
        let index = world.bridge.attach(index, PortConfig::default(), Arc::default()).unwrap();
        assert_eq!(index, bad);
        if bug != Bug::Deliver {
            world.exchange(0);
        }
        world.exchange(1);
        assert!(world.bridge.take_lost().is_nothing());
    }
}

/// Cannot tell the time.
struct Timeless;

impl Forward for Timeless {
    fn decide(&mut self, _packet: &Packet<'_>) -> Verdict {
        Verdict::Flood
    }

    fn tick(&mut self, _seconds: u32) {
        panic!("as asked for");
    }
}

/// A panic over no port ends the worker. Its owner is told, and does not wait for answers.
#[test]
fn a_worker_without_a_port_to_blame_ends() {
    let world = World::new("vale-ends");
    world.clients.iter().for_each(|client| drop(client.attach(&world.bridge)));
    // It is told the time at once.
    world.bridge.set_function(Box::new(Timeless));
    assert_eq!(world.lost(), Lost { ports: Vec::new(), all: true });
    let bug = faulty(Bug::None);
    assert_eq!(world.bridge.attach(bug, PortConfig::default(), Arc::default()), None);
    assert!(!world.bridge.replace(0, faulty(Bug::None)));
}

/// Cannot decide on frames of port 0.
struct Refuses;

impl Forward for Refuses {
    fn decide(&mut self, packet: &Packet<'_>) -> Verdict {
        assert_ne!(packet.source(), 0, "as asked for");
        Verdict::Flood
    }
}

#[test]
fn a_panic_over_a_packet_costs_its_sender() {
    let world = World::new("vale-sender");
    world.clients.iter().for_each(|client| drop(client.attach(&world.bridge)));
    let third = Client::new([1, 1], [64, 64], 0);
    third.attach(&world.bridge);
    world.bridge.set_function(Box::new(Refuses));
    world.clients[0].send(&header(BROADCAST, mac(0)));
    assert_eq!(world.lost(), Lost { ports: vec![0], all: false });
    let frame = header(BROADCAST, mac(1));
    world.clients[1].send(&frame);
    world.clients[1].drained(0);
    barrier(&world.bridge);
    assert_eq!(bytes(third.receive(0, usize::MAX)), [frame.to_vec()]);
}
