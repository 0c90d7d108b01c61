//! The ports that get what is for a group of IP, on a bridge that snoops.

mod common;

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use common::{Client, bytes, mac};
use ringway_filter::{Insn, Program};
use ringway_switch_port::PortIndex;
use ringway_vale::Multicast::{Querier as QUERIER, Snooping as SNOOPING};
use ringway_vale::{
    Clock, FloodLimit, Forwarding, GroupEntry, Multicast, PortConfig, PortFilter, SteppedBridge,
    Vlan,
};

struct World {
    bridge: SteppedBridge,
    ports: Vec<(PortIndex, Client)>,
    millis: Arc<AtomicU64>,
}

impl World {
    fn new(configs: &[PortConfig], multicast: Multicast) -> World {
        let millis = Arc::new(AtomicU64::new(1000));
        let hand = millis.clone();
        let clock = Clock::new(move || hand.load(Relaxed));
        let mut bridge = SteppedBridge::new(&Forwarding::default(), clock).unwrap();
        bridge.flush_idle();
        bridge.set_multicast(multicast);
        let mut world = World { bridge, ports: Vec::new(), millis };
        configs.iter().for_each(|config| world.attach(config));
        world
    }

    fn attach(&mut self, config: &PortConfig) {
        let client = Client::new([1, 1], [64, 512], 0);
        let index = self.bridge.attach(Box::new(client.port()), config.clone()).unwrap();
        self.ports.push((index, client));
    }

    fn send(&mut self, port: usize, frame: &[u8]) {
        let client = &self.ports[port].1;
        client.fill(0, frame, frame.len() as u16, 0, None);
        client.tx_sync(0);
        while self.bridge.round() {}
        self.bridge.flush_idle();
        client.tx_sync(0);
    }

    /// What each port has received.
    fn received(&self) -> Vec<Vec<Vec<u8>>> {
        self.ports.iter().map(|(_, client)| bytes(client.receive(0, usize::MAX))).collect()
    }

    /// The ports that get a frame which one sends.
    fn get(&mut self, port: usize, frame: &[u8]) -> Vec<usize> {
        self.received();
        self.send(port, frame);
        let received = self.received();
        (0..).zip(received).filter(|(_, frames)| !frames.is_empty()).map(|(port, _)| port).collect()
    }

    fn pass(&mut self, millis: u64) {
        self.millis.fetch_add(millis, Relaxed);
        self.bridge.flush_idle();
        while self.bridge.round() {}
        self.bridge.flush_idle();
    }

    /// The ports in a group.
    fn members(&self, of: IpAddr) -> Vec<PortIndex> {
        let groups = self.bridge.groups();
        let members = groups.into_iter().filter_map(|entry| match entry {
            GroupEntry::Member { group, port, .. } if group == of => Some(port),
            _ => None,
        });
        members.collect()
    }

    fn is_nothing_lost(&self) {
        for (index, _) in &self.ports {
            assert_eq!(self.bridge.totals(*index).unwrap().drops, Default::default(), "{index}");
        }
    }
}

fn sum(parts: &[&[u8]]) -> [u8; 2] {
    let bytes = parts.concat();
    let sum = bytes.chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(it[1])).sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    (!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes()
}

fn ethernet(src: u8, to: IpAddr) -> Vec<u8> {
    match to {
        IpAddr::V4(to) => {
            let [_, b, c, d] = to.octets();
            [&[1, 0, 0x5e, b & 0x7f, c, d], &mac(src)[..], &[8, 0]].concat()
        }
        IpAddr::V6(to) => {
            [&[0x33, 0x33], &to.octets()[12..], &mac(src)[..], &[0x86, 0xdd]].concat()
        }
    }
}

fn ipv4(src: u8, to: Ipv4Addr, protocol: u8, message: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x46, 0, 0, 24 + message.len() as u8, 0, 0, 0, 0, 1, protocol, 0, 0];
    ip.extend([10, 0, 0, src]);
    ip.extend(to.octets());
    ip.extend([0x94, 4, 0, 0]);
    let sum = sum(&[&ip]);
    ip[10..12].copy_from_slice(&sum);
    [&ethernet(src, to.into())[..], &ip, message].concat()
}

fn igmp(src: u8, to: Ipv4Addr, mut message: Vec<u8>) -> Vec<u8> {
    let sum = sum(&[&message]);
    message[2..4].copy_from_slice(&sum);
    ipv4(src, to, 2, &message)
}

