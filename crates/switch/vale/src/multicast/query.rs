//! The queries of a switch: which groups hosts are in (RFC 3376, 4.1; RFC 3810, 5.1).
//!
//! They are of the newest versions, and hosts with older ones understand them. Their source is no router's, so
//! routers do not leave asking to the switch: 0.0.0.0 takes no part in their election (RFC 4541, 2.1.1), and of
//! IPv6's addresses the lowest is elected, and this is a high one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ringway_vnet::checksum::{finish, sum};

use super::message::{ethernet_of, icmpv6_checksum};
use crate::clock::Millis;

/// From one general query to the next, and until the second one.
pub(crate) const INTERVAL: Millis = 125_000;
pub(crate) const STARTUP_INTERVAL: Millis = INTERVAL / 4;
/// Hosts answer general queries within this, and those for one group.
pub(crate) const RESPONSE: Millis = 10_000;
const LAST_RESPONSE: Millis = 1000;
const ROBUSTNESS: u8 = 2;

/// Ethernet's shortest frame.
const LENGTH: usize = 60;

/// The address that a switch has made up for itself, to ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker(pub [u8; 6]);

impl Asker {
    /// The frame that asks hosts with IPv4, or with IPv6, for all groups.
    pub fn general(self, is_v6: bool) -> Vec<u8> {
        match is_v6 {
            false => self.igmp(Ipv4Addr::UNSPECIFIED, RESPONSE),
            true => self.mld(Ipv6Addr::UNSPECIFIED, RESPONSE),
        }
    }

    /// The frame that asks for this group.
    pub fn specific(self, group: IpAddr) -> Vec<u8> {
        match group {
            IpAddr::V4(group) => self.igmp(group, LAST_RESPONSE),
            IpAddr::V6(group) => self.mld(group, LAST_RESPONSE),
        }
    }

    fn igmp(self, group: Ipv4Addr, response: Millis) -> Vec<u8> {
        let to = if group.is_unspecified() { Ipv4Addr::new(224, 0, 0, 1) } else { group };
        let mut frame = [&ethernet_of(to.into())[..], &self.0, &[8, 0]].concat();
        let mut message = vec![0x11, (response / 100) as u8, 0, 0];
        message.extend(group.octets());
        message.extend([ROBUSTNESS, (INTERVAL / 1000) as u8, 0, 0]);
        let checksum = finish(sum(&message));
        put(&mut message, 2, checksum);
        // With the option by which routers look at it.
        let mut ip = vec![0x46, 0xc0, 0, 24 + message.len() as u8, 0, 0, 0x40, 0, 1, 2, 0, 0];
        ip.extend([0; 4]);
        ip.extend(to.octets());
        ip.extend([0x94, 4, 0, 0]);
        let checksum = finish(sum(&ip));
        put(&mut ip, 10, checksum);
        frame.extend(ip);
        frame.extend(message);
        frame.resize(LENGTH, 0);
        frame
    }

    fn mld(self, group: Ipv6Addr, response: Millis) -> Vec<u8> {
        let all = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
        let to = if group.is_unspecified() { all } else { group };
        let [_, _, c, d, e, f] = self.0;
        let from =
            Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, c, d, e, f]);
        let mut frame = [&ethernet_of(to.into())[..], &self.0, &[0x86, 0xdd]].concat();
        let [high, low] = (response as u16).to_be_bytes();
        let mut message = vec![130, 0, 0, 0, high, low, 0, 0];
        message.extend(group.octets());
        message.extend([ROBUSTNESS, (INTERVAL / 1000) as u8, 0, 0]);
        let checksum = icmpv6_checksum(from, to, &message);
        put(&mut message, 2, checksum);
        frame.extend([0x60, 0, 0, 0, 0, 8 + message.len() as u8, 0, 1]);
        frame.extend(from.octets());
        frame.extend(to.octets());
        frame.extend([58, 0, 5, 2, 0, 0, 1, 0]);
        frame.extend(message);
        frame
    }
}

fn put(bytes: &mut [u8], at: usize, checksum: [u8; 2]) {
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&checksum);
    }
}
