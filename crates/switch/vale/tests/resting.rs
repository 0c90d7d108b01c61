//! On a switch of many ports, not each round looks at those that send nothing.

mod common;

use std::sync::Arc;

use common::{BROADCAST, Client, header, mac};
use ringway_abi::Dir;
use ringway_kring::{Doorbell, Kring};
use ringway_mirror::{Mirror, MirrorMode, Mirrors};
use ringway_region::RingInit;
use ringway_switch_port::{PortIndex, PortMirrors};
use ringway_vale::{Clock, Forwarding, PortConfig, SteppedBridge};

const PORTS: u8 = 40;

struct World {
    bridge: SteppedBridge,
    clients: Vec<Client>,
    places: Vec<PortIndex>,
}

impl World {
    fn new(ports: u8) -> World {
        let mut bridge = SteppedBridge::new(&Forwarding::default(), Clock::new(|| 0)).unwrap();
        let clients: Vec<_> = (0..ports).map(|_| Client::new([1, 1], [512, 512], 0)).collect();
        let attach =
            |client: &Client| bridge.attach(Box::new(client.port()), PortConfig::default());
        let places = clients.iter().map(attach).map(Option::unwrap).collect();
        World { bridge, clients, places }
    }

    /// The first port sends so many frames to itself, which costs a look-up each, and the switch has a round.
    fn busy_round(&mut self, frames: usize) {
        let frame = header(mac(0), mac(0));
        for _ in 0..frames {
            self.clients[0].fill(0, &frame, frame.len() as u16, 0, None);
        }
        self.clients[0].tx_sync(0);
        self.bridge.round();
        self.clients[0].tx_sync(0);
    }

    fn sent(&self, port: u8) -> u64 {
        self.bridge.totals(self.places[usize::from(port)]).unwrap().sent_packets
    }

    fn send(&self, port: u8) {
        let frame = header(BROADCAST, mac(port));
        self.clients[usize::from(port)].send(&frame);
    }

    /// Rounds until what `port` sends is taken, while the first is busy.
    fn rounds_until_taken(&mut self, port: u8, frames: usize) -> u32 {
        let before = self.sent(port);
        self.send(port);
        for rounds in 1..1000 {
            self.busy_round(frames);
            if self.sent(port) > before {
                return rounds;
            }
        }
        panic!("it is not looked at any more");
    }
}

/// It waits for its turn, and for less the more is done meanwhile; a busy port does not wait.
#[test]
fn a_port_that_begins_to_send_is_looked_at_in_time() {
    let mut world = World::new(PORTS);
    assert_eq!(world.rounds_until_taken(1, 8), 1, "none rests yet");
    for _ in 0..40 {
        world.busy_round(8);
    }
    let little = world.rounds_until_taken(2, 8);
    assert!((2..400).contains(&little), "{little} rounds");
    assert_eq!(world.rounds_until_taken(2, 8), 1, "it has sent of late");
    for _ in 0..40 {
        world.busy_round(8);
    }
    let much = world.rounds_until_taken(3, 100);
    assert!(much <= little / 4, "{much} rounds, and {little} of less work");
}

/// Without work all are looked at, and so are few ports.
#[test]
fn who_has_time_looks_at_all() {
    let mut world = World::new(PORTS);
    (0..40).for_each(|_| world.busy_round(8));
    world.bridge.round();
    world.send(1);
    world.bridge.round();
    assert_eq!(world.sent(1), 1);

    let mut world = World::new(8);
    (0..40).for_each(|_| world.busy_round(8));
    assert_eq!(world.rounds_until_taken(1, 8), 1);
}

/// What waits for a lossless port goes on in the round after that has room, and monitors that take buffers get them
/// as soon as the program has released them, however long there was nothing.
#[test]
fn a_port_that_is_waited_for_does_not_rest() {
    let mut world = World::new(PORTS);
    let lossless = PortConfig { lossless: Some(Default::default()), ..PortConfig::default() };
    assert!(world.bridge.configure(world.places[2], lossless));
    // Where it is.
    world.send(2);
    world.busy_round(8);
    let frame = header(mac(2), mac(1));
    (0..511).for_each(|_| world.clients[1].fill(0, &frame, frame.len() as u16, 0, None));
    world.clients[1].tx_sync(0);
    (0..40).for_each(|_| world.busy_round(8));
    assert_eq!(world.sent(1), 511);
    world.clients[1].tx_sync(0);
    world.clients[1].send(&frame);
    // Without work all are looked at.
    for _ in 0..3 {
        world.bridge.round();
    }
    let state = world.bridge.state(world.places[1]).unwrap();
    assert_eq!(state.waits_for, Some(world.places[2]));
    (0..40).for_each(|_| world.busy_round(8));
    assert_eq!(world.sent(1), 511, "there is no room");
    assert_eq!(world.clients[2].receive(0, 1).len(), 1);
    world.busy_round(8);
    assert_eq!(world.sent(1), 512);

    assert!(world.bridge.configure(world.places[2], PortConfig::default()));
    let client = &world.clients[3];
    let init = RingInit { dir: Dir::Rx, ringid: 0, num_slots: 512 };
    let bufs: Vec<u32> = (2 + 1024..2 + 1536).collect();
    let monitor = Kring::create(&client.region, 2, &init, &bufs).unwrap();
    let mirror =
        Mirror::new(monitor.clone(), Arc::new(Doorbell::new().unwrap()), MirrorMode::SwapReceived);
    let rx = vec![Mirrors::from_iter([mirror])];
    world.bridge.set_mirrors(world.places[3], PortMirrors { tx: vec![], rx });
    (0..40).for_each(|_| world.busy_round(8));
    let frame = header(mac(3), mac(0));
    world.clients[0].send(&frame);
    world.busy_round(8);
    world.bridge.flush_idle();
    world.clients[3].receive(0, 9);
    (0..40).for_each(|_| world.busy_round(8));
    let before = monitor.hwtail();
    assert!(before > 0);
    world.send(0);
    world.busy_round(8);
    world.bridge.flush_idle();
    assert_eq!(world.clients[3].receive(0, 9).len(), 1);
    world.busy_round(8);
    assert_eq!(monitor.hwtail(), before + 1);
}
