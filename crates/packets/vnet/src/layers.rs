//! Where the headers of a frame begin.

use crate::Error;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Ethertypes of VLAN tags: customer and service.
const TAGS: [u16; 2] = [0x8100, 0x88a8];

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
    /// Finds IP behind up to two VLAN tags. IPv4 options are fine; fragments are not.
    pub fn find(frame: &[u8]) -> Option<Network> {
        let byte = |at: usize| frame.get(at).copied();
        let word = |at: usize| Some(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
        let mut ip = 14;
        while ip < 14 + 2 * 4 && TAGS.contains(&word(ip - 2)?) {
            ip += 4;
        }
        let (v6, transport, carries) = match (word(ip - 2)?, byte(ip)? >> 4) {
            (IPV4, 4) => {
                let is_fragment = word(ip + 6)? & 0x3fff != 0;
                let length = usize::from(byte(ip)? & 0xf) * 4;
                if is_fragment || length < 20 {
                    return None;
                }
                (false, ip + length, byte(ip + 9)?)
            }
            (IPV6, 6) => (true, ip + 40, byte(ip + 6)?),
            _ => return None,
        };
        Some(Network { v6, ip, transport, carries })
    }
}

/// The headers of a frame by their offsets, which ascend and lie inside the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layers {
    pub v6: bool,
    pub ip: usize,
    pub protocol: Protocol,
    pub transport: usize,
    pub payload: usize,
}

impl Layers {
    /// Finds the headers of `protocol` over IP, behind up to two VLAN tags. IPv4 options are
    /// fine; fragments are not, nor are IPv6 extension headers, which need not all belong into
    /// every segment.
    pub fn find(frame: &[u8], protocol: Protocol) -> Result<Layers, Error> {
        Self::walk(frame, protocol).ok_or(Error::BadFrame)
    }

    fn walk(frame: &[u8], protocol: Protocol) -> Option<Layers> {
        let Network { v6, ip, transport, carries } = Network::find(frame)?;
        let byte = |at: usize| frame.get(at).copied();
        let (length, shortest) = match protocol {
            Protocol::Tcp => (usize::from(byte(transport + 12)? >> 4) * 4, 20),
            Protocol::Udp => (8, 8),
        };
        let payload = transport + length;
        (carries == protocol.number() && length >= shortest && payload <= frame.len())
            .then_some(Layers { v6, ip, protocol, transport, payload })
    }
}
