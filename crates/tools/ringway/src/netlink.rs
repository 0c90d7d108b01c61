//! Questions to the kernel about links, addresses and routes of this network namespace
//! (`rtnetlink(7)`). Sysfs may show those of another one.

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const GET_LINK: u16 = libc::RTM_GETLINK;
const GET_ADDRESS: u16 = libc::RTM_GETADDR;
const GET_ROUTE: u16 = libc::RTM_GETROUTE;

/// Of a link (`linux/if_link.h`), of what is in `IFLA_LINKINFO`, of an address and of a route.
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_INFO_KIND: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_DST: u16 = 1;
const RTA_GATEWAY: u16 = 5;
const RTA_MULTIPATH: u16 = 9;

/// Of `struct nlmsghdr`, and of the headers behind it.
const HEADER: usize = 16;
const LINK_HEADER: usize = 16;
const ADDRESS_HEADER: usize = 8;
const ROUTE_HEADER: usize = 12;
const NEXT_HOP_HEADER: usize = 8;

/// The longest message: a dump comes in pieces of at most 32 KiB, unless one link alone has more.
const LONGEST: usize = 1 << 16;

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    pub name: String,
    /// `bridge`, `veth`, `vlan`: of a physical one nothing.
    pub kind: String,
    /// The bridge or bond, say, whose it is.
    pub master: Option<u32>,
    /// The interface of this namespace that it is on, as a VLAN's.
    pub lower: Option<u32>,
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub link: u32,
    pub address: IpAddr,
    pub prefix: u8,
}

/// A route of the main table, or of another that an operator has made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The interfaces that packets go out by.
    pub links: Vec<u32>,
    pub is_default: bool,
    pub has_gateway: bool,
}

/// All interfaces.
pub fn links() -> io::Result<Vec<Link>> {
    let mut links = Vec::new();
    dump(GET_LINK, &[0; LINK_HEADER], |message| links.extend(link(message)))?;
    Ok(links)
}

/// All addresses.
pub fn addresses() -> io::Result<Vec<Address>> {
    let mut addresses = Vec::new();
    dump(GET_ADDRESS, &[0; ADDRESS_HEADER], |message| addresses.extend(address(message)))?;
    Ok(addresses)
}

/// All routes by which packets of this machine leave it.
pub fn routes() -> io::Result<Vec<Route>> {
    let mut routes = Vec::new();
    dump(GET_ROUTE, &[0; ROUTE_HEADER], |message| routes.extend(route(message)))?;
    Ok(routes)
}

/// The interface by which packets to `peer` leave.
pub fn link_to(peer: IpAddr) -> io::Result<Option<u32>> {
    let (family, octets) = match peer {
        IpAddr::V4(v4) => (libc::AF_INET, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6, v6.octets().to_vec()),
    };
    let mut request = vec![0; ROUTE_HEADER];
    (request[0], request[1]) = (family as u8, 8 * octets.len() as u8);
    request.extend((4 + octets.len() as u16).to_ne_bytes());
    request.extend(RTA_DST.to_ne_bytes());
    request.extend(octets);
    let mut found = None;
    ask(GET_ROUTE, 0, &request, |message| {
        found = attribute(message, ROUTE_HEADER, RTA_OIF).and_then(number);
    })?;
    Ok(found)
}

fn link(message: &[u8]) -> Option<Link> {
    let find = |kind| attribute(message, LINK_HEADER, kind);
    let text = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default())
            .into_owned()
    };
    let kind = find(IFLA_LINKINFO).and_then(|info| attribute(info, 0, IFLA_INFO_KIND));
    let is_elsewhere = find(IFLA_LINK_NETNSID).is_some();
    Some(Link {
        index: number(message.get(4..8)?)?,
        name: text(find(libc::IFLA_IFNAME)?),
        kind: kind.map(text).unwrap_or_default(),
        master: find(IFLA_MASTER).and_then(number),
        lower: find(IFLA_LINK).and_then(number).filter(|_| !is_elsewhere),
    })
}

fn address(message: &[u8]) -> Option<Address> {
    let find = |kind| attribute(message, ADDRESS_HEADER, kind);
    // Of a point-to-point link the first is the peer's.
    let address = ip(find(IFA_LOCAL).or_else(|| find(IFA_ADDRESS))?)?;
    Some(Address { link: number(message.get(4..8)?)?, address, prefix: *message.get(1)? })
}

