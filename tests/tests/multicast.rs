//! IGMP and MLD snooping, with stacks of Linux: hosts join and leave groups, a bridge of the kernel's is the
//! querier, or the switch itself, and frames reach members and routers.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    time::Duration,
};

use ringway::{Control, GroupInfo, Multicast, MulticastRouter, Port, PortSettings, Vlan};
use ringway_testkit::{Netns, PacketSocket, VethPair, frame, skip_without_root};
use ringway_tests::{
    Home, isolated_for,
    packet::{receive, send},
    until,
};

const LIMIT: Duration = Duration::from_secs(30);
const HANGS: Duration = Duration::from_secs(200);

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const GROUP6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0x12, 0x34);

/// Containers on a switch: the first one sends.
struct World {
    control: Control,
    here: Netns,
    there: Vec<Netns>,
    _wires: Vec<VethPair>,
    sockets: Vec<PacketSocket>,
    is_v6: bool,
    sent: u32,
}

impl World {
    /// So many of them; `mode`: as behind an interface's name.
    fn new(count: usize, mode: &str, is_v6: bool) -> World {
        let (here, control) = (Netns::quiet("rwg"), Control::connect().unwrap());
        let mut world = World {
            control,
            here,
            there: Vec::new(),
            _wires: Vec::new(),
            sockets: Vec::new(),
            is_v6,
            sent: 0,
        };
        for number in 0..count {
            let netns = if is_v6 { Netns::new("rwg") } else { Netns::quiet("rwg") };
            let (name, off) = (format!("c{number}"), if is_v6 { "0" } else { "1" });
            let wire = world.here.veth(&netns, &name, "eth0");
            netns.run(&format!(
                "sysctl -qw net.ipv6.conf.eth0.disable_ipv6={off} net.ipv6.conf.eth0.accept_dad=0
                 ip link set eth0 up && ip addr add 10.9.0.{}/24 dev eth0
                 ip route add 224.0.0.0/4 dev eth0",
                number + 1
            ));
            if is_v6 {
                // It comes with the carrier, and can be used when the kernel has looked whether another has it.
                until("it has an address", || {
                    match netns.run("ip -6 addr show dev eth0 scope link") {
                        shown if shown.contains("fe80") && !shown.contains("tentative") => Ok(()),
                        shown => Err(shown),
                    }
                });
            }
            let attach = || world.control.switch_attach("vale0", &format!("{name}{mode}"), false);
            world.here.enter(attach).unwrap();
            world.sockets.push(PacketSocket::of_all(&netns, "eth0"));
            world._wires.push(wire);
            world.there.push(netns);
        }
        world
    }

    /// A program in a container is in the group, as long as its socket is there.
    fn join(&self, number: usize) -> UdpSocket {
        let netns = &self.there[number];
        let index = netns.ifindex("eth0");
        netns.enter(|| match self.is_v6 {
            false => {
                let socket = UdpSocket::bind("0.0.0.0:9").unwrap();
                socket.join_multicast_v4(&GROUP, &[10, 9, 0, number as u8 + 1].into()).unwrap();
                socket
            }
            true => {
                let socket = UdpSocket::bind("[::]:9").unwrap();
                socket.join_multicast_v6(&GROUP6, index).unwrap();
                socket
            }
        })
    }

    /// Has the kernel's bridge in a container ask, each second, for groups: it is there for 2.5 seconds more.
    fn ask(&self, number: usize) {
        self.there[number].run(
            "ip link add br0 type bridge mcast_snooping 1 mcast_querier 1 mcast_igmp_version 3 \
                mcast_mld_version 2 mcast_query_interval 100 mcast_startup_query_interval 100 \
                mcast_query_response_interval 100
             sysctl -qw net.ipv6.conf.br0.accept_dad=0 || true
             ip link set eth0 master br0 && ip link set br0 up",
        );
    }

    /// Which of the others get what the first one sends to the group: what is flooded is there before what comes
    /// behind it.
    fn reached(&mut self) -> Vec<usize> {
        let payload = self.send();
        let last = self.send_last();
        let others = self.sockets.iter().enumerate().skip(1);
        let has_it = |(number, socket): (usize, &PacketSocket)| {
            let mut has_it = false;
            loop {
                let heard = socket.hear_within(LIMIT).expect("the last one comes").bytes;
                if heard.get(..last.len()) == Some(&last[..]) {
                    return has_it.then_some(number);
                }
                has_it |= heard.ends_with(&payload);
            }
        };
        others.filter_map(has_it).collect()
    }

