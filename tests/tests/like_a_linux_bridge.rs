//! Random frames between interfaces on a Linux bridge, on a switch in the kernel, and on a switch whose worker
//! forwards all: in each, every port gets exactly the frames that IEEE 802.1Q gives it, and no others. VLANs are
//! the switches' alone: not every kernel's bridge has them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use ringway::{Control, Port, PortSettings, Vlan};
use ringway_testkit::{Netns, PacketSocket, VethPair, skip_without_root};
use ringway_tests::{Random, isolated, one_at_a_time};

const LIMIT: Duration = Duration::from_secs(30);
const PORTS: usize = 5;
/// Frames for each way in which the ports are set up.
const FRAMES: usize = 400;
/// The type of the frames here, in front of their numbers.
const KIND: [u8; 2] = [0x88, 0xb5];

/// That of a tag.
const TAG: [u8; 2] = [0x81, 0];

/// How a port takes part.
#[derive(Clone, Debug, Default)]
struct Setting {
    /// The VLAN of its untagged frames; 0: it is told nothing about VLANs.
    untagged: u16,
    tagged: BTreeSet<u16>,
    isolated: bool,
}

/// A frame to be sent, and its form at a receiver.
#[derive(Clone, PartialEq, Eq)]
struct Form {
    tag: Option<u16>,
    bytes: Vec<u8>,
}

impl Form {
    fn without_tag(&self) -> Form {
        let mut bytes = self.bytes.clone();
        let inner = (bytes[12..14] == TAG).then(|| u16::from_be_bytes([bytes[14], bytes[15]]));
        if inner.is_some() {
            bytes.drain(12..16);
        }
        Form { tag: inner, bytes }
    }

    /// Whether it is a frame of this test, and no other's.
    fn is_ours(&self) -> bool {
        let kind = if self.bytes.get(12..14) == Some(&TAG[..]) { 16 } else { 12 };
        self.bytes.get(kind..kind + 2) == Some(&KIND[..])
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x?} {:02x?}... {}", self.tag, &self.bytes[..18], self.bytes.len())
    }
}

/// Which port gets what: the standard's words, for all three.
struct Model {
    ports: [Setting; PORTS],
    table: BTreeMap<(u16, [u8; 6]), usize>,
}

impl Model {
    /// What each port receives of a frame that port `from` has sent.
    fn forward(&mut self, from: usize, frame: &Form) -> BTreeMap<usize, Form> {
        let sender = self.ports[from].clone();
        let is_aware = sender.untagged != 0;
        let vlan = match frame.tag.map(|tag| tag & 0xfff) {
            _ if !is_aware => 0,
            None | Some(0) => sender.untagged,
            Some(vid) if sender.tagged.contains(&vid) => vid,
            Some(_) => return BTreeMap::new(),
        };
        let (to, source) = (address(&frame.bytes, 0), address(&frame.bytes, 6));
        self.table.insert((vlan, source), from);
        if to[..5] == [1, 0x80, 0xc2, 0, 0] && to[5] < 16 {
            return BTreeMap::new();
        }
        let known = self.table.get(&(vlan, to)).filter(|_| to[0] & 1 == 0).copied();
        let receives = |(at, port): &(usize, &Setting)| {
            let takes_part = !is_aware || port.untagged == vlan || port.tagged.contains(&vlan);
            let apart = sender.isolated && port.isolated;
            *at != from && known.is_none_or(|known| known == *at) && takes_part && !apart
        };
        let ports = self.ports.iter().enumerate().filter(receives);
        let priority = frame.tag.unwrap_or_default() & 0xf000;
        let form_at = |port: &Setting| match port.untagged == vlan {
            _ if !is_aware => frame.clone(),
            // The first tag goes off, if there is one, and another behind it is the first.
            true => frame.without_tag(),
            false => Form { tag: Some(priority | vlan), ..frame.clone() },
        };
        ports.map(|(at, port)| (at, form_at(port))).collect()
    }
}

fn address(bytes: &[u8], at: usize) -> [u8; 6] {
    bytes[at..at + 6].try_into().expect("six bytes")
}

