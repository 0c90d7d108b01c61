//! Veth pairs, and the addresses and routes of their ends.

use std::{io, net::IpAddr, ops::RangeInclusive};

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    address::{AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, AddressScope},
    link::{
        AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoKind, InfoVeth, LinkAttribute,
        LinkFlags, LinkInfo, LinkMessage,
    },
    route::{
        RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
        RouteScope, RouteType,
    },
};
use rustix::fd::{AsRawFd, BorrowedFd};

use crate::{mac::Mac, netlink::Netlink};

/// MTUs that the kernel gives an interface, what a pair has without a word, and the least for IPv6.
pub const MTUS: RangeInclusive<u32> = 68..=65535;
pub const USUAL_MTU: u32 = 1500;
pub const LEAST_MTU_OF_IPV6: u32 = 1280;
pub const WHICH_MTUS: &str = "an MTU is at least 68, or 1280 with IPv6, and at most 65535";

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    pub name: String,
    /// A text of its maker's (`ip link set alias`).
    pub alias: String,
    pub mac: Option<Mac>,
    pub mtu: u32,
    pub is_up: bool,
}

/// A pair to be made.
pub struct Pair<'a> {
    /// The end in this namespace.
    pub here: &'a str,
    pub there: &'a str,
    /// Where the other end is, if it is not here.
    pub netns: Option<BorrowedFd<'a>>,
    /// Of both ends, in bytes.
    pub mtu: Option<u32>,
    /// Of the other end.
    pub mac: Option<Mac>,
}

/// A route of the main table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    pub destination: Option<IpNet>,
    pub gateway: Option<IpAddr>,
    pub mtu: Option<u32>,
    pub advmss: Option<u32>,
    pub metric: Option<u32>,
    pub table: Option<u32>,
    /// `RT_SCOPE_*`.
    pub scope: Option<u8>,
}

impl Pair<'_> {
    /// Makes it: both ends are down. EEXIST: a name is taken.
    pub fn make(&self, netlink: &Netlink) -> io::Result<()> {
        let end = |name: &str| {
            let mut end = LinkMessage::default();
            end.attributes.push(LinkAttribute::IfName(name.into()));
            end.attributes.extend(self.mtu.map(LinkAttribute::Mtu));
            end
        };
        let (mut here, mut there) = (end(self.here), end(self.there));
        let netns = self.netns.map(|netns| LinkAttribute::NetNsFd(netns.as_raw_fd()));
        there.attributes.extend(netns);
        there.attributes.extend(self.mac.map(|mac| LinkAttribute::Address(mac.0.to_vec())));
        here.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(there))),
        ]));
        netlink.change(RouteNetlinkMessage::NewLink(here), NLM_F_CREATE | NLM_F_EXCL)
    }
}

/// All interfaces of the namespace.
pub fn links(netlink: &Netlink) -> io::Result<Vec<Link>> {
    let all = netlink.all(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
    Ok(all.into_iter().filter_map(link).collect())
}

/// The interface of that name, if there is one.
pub fn find(netlink: &Netlink, name: &str) -> io::Result<Option<Link>> {
    let mut question = LinkMessage::default();
    question.attributes.push(LinkAttribute::IfName(name.into()));
    match netlink.ask(RouteNetlinkMessage::GetLink(question)) {
        Ok(answer) => Ok(answer.and_then(link)),
        Err(e) if is(&e, rustix::io::Errno::NODEV) => Ok(None),
        Err(e) => Err(e),
    }
}

fn link(answer: RouteNetlinkMessage) -> Option<Link> {
    let RouteNetlinkMessage::NewLink(LinkMessage { header, attributes, .. }) = answer else {
        return None;
    };
    let mut link = Link {
        index: header.index,
        name: String::new(),
        alias: String::new(),
        mac: None,
        mtu: 0,
        is_up: header.flags.contains(LinkFlags::Up),
    };
    for attribute in attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name = name,
            LinkAttribute::IfAlias(alias) => link.alias = alias,
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::Address(mac) => link.mac = mac.try_into().ok().map(Mac),
            _ => {}
        }
    }
    Some(link)
}

fn about(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

/// Removes an interface, and the other end with it.
pub fn remove(netlink: &Netlink, index: u32) -> io::Result<()> {
    netlink.change(RouteNetlinkMessage::DelLink(about(index)), 0)
}

pub fn set_alias(netlink: &Netlink, index: u32, alias: &str) -> io::Result<()> {
    let mut message = about(index);
    message.attributes.push(LinkAttribute::IfAlias(alias.into()));
    netlink.change(RouteNetlinkMessage::SetLink(message), 0)
}

/// The stack makes no IPv6 address for it by itself, and so says nothing on it.
pub fn silence(netlink: &Netlink, index: u32) -> io::Result<()> {
    let mut message = about(index);
    let none = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
    message.attributes.push(LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![none])]));
    match netlink.change(RouteNetlinkMessage::SetLink(message), 0) {
        // A kernel without IPv6 is silent enough.
        Err(e) if is(&e, rustix::io::Errno::AFNOSUPPORT) => Ok(()),
        result => result,
    }
}

