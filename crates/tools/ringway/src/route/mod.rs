//! Routes IPv4 packets between two ports: what a packet's Ethernet addresses are on the other side, and the
//! ARP that this takes on both (RFC 826). Packets themselves stay as they are, their time to live included.
//!
//! A packet that is for the port's Ethernet address goes on to the other port: to where it is addressed, if that
//! is in a network of the other interface, else to the gateway there. All other frames end here, and are counted.

mod arp;
mod neighbours;

use crate::endpoint::Mac;
use crate::error::{Error, Result};
use crate::sys::{InterfaceAddresses, addresses_of};
use arp::{Arp, ETHERTYPE_ARP, Operation};
use neighbours::{Held, Neighbours};
use ringway::PortSpec;
use std::net::Ipv4Addr;

const ETHERTYPE_IPV4: [u8; 2] = [8, 0];

/// Frames of its own that wait for a ring, of one port, at most.
const OWN: usize = 256;

/// One port's.
struct Side {
    mac: Mac,
    networks: Vec<Network>,
    /// Where packets go that are for none of the networks.
    gateway: Option<Ipv4Addr>,
    neighbours: Neighbours,
    /// Frames of the router's own that this port is to send.
    own: Vec<Vec<u8>>,
    /// Packets for this port that wait for nothing any more.
    ready: Vec<Vec<u8>>,
    /// Frames of this port that went nowhere at once.
    dropped: u64,
}

/// Frames of a port that have not gone on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unrouted {
    /// They wait for a neighbour.
    pub waiting: u64,
    pub dropped: u64,
}

/// An address of an interface, and which others are behind it.
#[derive(Clone, Copy, Debug)]
struct Network {
    own: Ipv4Addr,
    mask: u32,
}

impl Network {
    fn has(&self, address: Ipv4Addr) -> bool {
        (self.own.to_bits() ^ address.to_bits()) & self.mask == 0
    }

    /// Whether all of the network is meant.
    fn is_broadcast(&self, address: Ipv4Addr) -> bool {
        self.has(address) && self.mask < u32::MAX - 1 && address.to_bits() | self.mask == u32::MAX
    }
}

pub struct Router {
    sides: [Side; 2],
}

impl Router {
    /// Between two interfaces, by the names of their ports. `gateways`: of packets to each.
    pub fn new(ports: &[String; 2], gateways: [Option<Ipv4Addr>; 2]) -> Result<Router> {
        let side = |at: usize| Side::new(&ports[at], gateways[at]);
        Ok(Router { sides: [side(0)?, side(1)?] })
    }

    /// A frame has come at port `from`. True: it goes on to the other, as it is then.
    pub fn receive(&mut self, from: usize, frame: &mut [u8], now: u64) -> bool {
        let goes_on = match frame.get(12..14) {
            Some(kind) if kind == ETHERTYPE_ARP => {
                self.sides[from].arp(frame, now);
                return false;
            }
            Some(kind) if kind == ETHERTYPE_IPV4 => self.route(from, frame, now),
            _ => None,
        };
        if goes_on.is_none() {
            self.sides[from].dropped += 1;
        }
        goes_on == Some(true)
    }

    /// `Some(false)`: it waits for a neighbour. `None`: it goes nowhere.
    fn route(&mut self, from: usize, frame: &mut [u8], now: u64) -> Option<bool> {
        let [a, b] = &mut self.sides;
        let (here, there) = if from == 0 { (a, b) } else { (b, a) };
        let (version, destination) = (frame.get(14)? >> 4, frame.get(30..34)?);
        if frame.get(..6)? != here.mac.0 || version != 4 {
            return None;
        }
        let destination = Ipv4Addr::from(<[u8; 4]>::try_from(destination).ok()?);
        let next = there.next_hop(destination).filter(|_| !here.knows(destination))?;
        let found = there.neighbours.find(next, now);
        if found.is_to_be_asked {
            there.ask(next);
        }
        let Some(mac) = found.mac else {
            return there.neighbours.hold(next, frame, now).then_some(false);
        };
        there.address(frame, mac);
        Some(true)
    }

