//! Addresses that a user adds to what a switch learns, and takes from it: with real stacks, by the worker and
//! by the kernel.

use std::time::Duration;

use ringway::{AddressInfo, BridgePortInfo, Control, Forwarding, PortSettings, SourceAddresses};
use ringway_testkit::{Netns, PacketSocket, VethPair, frame, skip_without_root};
use ringway_tests::{Home, isolated, until};
use rustix::process::{Pid, Signal, kill_process};

const LIMIT: Duration = Duration::from_secs(30);

type Mac = [u8; 6];

const A: Mac = [2, 0, 0, 0, 0, 1];
const B: Mac = [2, 0, 0, 0, 0, 2];
const C: Mac = [2, 0, 0, 0, 0, 3];
const BROADCAST: Mac = [0xff; 6];

/// Three containers on a switch, in this order, with the addresses above.
struct World {
    control: Control,
    here: Netns,
    there: Vec<Netns>,
    wires: Vec<VethPair>,
    sockets: Vec<PacketSocket>,
    sent: u32,
}

impl World {
    /// `mode`: as behind an interface's name.
    fn new(mode: &str) -> World {
        let (here, control) = (Netns::quiet("rws"), Control::connect().unwrap());
        let mut world = World {
            control,
            here,
            there: Vec::new(),
            wires: Vec::new(),
            sockets: Vec::new(),
            sent: 0,
        };
        for number in 0..3 {
            world.there.push(Netns::quiet("rws"));
            world.plug(number);
            let name = format!("c{number}{mode}");
            world.here.enter(|| world.control.switch_attach("vale0", &name, false)).unwrap();
        }
        world
    }

    /// A container has an interface, and the switch's side the other end of it.
    fn plug(&mut self, number: usize) {
        let netns = &self.there[number];
        let wire = self.here.veth(netns, &format!("c{number}"), "eth0");
        netns.run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 && ip link set eth0 up");
        self.wires.insert(number, wire);
        self.sockets.insert(number, PacketSocket::new(netns, "eth0"));
    }

    fn send(&mut self, from: usize, dst: Mac, src: Mac) -> Vec<u8> {
        self.sent += 1;
        let mut bytes = frame(self.sent, 80);
        bytes[..6].copy_from_slice(&dst);
        bytes[6..12].copy_from_slice(&src);
        self.sockets[from].send(&bytes);
        bytes
    }

    /// Which containers have what the first one sends to `dst`: what is flooded is there before what comes
    /// behind it.
    fn reached(&mut self, dst: Mac) -> Vec<usize> {
        let bytes = self.send(0, dst, A);
        let last = self.send(0, BROADCAST, A);
        let has_it = |number: &usize| {
            let mut heard = std::iter::from_fn(|| self.sockets[*number].hear_within(LIMIT));
            let it = heard.find(|heard| heard.bytes == bytes || heard.bytes == last);
            let it = it.expect("the last one comes");
            it.bytes == bytes && heard.any(|heard| heard.bytes == last)
        };
        [1, 2].into_iter().filter(has_it).collect()
    }

    fn addresses(&self) -> Vec<AddressInfo> {
        self.control.switch_addresses("vale0").unwrap()
    }

    fn until_learned(&self, mac: Mac) {
        until("an address is learned", || {
            let known = self.addresses();
            let is_it = |it: &&AddressInfo| it.mac == mac && it.age_seconds.is_some();
            known.iter().find(is_it).map(drop).ok_or(format!("{known:?}"))
        });
    }

    fn port(&self, name: &str) -> BridgePortInfo {
        let switches = self.control.switches().unwrap();
        let mut ports = switches.into_iter().flat_map(|switch| switch.ports);
        ports.find(|port| port.name == name).expect("a port")
    }

    /// Whether the address's port is away.
    fn is_absent(&self, mac: Mac) -> bool {
        let known = self.addresses();
        known.iter().find(|it| it.mac == mac && it.age_seconds.is_none()).expect("static").absent
    }
}

fn addresses_are_the_users(home: &Home, mode: &str, shown: &str) {
    let mut world = World::new(mode);
    assert!(world.port("vale0:c0").mode.unwrap().starts_with(shown));
    world.send(0, BROADCAST, A);
    world.until_learned(A);
    assert_eq!(world.reached(B), [1, 2], "nobody knows where it is");

    // It has never sent, and is known.
    world.control.switch_address_add("vale0", B, 0, "c1").unwrap();
    assert_eq!(world.reached(B), [1]);

    // Another sends with its address: that arrives, is counted, and moves nothing.
    let before = world.port("vale0:c2").totals;
    let received = |world: &World| world.port("vale0:c0").totals.received_packets;
    let there = received(&world);
    world.send(2, A, B);
    until("it arrives", || if received(&world) > there { Ok(()) } else { Err("no".into()) });
    assert_eq!(world.reached(B), [1]);
    let after = world.port("vale0:c2").totals;
    assert_eq!((after.unlearned - before.unlearned, after.moved - before.moved), (1, 0));

    // What was learned is forgotten by both paths, and what was added is not.
    world.send(2, BROADCAST, C);
    world.until_learned(C);
    assert_eq!(world.reached(C), [2]);
    world.control.switch_addresses_flush("vale0", Some("c2"), None, false).unwrap();
    assert_eq!(world.reached(C), [1, 2]);
    world.send(2, BROADCAST, C);
    world.until_learned(C);
    world.control.switch_address_delete("vale0", C, 0).unwrap();
    assert_eq!(world.reached(C), [1, 2]);
    world.control.switch_addresses_flush("vale0", None, None, false).unwrap();
    assert_eq!(world.reached(B), [1]);

    // The container goes, and another comes in its place.
    world.sockets.remove(1);
    drop(world.wires.remove(1));
    until("its port is away", || if world.is_absent(B) { Ok(()) } else { Err("there".into()) });
    let before = world.port("vale0:c0").totals.drops.no_destination;
    world.sockets.insert(1, PacketSocket::new(&world.there[2], "eth0"));
    assert_eq!(world.reached(B), [0; 0], "it is not flooded");
    assert_eq!(world.port("vale0:c0").totals.drops.no_destination - before, 1);
    world.sockets.remove(1);
    world.plug(1);
    until("it is back", || if world.is_absent(B) { Err("away".into()) } else { Ok(()) });
    assert_eq!(world.reached(B), [1]);

    world.control.switch_address_delete("vale0", B, 0).unwrap();
    assert_eq!(world.reached(B), [1, 2]);
    world.control.switch_delete("vale0").unwrap();
    drop(world);
    home.assert_left();
}

