//! Interfaces between which frames go round, and frames that are for one link alone.

mod common;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use common::{BROADCAST, Client, bytes, header, mac};
use ringway_filter::{Insn, Program};
use ringway_switch_port::PortIndex;
use ringway_vale::{
    Clock, Forwarding, MirrorCounters, MirrorSources, PortConfig, PortFilter, PortState,
    SourceAddresses, SteppedBridge, SwitchMirror, Vlan,
};

/// The address of spanning tree, and that of LLDP.
const STP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0];
const LLDP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
/// The first that is not for one link alone, and one that looks alike.
const OTHERS: [[u8; 6]; 2] = [[0x01, 0x80, 0xc2, 0, 0, 0x10], [0x01, 0x80, 0xc2, 0x01, 0, 0]];

fn interface() -> PortConfig {
    PortConfig { is_interface: true, ..PortConfig::default() }
}

struct World {
    bridge: SteppedBridge,
    ports: Vec<(PortIndex, Client)>,
    millis: Arc<AtomicU64>,
}

impl World {
    fn new(configs: &[PortConfig]) -> World {
        let millis = Arc::new(AtomicU64::new(1000));
        let hand = millis.clone();
        let clock = Clock::new(move || hand.load(Relaxed));
        let mut bridge = SteppedBridge::new(&Forwarding::default(), clock).unwrap();
        let attach = |config: &PortConfig| {
            let client = Client::new([1, 1], [64, 64], 0);
            (bridge.attach(Box::new(client.port()), config.clone()).unwrap(), client)
        };
        let ports = configs.iter().map(attach).collect();
        World { bridge, ports, millis }
    }

    fn send(&mut self, port: usize, frames: &[Vec<u8>]) {
        let client = &self.ports[port].1;
        frames.iter().for_each(|frame| client.fill(0, frame, frame.len() as u16, 0, None));
        client.tx_sync(0);
        while self.bridge.round() {}
        self.bridge.flush_idle();
        client.tx_sync(0);
    }

    fn received(&self, port: usize) -> Vec<Vec<u8>> {
        bytes(self.ports[port].1.receive(0, usize::MAX))
    }

    /// What a cable between two ports does, so many times: what left by one comes back by the other.
    fn carry(&mut self, [one, other]: [usize; 2], times: usize) {
        for _ in 0..times {
            let frames = [self.received(one), self.received(other)];
            self.send(other, &frames[0]);
            self.send(one, &frames[1]);
        }
    }

    fn state(&self, port: usize) -> PortState {
        self.bridge.state(self.ports[port].0).unwrap()
    }

    fn filtered(&self, port: usize) -> u64 {
        self.bridge.totals(self.ports[port].0).unwrap().drops.filtered
    }
}

fn frame(dst: [u8; 6], src: u8) -> Vec<u8> {
    [&header(dst, mac(src))[..], &[0; 46]].concat()
}

/// Whether it goes round both ways or one, one end is blocked, which ends it; an operator unblocks it, and it
/// is found again. Nothing of that reaches programs, or other interfaces again and again.
#[test]
fn a_loop_ends_with_one_port_blocked_until_it_is_unblocked() {
    // A frame of a third port goes round both ways, one of an end of the loop one way.
    for from in [0, 1, 2, 3] {
        let mut world = World::new(&[PortConfig::default(), interface(), interface(), interface()]);
        world.send(from, &[frame(BROADCAST, 7)]);
        world.carry([1, 2], 3000);
        let states = [0, 1, 2, 3].map(|port| world.state(port).loops_with);
        let blocked = states.iter().position(Option::is_some).expect("one is blocked");
        let other = world.ports[3 - blocked].0;
        assert!([1, 2].contains(&blocked) && states[blocked] == Some(other), "{states:?}");
        assert_eq!(states.iter().flatten().count(), 1, "{states:?}");
        world.carry([1, 2], 2);
        assert!(world.received(1).is_empty() && world.received(2).is_empty(), "it goes round");

        // The blocked one takes no part, and what is lost is counted; the others go on.
        let ours = |frames: Vec<Vec<u8>>| frames.into_iter().filter(|f| f[0] == 0xcf).count();
        assert_eq!(ours(world.received(0)), 0, "it is for interfaces alone");
        assert!(ours(world.received(3)) <= 1);
        let before = world.filtered(blocked);
        world.send(blocked, &[frame(BROADCAST, 9)]);
        assert_eq!(world.filtered(blocked), before + 1);
        world.send(3, &[frame(BROADCAST, 3)]);
        assert_eq!(world.received(0), [frame(BROADCAST, 3)]);
        assert_eq!(world.received(3 - blocked), [frame(BROADCAST, 3)]);
        assert!(world.received(blocked).is_empty());

        // Other settings do not unblock it.
        let place = world.ports[blocked].0;
        world.bridge.configure(place, PortConfig { group_forward: 1, ..interface() });
        assert!(world.state(blocked).loops_with.is_some());
        world.bridge.configure(place, PortConfig { unblocked: 1, ..interface() });
        assert_eq!(world.state(blocked), PortState::default());
        world.send(blocked, &[frame(BROADCAST, 9)]);
        assert_eq!(world.received(0), [frame(BROADCAST, 9)]);
        world.millis.fetch_add(1000, Relaxed);
        world.carry([1, 2], 3000);
        assert!([1, 2].iter().any(|port| world.state(*port).loops_with.is_some()), "found again");
    }
}