fn mld(src: u8, to: Ipv6Addr, mut message: Vec<u8>) -> Vec<u8> {
    let from = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, src.into());
    let pseudo = [&from.octets()[..], &to.octets(), &[0, message.len() as u8, 0, 58]].concat();
    let sum = sum(&[&pseudo, &message]);
    message[2..4].copy_from_slice(&sum);
    let mut ip = vec![0x60, 0, 0, 0, 0, 8 + message.len() as u8, 0, 1];
    ip.extend(from.octets());
    ip.extend(to.octets());
    ip.extend([58, 0, 5, 2, 0, 0, 1, 0]);
    [&ethernet(src, to.into())[..], &ip, &message].concat()
}

const ALL: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
const ALL6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// A router asks; hosts answer within a second, and the router is there for so many seconds.
fn query(src: u8, is_v6: bool, seconds: u8) -> Vec<u8> {
    match is_v6 {
        false => igmp(src, ALL, vec![0x11, 10, 0, 0, 0, 0, 0, 0, 1, seconds, 0, 0]),
        true => {
            let head = [&[130, 0, 0, 0, 0x03, 0xe8, 0, 0], &[0; 16][..], &[1, seconds, 0, 0]];
            mld(src, ALL6, head.concat())
        }
    }
}

fn report(src: u8, group: IpAddr, joins: bool) -> Vec<u8> {
    match group {
        IpAddr::V4(group) => {
            let kind = if joins { 0x16 } else { 0x17 };
            let to = if joins { group } else { Ipv4Addr::new(224, 0, 0, 2) };
            igmp(src, to, [&[kind, 0, 0, 0], &group.octets()[..]].concat())
        }
        IpAddr::V6(group) => {
            let kind = if joins { 131 } else { 132 };
            let to = if joins { group } else { Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2) };
            mld(src, to, [&[kind, 0, 0, 0, 0, 0, 0, 0], &group.octets()[..]].concat())
        }
    }
}

/// All of these groups in one report of the newest version.
fn many(src: u8, groups: &[Ipv4Addr]) -> Vec<u8> {
    records(src, 4, groups)
}

/// A record of this kind for each group, in one report of the newest version.
fn records(src: u8, kind: u8, groups: &[Ipv4Addr]) -> Vec<u8> {
    let mut message = vec![0x22, 0, 0, 0, 0, 0];
    message.extend((groups.len() as u16).to_be_bytes());
    groups
        .iter()
        .for_each(|group| message.extend([&[kind, 0, 0, 0], &group.octets()[..]].concat()));
    let mut frame = igmp(src, Ipv4Addr::new(224, 0, 0, 22), message);
    let length = (frame.len() - 14) as u16;
    frame[16..18].copy_from_slice(&length.to_be_bytes());
    frame[24..26].fill(0);
    let sum = sum(&[&frame[14..38]]);
    frame[24..26].copy_from_slice(&sum);
    frame
}

fn data(src: u8, group: IpAddr) -> Vec<u8> {
    match group {
        IpAddr::V4(group) => ipv4(src, group, 17, &[0; 16]),
        IpAddr::V6(group) => {
            let mut ip = vec![0x60, 0, 0, 0, 0, 8, 17, 5];
            ip.extend(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, src.into()).octets());
            ip.extend(group.octets());
            [&ethernet(src, group.into())[..], &ip, &[0; 8]].concat()
        }
    }
}

fn groups() -> [IpAddr; 2] {
    [IpAddr::from([239, 1, 2, 3]), "ff05::1:2".parse().unwrap()]
}

fn plain() -> PortConfig {
    PortConfig::default()
}

/// A sender, members, others, and a router.
fn four(multicast: Multicast) -> World {
    World::new(&[plain(), plain(), plain(), plain()], multicast)
}

/// Members get a group once their hosts have had the time to say so; routers get all, and reports.
#[test]
fn groups_go_to_their_members_and_to_routers() {
    for group in groups() {
        let is_v6 = group.is_ipv6();
        let mut world = four(SNOOPING);
        world.send(1, &report(1, group, true));
        assert_eq!(world.get(0, &data(0, group)), [1, 2, 3], "no querier");
        assert_eq!(world.get(2, &report(2, group, true)), [0, 1, 3], "no querier");
        world.send(2, &report(2, group, false));
        world.pass(4000);
        assert_eq!(world.get(3, &query(3, is_v6, 100)), [0, 1, 2]);
        assert_eq!(world.get(1, &report(1, group, true)), [3]);
        assert_eq!(world.get(0, &data(0, group)), [1, 2, 3], "the others have yet to answer");
        world.pass(1000);
        assert_eq!(world.get(0, &data(0, group)), [1, 3]);
        assert_eq!(world.get(1, &data(1, group)), [3], "not back");
        assert_eq!(world.get(2, &report(2, group, true)), [3]);
        assert_eq!(world.get(0, &data(0, group)), [1, 2, 3]);
        // It leaves.
        assert_eq!(world.get(2, &report(2, group, false)), [3]);
        world.pass(4000);
        assert_eq!(world.get(0, &data(0, group)), [1, 3]);
        // The last one leaves: a group without members is flooded.
        world.send(1, &report(1, group, false));
        world.pass(4000);
        assert_eq!(world.get(0, &data(0, group)), [1, 2, 3]);
        world.is_nothing_lost();
    }
}