/// Interfaces of one bridge, and their other ends.
struct Bridge {
    what: &'static str,
    names: Vec<String>,
    wires: Vec<VethPair>,
    ends: Vec<PacketSocket>,
}

impl Bridge {
    fn new(what: &'static str, here: &Netns, there: &Netns) -> Bridge {
        let letter = &what[..1];
        let names: Vec<_> = (0..PORTS).map(|at| format!("{letter}{at}")).collect();
        let far = |name: &String| format!("{name}f");
        let wires = names.iter().map(|name| here.veth(there, name, &far(name))).collect();
        let ends = names.iter().map(|name| PacketSocket::of_all(there, &far(name))).collect();
        Bridge { what, names, wires, ends }
    }

    /// Sends a frame by one port, and waits until each port that is to has received it. What any other has
    /// received is a fault.
    fn pass(
        &self,
        from: usize,
        frame: &Form,
        wanted: &BTreeMap<usize, Form>,
        why: &dyn fmt::Debug,
    ) {
        let sent = match frame.tag {
            None => frame.bytes.clone(),
            Some(tag) => {
                let tag = [TAG, tag.to_be_bytes()].concat();
                [&frame.bytes[..12], &tag, &frame.bytes[12..]].concat()
            }
        };
        self.ends[from].send(&sent);
        for (&at, wanted) in wanted {
            let heard = self.next(at, LIMIT);
            let place = format!("{}: port {from} sent {frame:?}, {why:?}; port {at}", self.what);
            assert_eq!(heard.as_ref(), Some(wanted), "{place}");
        }
    }

    /// The next of the frames of this test that a port has received.
    fn next(&self, at: usize, limit: Duration) -> Option<Form> {
        loop {
            let heard = self.ends[at].hear_within(limit)?;
            let form = Form { tag: heard.tag.map(|(_, value)| value), bytes: heard.bytes };
            if form.is_ours() {
                return Some(form);
            }
        }
    }

    fn assert_silent(&self) {
        for at in 0..PORTS {
            let heard = self.next(at, Duration::ZERO);
            assert_eq!(heard, None, "{}: port {at}", self.what);
        }
    }
}

/// A frame, numbered in its bytes.
fn frame(to: [u8; 6], from: [u8; 6], tag: Option<u16>, number: usize, length: usize) -> Form {
    let mut bytes = [&to[..], &from, &KIND, &(number as u32).to_be_bytes()].concat();
    bytes.extend((bytes.len()..length).map(|at| (at * 5 + number) as u8));
    Form { tag, bytes }
}

/// Stations are behind all ports, and move.
fn station(number: u64) -> [u8; 6] {
    [2, 0, 0, 0, 1, number as u8]
}

fn any_frame(random: &mut Random, sender: &Setting, number: usize) -> Form {
    let to = match random.below(10) {
        0 => [0xff; 6],
        1 => [1, 0, 0x5e, 0, 0, random.below(4) as u8],
        // What a bridge keeps to its link. Linux passes spanning tree's, 0, where it has none itself, and learns
        // nothing from MAC control frames, 1.
        2 => [1, 0x80, 0xc2, 0, 0, 2 + random.below(14) as u8],
        3 => [2, 0, 0, 0, 9, random.below(4) as u8],
        _ => station(random.below(6)),
    };
    let vids = [10, 20, 30, 40];
    let tag = match random.below(4) {
        0 | 1 => None,
        // A bridge may refuse a tag for a port's untagged VLAN, or not, as Linux does.
        2 => Some(vids[random.below(4) as usize]).filter(|vid| *vid != sender.untagged),
        _ => Some(0),
    };
    let tag = tag.map(|vid| vid | (random.below(8) as u16) << 13);
    let length = 60 + random.below(1400) as usize;
    let mut form = frame(to, station(random.below(6)), tag, number, length);
    if tag.is_some() && random.below(4) == 0 {
        // A customer's tag behind the first, of any VLAN.
        let inner = vids[random.below(4) as usize].to_be_bytes();
        form.bytes.splice(12..12, [TAG, inner].concat());
    }
    form
}