    /// A datagram to the group.
    fn send(&mut self) -> Vec<u8> {
        self.sent += 1;
        let payload = format!("datagram number {}", self.sent).into_bytes();
        let (netns, index) = (&self.there[0], self.there[0].ifindex("eth0"));
        netns.enter(|| {
            let (local, to): (SocketAddr, SocketAddr) = match self.is_v6 {
                false => (([10, 9, 0, 1], 0).into(), (GROUP, 9).into()),
                true => (
                    (Ipv6Addr::UNSPECIFIED, 0).into(),
                    std::net::SocketAddrV6::new(GROUP6, 9, 0, index).into(),
                ),
            };
            let socket = UdpSocket::bind(local).unwrap();
            assert_eq!(socket.send_to(&payload, to).unwrap(), payload.len());
        });
        payload
    }

    /// A frame for all behind it.
    fn send_last(&mut self) -> Vec<u8> {
        self.sent += 1;
        let mut last = frame(self.sent, 80);
        last[..6].fill(0xff);
        self.sockets[0].send(&last);
        last
    }

    fn until_reached(&mut self, what: &str, expected: &[usize]) {
        until(what, || match self.reached() {
            reached if reached == expected => Ok(()),
            reached => Err(format!("{reached:?}; {:?}", self.groups())),
        });
    }

    fn groups(&self) -> Vec<GroupInfo> {
        self.control.switch_groups("vale0").unwrap()
    }

    /// The ports in the group.
    fn members(&self) -> Vec<String> {
        let is_it = |it: std::net::IpAddr| it == GROUP || it == GROUP6;
        let groups = self.groups().into_iter().filter_map(|info| match info {
            GroupInfo::Member { group, port, .. } if is_it(group) => Some(port),
            _ => None,
        });
        groups.collect()
    }

    /// Packets that ports have lost.
    fn drops(&self) -> Vec<String> {
        let switches = self.control.switches().unwrap();
        let ports = switches.into_iter().flat_map(|switch| switch.ports);
        let drops = ports.filter(|port| port.totals.drops != Default::default());
        drops.map(|port| format!("{}: {:?}", port.name, port.totals.drops)).collect()
    }

    fn end(self, home: &Home) {
        self.control.switch_delete("vale0").unwrap();
        drop(self);
        home.assert_left();
    }
}

