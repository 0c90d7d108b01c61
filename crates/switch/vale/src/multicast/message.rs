//! What a frame for a group of IP says to a switch: a message of IGMP (RFC 1112, 2236, 3376) or MLD (RFC 2710,
//! 3810), or data.
//!
//! Hosts and routers believe the same messages: a switch that believed others would think that hosts had been
//! asked, or had answered, although they had not. So what a stack may drop is not believed: addresses that no
//! host has, options other than those that these messages need, and a group's frame by another group's address
//! of Ethernet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ringway_vnet::checksum::{finish, sum};

use crate::clock::Millis;

/// Bytes that are looked at of each frame: up to the destination of IPv6, behind a tag.
pub(crate) const PREFIX: usize = ETHERNET + 4 + 40;

/// Bytes of the longest message: no stack sends a longer one.
pub(crate) const LONGEST: usize = 9216 + ETHERNET + 4;

const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const TAG: [u8; 2] = crate::vlan::TAG;

const IGMP: u8 = 2;
const HOP_BY_HOP: u8 = 0;
const ICMPV6: u8 = 58;
/// Options of IPv6's header for each hop: a byte to fill up, several, and the one by which routers look at a message.
const PAD1: u8 = 0;
const PADN: u8 = 1;
const ROUTER_ALERT: u8 = 5;
/// Bytes that may fill up in a row.
const MOST_PADDING: usize = 7;

/// Options of IPv4: the end of them, a byte to fill up, and that for routers.
const END: u8 = 0;
const NOP: u8 = 1;
const ROUTER_ALERT4: [u8; 4] = [0x94, 4, 0, 0];

/// What hosts have to answer within, and how long a querier is there that says nothing of it.
const RESPONSE: Millis = 10_000;
const PRESENT: Millis = 255_000;
/// Queries that leave hosts longer are not believed: what hosts say meanwhile would be forgotten.
const LONGEST_RESPONSE: Millis = 60_000;
/// However long a querier says that it is silent: with another word, a switch that believed it would trust for an hour
/// in what hosts have not answered.
const LONGEST_PRESENT: Millis = PRESENT;
/// Of a querier, where it says neither.
const ROBUSTNESS: u64 = 2;
const INTERVAL_SECONDS: u64 = 125;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something for this group. It may be a message: [`parse`] says so, of all of its bytes.
    Data { group: IpAddr, may_be_message: bool },
    /// It is for all.
    ForAll,
}

/// A message that a switch believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// All hosts are asked for all groups.
    Query(Query),
    /// A host has joined groups, or left them.
    Report(Report<'a>),
}

/// A general query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    /// Hosts have answered by then.
    pub response: Millis,
    /// The querier is there so long, unless it is heard again.
    pub present: Millis,
}

/// What a host says of its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report<'a> {
    /// It is in this group, or is not any more.
    One(IpAddr, Change),
    /// Records, of as many as it says.
    Many { is_v6: bool, count: u16, records: &'a [u8] },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Joins,
    Leaves,
}

/// What a frame is by its first [`PREFIX`] bytes, or fewer if there are no more.
pub(crate) fn kind(prefix: &[u8]) -> Kind {
    let of = || {
        let (protocol, ip) = network(prefix)?;
        let (group, may_be_message) = match protocol {
            IPV4 => {
                let to: [u8; 4] = *ip.get(16..)?.first_chunk()?;
                (IpAddr::from(to), *ip.get(9)? == IGMP)
            }
            _ => {
                let to: [u8; 16] = *ip.get(24..)?.first_chunk()?;
                (IpAddr::from(to), *ip.get(6)? == HOP_BY_HOP)
            }
        };
        group.is_multicast().then_some(Kind::Data { group, may_be_message })
    };
    of().unwrap_or(Kind::ForAll)
}

/// Whether what is for a group goes to all: its members do not say that they are in it (RFC 4541, 2.1.2 and 3).
pub(crate) fn is_for_all(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets().starts_with(&[224, 0, 0]),
        // Those of one machine, and all nodes of the link.
        IpAddr::V6(group) => {
            group.segments().first().is_some_and(|first| first & 0xf <= 1)
                || group == Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)
        }
    }
}

/// The message that a frame is, if hosts and routers believe it.
pub(crate) fn parse(frame: &[u8]) -> Option<Message<'_>> {
    let to = frame.first_chunk::<6>()?;
    match network(frame)? {
        (IPV4, ip) => igmp(*to, ip),
        (_, ip) => mld(*to, ip),
    }
}

/// The address of Ethernet that frames for a group have (RFC 1112, 6.4; RFC 2464, 7).
pub(crate) fn ethernet_of(group: IpAddr) -> [u8; 6] {
    match group {
        IpAddr::V4(group) => {
            let [_, b, c, d] = group.octets();
            [1, 0, 0x5e, b & 0x7f, c, d]
        }
        IpAddr::V6(group) => {
            let [.., c, d, e, f] = group.octets();
            [0x33, 0x33, c, d, e, f]
        }
    }
}

