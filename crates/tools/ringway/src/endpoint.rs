//! Addresses and ports, and ranges of them, as the user writes them: `10.0.0.1:1000-10.0.0.9:2000`.

use crate::error::{Error, Result};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A number that walks from `first` to `last` and starts over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeCounter<T> {
    pub first: T,
    pub last: T,
    /// The value now.
    pub now: T,
}

impl<T: Copy + PartialEq> RangeCounter<T> {
    pub fn new(first: T, last: T) -> RangeCounter<T> {
        RangeCounter { first, last, now: first }
    }

    /// True if there is only one value.
    pub fn is_fixed(&self) -> bool {
        self.first == self.last
    }
}

/// Steps a counter of any integer width; true when it started over.
macro_rules! step {
    ($($int:ty),*) => {$(
        impl RangeCounter<$int> {
            /// Moves to the next value; true when the counter started over.
            pub fn step(&mut self) -> bool {
                let over = self.now == self.last;
                self.now = if over { self.first } else { self.now + 1 };
                over
            }
        }
    )*};
}
step!(u16, u32, u128);

/// Which version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

/// A range of addresses and a range of UDP ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    pub family: Family,
    /// The address as a number, most significant byte first.
    pub address: RangeCounter<u128>,
    pub port: RangeCounter<u16>,
}

/// The port where a range names none.
const DEFAULT_PORT: u16 = 1234;

impl Endpoints {
    /// True if there is exactly one address and one port.
    pub fn is_fixed(&self) -> bool {
        self.address.is_fixed() && self.port.is_fixed()
    }

    /// Moves to the next port, and after the last port to the next address; true when all
    /// combinations are through and the walk starts over.
    pub fn step(&mut self) -> bool {
        self.port.step() && self.address.step()
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u32::from(v4).into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

/// Reads `ADDRESS`, `ADDRESS:PORT`, `V6ADDRESS` or `[V6ADDRESS]:PORT`.
fn end(text: &str) -> Option<(IpAddr, Option<u16>)> {
    if let Ok(address) = text.parse() {
        return Some((address, None));
    }
    let (address, port) = text.rsplit_once(':')?;
    let address = match address.strip_prefix('[') {
        Some(bracketed) => IpAddr::V6(bracketed.strip_suffix(']')?.parse().ok()?),
        None => IpAddr::V4(address.parse().ok()?),
    };
    Some((address, Some(port.parse().ok()?)))
}

impl FromStr for Endpoints {
    type Err = Error;

    fn from_str(text: &str) -> Result<Endpoints> {
        let fail = |why: &str| {
            Error::Value(format!(
                "`{text}` {why}; write 10.0.0.1, 10.0.0.1:1000, 10.0.0.1:1000-10.0.0.9:2000 or \
                 [fd00::1]:1000"
            ))
        };
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        let (from, from_port) = end(low).ok_or_else(|| fail("does not start with an address"))?;
        let (to, to_port) = end(high).ok_or_else(|| fail("does not end with an address"))?;
        if from.is_ipv4() != to.is_ipv4() {
            return Err(fail("mixes IPv4 and IPv6"));
        }
        let first_port = from_port.unwrap_or(DEFAULT_PORT);
        let last_port = to_port.unwrap_or(first_port);
        let (first, last) = (number(from), number(to));
        if last < first || last_port < first_port {
            return Err(fail("ends before it starts"));
        }
        Ok(Endpoints {
            family: if from.is_ipv4() { Family::V4 } else { Family::V6 },
            address: RangeCounter::new(first, last),
            port: RangeCounter::new(first_port, last_port),
        })
    }
}

/// An Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    pub const BROADCAST: Mac = Mac([0xff; 6]);

    /// Whether it can be the address of one station.
    pub fn is_station(self) -> bool {
        self.0[0] & 1 == 0 && self.0 != [0; 6]
    }
}

impl FromStr for Mac {
    type Err = Error;

    fn from_str(text: &str) -> Result<Mac> {
        let wrong =
            || Error::Value(format!("`{text}` is not a MAC address; write 02:00:00:00:00:01"));
        ringway::parse_mac(text).map(Mac).ok_or_else(wrong)
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ringway::mac_text(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn walk(text: &str) -> Vec<(u128, u16)> {
        let mut range: Endpoints = text.parse().unwrap();
        let mut seen = Vec::new();
        loop {
            seen.push((range.address.now, range.port.now));
            if range.step() {
                return seen;
            }
        }
    }

    #[test]
    fn a_range_visits_every_pair_once_ports_first() {
        let seen = walk("10.0.0.1:1000-10.0.0.3:1001");
        let base = u128::from(u32::from_be_bytes([10, 0, 0, 1]));
        assert_eq!(seen[..3], [(base, 1000), (base, 1001), (base + 1, 1000)]);
        assert_eq!(seen.iter().collect::<HashSet<_>>().len(), 6);
        assert_eq!(seen.len(), 6);
    }

    #[test]
    fn ends_of_the_number_space() {
        assert_eq!(walk("255.255.255.254-255.255.255.255").len(), 2);
        assert_eq!(walk("0.0.0.0:65534-0.0.0.0:65535").len(), 2);
        assert_eq!(
            walk("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")
                .len(),
            2
        );
    }

    #[test]
    fn one_address_is_fixed_and_gets_the_default_port() {
        for text in ["10.0.0.1", "fd00::1"] {
            let one: Endpoints = text.parse().unwrap();
            assert!(one.is_fixed());
            assert_eq!(one.port.now, DEFAULT_PORT);
        }
        let six: Endpoints = "[fd00::1]:5-[fd00::2]:6".parse().unwrap();
        assert_eq!((six.family, six.port.now), (Family::V6, 5));
        assert!(!six.is_fixed());
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for bad in [
            "",
            "10.0.0",
            "10.0.0.2-10.0.0.1",
            "10.0.0.1:9-10.0.0.1:8",
            "10.0.0.1-fd00::1",
            "10.0.0.1:99999",
            "fd00::1:x",
            "[fd00::1:5",
            "10.0.0.1-",
        ] {
            let message = bad.parse::<Endpoints>().unwrap_err().to_string();
            assert!(message.contains("write 10.0.0.1"), "{bad}: {message}");
        }
    }

    #[test]
    fn macs() {
        let mac: Mac = "02:00:5e:aB:00:ff".parse().unwrap();
        assert_eq!(mac.to_string(), "02:00:5e:ab:00:ff");
        assert_eq!("2:0:0:0:0:1".parse::<Mac>().unwrap(), Mac([2, 0, 0, 0, 0, 1]));
        for bad in
            ["", "02:00:00:00:00", "02:00:00:00:00:00:00", "02:00:00:00:00:zz", "2:0:0:0:0:+1"]
        {
            assert!(bad.parse::<Mac>().is_err(), "{bad}");
        }
    }
}
