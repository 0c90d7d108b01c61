//! Where the headers of a frame begin.

use crate::{
    Error,
    checksum::{finish, sum},
};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Ethertypes of VLAN tags: customer and service.
const TAGS: [u16; 2] = [0x8100, 0x88a8];

/// Bytes of IPv6's header without extensions, and of IP's with all that is looked at.
const IPV6_HEADER: usize = 40;
const LONGEST: usize = 60;

/// Extension headers of IPv6 (RFC 8200): options for each hop and for the destination, and a route. They belong into every segment, as
/// Linux has it (`ipv6_gso_pull_exthdrs`); a fragment's does not.
const EXTENSIONS: [u8; 3] = [0, 43, 60];
const ROUTE: u8 = 43;

/// What is carried over IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

impl Protocol {
    /// By which IP knows it.
    pub fn number(self) -> u8 {
        match self {
            Protocol::Tcp => 6,
            Protocol::Udp => 17,
        }
    }

    /// Offset of the checksum in the header.
    pub fn checksum(self) -> usize {
        match self {
            Protocol::Tcp => 16,
            Protocol::Udp => 6,
        }
    }
}

/// Where IP and what it carries begin, as far as a frame, or the beginning of one, tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    pub v6: bool,
    pub ip: usize,
    pub transport: usize,
    /// The number of the protocol that IP carries.
    pub carries: u8,
}

impl Network {
    /// Finds IP behind up to two VLAN tags. Options of IPv4 are fine, and as many of IPv6; fragments are not.
    pub fn find(frame: &[u8]) -> Option<Network> {
        let byte = |at: usize| frame.get(at).copied();
        let word = |at: usize| Some(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
        let mut ip = 14;
        while ip < 14 + 2 * 4 && TAGS.contains(&word(ip - 2)?) {
            ip += 4;
        }
        let network = Network::at(frame, ip)?;
        (word(ip - 2)? == if network.v6 { IPV6 } else { IPV4 }).then_some(network)
    }

    /// IP that begins at `ip`, by its version.
    pub fn at(frame: &[u8], ip: usize) -> Option<Network> {
        let byte = |at: usize| frame.get(at).copied();
        let (v6, transport, carries) = match byte(ip)? >> 4 {
            4 => {
                let is_fragment = u16::from_be_bytes([byte(ip + 6)?, byte(ip + 7)?]) & 0x3fff != 0;
                let length = usize::from(byte(ip)? & 0xf) * 4;
                if is_fragment || length < 20 {
                    return None;
                }
                (false, ip + length, byte(ip + 9)?)
            }
            6 => {
                let (transport, carries) = behind_extensions(frame, ip)?;
                (true, transport, carries)
            }
            _ => return None,
        };
        Some(Network { v6, ip, transport, carries })
    }

    /// Bytes behind IP's header, IPv6's extensions among them, by the length field of IP.
    pub fn length(&self, begin: &[u8]) -> Option<usize> {
        let word = |at: usize| {
            let word = begin.get(at..)?.first_chunk::<2>()?;
            Some(usize::from(u16::from_be_bytes(*word)))
        };
        let (at, before) = if self.v6 { (4, IPV6_HEADER) } else { (2, 0) };
        (word(self.ip + at)? + before).checked_sub(self.transport - self.ip)
    }

    /// The same in a frame in which there are `bytes` more before it.
    pub fn moved(self, bytes: usize) -> Network {
        Network { ip: self.ip + bytes, transport: self.transport + bytes, ..self }
    }

    /// The sum of the pseudo header of `protocol`, of which there are `length` bytes; `begin`: the frame, up to there at
    /// least.
    pub fn pseudo_sum(&self, begin: &[u8], protocol: Protocol, length: usize) -> u64 {
        let addresses = &begin[self.ip..][if self.v6 { 8..40 } else { 12..20 }];
        let rest = [(length as u16).to_be_bytes(), [0, protocol.number()]];
        sum(addresses) + sum(rest.as_flattened())
    }

    /// Makes length, identification and checksum right of segment number `index`, which has `length` bytes; `begin`: the
    /// segment, up to what IP carries at least.
    pub fn set_length(&self, begin: &mut [u8], length: usize, index: usize) {
        let ip = &mut begin[self.ip..self.transport];
        let mut put = |at: usize, bytes: [u8; 2]| ip[at..at + 2].copy_from_slice(&bytes);
        if self.v6 {
            put(4, ((length - self.ip - IPV6_HEADER) as u16).to_be_bytes());
            return;
        }
        put(2, ((length - self.ip) as u16).to_be_bytes());
        put(10, [0, 0]);
        let identification = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(index as u16);
        ip[4..6].copy_from_slice(&identification.to_be_bytes());
        let checksum = finish(sum(ip));
        ip[10..12].copy_from_slice(&checksum);
    }
}

/// Where that begins which IPv6 at `ip` carries behind its extensions, and its number. None if it is on a route with further
/// stops: the checksum is by another destination than that in the header.
#[inline]
fn behind_extensions(frame: &[u8], ip: usize) -> Option<(usize, u8)> {
    let byte = |at: usize| frame.get(at).copied();
    let (mut at, mut carries) = (ip + IPV6_HEADER, byte(ip + 6)?);
    while EXTENSIONS.contains(&carries) {
        let end = at + 8 + 8 * usize::from(byte(at + 1)?);
        if end > ip + LONGEST || carries == ROUTE && byte(at + 3)? != 0 {
            return None;
        }
        (at, carries) = (end, byte(at)?);
    }
    Some((at, carries))
}

/// SCTP's number (RFC 9260), the offset of its checksum, and bytes of its header.
pub(crate) const SCTP: u8 = 132;
pub(crate) const SCTP_CHECKSUM: usize = 8;
pub(crate) const SCTP_HEADER: usize = 12;

/// The IP that carries SCTP, if a checksum at `at` for what begins at `start` is SCTP's.
#[inline]
pub(crate) fn carries_sctp(frame: &[u8], (start, at): (usize, usize)) -> Option<Network> {
    if at != start + SCTP_CHECKSUM {
        return None;
    }
    Network::find(frame).filter(|ip| ip.carries == SCTP && ip.transport == start)
}

/// The headers of a frame by their offsets, which ascend and lie inside the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layers {
    pub network: Network,
    pub protocol: Protocol,
    pub payload: usize,
}

impl Layers {
    /// Finds the headers of `protocol` over IP, behind up to two VLAN tags. Options of IPv4 are fine, and as many of
    /// IPv6; fragments are not.
    pub fn find(frame: &[u8], protocol: Protocol) -> Result<Layers, Error> {
        Self::walk(frame, protocol).ok_or(Error::BadFrame)
    }

    fn walk(frame: &[u8], protocol: Protocol) -> Option<Layers> {
        Self::behind(frame, Network::find(frame)?, protocol)
    }

    /// The headers of `protocol` behind this IP.
    pub fn behind(frame: &[u8], network: Network, protocol: Protocol) -> Option<Layers> {
        let transport = network.transport;
        let byte = |at: usize| frame.get(at).copied();
        let (length, shortest) = match protocol {
            Protocol::Tcp => (usize::from(byte(transport + 12)? >> 4) * 4, 20),
            Protocol::Udp => (8, 8),
        };
        let payload = transport + length;
        (network.carries == protocol.number() && length >= shortest && payload <= frame.len())
            .then_some(Layers { network, protocol, payload })
    }
}
