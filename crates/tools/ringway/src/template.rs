//! A UDP frame whose fields change one by one.
//!
//! Both checksums are put together from partial sums that are known beforehand, so a change costs
//! a few stores, and no frame is ever added up.

use crate::checksum::{fold, sum};
use crate::endpoint::{Endpoints, Family, Mac};
use etherparse::PacketBuilder;

pub const ETHERNET_LEN: usize = 14;
pub const UDP_LEN: usize = 8;
const TTL: u8 = 64;
/// The protocol number of UDP, which the checksum covers.
pub const UDP: u32 = 17;
/// Where the IPv4 header keeps its checksum.
const IPV4_CHECKSUM: usize = 24;

/// Bytes before the payload.
pub fn headers_len(family: Family) -> usize {
    ETHERNET_LEN + ip_len(family) + UDP_LEN
}

fn ip_len(family: Family) -> usize {
    match family {
        Family::V4 => 20,
        Family::V6 => 40,
    }
}

/// Where the changing fields of a family's frames are, in bytes from the start.
struct Layout {
    ip_length: usize,
    src: usize,
    dst: usize,
    udp: usize,
    payload: usize,
}

impl Layout {
    fn of(family: Family) -> Layout {
        let udp = ETHERNET_LEN + ip_len(family);
        let payload = udp + UDP_LEN;
        match family {
            Family::V4 => Layout { ip_length: 16, src: 26, dst: 30, udp, payload },
            Family::V6 => Layout { ip_length: 18, src: 22, dst: 38, udp, payload },
        }
    }
}

/// A frame. Its flow and its size are to be set before it is used.
pub struct Template {
    family: Family,
    layout: Layout,
    frame: Box<[u8]>,
    size: usize,
    /// Partial sums of: the addresses; addresses and ports; what else UDP's checksum covers
    /// besides the payload.
    address_sum: u32,
    flow_sum: u32,
    udp_sum: u32,
    /// The IPv4 header's sum without addresses, length and checksum.
    ip_sum: u32,
}

impl Template {
    /// A frame with the payload of the largest size.
    pub fn new(src: Mac, dst: Mac, family: Family, payload: &[u8]) -> Template {
        let ethernet = PacketBuilder::ethernet2(src.0, dst.0);
        let packet = match family {
            Family::V4 => ethernet.ipv4([0; 4], [0; 4], TTL),
            Family::V6 => ethernet.ipv6([0; 16], [0; 16], TTL),
        }
        .udp(0, 0);
        let mut frame = Vec::with_capacity(headers_len(family) + payload.len());
        packet
            .write(&mut frame, payload)
            .expect("a vector takes every frame of at most 65536 bytes");
        // A constant of the header: everything but the two addresses, the length (bytes 16 and
        // 17) and the checksum.
        let ip_sum = sum(&frame[14..16]) + sum(&frame[18..IPV4_CHECKSUM]);
        Template {
            family,
            layout: Layout::of(family),
            frame: frame.into(),
            size: 0,
            address_sum: 0,
            flow_sum: 0,
            udp_sum: 0,
            ip_sum,
        }
    }

    /// The frame, at the size that was set.
    pub fn bytes(&self) -> &[u8] {
        &self.frame[..self.size]
    }

    /// The size that was set; 0 before.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Where the payload begins.
    pub fn payload_at(&self) -> usize {
        self.layout.payload
    }

    /// The payload of the largest size.
    pub fn payload(&self) -> &[u8] {
        &self.frame[self.layout.payload..]
    }

    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.frame[self.layout.payload..]
    }

    /// Where the UDP header keeps its checksum.
    pub fn checksum_at(&self) -> usize {
        self.layout.udp + 6
    }

    /// The UDP checksum of the frame with a payload of this partial sum.
    ///
    /// RFC 768: a checksum of zero means that there is none, so zero is sent as its twin.
    pub fn checksum(&self, payload_sum: u32) -> [u8; 2] {
        match !fold(self.flow_sum + self.udp_sum + payload_sum) {
            0 => [0xff; 2],
            checksum => checksum.to_be_bytes(),
        }
    }

    /// Writes that checksum.
    pub fn set_checksum(&mut self, payload_sum: u32) {
        let (at, checksum) = (self.checksum_at(), self.checksum(payload_sum));
        self.frame[at..at + 2].copy_from_slice(&checksum);
    }

    /// Writes addresses and ports, and the IPv4 checksum that covers the addresses.
    pub fn set_flow(&mut self, from: &Endpoints, to: &Endpoints) {
        let Layout { src, dst, udp, .. } = self.layout;
        let skip = match self.family {
            Family::V4 => 12,
            Family::V6 => 0,
        };
        let frame = &mut self.frame;
        frame[src..dst].copy_from_slice(&from.address.now.to_be_bytes()[skip..]);
        frame[dst..udp].copy_from_slice(&to.address.now.to_be_bytes()[skip..]);
        frame[udp..udp + 2].copy_from_slice(&from.port.now.to_be_bytes());
        frame[udp + 2..udp + 4].copy_from_slice(&to.port.now.to_be_bytes());
        self.address_sum = sum(&frame[src..udp]);
        self.flow_sum = self.address_sum + sum(&frame[udp..udp + 4]);
        self.set_ip_checksum();
    }

    /// Writes the length fields. A frame too short for its headers claims to be an empty datagram.
    pub fn set_size(&mut self, size: usize) {
        let Layout { ip_length, udp, .. } = self.layout;
        let udp_len = size.saturating_sub(udp).max(UDP_LEN) as u16;
        let ip_length_value = match self.family {
            Family::V4 => 20 + udp_len,
            Family::V6 => udp_len,
        };
        self.frame[ip_length..ip_length + 2].copy_from_slice(&ip_length_value.to_be_bytes());
        self.frame[udp + 4..udp + 6].copy_from_slice(&udp_len.to_be_bytes());
        self.udp_sum = UDP + 2 * u32::from(udp_len);
        self.size = size;
        self.set_ip_checksum();
    }

    fn set_ip_checksum(&mut self) {
        if self.family == Family::V4 {
            let at = self.layout.ip_length;
            let total = self.ip_sum + self.address_sum + sum(&self.frame[at..at + 2]);
            self.frame[IPV4_CHECKSUM..IPV4_CHECKSUM + 2]
                .copy_from_slice(&(!fold(total)).to_be_bytes());
        }
    }
}