fn route(message: &[u8]) -> Option<Route> {
    let (&prefix, &table, &kind) = (message.get(1)?, message.get(4)?, message.get(7)?);
    if table == libc::RT_TABLE_LOCAL || kind != libc::RTN_UNICAST {
        return None;
    }
    let find = |kind| attribute(message, ROUTE_HEADER, kind);
    let mut links: Vec<u32> = find(RTA_OIF).and_then(number).into_iter().collect();
    let mut has_gateway = find(RTA_GATEWAY).is_some();
    let mut hops = find(RTA_MULTIPATH).unwrap_or_default();
    while let Some(hop) = hops.get(..NEXT_HOP_HEADER) {
        links.extend(number(&hop[4..]));
        let len = usize::from(u16::from_ne_bytes([hop[0], hop[1]])).max(NEXT_HOP_HEADER);
        let hop = hops.get(..len).unwrap_or_default();
        has_gateway |= attribute(hop, NEXT_HOP_HEADER, RTA_GATEWAY).is_some();
        hops = hops.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(Route { links, is_default: prefix == 0, has_gateway })
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()),
        _ => None,
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// The value of the first attribute of that type, behind a header of so many bytes.
fn attribute(message: &[u8], header: usize, kind: u16) -> Option<&[u8]> {
    let mut rest = message.get(header..)?;
    while let Some(&[a, b, c, d]) = rest.first_chunk::<4>() {
        let len = usize::from(u16::from_ne_bytes([a, b]));
        let value = rest.get(4..len)?;
        // The two highest bits are flags.
        if u16::from_ne_bytes([c, d]) & 0x3fff == kind {
            return Some(value);
        }
        rest = rest.get(len.next_multiple_of(4)..)?;
    }
    None
}

fn dump(kind: u16, header: &[u8], each: impl FnMut(&[u8])) -> io::Result<()> {
    ask(kind, libc::NLM_F_DUMP, header, each)
}

/// Asks, and hands what follows the header of each message of the answer to `each`.
fn ask(kind: u16, flags: libc::c_int, body: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let (family, kind_of) = (AddressFamily::NETLINK, SocketType::RAW);
    // Protocol 0 is NETLINK_ROUTE.
    let socket = socket_with(family, kind_of, SocketFlags::CLOEXEC, None)?;
    let flags = (flags | libc::NLM_F_REQUEST) as u16;
    let mut request = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    request.extend([kind.to_ne_bytes(), flags.to_ne_bytes()].as_flattened());
    request.extend([0; 8]);
    request.extend(body);
    send(&socket, &request, SendFlags::empty())?;
    let mut buffer = vec![0; LONGEST];
    loop {
        let (_, len) = recv(&socket, &mut buffer[..], RecvFlags::TRUNC)?;
        let mut rest = buffer.get(..len).ok_or(io::ErrorKind::InvalidData)?;
        while let Some(header) = rest.first_chunk::<HEADER>() {
            let len = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
            let body = rest.get(HEADER..len).ok_or(io::ErrorKind::InvalidData)?;
            match libc::c_int::from(u16::from_ne_bytes([header[4], header[5]])) {
                libc::NLMSG_DONE => return Ok(()),
                libc::NLMSG_ERROR => {
                    let errno = number(body).unwrap_or_default().cast_signed();
                    return Err(io::Error::from_raw_os_error(-errno));
                }
                _ => each(body),
            }
            if u16::from_ne_bytes([header[6], header[7]]) & libc::NLM_F_MULTI as u16 == 0 {
                return Ok(());
            }
            rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_among_the_links() {
        let links = links().unwrap();
        let lo = links.iter().find(|link| link.name == "lo").unwrap();
        assert_eq!((lo.index, lo.master, lo.lower), (1, None, None));
        for address in addresses().unwrap() {
            assert!(links.iter().any(|link| link.index == address.link), "{address:?}");
        }
        for route in routes().unwrap() {
            assert!(
                route.links.iter().all(|of| links.iter().any(|link| link.index == *of)),
                "{route:?}"
            );
        }
    }

    #[test]
    fn attributes_are_read_within_their_message() {
        let message = [0, 0, 5, 0, 1, 0, 9, 0, 0, 0, 8, 0, 2, 0x80, 1, 2, 3, 4];
        assert_eq!(attribute(&message, 2, 1), Some(&[9][..]));
        assert_eq!(attribute(&message, 2, 2), Some(&[1, 2, 3, 4][..]));
        for len in 0..message.len() {
            assert_eq!(attribute(&message[..len], 2, 2), None, "{len}");
        }
        // A length of less than its own header ends the search.
        assert_eq!(attribute(&[0, 0, 1, 0, 0, 0, 0, 0], 0, 2), None);
    }
}