/// The same in one VLAN of trunks that have no native one, while another is busy; and between ports that know
/// nothing of VLANs, where what connects them carries tagged frames alone.
#[test]
fn a_loop_of_tagged_frames_is_found() {
    let trunk = |vids: [u16; 2]| PortConfig {
        vlan: Vlan::Trunk { allowed: vids.into(), native: None },
        ..interface()
    };
    let access = PortConfig { vlan: Vlan::Access(20), ..interface() };
    let in_trunks = [access, trunk([10, 20]), trunk([20, 30]), trunk([10, 30])];
    let unaware = [(); 4].map(|()| interface());
    for configs in [in_trunks, unaware] {
        let mut world = World::new(&configs);
        let is_unaware = configs[0].vlan == Vlan::Unaware;
        world.send(0, &[if is_unaware { tagged(20) } else { frame(BROADCAST, 7) }]);
        for _ in 0..4 {
            for _ in 0..800 {
                let is_tagged = |frame: &Vec<u8>| frame[12] == 0x81;
                let mut frames = [1, 2].map(|port| world.received(port));
                frames.iter_mut().for_each(|frames| frames.retain(is_tagged));
                world.send(2, &frames[0]);
                world.send(1, &frames[1]);
                if !is_unaware {
                    world.send(3, &[tagged(10)]);
                }
                [0, 3].iter().for_each(|port| drop(world.received(*port)));
            }
            world.millis.fetch_add(1000, Relaxed);
        }
        let states = [0, 1, 2, 3].map(|port| world.state(port).loops_with);
        let blocked = states.iter().position(Option::is_some).expect("one is blocked");
        assert!([1, 2].contains(&blocked), "{states:?}");
        assert_eq!(states.iter().flatten().count(), 1, "{states:?}");
    }
}

fn tagged(vid: u16) -> Vec<u8> {
    let mut frame = frame(BROADCAST, vid as u8);
    frame.splice(12..12, [&[0x81, 0][..], &vid.to_be_bytes()].concat());
    frame
}

/// Behind ports that are no interfaces there may be a bridge of the host's, or another switch: the loop ends,
/// and link-local groups go through as to a program.
#[test]
fn a_loop_behind_other_ports_ends() {
    let leads_on = PortConfig { leads_on: true, ..PortConfig::default() };
    for other in [leads_on.clone(), interface()] {
        let configs = [PortConfig::default(), leads_on.clone(), other, interface()];
        let mut world = World::new(&configs);
        for (from, to) in [(3, 1), (1, 3)] {
            world.send(from, &[frame(STP, 5)]);
            assert_eq!(world.received(to), [frame(STP, 5)]);
            (0..4).for_each(|port| drop(world.received(port)));
        }
        world.send(0, &[frame(BROADCAST, 7)]);
        world.carry([1, 2], 3000);
        let states = [0, 1, 2, 3].map(|port| world.state(port).loops_with);
        let blocked = states.iter().position(Option::is_some).expect("one is blocked");
        assert!([1, 2].contains(&blocked), "{states:?}");
        assert_eq!(states.iter().flatten().count(), 1, "{states:?}");
    }
}