/// A port with a router gets all groups and reports, also if no query comes by it; and not any more when it has none.
#[test]
fn a_router_need_not_ask() {
    for group in groups() {
        let mut world = four(SNOOPING);
        let router = PortConfig { multicast_router: true, ..plain() };
        world.bridge.configure(2, router);
        world.send(3, &query(3, group.is_ipv6(), 100));
        world.pass(1000);
        assert_eq!(world.get(1, &report(1, group, true)), [2, 3]);
        assert_eq!(world.get(0, &data(0, group)), [1, 2, 3]);
        assert_eq!(world.get(2, &data(2, group)), [1, 3], "not back");
        let routers = |world: &World| {
            let groups = world.bridge.groups();
            groups.iter().filter(|it| matches!(it, GroupEntry::Router { .. })).count()
        };
        assert_eq!(routers(&world), 1, "the port of the router that asks");
        // It stays so when other ports change.
        world.bridge.configure(1, PortConfig { isolated: true, ..plain() });
        assert_eq!(world.get(0, &data(0, group)), [1, 2, 3]);
        world.bridge.configure(2, plain());
        assert_eq!(world.get(0, &data(0, group)), [1, 3]);
        assert_eq!(world.get(1, &report(1, group, true)), [3]);
        world.is_nothing_lost();
    }
}

/// Frames that are sent at once go each where its group is, in their order.
#[test]
fn a_burst_for_several_groups() {
    let [group, _] = groups();
    let (other, nobody) = (IpAddr::from([239, 1, 2, 4]), IpAddr::from([224, 0, 0, 251]));
    let mut world = four(SNOOPING);
    world.send(3, &query(3, false, 100));
    world.send(1, &report(1, group, true));
    world.send(2, &report(2, other, true));
    world.pass(1000);
    let burst = [group, group, group, other, other, nobody, nobody, group].map(|to| data(0, to));
    world.received();
    let client = &world.ports[0].1;
    burst.iter().for_each(|frame| client.fill(0, frame, frame.len() as u16, 0, None));
    client.tx_sync(0);
    while world.bridge.round() {}
    world.bridge.flush_idle();
    let of = |numbers: &[usize]| numbers.iter().map(|n| burst[*n].clone()).collect::<Vec<_>>();
    let all = (0..burst.len()).collect::<Vec<_>>();
    let expected = [of(&[]), of(&[0, 1, 2, 5, 6, 7]), of(&[3, 4, 5, 6]), of(&all)];
    assert_eq!(world.received(), expected);
    world.is_nothing_lost();
}

/// Also where all members are behind the port that sends.
#[test]
fn what_nobody_else_wants_is_not_lost() {
    let [group, _] = groups();
    let mut world = four(SNOOPING);
    world.send(3, &query(3, false, 100));
    world.pass(1000);
    world.send(0, &report(0, group, true));
    world.bridge.detach(world.ports[3].0);
    world.ports.pop();
    assert_eq!(world.get(0, &data(0, group)), [] as [usize; 0]);
    world.is_nothing_lost();
}

/// Nor does a querier that is not heard any more, or a host that says nothing.
#[test]
fn silence_ends_what_is_known() {
    let [group, _] = groups();
    let mut world = four(SNOOPING);
    world.send(3, &query(3, false, 100));
    world.pass(1000);
    world.send(1, &report(1, group, true));
    world.pass(98_000);
    assert_eq!(world.get(0, &data(0, group)), [1, 3]);
    world.pass(2000);
    assert_eq!(world.get(0, &data(0, group)), [1, 2, 3], "the querier has gone");
    assert_eq!(world.get(2, &report(2, group, true)), [0, 1, 3]);
    world.send(3, &query(3, false, 100));
    assert_eq!(world.get(0, &data(0, group)), [1, 2, 3], "all are asked again");
    world.pass(1000);
    assert_eq!(world.get(0, &data(0, group)), [1, 2, 3], "both are known");
    // One of them does not answer any more.
    for _ in 0..3 {
        world.send(3, &query(3, false, 100));
        world.send(2, &report(2, group, true));
        world.pass(90_000);
    }
    assert_eq!(world.get(0, &data(0, group)), [2, 3]);
    assert_eq!(world.members(group), [2]);
}