/// How the ports are set up, one way after the other.
fn ways() -> [[Setting; PORTS]; 3] {
    let of = |untagged, tagged: &[u16], isolated| Setting {
        untagged,
        tagged: tagged.iter().copied().collect(),
        isolated,
    };
    [
        [(); PORTS].map(|()| Setting::default()),
        [false, true, true, true, false].map(|isolated| of(0, &[], isolated)),
        [
            of(10, &[], false),
            of(10, &[], true),
            of(20, &[], true),
            of(20, &[10, 30], false),
            of(10, &[20, 30], false),
        ],
    ]
}

fn set_up(here: &Netns, control: &Control, bridges: &[Bridge; 3], ports: &[Setting; PORTS]) {
    let [linux, switches @ ..] = bridges;
    for (name, port) in linux.names.iter().zip(ports) {
        let isolated = if port.isolated { "on" } else { "off" };
        here.run(&format!("bridge link set dev {name} isolated {isolated}"));
    }
    for (number, switch) in switches.iter().enumerate() {
        for (name, port) in switch.names.iter().zip(ports) {
            let vlan = match (port.untagged, port.tagged.is_empty()) {
                (0, _) => Vlan::Unaware,
                (vid, true) => Vlan::Access(vid),
                (vid, false) => Vlan::Trunk { allowed: port.tagged.clone(), native: Some(vid) },
            };
            let (vlan, isolated) = (Some(vlan), Some(port.isolated));
            let settings = PortSettings { vlan, isolated, ..PortSettings::default() };
            control.switch_port(&format!("vale{number}:{name}"), settings).unwrap();
        }
    }
}

#[test]
fn every_port_gets_what_a_bridge_gives_it() {
    if skip_without_root("every_port_gets_what_a_bridge_gives_it") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("every_port_gets_what_a_bridge_gives_it", |home| {
        let control = Control::connect().unwrap();
        let mut random = Random::seeded();
        let (here, there) = (Netns::quiet("rwb"), Netns::quiet("rwb"));
        let whats = ["a Linux bridge", "kernel", "worker"];
        let bridges = whats.map(|what| Bridge::new(what, &here, &there));
        here.run("ip link add br0 type bridge stp_state 0 mcast_snooping 0 && ip link set br0 up");
        for name in &bridges[0].names {
            here.run(&format!("ip link set {name} master br0"));
        }
        here.enter(|| {
            for (number, mode) in [(0, ""), (1, "@mode=packet")] {
                for name in &bridges[number + 1].names {
                    let port = format!("{name}{mode}");
                    control.switch_attach(&format!("vale{number}"), &port, false).unwrap();
                }
            }
        });
        let mut number = 0;
        let mut model = Model { ports: Default::default(), table: BTreeMap::new() };
        for ports in ways() {
            set_up(&here, &control, &bridges, &ports);
            let has_vlans = ports[0].untagged != 0;
            let bridges = &bridges[usize::from(has_vlans)..];
            model.ports = ports.clone();
            for _ in 0..FRAMES {
                let from = random.below(PORTS as u64) as usize;
                let sent = any_frame(&mut random, &ports[from], number);
                // A frame that nobody is to receive is followed by a broadcast: then it has passed, too.
                let own = [2, 0, 0, 0, 2, from as u8];
                let after = frame([0xff; 6], own, None, number + 1, 60);
                number += 2;
                let wanted = model.forward(from, &sent);
                let last = wanted.is_empty().then(|| model.forward(from, &after));
                for bridge in bridges {
                    bridge.pass(from, &sent, &wanted, &ports[from]);
                    if let Some(wanted) = &last {
                        bridge.pass(from, &after, wanted, &ports[from]);
                    }
                }
            }
            bridges.iter().for_each(Bridge::assert_silent);
        }
        let switches = control.switches().unwrap();
        let known =
            |at: usize| switches[at].ports.iter().map(|port| port.totals.moved).sum::<u64>();
        assert!(known(0) > 0 && known(1) > 0, "stations have moved");
        ["vale0", "vale1"].into_iter().for_each(|name| control.switch_delete(name).unwrap());
        drop((control, bridges.map(|bridge| bridge.wires)));
        home.assert_left();
    });
}