    /// What has become of the frames of port `from` that have not gone on.
    pub fn unrouted(&self, from: usize, now: u64) -> Unrouted {
        let Held { waiting, lost } = self.sides[1 - from].neighbours.held(now);
        Unrouted { waiting, dropped: self.sides[from].dropped + lost }
    }

    /// Packets for a port that have waited for a neighbour, in their order.
    pub fn take_ready(&mut self, port: usize) -> std::vec::Drain<'_, Vec<u8>> {
        self.sides[port].ready.drain(..)
    }

    /// Whether a port has frames of the router's own to send.
    pub fn has_own(&self, port: usize) -> bool {
        !self.sides[port].own.is_empty()
    }

    pub fn take_own(&mut self, port: usize) -> std::vec::Drain<'_, Vec<u8>> {
        self.sides[port].own.drain(..)
    }
}

impl Side {
    fn new(port: &str, gateway: Option<Ipv4Addr>) -> Result<Side> {
        let wrong = |why: String| Error::Value(format!("{port}: {why}"));
        let name = PortSpec::parse(port)?.name;
        let InterfaceAddresses { mac, networks } = addresses_of(&name)
            .map_err(|source| Error::System { what: "reading addresses of interfaces", source })?;
        let Some(mac) = mac else {
            let why =
                "is no interface with an Ethernet address, between which alone packets are routed";
            return Err(wrong(format!("{why}; name two, as netmap:eth0")));
        };
        let networks: Vec<_> =
            networks.into_iter().map(|(own, mask)| Network { own, mask: mask.to_bits() }).collect();
        if networks.is_empty() {
            let why = "has no IPv4 address to route by; give it one, ip address add";
            return Err(wrong(format!("{why} ADDRESS/LENGTH dev {name}")));
        }
        if let Some(gateway) = gateway
            && !networks.iter().any(|network| network.has(gateway) && network.own != gateway)
        {
            return Err(wrong(format!(
                "the gateway {gateway} is in no network of it; name one that is, with -G"
            )));
        }
        Ok(Side::of(Mac(mac), networks, gateway))
    }

    fn of(mac: Mac, networks: Vec<Network>, gateway: Option<Ipv4Addr>) -> Side {
        let neighbours = Neighbours::default();
        let (own, ready) = (Vec::new(), Vec::new());
        Side { mac, networks, gateway, neighbours, own, ready, dropped: 0 }
    }

    /// Whether an address is in a network of this port.
    fn knows(&self, address: Ipv4Addr) -> bool {
        self.networks.iter().any(|network| network.has(address))
    }

    fn is_own(&self, address: Ipv4Addr) -> bool {
        self.networks.iter().any(|network| network.own == address)
    }

    /// The next hop of a packet to that address from this port.
    fn next_hop(&self, to: Ipv4Addr) -> Option<Ipv4Addr> {
        let is_one = !to.is_multicast() && !to.is_broadcast() && !to.is_unspecified();
        if !is_one || to.is_loopback() || self.is_own(to) {
            return None;
        }
        match self.networks.iter().find(|network| network.has(to)) {
            Some(_) if self.networks.iter().any(|network| network.is_broadcast(to)) => None,
            Some(_) => Some(to),
            None => self.gateway,
        }
    }

    /// Gives a frame the addresses with which this port sends it.
    fn address(&self, frame: &mut [u8], to: Mac) {
        if let Some((addresses, _)) = frame.split_first_chunk_mut::<12>() {
            addresses[..6].copy_from_slice(&to.0);
            addresses[6..].copy_from_slice(&self.mac.0);
        }
    }

    /// Sends an ARP request for an address.
    fn ask(&mut self, target: Ipv4Addr) {
        let Some(network) = self.networks.iter().find(|network| network.has(target)) else {
            return;
        };
        let request = Arp {
            operation: Operation::Request,
            sender: (self.mac, network.own),
            target: (Mac([0; 6]), target),
        };
        self.send(request.frame(Mac::BROADCAST));
    }