/// For all there is, groups of a link, what is no IP, and what has two tags.
#[test]
fn some_frames_are_for_all() {
    let mut world = four(SNOOPING);
    for is_v6 in [false, true] {
        world.send(3, &query(3, is_v6, 100));
    }
    world.pass(1000);
    for group in ["224.0.0.251", "ff02::1", "239.1.2.4", "ff02::1:ff00:7"] {
        let group = group.parse().unwrap();
        assert_eq!(world.get(0, &data(0, group)), [1, 2, 3], "{group}");
    }
    let [group, _] = groups();
    world.send(1, &report(1, group, true));
    let frame = data(0, group);
    let mut other = frame.clone();
    other[12] = 0x12;
    let twice = [&frame[..12], &[0x81, 0, 0, 0, 0x81, 0, 0, 0], &frame[12..]].concat();
    let mut unicast = frame.clone();
    unicast[..6].copy_from_slice(&mac(9));
    for frame in [other, twice, unicast] {
        assert_eq!(world.get(0, &frame), [1, 2, 3], "{frame:02x?}");
    }
    assert_eq!(world.get(0, &frame), [1, 3]);
    // In one slot or several.
    let (head, rest) = frame.split_at(20);
    world.received();
    let client = &world.ports[0].1;
    client.fill(0, head, 20, ringway_abi::NS_MOREFRAG, None);
    client.fill(0, rest, rest.len() as u16, 0, None);
    client.tx_sync(0);
    while world.bridge.round() {}
    world.bridge.flush_idle();
    let counts: Vec<_> = world.received().iter().map(Vec::len).collect();
    assert_eq!(counts, [0, 1, 0, 1]);
}

/// A VLAN's groups are its own.
#[test]
fn groups_are_those_of_a_vlan() {
    let access = |vid| PortConfig { vlan: Vlan::Access(vid), ..plain() };
    let trunk = Vlan::Trunk { allowed: [10, 20].into(), native: None };
    let configs =
        [access(10), access(10), access(20), access(20), PortConfig { vlan: trunk, ..plain() }];
    let mut world = World::new(&configs, SNOOPING);
    let tagged = |frame: &[u8], vid| [&frame[..12], &[0x81, 0, 0, vid], &frame[12..]].concat();
    let [group, _] = groups();
    assert_eq!(world.get(4, &tagged(&query(4, false, 100), 10)), [0, 1]);
    world.pass(1000);
    assert_eq!(world.get(1, &report(1, group, true)), [4]);
    assert_eq!(world.get(2, &report(2, group, true)), [3, 4], "no querier in this one");
    assert_eq!(world.get(0, &data(0, group)), [1, 4]);
    assert_eq!(world.get(3, &data(3, group)), [2, 4]);
    assert_eq!(world.get(4, &tagged(&data(4, group), 10)), [1]);
    // A trunk's host says so with a tag.
    world.pass(101_000);
    world.send(0, &query(0, false, 100));
    world.pass(1000);
    world.send(4, &tagged(&report(4, group, true), 10));
    world.send(1, &report(1, group, false));
    world.pass(4000);
    assert_eq!(world.get(1, &data(1, group)), [0, 4]);
    world.is_nothing_lost();
}