pub fn set_up(netlink: &Netlink, index: u32) -> io::Result<()> {
    let mut message = about(index);
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    netlink.change(RouteNetlinkMessage::SetLink(message), 0)
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// Gives an interface an address, which is usable at once: IPv6 does not look for another user of it first.
/// EEXIST: it has it.
pub fn add_address(netlink: &Netlink, index: u32, address: IpNet) -> io::Result<()> {
    let mut message = AddressMessage::default();
    message.header.index = index;
    message.header.family = family(address.addr());
    message.header.prefix_len = address.prefix_len();
    message.header.scope = AddressScope::Universe;
    let own = address.addr();
    message.attributes.extend([AddressAttribute::Local(own), AddressAttribute::Address(own)]);
    match address {
        IpNet::V4(net) => message.attributes.push(AddressAttribute::Broadcast(net.broadcast())),
        IpNet::V6(_) => {
            message.header.flags = AddressHeaderFlags::Nodad;
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
    }
    netlink.change(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
}

/// The addresses of an interface.
pub fn addresses(netlink: &Netlink, index: u32) -> io::Result<Vec<IpNet>> {
    let all = netlink.all(RouteNetlinkMessage::GetAddress(AddressMessage::default()))?;
    let of_it = all.into_iter().filter_map(|answer| match answer {
        RouteNetlinkMessage::NewAddress(address) if address.header.index == index => Some(address),
        _ => None,
    });
    let address = |message: AddressMessage| {
        let of = |attribute: &AddressAttribute| match attribute {
            AddressAttribute::Local(address) => Some((0, *address)),
            AddressAttribute::Address(address) => Some((1, *address)),
            _ => None,
        };
        // Of a point-to-point link the second is the peer's.
        let (_, address) = message.attributes.iter().filter_map(of).min_by_key(|found| found.0)?;
        IpNet::new(address, message.header.prefix_len).ok()
    };
    Ok(of_it.filter_map(address).collect())
}

/// Adds a route by an interface. EEXIST: there is such a route.
pub fn add_route(netlink: &Netlink, index: u32, hop: &Hop) -> io::Result<()> {
    let mut message = RouteMessage::default();
    let of = hop.destination.map(|net| net.addr()).or(hop.gateway);
    message.header.address_family = of.map_or(AddressFamily::Inet, family);
    message.header.protocol = RouteProtocol::Boot;
    message.header.kind = RouteType::Unicast;
    message.header.scope = match (hop.scope, hop.gateway) {
        (Some(scope), _) => RouteScope::from(scope),
        (None, Some(_)) => RouteScope::Universe,
        (None, None) => RouteScope::Link,
    };
    match hop.table.map(u8::try_from) {
        None => message.header.table = RouteHeader::RT_TABLE_MAIN,
        Some(Ok(table)) => message.header.table = table,
        Some(Err(_)) => message.attributes.extend(hop.table.map(RouteAttribute::Table)),
    }
    if let Some(net) = hop.destination.filter(|net| net.prefix_len() > 0) {
        message.header.destination_prefix_length = net.prefix_len();
        message.attributes.push(RouteAttribute::Destination(net.network().into()));
    }
    message.attributes.extend(hop.gateway.map(|ip| RouteAttribute::Gateway(ip.into())));
    message.attributes.push(RouteAttribute::Oif(index));
    message.attributes.extend(hop.metric.map(RouteAttribute::Priority));
    let metrics = [hop.mtu.map(RouteMetric::Mtu), hop.advmss.map(RouteMetric::Advmss)];
    let metrics: Vec<_> = metrics.into_iter().flatten().collect();
    if !metrics.is_empty() {
        message.attributes.push(RouteAttribute::Metrics(metrics));
    }
    netlink.change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
}

/// The routes by an interface: where to, and by which gateway.
pub fn routes(netlink: &Netlink, index: u32) -> io::Result<Vec<(IpNet, Option<IpAddr>)>> {
    let all = netlink.all(RouteNetlinkMessage::GetRoute(RouteMessage::default()))?;
    let route = |answer| {
        let RouteNetlinkMessage::NewRoute(RouteMessage { header, attributes, .. }) = answer else {
            return None;
        };
        let any: IpAddr = match header.address_family {
            AddressFamily::Inet => [0; 4].into(),
            AddressFamily::Inet6 => [0; 16].into(),
            _ => return None,
        };
        let (mut destination, mut gateway, mut is_of_it) = (any, None, false);
        for attribute in attributes {
            match attribute {
                RouteAttribute::Destination(to) => destination = ip(to)?,
                RouteAttribute::Gateway(by) => gateway = ip(by),
                RouteAttribute::Oif(link) => is_of_it = link == index,
                _ => {}
            }
        }
        let net = IpNet::new(destination, header.destination_prefix_length).ok()?;
        is_of_it.then_some((net, gateway))
    };
    Ok(all.into_iter().filter_map(route).collect())
}

fn ip(address: RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(v4) => Some(v4.into()),
        RouteAddress::Inet6(v6) => Some(v6.into()),
        _ => None,
    }
}

/// Whether the kernel's answer is that errno.
pub fn is(error: &io::Error, errno: rustix::io::Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}