    fn send(&mut self, frame: Vec<u8>) {
        if self.own.len() < OWN {
            self.own.push(frame);
        }
    }

    /// An ARP message has come.
    fn arp(&mut self, frame: &[u8], now: u64) {
        let Some(Arp { operation, sender: (mac, address), target: (_, target) }) = Arp::read(frame)
        else {
            self.dropped += 1;
            return;
        };
        let is_for_us = self.is_own(target);
        if self.knows(address) && !self.is_own(address) && mac.is_station() {
            let waited = self.neighbours.learn(address, mac, is_for_us, now);
            for mut frame in waited {
                self.address(&mut frame, mac);
                self.ready.push(frame);
            }
        }
        if operation == Operation::Request && is_for_us {
            let answer = Arp {
                operation: Operation::Reply,
                sender: (self.mac, target),
                target: (mac, address),
            };
            self.send(answer.frame(mac));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const THERE: Mac = Mac([2, 0, 0, 0, 0, 2]);
    const HOST: Mac = Mac([2, 0, 0, 0, 0, 9]);
    const NEIGHBOUR: [u8; 4] = [10, 0, 2, 2];

    fn router(gateway: Option<[u8; 4]>) -> Router {
        let network = |own: [u8; 4]| Network { own: own.into(), mask: 0xffff_ff00 };
        let here = Side::of(HERE, vec![network([10, 0, 1, 1])], None);
        let networks = vec![network([192, 168, 0, 1]), network([10, 0, 2, 1])];
        let there = Side::of(THERE, networks, gateway.map(Ipv4Addr::from));
        Router { sides: [here, there] }
    }

    fn packet(to: Mac, destination: [u8; 4]) -> Vec<u8> {
        let mut frame = [to.0, HOST.0].concat();
        frame.extend([8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 7, 17, 0xab, 0xcd, 10, 0, 1, 2]);
        frame.extend(destination);
        frame
    }

    /// An answer that says that HOST has the address.
    fn answer(address: [u8; 4]) -> Vec<u8> {
        let (sender, target) = ((HOST, address.into()), (THERE, [10, 0, 2, 1].into()));
        Arp { operation: Operation::Reply, sender, target }.frame(THERE)
    }

    #[test]
    fn a_packet_waits_for_its_neighbour_and_keeps_its_time_to_live() {
        let mut router = router(None);
        let mut first = packet(HERE, NEIGHBOUR);
        assert!(!router.receive(0, &mut first.clone(), 0));
        assert_eq!(router.unrouted(0, 0), Unrouted { waiting: 1, dropped: 0 });
        assert_eq!(router.unrouted(0, 10_000_000_000), Unrouted { waiting: 0, dropped: 1 });
        let asked: Vec<_> = router.take_own(1).collect();
        let request = Arp::read(&asked[0]).unwrap();
        assert_eq!((asked.len(), asked[0].len(), &asked[0][..6]), (1, 60, &[0xff; 6][..]));
        assert_eq!(request.operation, Operation::Request);
        assert_eq!(request.sender, (THERE, [10, 0, 2, 1].into()));
        assert_eq!(request.target.1, Ipv4Addr::from(NEIGHBOUR));
        // A second one waits, too, and the question is not repeated at once.
        assert!(!router.receive(0, &mut first.clone(), 10));
        assert!(!router.has_own(1));
        assert!(!router.receive(1, &mut answer(NEIGHBOUR), 20));
        router.sides[1].address(&mut first, HOST);
        assert_eq!(router.take_ready(1).collect::<Vec<_>>(), [first.clone(), first.clone()]);
        assert_eq!(first[6..12], THERE.0);
        assert_eq!(first[22], 7, "the time to live is as it was");
        let mut third = packet(HERE, NEIGHBOUR);
        assert!(router.receive(0, &mut third, 30));
        assert_eq!(third, first);
        assert_eq!([0, 1].map(|from| router.unrouted(from, 40)), [Unrouted::default(); 2]);
    }

    #[test]
    fn other_networks_are_behind_the_gateway() {
        let mut with = router(Some(NEIGHBOUR));
        assert!(!with.receive(0, &mut packet(HERE, [8, 8, 8, 8]), 0));
        let asked: Vec<_> = with.take_own(1).collect();
        assert_eq!(Arp::read(&asked[0]).unwrap().target.1, Ipv4Addr::from(NEIGHBOUR));
        let mut without = router(None);
        assert!(!without.receive(0, &mut packet(HERE, [8, 8, 8, 8]), 0));
        assert!(!without.has_own(1));
        assert_eq!(without.sides[0].dropped, 1);
    }

    #[test]
    fn what_is_for_nobody_there_goes_nowhere() {
        let mut router = router(Some(NEIGHBOUR));
        let mut frames = vec![
            packet(THERE, NEIGHBOUR),
            packet(Mac::BROADCAST, NEIGHBOUR),
            packet(HERE, NEIGHBOUR)[..33].to_vec(),
            vec![0; 13],
            Vec::new(),
        ];
        for to in [
            [10, 0, 2, 1],
            [10, 0, 1, 1],
            [10, 0, 1, 5],
            [10, 0, 2, 255],
            [224, 0, 0, 1],
            [255; 4],
            [0; 4],
            [127, 0, 0, 1],
        ] {
            frames.push(packet(HERE, to));
        }
        let mut six = packet(HERE, NEIGHBOUR);
        six[14] = 0x60;
        frames.push(six);
        let all = frames.len() as u64;
        assert!(frames.iter_mut().all(|frame| !router.receive(0, frame, 0)));
        assert_eq!(router.sides[0].dropped, all);
        assert!(!router.has_own(0) && !router.has_own(1));
    }

    #[test]
    fn questions_for_the_ports_addresses_are_answered_and_others_not() {
        let mut router = router(None);
        let request = |target: [u8; 4], sender: [u8; 4]| {
            let (sender, target) = ((HOST, sender.into()), (Mac([0; 6]), target.into()));
            Arp { operation: Operation::Request, sender, target }.frame(Mac::BROADCAST)
        };
        router.receive(1, &mut request([10, 0, 2, 1], NEIGHBOUR), 0);
        let answers: Vec<_> = router.take_own(1).collect();
        let answer = Arp::read(&answers[0]).unwrap();
        assert_eq!(
            (answer.operation, answers[0][..6].to_vec()),
            (Operation::Reply, HOST.0.to_vec())
        );
        assert_eq!(answer.sender, (THERE, [10, 0, 2, 1].into()));
        assert_eq!(answer.target, (HOST, NEIGHBOUR.into()));
        // The host that asks is known from then on.
        assert!(router.receive(0, &mut packet(HERE, NEIGHBOUR), 1));
        // Is the address free? It is not.
        router.receive(1, &mut request([10, 0, 2, 1], [0; 4]), 0);
        assert_eq!(router.take_own(1).count(), 1);
        router.receive(1, &mut request([10, 0, 2, 7], NEIGHBOUR), 0);
        router.receive(1, &mut request([10, 0, 1, 1], NEIGHBOUR), 0);
        assert!(!router.has_own(0) && !router.has_own(1));
    }

    #[test]
    fn what_cannot_be_true_is_not_learned() {
        let mut router = router(None);
        let own = answer([10, 0, 2, 1]);
        let mut of_a_group = answer(NEIGHBOUR);
        of_a_group[22] |= 1;
        let mut of_nobody = answer(NEIGHBOUR);
        of_nobody[22..28].fill(0);
        for mut frame in [own, answer([10, 9, 9, 9]), of_a_group, of_nobody] {
            router.receive(1, &mut frame, 0);
        }
        assert!(!router.receive(0, &mut packet(HERE, NEIGHBOUR), 1));
        assert_eq!(router.take_own(1).count(), 1);
    }
}