/// The protocol, IPv4 or IPv6, and what is behind the Ethernet header and perhaps a tag.
fn network(frame: &[u8]) -> Option<([u8; 2], &[u8])> {
    let mut rest = frame.get(12..)?;
    if rest.starts_with(&TAG) {
        rest = rest.get(4..)?;
    }
    let (protocol, ip) = rest.split_first_chunk::<2>()?;
    let version = match *protocol {
        IPV4 => 4,
        IPV6 => 6,
        _ => return None,
    };
    (ip.first()? >> 4 == version).then_some((*protocol, ip))
}

fn igmp(ethernet: [u8; 6], ip: &[u8]) -> Option<Message<'_>> {
    let header = ip.get(..usize::from(ip.first()? & 0xf) * 4)?;
    let length = usize::from(word(header, 2)?);
    // More fragments, and the place of this one.
    let is_whole = word(header, 6)? & 0x3fff == 0;
    let message = ip.get(header.len()..length)?;
    if !is_whole || *header.get(9)? != IGMP || !is_sound(header) || !is_sound(message) {
        return None;
    }
    let [from, to] = [12, 16].map(|at| address4(header, at));
    let (from, to) = (from?, to?);
    if ethernet != ethernet_of(to.into()) || !may_be_a_host(from) || !has_plain_options(header) {
        return None;
    }
    let group = address4(message, 4)?;
    let one = |change| Some(Message::Report(Report::One(group.into(), change)));
    match message.first()? {
        0x11 => {
            let is_general = group.is_unspecified() && to == Ipv4Addr::new(224, 0, 0, 1);
            let is_for_link = *header.get(8)? == 1;
            let code = *message.get(1)?;
            let query = match message.get(8..)? {
                // Without sources.
                [flags, interval, 0, 0, ..] => {
                    Query::of(floating(code.into(), 7) * 100, *flags, *interval)?
                }
                [] if code == 0 => Query::silent(RESPONSE)?,
                [] => Query::silent(Millis::from(code) * 100)?,
                _ => return None,
            };
            (is_general && is_for_link).then_some(Message::Query(query))
        }
        0x12 | 0x16 => one(Change::Joins),
        0x17 => one(Change::Leaves),
        0x22 => many(false, message),
        _ => None,
    }
}

fn mld(ethernet: [u8; 6], ip: &[u8]) -> Option<Message<'_>> {
    let (header, rest) = ip.split_first_chunk::<40>()?;
    let rest = rest.get(..word(header, 4)?.into())?;
    if *header.get(6)? != HOP_BY_HOP || *rest.first()? != ICMPV6 {
        return None;
    }
    let (options, message) = rest.split_at_checked((usize::from(*rest.get(1)?) + 1) * 8)?;
    let [from, to] = [8, 24].map(|at| address(header, at));
    let (from, to) = (from?, to?);
    if icmpv6_checksum(from, to, message) != [0; 2] || !alerts_routers(options) {
        return None;
    }
    // A host that has no address yet says which groups it is in (RFC 3810, 5.2.13).
    let may_be_a_host = from.is_unicast_link_local() || from.is_unspecified();
    if ethernet != ethernet_of(to.into()) || !may_be_a_host {
        return None;
    }
    let group = address(message, 8);
    let one = |change| Some(Message::Report(Report::One(group?.into(), change)));
    match message.first()? {
        130 => {
            let is_general =
                group?.is_unspecified() && to == Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
            let is_for_link = *header.get(7)? == 1 && from.is_unicast_link_local();
            let code = word(message, 4)?;
            let query = match message.get(24..)? {
                [flags, interval, 0, 0, ..] => {
                    Query::of(floating(code.into(), 15), *flags, *interval)?
                }
                [] => Query::silent(code.into())?,
                _ => return None,
            };
            (is_general && is_for_link).then_some(Message::Query(query))
        }
        131 => one(Change::Joins),
        132 => one(Change::Leaves),
        143 => many(true, message),
        _ => None,
    }
}

fn many(is_v6: bool, message: &[u8]) -> Option<Message<'_>> {
    let count = word(message, 6)?;
    Some(Message::Report(Report::Many { is_v6, count, records: message.get(8..)? }))
}

impl Query {
    /// Of a querier that says how often it asks.
    fn of(response: Millis, flags: u8, interval: u8) -> Option<Query> {
        let robustness = match flags & 7 {
            0 => ROBUSTNESS,
            said => said.into(),
        };
        let seconds = match interval {
            0 => INTERVAL_SECONDS,
            said => floating(said.into(), 7),
        };
        let present = (robustness * seconds * 1000 + response / 2).min(LONGEST_PRESENT);
        Query::believed(Query { response, present })
    }

    /// Of a querier that does not.
    fn silent(response: Millis) -> Option<Query> {
        Query::believed(Query { response, present: PRESENT })
    }

