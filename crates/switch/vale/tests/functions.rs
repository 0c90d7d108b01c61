//! The forwarding functions, and what a bridge makes of their decisions.

mod common;

use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};

use common::{BROADCAST, Client, barrier, bytes, header, mac, until_asleep};
use ringway_abi::NS_NO_LEARN;
use ringway_vale::{
    ABSENT, AddressFilter, Bridge, Clock, Forward, Forwarding, Packet, PortConfig, PortCounters,
    SourceAddresses, StaticAddress, Verdict, Vlan,
};

struct World {
    name: String,
    bridge: Bridge,
    clients: Vec<Client>,
    counters: Vec<Arc<PortCounters>>,
    millis: Arc<AtomicU64>,
}

impl World {
    fn new(forwarding: Forwarding, ports: usize) -> World {
        let millis = Arc::new(AtomicU64::new(5_000_000));
        let hand = millis.clone();
        let clock = Clock::new(move || hand.load(Relaxed));
        static WORLDS: AtomicU32 = AtomicU32::new(0);
        let name = format!("vale-fn-{}", WORLDS.fetch_add(1, Relaxed));
        let bridge = Bridge::start_with(&name, &forwarding, clock).unwrap();
        let clients: Vec<_> = (0..ports).map(|_| Client::new([1, 2], [64, 64], 0)).collect();
        let counters = clients.iter().map(|c| c.attach(&bridge).1).collect();
        World { name, bridge, clients, counters, millis }
    }

    /// Who receives `frame` when `from` sends it.
    fn send(&self, from: usize, frame: &[u8]) -> Vec<usize> {
        self.clients[from].send(frame);
        self.clients[from].drained(0);
        barrier(&self.bridge);
        let got = |to: &usize| {
            let frames = bytes(self.clients[*to].receive(0, usize::MAX));
            assert!(frames.iter().all(|f| f == frame), "{frames:?}");
            frames.len() == 1
        };
        (0..self.clients.len()).filter(got).collect()
    }

    /// Lets time pass, and the worker notice.
    fn pass(&self, seconds: u64) {
        self.millis.fetch_add(seconds * 1000, Relaxed);
        // Whatever wakes it makes it look at the clock, before it does anything else.
        until_asleep(&self.name);
    }

    fn drops(&self, port: usize) -> ringway_switch_port::Drops {
        self.counters[port].totals().drops
    }
}

fn learning(ageing_seconds: u32) -> Forwarding {
    Forwarding::Learning { ageing_seconds }
}

#[test]
fn addresses_age_when_they_are_not_seen() {
    let world = World::new(learning(10), 3);
    world.send(1, &header(BROADCAST, mac(1)));
    world.pass(10);
    assert_eq!(world.send(0, &header(mac(1), mac(0))), [1], "ten seconds are not too long");
    world.pass(1);
    assert_eq!(world.send(0, &header(mac(1), mac(0))), [1, 2], "eleven are");

    // One that is used does not age, although it is always the same.
    for _ in 0..5 {
        world.send(1, &header(mac(0), mac(1)));
        world.pass(7);
    }
    assert_eq!(world.send(0, &header(mac(1), mac(0))), [1]);
}

#[test]
fn without_ageing_addresses_stay() {
    let world = World::new(learning(0), 3);
    world.send(1, &header(BROADCAST, mac(1)));
    world.pass(u64::from(u32::MAX / 2));
    assert_eq!(world.send(0, &header(mac(1), mac(0))), [1]);
}

/// What was learned can be asked for, with its age; a function that learns nothing has nothing.
#[test]
fn learned_addresses_are_told_with_their_age() {
    let world = World::new(learning(300), 2);
    let learned = || {
        let (list, next) = world.bridge.learned(0, 100)().unwrap();
        assert_eq!(next, None);
        let mut told: Vec<_> =
            list.iter().map(|it| (it.port, it.mac, it.vlan, it.age_seconds)).collect();
        told.sort();
        told
    };
    assert_eq!(learned(), []);
    world.send(0, &header(BROADCAST, mac(1)));
    world.pass(7);
    world.send(1, &header(BROADCAST, mac(2)));
    world.pass(2);
    assert_eq!(learned(), [(0, mac(1), 0, 9), (1, mac(2), 0, 2)]);
    world.bridge.begin_count().recv().unwrap();
    assert_eq!([0, 1].map(|port| world.counters[port].totals().known), [1, 1]);
    world.bridge.set_forwarding(&Forwarding::Flood);
    assert_eq!(learned(), []);
    world.bridge.count();
    assert_eq!([0, 1].map(|port| world.counters[port].totals().known), [0, 0]);
}

/// S-VALE-6 has it otherwise: netmap does not notice that an address came back.
#[test]
fn an_address_that_moves_away_and_back_is_found() {
    let world = World::new(learning(300), 3);
    for port in [1, 2, 1, 2, 2, 1] {
        world.send(port, &header(BROADCAST, mac(9)));
        assert_eq!(world.send(0, &header(mac(9), mac(0))), [port]);
    }
}