#[test]
fn by_the_worker() {
    if skip_without_root("by_the_worker") {
        return;
    }
    isolated("by_the_worker", |home| addresses_are_the_users(home, "@mode=generic", "generic"));
}

#[test]
fn by_the_kernel() {
    if skip_without_root("by_the_kernel") {
        return;
    }
    isolated("by_the_kernel", |home| addresses_are_the_users(home, "", "kernel"));
}

/// The kernel forwards to a static address however long ago that was seen: the worker stands still meanwhile.
#[test]
fn the_kernel_lets_no_static_address_age() {
    if skip_without_root("the_kernel_lets_no_static_address_age") {
        return;
    }
    isolated("the_kernel_lets_no_static_address_age", |home| {
        let mut world = World::new("");
        let ageing = Forwarding::Learning { ageing_seconds: 1 };
        world.control.switch_address_add("vale0", B, 0, "c1").unwrap();
        world.control.switch_forward("vale0", ageing).unwrap();
        world.send(2, BROADCAST, C);
        world.until_learned(C);
        until("what was learned has aged", || match world.addresses() {
            known if known.len() == 1 => Ok(()),
            known => Err(format!("{known:?}")),
        });
        world.send(0, BROADCAST, A);
        world.until_learned(A);
        let daemon = Pid::from_raw(home.daemon() as i32).unwrap();
        kill_process(daemon, Signal::STOP).unwrap();
        let bytes = world.send(0, B, A);
        let arrives = std::iter::from_fn(|| world.sockets[1].hear_within(LIMIT))
            .any(|heard| heard.bytes == bytes);
        kill_process(daemon, Signal::CONT).unwrap();
        assert!(arrives);
        world.control.switch_delete("vale0").unwrap();
        drop(world);
        home.assert_left();
    });
}

/// Where an address is does not say that its port may send with it, whichever was configured first: the kernel's
/// path lets nothing pass that the worker would drop.
fn a_port_is_kept_to_its_addresses(home: &Home, mode: &str) {
    let mut world = World::new(mode);
    for number in [0, 1] {
        world.send(number, BROADCAST, [A, B][number]);
        world.until_learned([A, B][number]);
    }
    let sources = |macs: &[Mac]| PortSettings {
        sources: Some(SourceAddresses::Only(macs.to_vec())),
        ..PortSettings::default()
    };
    let passes = |world: &mut World, src: Mac, is_allowed: bool| {
        let before = world.port("vale0:c2").totals.drops.spoofed;
        let there = world.port("vale0:c0").totals.received_packets;
        world.send(2, A, src);
        until("it arrives, or is dropped", || {
            let received = world.port("vale0:c0").totals.received_packets - there;
            let spoofed = world.port("vale0:c2").totals.drops.spoofed - before;
            match (received, spoofed) {
                (0, 0) => Err("neither".into()),
                counts => Ok(counts),
            }
            .map(|counts| assert_eq!(counts, if is_allowed { (1, 0) } else { (0, 1) }, "{src:?}"))
        });
    };
    const OTHER: Mac = [2, 0, 0, 0, 0, 0xaa];
    world.control.switch_port("vale0:c2", sources(&[OTHER])).unwrap();
    for mac in [C, OTHER] {
        world.control.switch_address_add("vale0", mac, 0, "c2").unwrap();
    }
    for _ in 0..3 {
        passes(&mut world, C, false);
        passes(&mut world, OTHER, true);
    }
    // What it has sent with before it may not any more.
    world.control.switch_port("vale0:c2", sources(&[C, OTHER])).unwrap();
    (0..3).for_each(|_| passes(&mut world, C, true));
    world.control.switch_port("vale0:c2", sources(&[OTHER])).unwrap();
    (0..3).for_each(|_| passes(&mut world, C, false));
    assert_eq!(world.reached(C), [2], "it is there all the same");
    world.control.switch_delete("vale0").unwrap();
    drop(world);
    home.assert_left();
}

#[test]
fn a_port_is_kept_to_its_addresses_by_the_worker() {
    let test = "a_port_is_kept_to_its_addresses_by_the_worker";
    if !skip_without_root(test) {
        isolated(test, |home| a_port_is_kept_to_its_addresses(home, "@mode=generic"));
    }
}

#[test]
fn a_port_is_kept_to_its_addresses_by_the_kernel() {
    let test = "a_port_is_kept_to_its_addresses_by_the_kernel";
    if !skip_without_root(test) {
        isolated(test, |home| a_port_is_kept_to_its_addresses(home, ""));
    }
}