/// Puts the Internet checksum of bytes into its place among them.
fn put_sum(bytes: &mut [u8], at: usize) {
    let words = bytes.chunks(2).map(|it| u32::from(u16::from_be_bytes([it[0], it[1]])));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

fn snoop(home: &Home, mode: &str, is_v6: bool) {
    let mut world = World::new(4, mode, is_v6);
    let lost = world.drops();
    let _member = world.join(1);
    world.control.switch_multicast("vale0", Multicast::Snooping).unwrap();
    assert_eq!(world.reached(), [1, 2, 3], "no querier");
    world.ask(3);
    world.until_reached("members and the router get it", &[1, 3]);
    let groups = world.groups();
    let is_router = |info: &GroupInfo| matches!(info, GroupInfo::Router { ipv6, port, .. } if *ipv6 == is_v6 && port == "vale0:c3");
    assert!(groups.iter().any(is_router), "{groups:?}");
    assert_eq!(world.members(), ["vale0:c1"]);

    let joined = world.join(2);
    world.until_reached("another joins", &[1, 2, 3]);
    drop(joined);
    world.until_reached("it leaves", &[1, 3]);
    assert_eq!(world.drops(), lost, "nothing more is lost");

    // A host that is asked no more is not forgotten alone.
    world.there[3].run("ip link del br0");
    world.until_reached("the querier is not there any more", &[1, 2, 3]);
    world.control.switch_multicast("vale0", Multicast::Flood).unwrap();
    assert_eq!(world.groups(), []);
    world.end(home);
}

fn run(test: &str, body: impl FnOnce(&Home)) {
    if !skip_without_root(test) {
        isolated_for(test, HANGS, body);
    }
}

#[test]
fn ipv4_by_the_kernels_path() {
    run("ipv4_by_the_kernels_path", |home| snoop(home, "", false));
}

#[test]
fn ipv6_by_the_kernels_path() {
    run("ipv6_by_the_kernels_path", |home| snoop(home, "", true));
}

#[test]
fn ipv4_by_the_worker() {
    run("ipv4_by_the_worker", |home| snoop(home, "@mode=generic", false));
}

#[test]
fn ipv6_by_the_worker() {
    run("ipv6_by_the_worker", |home| snoop(home, "@mode=generic", true));
}

/// Stacks answer the switch, too; and what it knew has gone when it is set up anew.
#[test]
fn the_switch_asks() {
    run("the_switch_asks", |home| {
        for is_v6 in [false, true] {
            let mut world = World::new(3, "", is_v6);
            let member = world.join(1);
            world.control.switch_multicast("vale0", Multicast::Querier).unwrap();
            assert_eq!(world.reached(), [1, 2], "its hosts have yet to answer");
            world.until_reached("a member gets it", &[1]);
            drop(member);
            world.until_reached("without members it is flooded", &[1, 2]);
            world.control.switch_delete("vale0").unwrap();
            drop(world);
        }
        home.assert_left();
    });
}

/// A router that does not ask: its port gets all groups as long as it is said to have one.
#[test]
fn a_router_that_does_not_ask() {
    run("a_router_that_does_not_ask", |home| {
        home.install(&[("ringway", "ringway-cli")]);
        for mode in ["", "@mode=generic"] {
            let mut world = World::new(4, mode, false);
            let set = |world: &World, router| {
                let multicast_router = Some(router);
                let settings = PortSettings { multicast_router, ..PortSettings::default() };
                world.control.switch_port("vale0:c2", settings).unwrap();
            };
            set(&world, MulticastRouter::Always);
            let _member = world.join(1);
            world.control.switch_multicast("vale0", Multicast::Snooping).unwrap();
            world.ask(3);
            world.until_reached("members and both routers get it", &[1, 2, 3]);
            set(&world, MulticastRouter::Auto);
            world.until_reached("it has no router any more", &[1, 3]);
            set(&world, MulticastRouter::Always);
            assert_eq!(world.reached(), [1, 2, 3]);
            let mut command = home.command(home.bin().join("ringway"));
            let told = command.args(["switch", "mdb", "vale0"]).output().unwrap().stdout;
            let told = String::from_utf8(told).unwrap();
            assert!(told.contains("dev vale0 port c2 router permanent\n"), "{told}");
            world.control.switch_delete("vale0").unwrap();
            drop(world);
        }
        home.assert_left();
    });
}

/// Containers are in a VLAN, and the router is on a trunk.
#[test]
fn in_a_vlan() {
    run("in_a_vlan", |home| {
        let mut world = World::new(4, "", false);
        for number in 0..4 {
            let vlan = match number {
                3 => Vlan::Trunk { allowed: [10].into(), native: None },
                _ => Vlan::Access(10),
            };
            let settings = PortSettings { vlan: Some(vlan), ..PortSettings::default() };
            world.control.switch_port(&format!("vale0:c{number}"), settings).unwrap();
        }
        let router = world.sockets.pop().expect("there are four");
        world.control.switch_multicast("vale0", Multicast::Snooping).unwrap();
        let _member = world.join(1);
        // A router asks: hosts answer within a second, and it is there for 200 seconds.
        let mut query = vec![0x11, 10, 0, 0, 0, 0, 0, 0, 2, 100, 0, 0];
        let mut frame =
            [&[1, 0, 0x5e, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x81, 0, 0, 10, 8, 0][..], &[0x45, 0, 0, 32]]
                .concat();
        frame.extend([0, 0, 0, 0, 1, 2, 0, 0, 10, 9, 0, 9, 224, 0, 0, 1]);
        put_sum(&mut frame[18..38], 10);
        put_sum(&mut query, 2);
        frame.extend(query);
        frame.resize(64, 0);
        router.send(&frame);
        world.until_reached("members get it", &[1]);
        let groups = world.groups();
        let in_vlan = |info: &GroupInfo| {
            matches!(
                info,
                GroupInfo::Querier { vlan: 10, .. }
                    | GroupInfo::Router { vlan: 10, .. }
                    | GroupInfo::Member { vlan: 10, .. }
            )
        };
        assert!(groups.iter().all(in_vlan), "{groups:?}");
        world.end(home);
    });
}

/// A program gets a group when it says so, as a host does.
#[test]
fn a_programs_port() {
    run("a_programs_port", |home| {
        let mut world = World::new(3, "", false);
        let mut port = Port::open("vale0:p").unwrap();
        let _member = world.join(1);
        world.control.switch_multicast("vale0", Multicast::Snooping).unwrap();
        world.ask(2);
        world.until_reached("members and the router get it", &[1, 2]);
        let mut gets_it = |world: &mut World| {
            let (payload, last) = (world.send(), world.send_last());
            let mut has_it = false;
            loop {
                let (heard, _) = receive(&mut port, 0, LIMIT);
                if heard.get(..last.len()) == Some(&last[..]) {
                    return has_it;
                }
                has_it |= heard.ends_with(&payload);
            }
        };
        until("it does not get it", || {
            if gets_it(&mut world) { Err(format!("{:?}", world.groups())) } else { Ok(()) }
        });
        // A report of IGMPv2.
        let [_, b, c, d] = GROUP.octets();
        let mut report =
            [&[1, 0, 0x5e, b, c, d, 2, 0, 0, 0, 0, 9, 8, 0][..], &[0x45, 0, 0, 28]].concat();
        report.extend([0, 0, 0, 0, 1, 2, 0, 0, 10, 9, 0, 9, 239, b, c, d]);
        report.extend([0x16, 0, 0, 0, 239, b, c, d]);
        put_sum(&mut report[14..34], 10);
        put_sum(&mut report[34..42], 2);
        report.resize(60, 0);
        send(&mut port, &report);
        until("it is a member", || {
            let members = world.members();
            if members.contains(&"vale0:p".into()) { Ok(()) } else { Err(format!("{members:?}")) }
        });
        drop(port);
        world.end(home);
    });
}