/// S-VALE-7 has it otherwise: netmap sends into the void until the address is seen again.
#[test]
fn addresses_of_a_port_that_has_gone_are_unknown() {
    let world = World::new(learning(300), 4);
    world.send(3, &header(BROADCAST, mac(9)));
    world.bridge.detach(3);
    assert_eq!(world.send(0, &header(mac(9), mac(0))), [1, 2]);
    assert_eq!(world.drops(0).no_destination, 0);
}

#[test]
fn what_was_learned_of_a_port_is_forgotten_when_it_can_be_wrong() {
    let world = World::new(learning(300), 3);
    let learn = || drop(world.send(1, &header(BROADCAST, mac(1))));
    let reaches = || world.send(0, &header(mac(1), mac(0)));
    let plain = PortConfig::default;
    learn();
    // It is in the same place.
    for config in [
        plain(),
        PortConfig { isolated: true, ..plain() },
        PortConfig { max_frame: 9000, group_forward: 1, ..plain() },
    ] {
        assert!(world.bridge.configure(1, config));
        assert_eq!(reaches(), [1]);
    }
    // Others may be behind it, in other VLANs, or with other addresses.
    for config in [
        PortConfig { is_down: true, ..plain() },
        PortConfig { sources: SourceAddresses::Only(vec![mac(2)]), ..plain() },
        PortConfig { vlan: Vlan::Access(5), ..plain() },
    ] {
        learn();
        assert_eq!(reaches(), [1]);
        assert!(world.bridge.configure(1, config.clone()));
        let reached = reaches();
        assert!(reached != [1] && reached.contains(&2), "{config:?}: {reached:?}");
        assert!(world.bridge.configure(1, plain()));
    }
    assert!(!world.bridge.configure(77, PortConfig::default()), "there is no such port");
}

#[test]
fn static_addresses_are_where_the_configuration_says() {
    let addresses = vec![(mac(1), 1), (mac(2), 2), (mac(7), 77)];
    let strict = Forwarding::Static { addresses: addresses.clone(), flood_unknown: false };
    let world = World::new(strict, 3);
    world.send(1, &header(BROADCAST, mac(2)));
    assert_eq!(world.send(0, &header(mac(2), mac(0))), [2], "nothing is learned");
    assert_eq!(world.send(0, &header(BROADCAST, mac(0))), [1, 2]);
    assert_eq!(world.send(0, &header(mac(7), mac(0))), [0; 0]);
    assert_eq!(world.send(0, &header(mac(3), mac(0))), [0; 0]);
    assert_eq!((world.drops(0).no_destination, world.drops(0).filtered), (1, 1));

    world.bridge.set_forwarding(&Forwarding::Static { addresses, flood_unknown: true });
    assert_eq!(world.send(0, &header(mac(3), mac(0))), [1, 2]);
}

#[test]
fn a_hub_sends_everything_to_everybody() {
    let world = World::new(Forwarding::Flood, 3);
    world.send(1, &header(BROADCAST, mac(1)));
    assert_eq!(world.send(0, &header(mac(1), mac(0))), [1, 2]);
}

/// An UDP packet from one numbered end to another.
fn udp(from: u16, to: u16) -> Vec<u8> {
    let mut bytes = header(mac(2), mac(1)).to_vec();
    bytes[12..].copy_from_slice(&[8, 0]);
    bytes.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
    for end in [from, to] {
        bytes.extend([10, 0, (end >> 8) as u8, end as u8]);
    }
    bytes.extend([from.to_be_bytes(), to.to_be_bytes(), [0, 8], [0, 0]].concat());
    bytes
}

#[test]
fn flows_stay_on_a_port_and_come_back() {
    let world = World::new(Forwarding::Hash { over: vec![1, 2, 3], back: Some(0) }, 5);
    let mut used = [0; 5];
    for n in 0..60 {
        let there = world.send(0, &udp(n, 1000));
        let [port] = there[..] else { panic!("one port receives it, not {there:?}") };
        used[port] += 1;
        assert_eq!(world.send(4, &udp(1000, n)), [port], "the other direction has the same");
        assert_eq!(world.send(port, &udp(1000, n)), [0], "its answer goes back");
    }
    assert!(used[1..4].iter().all(|n| *n > 5) && used[0] + used[4] == 0, "{used:?}");

    world.bridge.set_forwarding(&Forwarding::Hash { over: vec![1], back: None });
    assert_eq!(world.send(1, &udp(1, 2)), [0; 0]);
    assert_eq!(world.drops(1).filtered, 1);
}

/// Goes by the third byte of the destination, the flags, and what is behind the header.
struct Own;