/// On a switch that looks at no tags, groups are those of the VLAN that a tag names.
#[test]
fn tags_are_told_apart_where_no_port_is_in_a_vlan() {
    let mut world = four(SNOOPING);
    let tagged = |frame: &[u8]| [&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat();
    let [group, _] = groups();
    world.send(3, &tagged(&query(3, false, 100)));
    world.pass(1000);
    world.send(1, &tagged(&report(1, group, true)));
    assert_eq!(world.get(0, &tagged(&data(0, group))), [1, 3]);
    assert_eq!(world.get(0, &data(0, group)), [1, 2, 3]);
}

/// The switch asks: at once, again soon, then every two minutes; and not where a router does.
#[test]
fn a_switch_asks_by_itself() {
    let trunk = Vlan::Trunk { allowed: [10, 30].into(), native: None };
    let access = |vid| PortConfig { vlan: Vlan::Access(vid), ..plain() };
    let configs = [access(10), access(20), PortConfig { vlan: trunk, ..plain() }];
    let mut world = World::new(&configs, QUERIER);
    let asked = |world: &mut World, millis| {
        world.received();
        world.pass(millis);
        world.received().iter().map(Vec::len).collect::<Vec<_>>()
    };
    // In one of its two VLANs the trunk is alone.
    assert_eq!(asked(&mut world, 1000), [2, 2, 4]);
    assert_eq!(asked(&mut world, 30_000), [0, 0, 0]);
    assert_eq!(asked(&mut world, 2000), [2, 2, 4], "again soon");
    assert_eq!(asked(&mut world, 123_000), [0, 0, 0]);
    world.received();
    world.pass(2000);
    let queries = world.received();
    let kind =
        |frame: &Vec<u8>| (frame[12..14].to_vec(), u16::from_be_bytes([frame[14], frame[15]]));
    let tags: Vec<_> = queries[2].iter().map(kind).collect();
    let in_vlan = |vid| (vec![0x81, 0], vid);
    assert_eq!(tags, [10, 10, 30, 30].map(in_vlan), "a trunk's are tagged");
    // What etherparse makes of them.
    let [igmp, mld] = &queries[0][..] else { panic!("{queries:?}") };
    let igmp = etherparse::SlicedPacket::from_ethernet(igmp).unwrap();
    let Some(etherparse::NetSlice::Ipv4(ip)) = &igmp.net else { panic!("{igmp:?}") };
    assert_eq!(ip.header().destination_addr(), ALL);
    assert_eq!(ip.header().source_addr(), Ipv4Addr::UNSPECIFIED);
    assert_eq!(ip.header().ttl(), 1);
    assert_eq!(ip.header().to_header().calc_header_checksum(), ip.header().header_checksum());
    let mld = etherparse::SlicedPacket::from_ethernet(mld).unwrap();
    let Some(etherparse::NetSlice::Ipv6(ip)) = &mld.net else { panic!("{mld:?}") };
    assert_eq!(ip.header().destination_addr(), ALL6);
    assert!(ip.header().source_addr().is_unicast_link_local());
    assert_eq!(ip.header().hop_limit(), 1);
    let Some(etherparse::TransportSlice::Icmpv6(icmp)) = &mld.transport else { panic!("{mld:?}") };
    let (from, to) = (ip.header().source(), ip.header().destination());
    assert!(icmp.is_checksum_valid(from, to));

    // A router asks IPv4's hosts of one VLAN.
    world.pass(124_000);
    world.send(0, &query(0, false, 200));
    assert_eq!(asked(&mut world, 2000), [1, 2, 4], "the trunk has not answered it");
    world.pass(123_000);
    world.send(0, &query(0, false, 200));
    let answer = report(2, groups()[0], true);
    world.send(2, &[&answer[..12], &[0x81, 0, 0, 10], &answer[12..]].concat());
    assert_eq!(asked(&mut world, 3000), [1, 2, 3], "it has");
    // The router is gone.
    world.pass(124_000);
    assert_eq!(asked(&mut world, 2000), [1, 2, 4], "there is no answer any more");
    world.pass(124_000);
    assert_eq!(asked(&mut world, 2000), [2, 2, 4]);
}

/// A port that has routers in more VLANs than are noted is a router's in all of its own, until it has gone.
#[test]
fn a_port_with_routers_in_many_vlans_gets_all() {
    const NOTED: usize = 256;
    let trunk = Vlan::Trunk { allowed: (1..=400).collect(), native: None };
    let trunk = PortConfig { vlan: trunk, ..plain() };
    let mut world = World::new(&[trunk.clone(), trunk.clone(), trunk], SNOOPING);
    let tagged = |vid: u16, frame: &[u8]| {
        [&frame[..12], &[0x81, 0], &vid.to_be_bytes(), &frame[12..]].concat()
    };
    let routers = |world: &World| {
        let groups = world.bridge.groups();
        let is_router = |entry: &&GroupEntry| matches!(entry, GroupEntry::Router { .. });
        let is_full = |entry: &&GroupEntry| matches!(entry, GroupEntry::Full { .. });
        (groups.iter().filter(is_router).count(), groups.iter().filter(is_full).count())
    };
    for vid in 1..=400 {
        world.send(0, &tagged(vid, &query(0, false, 200)));
        world.received();
    }
    assert_eq!(routers(&world), (NOTED, 1));
    world.pass(2000);
    let [group, _] = groups();
    for vid in [1, 400] {
        assert_eq!(world.get(1, &tagged(vid, &report(1, group, true))), [0], "{vid}");
        assert_eq!(world.get(2, &tagged(vid, &data(2, group))), [0, 1], "{vid}");
    }
    // Those that are heard again are noted already.
    for vid in 1..=400 {
        world.send(0, &tagged(vid, &query(0, false, 100)));
        world.received();
    }
    assert_eq!(routers(&world), (NOTED, 1));
    world.pass(256_000);
    assert_eq!(routers(&world), (0, 0));
    world.send(0, &tagged(1, &query(0, false, 200)));
    assert_eq!(routers(&world), (1, 0), "there is room again");
}

/// Hosts do not answer what another port asks, for it comes from where no host can be, say: the switch goes on asking.
#[test]
fn a_querier_without_answers_does_not_silence_the_switch() {
    for group in groups() {
        let mut world = World::new(&[plain(), plain(), plain()], QUERIER);
        let mut asked = 0;
        for _ in 0..60 {
            world.send(2, &query(2, group.is_ipv6(), 255));
            world.received();
            world.pass(10_000);
            let of_group = |frame: &&Vec<u8>| (frame[12..14] == [0x86, 0xdd]) == group.is_ipv6();
            if world.received()[1].iter().any(|frame| of_group(&frame)) {
                asked += 1;
                world.send(1, &report(1, group, true));
            }
        }
        assert!(asked >= 5, "{asked} times in 600 seconds");
        assert_eq!(world.members(group), [1]);
        assert_eq!(world.get(0, &data(0, group)), [1, 2]);
    }
}

/// A trunk may be in all VLANs: the switch asks in some each second, in each as often as in others, and in none that
/// only ports are in which are not told about VLANs.
#[test]
fn a_trunk_in_all_vlans_is_asked_bit_by_bit() {
    let vlan = Vlan::Trunk { allowed: (1..=4094).collect(), native: None };
    let mut world = World::new(&[PortConfig { vlan, ..plain() }], QUERIER);
    let mut asked = BTreeMap::new();
    for second in 0..130 {
        world.pass(1000);
        let mut of_this = 0;
        for frame in world.received().remove(0) {
            let vid = u16::from_be_bytes([frame[14], frame[15]]);
            *asked.entry((vid, frame[16])).or_insert(0) += 1;
            of_this += 1;
        }
        assert!(of_this <= 256, "{second}: {of_this}");
    }
    assert_eq!(asked.len(), 2 * 4094);
    // At once, soon, and after two minutes.
    assert!(asked.values().all(|times| [2, 3].contains(times)), "{asked:?}");
    let mut world = World::new(&[plain(), plain()], QUERIER);
    world.pass(1000);
    let queries = world.received();
    assert!(queries[0].iter().all(|frame| frame[12..14] != [0x81, 0]), "{queries:?}");
    assert_eq!(queries[0].len(), 2);
}

/// A switch that asks learns: from when on hosts have had their time, and of a port that has come since.
#[test]
fn what_a_switch_has_asked_for_is_known() {
    for group in groups() {
        let mut world = World::new(&[plain(), plain(), plain()], QUERIER);
        world.pass(1000);
        assert_eq!(world.get(1, &report(1, group, true)), [] as [usize; 0], "to no router");
        assert_eq!(world.get(0, &data(0, group)), [1, 2]);
        world.pass(9000);
        assert_eq!(world.get(0, &data(0, group)), [1, 2], "there is time yet");
        world.pass(1000);
        assert_eq!(world.get(0, &data(0, group)), [1]);
        // Another port comes: it is asked, and has its time.
        world.attach(&plain());
        world.received();
        world.pass(1000);
        let asked: Vec<_> = world.received().iter().map(Vec::len).collect();
        assert_eq!(asked, [0, 0, 0, 2]);
        assert_eq!(world.get(0, &data(0, group)), [1, 3]);
        world.pass(9000);
        assert_eq!(world.get(0, &data(0, group)), [1, 3]);
        world.pass(1000);
        assert_eq!(world.get(0, &data(0, group)), [1]);
        world.is_nothing_lost();
    }
}

/// What the switch has asked may come back to it, and tells of no router.
#[test]
fn a_switch_does_not_hear_itself() {
    let mut world = World::new(&[plain(), plain(), plain()], QUERIER);
    world.received();
    world.pass(1000);
    let asked = world.received().remove(0);
    assert_eq!(asked.len(), 2);
    for frame in asked {
        assert_eq!(world.get(1, &frame), [0, 2]);
    }
    let groups = world.bridge.groups();
    assert!(groups.iter().all(|it| matches!(it, GroupEntry::Querier { .. })), "{groups:?}");
}

/// Another host behind the port may be in a group that one leaves: it is asked.
#[test]
fn others_behind_a_port_are_asked_when_one_leaves() {
    for group in groups() {
        let mut world = World::new(&[plain(), plain(), plain()], QUERIER);
        world.pass(11_000);
        world.pass(11_000);
        world.send(1, &report(1, group, true));
        assert_eq!(world.get(0, &data(0, group)), [1]);
        world.send(1, &report(1, group, false));
        world.received();
        world.pass(1000);
        let asked: Vec<_> = world.received().iter().map(Vec::len).collect();
        assert_eq!(asked, [0, 1, 0], "the port alone, for the group");
        world.send(1, &report(11, group, true));
        world.pass(5000);
        assert_eq!(world.members(group), [1]);
        world.send(1, &report(1, group, false));
        world.pass(1000);
        world.pass(1000);
        world.pass(2000);
        assert_eq!(world.members(group), [] as [u8; 0]);
        world.received();
        world.pass(1000);
        assert!(world.received().iter().all(Vec::is_empty), "it is not asked any more");
    }
}

/// Ports that leave many groups at once have the switch ask for a few of each port in a second, and a few in a round;
/// they are in the others meanwhile.
#[test]
fn many_leaves_are_asked_for_bit_by_bit() {
    const PORTS: usize = 60;
    const GROUPS: u8 = 200;
    let configs = vec![plain(); PORTS];
    let mut world = World::new(&configs, QUERIER);
    world.pass(11_000);
    let groups: Vec<Ipv4Addr> = (0..GROUPS).map(|n| [239, 1, 2, n].into()).collect();
    for kind in [4, 3] {
        (0..PORTS).for_each(|port| world.send(port, &records(port as u8, kind, &groups)));
    }
    world.received();
    let mut all = 0;
    for second in 0..30 {
        world.millis.fetch_add(1000, Relaxed);
        world.bridge.flush_idle();
        let mut of_this = 0;
        while world.bridge.round() {
            // For one of the groups.
            let asks = |frame: &&Vec<u8>| frame[..5] == [1, 0, 0x5e, 1, 2];
            let of_round = world.received().iter().flatten().filter(asks).count();
            assert!(of_round <= 300, "{second}: {of_round}");
            of_this += of_round;
        }
        world.bridge.flush_idle();
        assert!(of_this <= PORTS * 32, "{second}: {of_this}");
        all += of_this;
        if second == 4 {
            assert_eq!(world.members(groups[0].into()), [] as [u8; 0], "it was asked for");
            assert_eq!(world.members(groups[usize::from(GROUPS) - 1].into()).len(), PORTS);
        }
    }
    assert_eq!(all, 3 * PORTS * usize::from(GROUPS), "three times each");
    let is_member = |entry: &GroupEntry| matches!(entry, GroupEntry::Member { .. });
    assert!(!world.bridge.groups().iter().any(is_member));
    world.is_nothing_lost();
}

/// A hostile port hurts itself: it cannot take others out of groups, and gets all if it is in too many.
#[test]
fn ports_decide_for_themselves_alone() {
    let [group, _] = groups();
    let mut world = four(SNOOPING);
    world.send(3, &query(3, false, 200));
    world.pass(1000);
    world.send(1, &report(1, group, true));
    // It leaves for others, and asks as if it were a router that is never there.
    world.send(2, &report(1, group, false));
    world.send(2, &query(2, false, 1));
    world.pass(5000);
    assert_eq!(world.get(0, &data(0, group)), [1, 3]);

    let others =
        |block: u8| -> Vec<_> { (0..=255).map(|last| [239, 7, block, last].into()).collect() };
    for block in 0..4 {
        for part in others(block).chunks(20) {
            world.send(2, &many(2, part));
        }
    }
    let entries = world.bridge.groups();
    let of_port = |entry: &&GroupEntry| matches!(entry, GroupEntry::Member { port: 2, .. });
    assert_eq!(entries.iter().filter(of_port).count(), 256);
    assert!(entries.iter().any(|entry| matches!(entry, GroupEntry::Full { port: 2, .. })));
    assert_eq!(world.get(0, &data(0, group)), [1, 2, 3], "it gets what it did not ask for");
    // Others have their places.
    world.send(1, &report(1, [239, 8, 8, 8].into(), true));
    assert_eq!(world.members([239, 8, 8, 8].into()), [1]);
    // It goes, and leaves nothing.
    world.bridge.detach(2);
    let left = world.bridge.groups();
    assert!(!left.iter().any(|entry| of_port(&entry) || matches!(entry, GroupEntry::Full { .. })));
}

/// A port that is another's now, or has no link, has no groups.
#[test]
fn a_port_that_changes_is_asked_again() {
    let [group, _] = groups();
    let mut world = four(SNOOPING);
    world.send(3, &query(3, false, 200));
    world.pass(1000);
    world.send(1, &report(1, group, true));
    world.send(2, &report(2, group, true));
    world.bridge.configure(2, PortConfig { is_down: true, ..plain() });
    assert_eq!(world.members(group), [1]);
    world.bridge.configure(2, plain());
    assert_eq!(world.get(0, &data(0, group)), [1, 2, 3], "its hosts were not asked");
    world.send(3, &query(3, false, 200));
    world.pass(1000);
    assert_eq!(world.get(0, &data(0, group)), [1, 3]);
}

/// Only where a bridge learns, and not when that is over.
#[test]
fn what_does_not_learn_does_not_snoop() {
    let [group, _] = groups();
    let mut world = four(SNOOPING);
    world.send(3, &query(3, false, 200));
    world.pass(1000);
    world.send(1, &report(1, group, true));
    assert_eq!(world.get(0, &data(0, group)), [1, 3]);
    world.bridge.set_forwarding(&Forwarding::Flood);
    assert_eq!(world.get(0, &data(0, group)), [1, 2, 3]);
    world.bridge.set_forwarding(&Forwarding::default());
    assert_eq!(world.bridge.groups(), []);
    assert_eq!(world.get(0, &data(0, group)), [1, 2, 3]);
    world.send(3, &query(3, false, 200));
    world.pass(1000);
    world.send(1, &report(1, group, true));
    world.bridge.set_multicast(Multicast::default());
    assert_eq!(world.get(0, &data(0, group)), [1, 2, 3]);
}

/// What two isolated ports send each other does not arrive, and neither do queries: the hosts of one are not asked by the
/// other.
#[test]
fn a_port_that_a_query_does_not_reach_is_not_asked() {
    let isolated = PortConfig { isolated: true, ..plain() };
    let deaf = PortConfig { filter_out: Some(nothing()), ..plain() };
    for group in groups() {
        for (from, to) in [(&isolated, &isolated), (&plain(), &deaf)] {
            let configs = [plain(), from.clone(), to.clone(), plain()];
            let mut world = World::new(&configs, SNOOPING);
            assert_eq!(world.get(1, &query(1, group.is_ipv6(), 100)), [0, 3]);
            world.send(3, &report(3, group, true));
            world.pass(1001);
            // Nothing is known of it, so it may have members.
            world.bridge.configure(world.ports[2].0, plain());
            assert_eq!(world.get(0, &data(0, group)), [1, 2, 3]);
        }
    }
}

/// A filter that lets nothing pass.
fn nothing() -> Arc<PortFilter> {
    let program = Program::new(vec![Insn { code: 6, jt: 0, jf: 0, k: 0 }]).unwrap();
    Arc::new(PortFilter { text: String::new(), program })
}

/// The switch's own querier goes on asking those that another's queries do not reach, and no others.
#[test]
fn the_switch_asks_those_that_another_does_not_reach() {
    let isolated = PortConfig { isolated: true, ..plain() };
    let [group, _] = groups();
    let mut world = World::new(&[plain(), isolated.clone(), isolated, plain()], QUERIER);
    // Its first queries, which all get, and the time to answer them.
    [1000, 40_000, 15_000].into_iter().for_each(|millis| world.pass(millis));
    world.received();
    for _ in 0..5 {
        let mut asked = [0; 4];
        world.send(1, &query(1, false, 200));
        // Hosts that get it answer it.
        [0, 3].into_iter().for_each(|port| world.send(port, &report(port as u8, group, true)));
        world.received();
        for millis in [1000, 99_000] {
            world.pass(millis);
            let received = world.received();
            let is_query = |frame: &&Vec<u8>| frame[12..14] == [8, 0];
            let counts = received.iter().map(|frames| frames.iter().filter(is_query).count());
            asked.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
        }
        assert!(asked[2] > 0 && asked[0] == 0 && asked[3] == 0, "{asked:?}");
    }
}

/// Of hosts that the switch's own queries do not reach nothing is known, until they do.
#[test]
fn a_filter_that_drops_the_switchs_queries_cuts_nobody_off() {
    let deaf = PortConfig { filter_out: Some(nothing()), ..plain() };
    let [group, _] = groups();
    let mut world = World::new(&[plain(), plain(), deaf], QUERIER);
    world.pass(1000);
    world.send(1, &report(1, group, true));
    world.pass(11_000);
    world.bridge.configure(world.ports[2].0, plain());
    assert_eq!(world.get(0, &data(0, group)), [1, 2]);
    world.pass(130_000);
    world.send(1, &report(1, group, true));
    world.pass(11_000);
    assert_eq!(world.get(0, &data(0, group)), [1], "it was asked, and has no member");
}

/// A query that storm control drops has asked no host.
#[test]
fn a_query_that_is_dropped_asks_no_host() {
    let [group, _] = groups();
    let limit = FloodLimit { frames_per_second: 1, burst_frames: 1 };
    let limited = PortConfig { storm_kinds: [None, Some(limit), None], ..plain() };
    let mut world = World::new(&[plain(), plain(), plain(), limited], SNOOPING);
    assert_eq!(world.get(3, &data(3, group)), [0, 1, 2]);
    assert_eq!(world.get(3, &query(3, false, 100)), [] as [usize; 0], "over its limit");
    world.send(1, &report(1, group, true));
    world.pass(1001);
    assert_eq!(world.get(0, &data(0, group)), [1, 2, 3]);
}