/// Two switches that are connected twice: one of the two cables is cut, by one of them.
#[test]
fn two_switches_that_are_connected_twice_stay_connected_once() {
    for _ in 0..8 {
        let ports = [PortConfig::default(), interface(), interface()];
        let mut worlds = [World::new(&ports), World::new(&ports)];
        worlds[0].send(0, &[frame(BROADCAST, 1)]);
        for _ in 0..4000 {
            for (from, to) in [(0, 1), (1, 0)] {
                for port in [1, 2] {
                    let frames = worlds[from].received(port);
                    worlds[to].send(port, &frames);
                }
            }
            worlds.iter().for_each(|world| drop(world.received(0)));
        }
        let blocked = |world: &World| [1, 2].map(|port| world.state(port).loops_with.is_some());
        let all = worlds.each_ref().map(blocked);
        assert_eq!(all.as_flattened().iter().filter(|it| **it).count(), 1, "{all:?}");
        worlds[0].send(0, &[frame(BROADCAST, 2)]);
        for port in [1, 2] {
            let frames = worlds[0].received(port);
            worlds[1].send(port, &frames);
        }
        let arrived = worlds[1].received(0);
        assert_eq!(arrived.iter().filter(|it| **it == frame(BROADCAST, 2)).count(), 1);
    }
}

/// Neither much multicast nor machines that claim each other's addresses are a loop.
#[test]
fn nothing_else_is_taken_for_a_loop() {
    let mut world = World::new(&[interface(), interface(), PortConfig::default()]);
    for n in 0..3000 {
        if n % 500 == 0 {
            world.millis.fetch_add(1000, Relaxed);
        }
        (0..3).for_each(|port| world.send(port, &[frame(BROADCAST, 7)]));
        (0..3).for_each(|port| drop(world.received(port)));
    }
    assert_eq!([0, 1, 2].map(|port| world.state(port).loops_with), [None; 3]);
}

/// Between interfaces, by who passes them on; a program gets all, and sends all.
#[test]
fn link_local_groups_stay_on_their_link() {
    let passes_lldp = PortConfig { group_forward: 1 << 0xe, ..interface() };
    let mut world = World::new(&[interface(), interface(), passes_lldp, PortConfig::default()]);
    for (from, dst, expected) in [
        (0, STP, [false, false, false, true]),
        (0, LLDP, [false, false, false, true]),
        (2, STP, [false, false, false, true]),
        (2, LLDP, [true, true, false, true]),
        (3, STP, [true, true, true, false]),
        (0, OTHERS[0], [false, true, true, true]),
        (0, OTHERS[1], [false, true, true, true]),
        (0, BROADCAST, [false, true, true, true]),
    ] {
        world.send(from, &[frame(dst, from as u8)]);
        let got = [0, 1, 2, 3].map(|port| !world.received(port).is_empty());
        assert_eq!(got, expected, "from {from} to {dst:02x?}");
    }
    // What reaches no other port is counted.
    let mut alone = World::new(&[interface(), interface()]);
    alone.send(0, &[frame(STP, 1), frame(BROADCAST, 1), frame(LLDP, 1)]);
    assert_eq!(alone.filtered(0), 2);
    assert_eq!(alone.received(1).len(), 1);
}

/// A sender that waits for a lossless port says for which.
#[test]
fn a_sender_tells_for_whom_it_waits() {
    let lossless = PortConfig { lossless: Some(Default::default()), ..PortConfig::default() };
    let mut world = World::new(&[PortConfig::default(), lossless]);
    world.send(0, &vec![frame(BROADCAST, 1); 63]);
    assert_eq!(world.state(0).waits_for, None, "all of it has room");
    world.send(0, &[frame(BROADCAST, 1)]);
    assert_eq!(world.state(0).waits_for, Some(world.ports[1].0));
    assert_eq!(world.state(1).waits_for, None);
    world.received(1);
    while world.bridge.round() {}
    assert_eq!(world.state(0).waits_for, None);
}