impl Forward for Own {
    fn decide(&mut self, packet: &Packet<'_>) -> Verdict {
        let mut bytes = [0; 32];
        let n = packet.peek(&mut bytes);
        assert_eq!(bytes[..12], [packet.dst(), packet.src()].concat());
        assert_eq!((n as u32, packet.ring(), packet.vlan()), (packet.length(), 0, 0));
        match bytes[n - 1] {
            _ if packet.flags() & NS_NO_LEARN != 0 => Verdict::Port(packet.source()),
            0xff => Verdict::Flood,
            0xfe => Verdict::Drop,
            port => Verdict::Ring(port, 1),
        }
    }
}

#[test]
fn s_vale_20_a_function_of_ones_own() {
    let world = World::new(Forwarding::default(), 3);
    world.bridge.set_function(Box::new(Own));
    let frame = |last| [&header(mac(1), mac(2))[..], &[0, last]].concat();
    assert_eq!(world.send(0, &frame(0xff)), [1, 2]);
    assert_eq!(world.send(0, &frame(0xfe)), [0; 0]);
    assert_eq!(world.send(0, &frame(2)), [0; 0], "not on ring 0");
    assert_eq!(bytes(world.clients[2].receive(1, 9)), [frame(2)]);
    world.clients[0].fill(0, &frame(0xff), 16, NS_NO_LEARN, None);
    world.clients[0].tx_sync(0);
    world.clients[0].drained(0);
    barrier(&world.bridge);
    assert_eq!((world.drops(0).filtered, world.drops(0).no_destination), (1, 1));
}

#[test]
fn spreading_over_no_port_drops() {
    let world = World::new(Forwarding::Hash { over: vec![], back: None }, 2);
    assert_eq!(world.send(0, &udp(1, 2)), [0; 0]);
    assert_eq!(world.drops(0).filtered, 1);
}

fn fixed(number: u8, port: u8) -> StaticAddress {
    StaticAddress { mac: mac(number), vlan: 0, port }
}

#[test]
fn a_static_address_neither_moves_nor_ages() {
    let world = World::new(learning(10), 4);
    world.bridge.set_static_addresses(vec![fixed(1, 1), fixed(2, ABSENT)]);
    assert_eq!(world.send(0, &header(mac(1), mac(0))), [1], "it was never seen");
    for _ in 0..2 {
        world.send(3, &header(BROADCAST, mac(1)));
    }
    assert_eq!(world.send(0, &header(mac(1), mac(0))), [1]);
    world.pass(1000);
    assert_eq!(world.send(0, &header(mac(1), mac(0))), [1]);
    world.bridge.count();
    let totals = |port: usize| world.counters[port].totals();
    assert_eq!((totals(3).unlearned, totals(3).moved, totals(3).known), (2, 0, 0));
    assert_eq!((totals(1).unlearned, totals(1).known), (0, 1), "it is known, as users see it");

    // Its own port may send with it, and go and come back.
    assert_eq!(world.send(1, &header(mac(0), mac(1))), [0]);
    world.bridge.configure(1, PortConfig::default());
    assert_eq!(world.send(0, &header(mac(1), mac(0))), [1]);

    // What is for a port that is not there is counted, and not flooded.
    assert_eq!(world.send(0, &header(mac(2), mac(0))), [0; 0]);
    assert_eq!(world.drops(0).no_destination, 1);
    world.bridge.set_static_addresses(vec![fixed(2, 2)]);
    assert_eq!(world.send(0, &header(mac(2), mac(0))), [2]);
    assert_eq!(world.send(0, &header(mac(1), mac(0))), [1, 2, 3], "it is not static any more");
}

#[test]
fn what_is_flushed_is_learned_again() {
    let world = World::new(learning(300), 4);
    world.bridge.set_static_addresses(vec![fixed(9, 1)]);
    let see = |numbers: &[(usize, u8)]| {
        for (port, number) in numbers {
            world.send(*port, &header(BROADCAST, mac(*number)));
        }
    };
    see(&[(1, 1), (2, 2), (2, 3)]);
    let flush = |which| world.bridge.flush_learned(which);
    let of = |mac| AddressFilter { mac: Some(mac), ..Default::default() };
    assert_eq!((flush(of(mac(2))), flush(of(mac(2)))), (1, 0));
    assert_eq!(world.send(0, &header(mac(2), mac(0))), [1, 2, 3]);
    // Although it is the last that the port has sent with.
    see(&[(2, 2)]);
    assert_eq!(flush(of(mac(2))), 1);
    see(&[(2, 2)]);
    assert_eq!(world.send(0, &header(mac(2), mac(0))), [2]);
    assert_eq!(flush(AddressFilter { port: Some(2), ..Default::default() }), 2);
    assert_eq!(flush(AddressFilter { vlan: Some(5), ..Default::default() }), 0);
    assert_eq!(flush(AddressFilter { vlan: Some(0), ..Default::default() }), 2);
    assert_eq!(world.send(0, &header(mac(9), mac(0))), [1], "what is static stays");
}