    fn believed(query: Query) -> Option<Query> {
        (query.response <= LONGEST_RESPONSE).then_some(query)
    }
}

impl Report<'_> {
    /// What it says of each group, of `most` groups. Returns whether that is all.
    pub fn each(&self, most: usize, mut change: impl FnMut(IpAddr, Change)) -> bool {
        let (is_v6, count, mut rest) = match *self {
            Report::One(group, what) => {
                change(group, what);
                return true;
            }
            Report::Many { is_v6, count, records } => (is_v6, count, records),
        };
        for _ in 0..usize::from(count).min(most) {
            let Some((group, what, behind)) = record(is_v6, rest) else { return true };
            if let Some(what) = what {
                change(group, what);
            }
            rest = behind;
        }
        usize::from(count) <= most
    }
}

/// A record: the group, what becomes of it, and what is behind.
fn record(is_v6: bool, from: &[u8]) -> Option<(IpAddr, Option<Change>, &[u8])> {
    let (head, rest) = from.split_first_chunk::<4>()?;
    let [kind, words, ..] = *head;
    let sources = usize::from(word(head, 2)?);
    let (group, rest, size) = if is_v6 {
        let (group, rest) = rest.split_first_chunk::<16>()?;
        (IpAddr::from(*group), rest, 16)
    } else {
        let (group, rest) = rest.split_first_chunk::<4>()?;
        (IpAddr::from(*group), rest, 4)
    };
    let behind = rest.get(sources * size + usize::from(words) * 4..)?;
    // Sources are not told apart: a host that wants some gets all.
    let what = match kind {
        2 | 4 => Some(Change::Joins),
        1 | 3 | 5 if sources > 0 => Some(Change::Joins),
        3 => Some(Change::Leaves),
        _ => None,
    };
    Some((group, what, behind))
}

/// Whether a header for each hop has the option by which routers look at a message, and no other: hosts drop a packet
/// with some of those that they do not know, or with more padding than is of use.
fn alerts_routers(header: &[u8]) -> bool {
    let of = || {
        let (mut rest, mut alerts, mut padding) = (header.get(2..)?, 0, 0);
        while let Some((kind, behind)) = rest.split_first() {
            if *kind == PAD1 {
                (rest, padding) = (behind, padding + 1);
            } else {
                let (length, behind) = behind.split_first()?;
                let (content, behind) = behind.split_at_checked(usize::from(*length))?;
                match *kind {
                    PADN if content.iter().all(|byte| *byte == 0) => padding += 2 + content.len(),
                    ROUTER_ALERT if content == [0, 0] => (alerts, padding) = (alerts + 1, 0),
                    _ => return None,
                }
                rest = behind;
            }
            if padding > MOST_PADDING {
                return None;
            }
        }
        Some(alerts == 1)
    };
    of().unwrap_or(false)
}

/// Whether IPv4's header has at most the option for routers.
fn has_plain_options(header: &[u8]) -> bool {
    let mut rest = header.get(20..).unwrap_or_default();
    loop {
        rest = match rest {
            [] | [END, ..] => return true,
            [NOP, behind @ ..] => behind,
            [a, b, c, d, behind @ ..] if [*a, *b, *c, *d] == ROUTER_ALERT4 => behind,
            _ => return false,
        }
    }
}

/// Whether stacks take packets from there: a host's address, or 0.0.0.0, as of a host that has none yet (RFC 4541, 2.1.1).
fn may_be_a_host(from: Ipv4Addr) -> bool {
    let [first, ..] = from.octets();
    from.is_unspecified() || !(matches!(first, 0 | 127) || first >= 224)
}

fn address4(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    bytes.get(at..)?.first_chunk::<4>().map(|address| Ipv4Addr::from(*address))
}

fn address(bytes: &[u8], at: usize) -> Option<Ipv6Addr> {
    bytes.get(at..)?.first_chunk::<16>().map(|address| Ipv6Addr::from(*address))
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
}

/// A code of so many bits and one (RFC 3376, 4.1.1; RFC 3810, 5.1.3): a number, or a mantissa and an exponent.
fn floating(code: u64, bits: u32) -> u64 {
    if code >> bits == 0 {
        return code;
    }
    let mantissa_bits = bits - 3;
    let mantissa = code & ((1 << mantissa_bits) - 1) | 1 << mantissa_bits;
    mantissa << ((code >> mantissa_bits & 7) + 3)
}

/// The checksum of a message of ICMPv6 between these addresses: 0 if the message has the right one in it already.
pub(crate) fn icmpv6_checksum(from: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> [u8; 2] {
    let [length, protocol] = [message.len() as u32, ICMPV6.into()].map(u32::to_be_bytes);
    let parts = [&from.octets()[..], &to.octets(), &length, &protocol, message];
    finish(parts.into_iter().map(sum).sum())
}

/// Whether bytes that have their checksum in them have the right one.
fn is_sound(bytes: &[u8]) -> bool {
    finish(sum(bytes)) == [0; 2]
}
