//! The ranges of `-s` and `-d`, read as the original reads them: what is no address is a warning.

use crate::endpoint::{Endpoints, Family, RangeCounter};
use crate::tools::getopt::number;
use crate::tools::log::log;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The port where a range names none.
const DEFAULT_PORT: u16 = 1234;

/// Reads `ADDRESS[:PORT[-ADDRESS[:PORT]]]`, with IPv6 addresses in brackets where a port follows.
/// Ends in the wrong order are exchanged. In place of an address that is none of this family's,
/// `default` is taken.
pub fn range(text: &str, family: Family, default: &str) -> Endpoints {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (from, from_port) = end(low, family, default);
    let (to, to_port) = end(high, family, default);
    let from_port = from_port.unwrap_or(DEFAULT_PORT);
    let to_port = to_port.unwrap_or(from_port);
    Endpoints {
        family,
        address: RangeCounter::new(from.min(to), from.max(to)),
        port: RangeCounter::new(from_port.min(to_port), from_port.max(to_port)),
    }
}

/// Address and port of one end.
fn end(text: &str, family: Family, default: &str) -> (u128, Option<u16>) {
    let (address, port) = match family {
        Family::V4 => text.split_once(':').map_or((text, None), |(a, port)| (a, Some(port))),
        Family::V6 => match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
            Some((address, rest)) => (address, rest.strip_prefix(':')),
            None => (text, None),
        },
    };
    let read = |address: &str| -> Option<u128> {
        match family {
            Family::V4 => Some(u32::from(address.parse::<Ipv4Addr>().ok()?).into()),
            Family::V6 => Some(address.parse::<Ipv6Addr>().ok()?.into()),
        }
    };
    let address = read(address).unwrap_or_else(|| {
        let version = if family == Family::V4 { 4 } else { 6 };
        log!("extract_ip_range", "{address} is no IPv{version} address, using {default}");
        read(default).unwrap_or_default()
    });
    (address, port.map(|port| number(port) as u16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn ranges_as_the_original_reads_them() {
        let read = |text, family| {
            let range =
                range(text, family, if family == Family::V4 { "10.1.0.1" } else { "fd01::1" });
            let show = |address: u128| match family {
                Family::V4 => IpAddr::from(Ipv4Addr::from(address as u32)).to_string(),
                Family::V6 => IpAddr::from(Ipv6Addr::from(address)).to_string(),
            };
            let RangeCounter { first, last, .. } = range.address;
            format!("{} {} {} {}", show(first), show(last), range.port.first, range.port.last)
        };
        let v4 = |text| read(text, Family::V4);
        assert_eq!(v4("10.0.0.1"), "10.0.0.1 10.0.0.1 1234 1234");
        assert_eq!(v4("10.0.0.1:5-10.0.0.9:9"), "10.0.0.1 10.0.0.9 5 9");
        assert_eq!(v4("10.0.0.9:9-10.0.0.1:5"), "10.0.0.1 10.0.0.9 5 9");
        assert_eq!(v4("10.0.0.1:5-10.0.0.9"), "10.0.0.1 10.0.0.9 5 5");
        assert_eq!(v4("300.1.1.1:7"), "10.1.0.1 10.1.0.1 7 7");
        assert_eq!(v4("10.0.0.1:65537"), "10.0.0.1 10.0.0.1 1 1");
        assert_eq!(v4("fd00::1"), "10.1.0.1 10.1.0.1 0 0");
        let v6 = |text| read(text, Family::V6);
        assert_eq!(v6("fd00::1"), "fd00::1 fd00::1 1234 1234");
        assert_eq!(v6("[fd00::1]:5-[fd00::2]:6"), "fd00::1 fd00::2 5 6");
        assert_eq!(v6("10.0.0.1"), "fd01::1 fd01::1 1234 1234");
    }
}