/// What joins two VLANs is no loop, however much is flooded; a second cable that leads back is.
#[test]
fn a_cable_between_two_vlans_is_no_loop() {
    let access = |vid| PortConfig { vlan: Vlan::Access(vid), ..interface() };
    for goes_back in [false, true] {
        let vids = [10, 10, 20, 20, 10];
        let mut world = World::new(&vids.map(access));
        for n in 0..3000 {
            world.send(0, &[frame(BROADCAST, (n % 7) as u8)]);
            world.carry([1, 2], 1);
            let frames = world.received(3);
            if goes_back {
                world.send(4, &frames);
            }
            [0, 4].iter().for_each(|port| drop(world.received(*port)));
            world.millis.fetch_add(1, Relaxed);
        }
        let states = [0, 1, 2, 3, 4].map(|port| world.state(port).loops_with);
        assert_eq!(states.iter().any(Option::is_some), goes_back, "{states:?}");
    }
}

/// What a cable brings back of a mirror's copies is copied again: that ends, too.
#[test]
fn a_loop_of_copies_ends() {
    let mut world = World::new(&[PortConfig::default(), interface(), interface()]);
    let [program, source, probe] = [0, 1, 2].map(|port| world.ports[port].0);
    let counters = Arc::new(MirrorCounters::default());
    world.bridge.set_switch_mirrors(vec![SwitchMirror {
        from: MirrorSources::Ports(vec![source]),
        sent: true,
        received: true,
        to: probe,
        filter: None,
        counters: counters.clone(),
    }]);
    world.send(usize::from(program), &[frame(BROADCAST, 7)]);
    world.carry([1, 2], 3000);
    let blocked = [1, 2].map(|port| world.state(port).loops_with.is_some());
    assert!(blocked[0] != blocked[1], "{blocked:?}");
    world.received(0);
    let before = counters.totals();
    world.carry([1, 2], 10);
    assert!(world.received(0).is_empty(), "it goes round");
    assert_eq!(counters.totals(), before);
}

/// What a port may send, and from which addresses, does not hide a loop, which would go on within that.
#[test]
fn a_loop_is_found_behind_filters_and_guards() {
    // IPv4 and ARP alone.
    let insn = |code, jt, jf, k| Insn { code, jt, jf, k };
    let by_type = [insn(0x28, 0, 0, 12), insn(0x15, 1, 0, 0x800), insn(0x15, 0, 1, 0x806)];
    let returns = [insn(6, 0, 0, 1), insn(6, 0, 0, 0)];
    let program = Program::new([&by_type[..], &returns].concat()).unwrap();
    let filter = Arc::new(PortFilter { text: String::new(), program });
    let filtered = PortConfig { filter_in: Some(filter), ..interface() };
    let guarded = PortConfig { sources: SourceAddresses::Only(vec![mac(7)]), ..interface() };
    let counted = PortConfig { max_addresses: Some(1), ..interface() };
    for (name, config) in [("filter", filtered), ("source", guarded), ("addresses", counted)] {
        let mut world = World::new(&[PortConfig::default(), config.clone(), config, interface()]);
        let mut arp = frame(BROADCAST, 7);
        arp[12..14].copy_from_slice(&[8, 6]);
        let is_found = |world: &World| [1, 2].iter().any(|p| world.state(*p).loops_with.is_some());
        for _ in 0..8 {
            world.send(0, &[arp.clone()]);
            world.carry([1, 2], 1500);
            world.millis.fetch_add(1000, Relaxed);
        }
        assert!(is_found(&world), "{name}");
    }
}

/// What a blocked port sends is sent, and dropped.
#[test]
fn what_a_blocked_port_sends_is_counted() {
    let mut world = World::new(&[PortConfig::default(), interface(), interface()]);
    world.send(0, &[frame(BROADCAST, 7)]);
    world.carry([1, 2], 3000);
    let totals = |world: &World, port: usize| world.bridge.totals(world.ports[port].0).unwrap();
    let blocked = [1, 2].into_iter().find(|p| world.state(*p).loops_with.is_some()).unwrap();
    let before = totals(&world, blocked);
    let sent = frame(BROADCAST, 9);
    world.send(blocked, &[sent.clone(), sent.clone()]);
    let after = totals(&world, blocked);
    assert_eq!(after.sent_packets, before.sent_packets + 2);
    assert_eq!(after.sent_bytes, before.sent_bytes + 2 * sent.len() as u64);
    assert_eq!(after.drops.filtered, before.drops.filtered + 2);
}