/// The longest frames that leave by an interface with an MTU of 1500, with the Ethernet header: without a tag, and with
/// one and its bytes. A bridge looks at neither, only at the room that a tag has.
#[test]
fn frames_are_as_long_as_on_a_bridge() {
    const LENGTHS: [usize; 6] = [1514, 1515, 1518, 1519, 1522, 1523];
    if skip_without_root("frames_are_as_long_as_on_a_bridge") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("frames_are_as_long_as_on_a_bridge", |home| {
        let control = Control::connect().unwrap();
        let (here, there) = (Netns::quiet("rwb"), Netns::quiet("rwb"));
        here.run("ip link add br0 type bridge stp_state 0 mcast_snooping 0 && ip link set br0 up");
        // Where the worker forwards, AF_PACKET takes so much without a tag, and AF_XDP counts the tag's bytes.
        let bridges = [
            ("b", [1518, 1522]),
            ("", [1518, 1522]),
            ("monitored", [1514, 1518]),
            ("copy", [1518; 2]),
        ];
        for (number, (mode, longest)) in bridges.into_iter().enumerate() {
            let wires = [0, 1].map(|at| {
                let [near, far] = ["", "f"].map(|end| format!("l{number}{at}{end}"));
                let wire = here.veth(&there, &near, &far);
                there.run(&format!("ip link set {far} mtu 1600"));
                let mtu = if at == 0 { 1600 } else { 1500 };
                here.run(&format!("ip link set {near} mtu {mtu}"));
                if mode == "b" {
                    here.run(&format!("ip link set {near} master br0"));
                } else {
                    let suffix = if mode == "copy" { "@mode=copy" } else { "" };
                    let port = format!("{near}{suffix}");
                    here.enter(|| control.switch_attach("vale0", &port, false)).unwrap();
                }
                (wire, PacketSocket::of_all(&there, &far))
            });
            let monitor = format!("vale0:l{number}1/r");
            let _monitor = (mode == "monitored").then(|| Port::open(&monitor).unwrap());
            let [from, to] = wires.each_ref().map(|(_, socket)| socket);
            let own = [0, 1].map(|at| [2, 0, 0, 0, number as u8, at]);
            to.send(&frame([0xff; 6], own[1], None, 0, 60).bytes);
            from.send(&frame([0xff; 6], own[0], None, 0, 60).bytes);
            let next = || loop {
                let heard = to.hear_within(LIMIT).expect("the short one arrives");
                if heard.bytes.get(12..14) == Some(&KIND[..]) {
                    return heard.bytes.len() + heard.tag.map_or(0, |_| 4);
                }
            };
            // Until the switch knows both, as in front of those that follow.
            assert_eq!(next(), 60);
            for (tag, longest) in [None, Some(5)].into_iter().zip(longest) {
                for length in LENGTHS {
                    for length in [length, 60] {
                        let Form { mut bytes, tag } = frame(own[1], own[0], tag, 1, length);
                        if let Some(tag) = tag {
                            bytes.truncate(length - 4);
                            bytes.splice(12..12, [[0x81, 0], u16::to_be_bytes(tag)].concat());
                        }
                        from.send(&bytes);
                    }
                    if length <= longest {
                        assert_eq!(next(), length, "{mode:?}, {tag:?}");
                    }
                    assert_eq!(next(), 60, "{mode:?}, {tag:?}, {length}");
                }
            }
            if mode != "b" {
                let ports = control.switches().unwrap().remove(0).ports;
                let lost: u64 = ports.iter().map(|port| port.totals.drops.too_long).sum();
                let too_long =
                    |longest| LENGTHS.into_iter().filter(move |length| *length > longest).count();
                let expected: usize = longest.into_iter().map(too_long).sum();
                assert_eq!(lost, expected as u64, "{mode}: {ports:?}");
                control.switch_delete("vale0").unwrap();
            }
        }
        drop(control);
        home.assert_left();
    });
}
