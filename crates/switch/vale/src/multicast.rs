//! IGMP and MLD snooping (RFC 4541): frames for a group of IP go to the ports behind which it has members, and to
//! those of routers.
//!
//! Where hosts are not asked for their groups, or have not had the time to answer, nothing is known of them, and
//! frames for groups are flooded as they are without snooping. So a [querier](Domain) is needed in each VLAN, for
//! IPv4 and for IPv6: a router, another switch, or the switch itself. What holds of a group:
//!
//! | frame | goes to |
//! | --- | --- |
//! | data for a group with members | those, routers, and ports whose hosts have yet to answer |
//! | data for a group without members, for 224.0.0.0/24, for ff02::1 | all |
//! | a query | all; a port that does not get it, for it is isolated as the sender, or by its filter, is not asked |
//! | a report, if there is a querier | routers: hosts that hear another's say nothing themselves |
//!
//! Routers are ports by which queries come, and those that are [said to be](Snooping::set_routers).
//!
//! Ports do not trust each other. What a port says of its groups is about that port alone, but where frames pass
//! between an interface and the host's stack: hosts on one side that hear the other's report of an old version say
//! nothing themselves, so what the one joins the other has joined. Hosts answer each query that is believed; no
//! query makes anything known for a shorter time. A port that is in more groups than
//! [are noted](PER_PORT) gets all of them.

mod message;
mod query;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    hash::{BuildHasher, RandomState},
    net::IpAddr,
};

use ringway_fastpath::VLAN_WORDS;
use ringway_switch_port::{Burst, Frame, HEADER, PortIndex};

use crate::{
    budget::Budget, clock::Millis, function::number_of, lossless_queue::PortSet, vlan::vlan_of,
};
use message::{Change, Kind, LONGEST, Message, PREFIX, Query, Report, is_for_all};
use query::{Asker, INTERVAL, RESPONSE, STARTUP_INTERVAL};

/// Groups that are noted of one port.
const PER_PORT: u16 = 256;

/// VLANs in which routers behind one port are noted, of IPv4 and of IPv6. A port with more is a router's in all.
const ROUTERS_PER_PORT: u16 = 256;

/// A port is in a group so long after it has said so, at least: two queries may be lost.
const MEMBER: Millis = 260_000;

/// Hosts behind a port that has left a group say within this that they are in it: they are asked every second.
const LAST_MEMBER: Millis = 3000;

/// Groups that the hosts behind one port are asked for in a second. Where it has left more, it is in the others
/// until they have been asked for, too.
const LEAVES_AT_ONCE: usize = 32;

/// Queries of the switch's own in a second, but for those for one group: a trunk may be in all VLANs, and a receive
/// ring has room for so many and more. The others come a second later: a round of all VLANs takes half a minute.
const AT_ONCE: usize = 256;

/// How long hosts have to answer at least, however fast a querier wants them to be.
const LEAST_RESPONSE: Millis = 1000;

/// What becomes of frames for groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Multicast {
    /// They go to all.
    #[default]
    Flood,
    /// They go to members alone.
    Snooping,
    /// So they do, and the switch asks hosts for their groups, where no other does.
    Querier,
}

/// What a switch knows of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupEntry {
    /// Hosts in a VLAN are asked for their groups.
    Querier {
        is_v6: bool,
        /// 0: in none.
        vlan: u16,
        /// So long, unless it is heard again.
        seconds: u32,
        /// So long some hosts may take to answer; till then they get all.
        learning: u32,
    },
    /// Queries come by a port.
    Router { is_v6: bool, vlan: u16, port: PortIndex, seconds: u32 },
    /// A port has joined more groups than are noted, or has routers in more VLANs, and gets all.
    Full { port: PortIndex, seconds: u32 },
    /// A port is in a group.
    Member { group: IpAddr, vlan: u16, port: PortIndex, seconds: u32 },
}

/// Some of what a switch knows, and where the rest is.
pub type GroupPage = (Vec<GroupEntry>, Option<usize>);

/// A bit for each VLAN; the first is for frames in none.
pub(crate) type VlanSet = [u64; VLAN_WORDS];

fn is_in(vlans: &VlanSet, vlan: u16) -> bool {
    let word = vlans.get(usize::from(vlan >> 6)).copied().unwrap_or_default();
    word >> (vlan & 63) & 1 != 0
}

/// A VLAN, and whether it is about IPv6.
type DomainKey = (u16, bool);
type GroupKey = (u16, IpAddr);

/// Ports, each for a time.
#[derive(Debug, Default)]
struct Timed {
    set: PortSet,
    until: Vec<(PortIndex, Millis)>,
}

impl Timed {
    /// Has the port until then at least. Returns whether it is new.
    fn insert(&mut self, port: PortIndex, until: Millis) -> bool {
        let place = self.until.iter_mut().find(|(it, _)| *it == port);
        let is_new = place.is_none();
        match place {
            Some((_, known)) => *known = until.max(*known),
            None => self.until.push((port, until)),
        }
        self.set.insert(port);
        is_new
    }

    /// Has the port until then at most.
    fn shorten(&mut self, port: PortIndex, until: Millis) {
        if let Some((_, known)) = self.until.iter_mut().find(|(it, _)| *it == port) {
            *known = until.min(*known);
        }
    }

    fn remove(&mut self, port: PortIndex) {
        if self.set.contains(port) {
            self.set.remove(port);
            self.until.retain(|(it, _)| *it != port);
        }
    }

    /// Keeps some ports.
    fn retain(&mut self, mut is_kept: impl FnMut(PortIndex, Millis) -> bool) {
        let set = &mut self.set;
        self.until.retain(|(port, until)| {
            let is_kept = is_kept(*port, *until);
            if !is_kept {
                set.remove(*port);
            }
            is_kept
        });
    }

    fn first_end(&self) -> Option<Millis> {
        self.until.iter().map(|(_, until)| *until).min()
    }
}

/// A VLAN in which hosts are asked for their groups of IPv4, or of IPv6.
#[derive(Debug)]
struct Domain {
    /// The querier is there so long.
    until: Millis,
    routers: Timed,
    /// Ports whose hosts were not asked since the port has come.
    unasked: PortSet,
    /// Ports whose filter keeps the switch's own queries from their hosts.
    deaf: PortSet,
    /// Those whose hosts may not have answered yet, and when they have.
    asked: PortSet,
    answered: Millis,
    /// Those that have said something of groups since the switch has last asked here, but for what answers that.
    heard: PortSet,
}

/// A VLAN in which the switch asks.
#[derive(Debug)]
struct OwnQuerier {
    next: Millis,
    /// When hosts have answered what it has asked last.
    answered: Millis,
    /// Until then another one has asked those that answer it.
    other: Millis,
    /// It has asked once.
    has_begun: bool,
}

/// The groups of a port.
#[derive(Debug, Default)]
struct PortGroups {
    joined: BTreeSet<GroupKey>,
    /// Those that it has left, although others may be behind it, and whether these were asked.
    leaving: BTreeMap<GroupKey, bool>,
    /// VLANs in which routers behind it are noted.
    routers: u16,
}

/// What the switch is about to ask.
#[derive(Clone, Copy, Debug)]
enum Due {
    /// All hosts.
    General(DomainKey),
    /// Those behind ports that have come since.
    Unasked(DomainKey),
    /// Those behind a port that has left a group.
    Leaving(PortIndex, GroupKey),
}

/// Where a frame goes that is to be flooded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Scope {
    /// `None`: to all.
    pub only: Option<PortSet>,
    /// If it is a query: to be [noted](Snooping::note_heard) when it was flooded.
    pub query: Option<HeardQuery>,
}

/// A query of a router's, or of another switch's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HeardQuery {
    key: DomainKey,
    by: PortIndex,
    query: Query,
}

/// A frame of the switch itself, for these ports.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub to: PortSet,
    pub vlan: u16,
    pub is_v6: bool,
    pub frame: Vec<u8>,
}

/// What is known of groups.
#[derive(Debug)]
pub(crate) struct Snooping {
    domains: BTreeMap<DomainKey, Domain>,
    groups: BTreeMap<GroupKey, Timed>,
    /// By port.
    ports: Box<[PortGroups]>,
    /// Ports with more groups than are noted.
    full: Timed,
    /// Ports with routers in more VLANs than are noted.
    all_routers: Timed,
    /// Ports with routers, whether these ask or not.
    routers: PortSet,
    /// Nothing ends before.
    first_end: Millis,
    /// Where the switch asks, if it does.
    own: BTreeMap<DomainKey, OwnQuerier>,
    /// The same VLANs.
    own_vlans: VlanSet,
    /// There is nothing more to ask before.
    asks_at: Millis,
    /// What is to be asked now. The worker takes it bit by bit.
    queries: VecDeque<Due>,
    asker: Asker,
    /// A message that is looked at, kept for the allocation.
    message: Vec<u8>,
}

impl Snooping {
    pub fn new() -> Snooping {
        let [.., b, c, d, e, f] = RandomState::new().hash_one(0).to_le_bytes();
        Snooping {
            domains: BTreeMap::new(),
            groups: BTreeMap::new(),
            ports: std::iter::repeat_with(PortGroups::default).take(256).collect(),
            full: Timed::default(),
            all_routers: Timed::default(),
            routers: PortSet::default(),
            first_end: Millis::MAX,
            own: BTreeMap::new(),
            own_vlans: [0; VLAN_WORDS],
            asks_at: 0,
            queries: VecDeque::new(),
            // An address of one machine, given by no maker of machines.
            asker: Asker([0x02, b, c, d, e, f]),
            message: Vec::new(),
        }
    }

    /// Where a frame goes that is to be flooded. `beside`: the port that has it already.
    #[inline(never)]
    pub fn scope(
        &mut self,
        frame: &Frame,
        burst: &Burst<'_>,
        beside: Option<PortIndex>,
        now: Millis,
        budget: &mut Budget,
    ) -> Scope {
        let mut query = None;
        let only = self.ports_of(frame, burst, beside, now, budget, &mut query);
        Scope { only, query }
    }

    /// The ports that get it; `None`: all.
    fn ports_of(
        &mut self,
        frame: &Frame,
        burst: &Burst<'_>,
        beside: Option<PortIndex>,
        now: Millis,
        budget: &mut Budget,
        heard: &mut Option<HeardQuery>,
    ) -> Option<PortSet> {
        const IPV4_GROUPS: u64 = 0x5e_0001;
        const IPV6_GROUPS: u64 = 0x3333;
        let to = frame.dst();
        let is_v6 = to & 0xffff == IPV6_GROUPS;
        // Of the fourth byte, the first bit is none of the group's.
        if !is_v6 && to & 0x80ff_ffff != IPV4_GROUPS {
            return None;
        }
        budget.charge_group(0, 0);
        let mut prefix = [0; PREFIX];
        let length = copy(frame, burst, &mut prefix);
        let Kind::Data { group, may_be_message } = message::kind(prefix.get(..length)?) else {
            return None;
        };
        if group.is_ipv6() != is_v6 {
            return None;
        }
        let (vlan, port) = (vlan_of(frame), burst.source.port);
        if may_be_message {
            let length = frame.len as usize;
            if length <= LONGEST {
                let mut bytes = std::mem::take(&mut self.message);
                bytes.resize(length, 0);
                let copied = copy(frame, burst, &mut bytes);
                bytes.truncate(copied);
                budget.charge_group(copied, 0);
                let scope = match message::parse(&bytes) {
                    Some(Message::Query(query)) => {
                        // Its own may come back, by another switch.
                        if frame.src() != number_of(self.asker.0) {
                            *heard = Some(HeardQuery { key: (vlan, is_v6), by: port, query });
                        }
                        Some(None)
                    }
                    Some(Message::Report(report)) => {
                        self.note_report((vlan, is_v6), (port, beside), &report, now, budget);
                        let domain = self.domain((vlan, is_v6), now);
                        Some(domain.map(|domain| self.routers_of(domain)))
                    }
                    None => None,
                };
                self.message = bytes;
                if let Some(scope) = scope {
                    return scope;
                }
            }
        }
        self.members((vlan, group), now)
    }

    /// The ports that get what is for a group; `None`: all.
    fn members(&self, group: GroupKey, now: Millis) -> Option<PortSet> {
        if is_for_all(group.1) {
            return None;
        }
        let domain = self.domain((group.0, group.1.is_ipv6()), now)?;
        let members = self.groups.get(&group)?.set;
        let asked = if now < domain.answered { domain.asked } else { PortSet::default() };
        let routers = self.routers_of(domain);
        let sets = [members, routers, domain.unasked, domain.deaf, asked, self.full.set];
        Some(sets.into_iter().fold(PortSet::default(), PortSet::or))
    }

    /// The ports with routers in a VLAN.
    fn routers_of(&self, domain: &Domain) -> PortSet {
        domain.routers.set.or(self.all_routers.set).or(self.routers)
    }

    /// The VLAN, if there is a querier.
    fn domain(&self, key: DomainKey, now: Millis) -> Option<&Domain> {
        self.domains.get(&key).filter(|domain| now < domain.until)
    }

    /// A query was flooded. `missed`: the ports of its VLAN that did not get it.
    pub fn note_heard(&mut self, heard: HeardQuery, missed: PortSet, now: Millis) {
        let HeardQuery { key, by, query } = heard;
        self.note_query(key, Some(by), query, missed, now);
    }

    /// Whether the switch's own query in a VLAN gets past the filter of a port: if not, nothing is known of its hosts.
    pub fn note_own(&mut self, (vlan, is_v6): DomainKey, port: PortIndex, passes: bool) {
        let Some(domain) = self.domains.get_mut(&(vlan, is_v6)) else { return };
        if passes {
            domain.deaf.remove(port);
        } else {
            domain.deaf.insert(port);
        }
    }

    /// All hosts of a VLAN are asked, by a router behind `port`, or by the switch, but for those behind ports that were
    /// `missed`.
    fn note_query(
        &mut self,
        key: DomainKey,
        port: Option<PortIndex>,
        query: Query,
        missed: PortSet,
        now: Millis,
    ) {
        let Query { response, present } = query;
        let domain = self.domains.entry(key).or_insert_with(|| Domain {
            until: 0,
            routers: Timed::default(),
            unasked: PortSet::all(),
            deaf: PortSet::default(),
            asked: PortSet::default(),
            answered: 0,
            heard: PortSet::default(),
        });
        if domain.until <= now {
            // Nobody was asked for a while.
            domain.unasked = PortSet::all();
        }
        let until = now + present;
        domain.until = domain.until.max(until);
        note_asked(domain, missed, now + response.max(LEAST_RESPONSE), now);
        if !missed.is_empty() {
            // Those alone, if the switch asks.
            domain.unasked = missed;
            self.asks_at = 0;
        }
        if let Some(port) = port {
            let groups = self.ports.get_mut(usize::from(port));
            let has_room = groups.as_ref().is_some_and(|it| it.routers < ROUTERS_PER_PORT);
            if domain.routers.set.contains(port) {
                domain.routers.insert(port, until);
            } else if let Some(groups) = groups.filter(|_| has_room) {
                groups.routers += 1;
                domain.routers.insert(port, until);
            } else {
                self.all_routers.insert(port, until);
            }
            if let Some(own) = self.own.get_mut(&key) {
                own.other = own.other.max(now + present.min(INTERVAL + RESPONSE));
            }
        }
        self.first_end = self.first_end.min(until);
    }

    /// A port has said something of its groups, which the one beside it has heard.
    fn note_report(
        &mut self,
        key: DomainKey,
        (port, beside): (PortIndex, Option<PortIndex>),
        report: &Report<'_>,
        now: Millis,
        budget: &mut Budget,
    ) {
        // In newer versions, hosts report although others have (RFC 3376, 5.2; RFC 3810, 6.2).
        let silenced = beside.filter(|_| matches!(report, Report::One(_, Change::Joins)));
        let answers_switch = self.own.get(&key).is_some_and(|own| now < own.answered);
        if let Some(domain) = self.domains.get_mut(&key).filter(|_| !answers_switch) {
            domain.heard.insert(port);
        }
        // Of a querier that is silent for long, hosts say it as seldom.
        let remaining = self.domain(key, now).map_or(0, |domain| domain.until - now);
        let until = now + MEMBER.max(remaining + RESPONSE);
        let mut records = 0;
        let all = report.each(PER_PORT.into(), |group, change| {
            records += 1;
            if !group.is_multicast() || is_for_all(group) {
                return;
            }
            match change {
                Change::Joins => {
                    self.join((key.0, group), port, until);
                    if let Some(silenced) = silenced {
                        self.join((key.0, group), silenced, until);
                    }
                }
                Change::Leaves => self.leave((key.0, group), port, now),
            }
        });
        if !all {
            self.full.insert(port, until);
        }
        self.first_end = self.first_end.min(until);
        budget.charge_group(0, records);
    }

    fn join(&mut self, group: GroupKey, port: PortIndex, until: Millis) {
        let Some(groups) = self.ports.get_mut(usize::from(port)) else { return };
        if !groups.joined.contains(&group) {
            if groups.joined.len() >= PER_PORT.into() {
                self.full.insert(port, until);
                return;
            }
            groups.joined.insert(group);
        }
        groups.leaving.remove(&group);
        self.groups.entry(group).or_default().insert(port, until);
    }

    fn leave(&mut self, group: GroupKey, port: PortIndex, now: Millis) {
        let Some(groups) = self.ports.get_mut(usize::from(port)) else { return };
        if !groups.joined.contains(&group) {
            return;
        }
        if self.own.contains_key(&(group.0, group.1.is_ipv6())) {
            // It is in the group until others behind it were asked, and had the time to answer.
            groups.leaving.entry(group).or_insert(false);
            self.asks_at = 0;
        } else {
            self.shorten(group, port, now);
        }
    }

    /// Hosts behind a port are asked now whether they are in a group.
    fn shorten(&mut self, group: GroupKey, port: PortIndex, now: Millis) {
        let until = now + LAST_MEMBER;
        if let Some(members) = self.groups.get_mut(&group) {
            members.shorten(port, until);
            self.first_end = self.first_end.min(until);
        }
    }

    /// Other hosts are behind a port than before, or in other VLANs.
    pub fn forget(&mut self, port: PortIndex) {
        let groups = self.ports.get_mut(usize::from(port)).map(std::mem::take);
        for group in groups.into_iter().flat_map(|groups| groups.joined) {
            let Some(members) = self.groups.get_mut(&group) else { continue };
            members.remove(port);
            if members.until.is_empty() {
                self.groups.remove(&group);
            }
        }
        self.full.remove(port);
        self.all_routers.remove(port);
        for domain in self.domains.values_mut() {
            domain.routers.remove(port);
            domain.asked.remove(port);
            domain.heard.remove(port);
            domain.deaf.remove(port);
            domain.unasked.insert(port);
        }
        self.asks_at = 0;
    }

    /// These ports have routers, whether these ask or not.
    pub fn set_routers(&mut self, routers: PortSet) {
        self.routers = routers;
    }

    /// The VLANs in which the switch asks from now on.
    pub fn ask_in(&mut self, vlans: &VlanSet, now: Millis) {
        if self.own_vlans == *vlans {
            return;
        }
        self.own_vlans = *vlans;
        self.own.retain(|(vlan, _), _| is_in(vlans, *vlan));
        let all = (0..=u16::MAX).take(64 * VLAN_WORDS).filter(|vlan| is_in(vlans, *vlan));
        for key in all.flat_map(|vlan| [(vlan, false), (vlan, true)]) {
            self.own.entry(key).or_insert(OwnQuerier {
                next: now,
                answered: 0,
                other: 0,
                has_begun: false,
            });
        }
        self.asks_at = 0;
        // Where the switch does not ask any more, routers do.
        let ports = (0..=PortIndex::MAX).zip(&mut self.ports);
        let left: Vec<_> = ports
            .flat_map(|(port, groups)| {
                let left = groups.leaving.extract_if(.., |(vlan, _), _| !is_in(vlans, *vlan));
                left.map(move |(group, _)| (port, group))
            })
            .collect();
        left.into_iter().for_each(|(port, group)| self.shorten(group, port, now));
    }

    /// When the switch asks next, at the earliest, if it does.
    pub fn deadline(&self, now: Millis) -> Option<Millis> {
        (!self.own.is_empty()).then(|| self.asks_at.max(now + 1))
    }

    /// It is so late, another second than before.
    pub fn tick(&mut self, now: Millis) {
        if self.first_end <= now {
            self.expire(now);
        }
        // What was to be asked a second ago comes first.
        if !self.own.is_empty() && self.asks_at <= now && self.queries.is_empty() {
            self.note_due(now);
        }
    }

    /// 0: in the next second.
    fn next_to_ask(&self) -> Millis {
        let is_unasked = |key| self.domains.get(key).is_some_and(|it| !it.unasked.is_empty());
        let is_left = self.ports.iter().any(|groups| !groups.leaving.is_empty());
        if is_left || self.own.keys().any(is_unasked) {
            return 0;
        }
        self.own.values().map(|own| own.next).min().unwrap_or(Millis::MAX)
    }

    fn expire(&mut self, now: Millis) {
        let ports = &mut self.ports;
        self.groups.retain(|group, members| {
            members.retain(|port, until| {
                let is_kept = now < until;
                if !is_kept && let Some(groups) = ports.get_mut(usize::from(port)) {
                    groups.joined.remove(group);
                    groups.leaving.remove(group);
                }
                is_kept
            });
            !members.until.is_empty()
        });
        self.full.retain(|_, until| now < until);
        self.all_routers.retain(|_, until| now < until);
        self.domains.retain(|_, domain| {
            // No router is there for longer than the querier.
            domain.routers.retain(|port, until| {
                let is_kept = now < until;
                if !is_kept && let Some(groups) = ports.get_mut(usize::from(port)) {
                    groups.routers = groups.routers.saturating_sub(1);
                }
                is_kept
            });
            now < domain.until
        });
        let timed = self.groups.values().chain([&self.full, &self.all_routers]);
        let ends = timed.filter_map(Timed::first_end);
        let domains = self.domains.values();
        let ends =
            ends.chain(domains.flat_map(|it| it.routers.first_end().into_iter().chain([it.until])));
        self.first_end = ends.min().unwrap_or(Millis::MAX);
    }

    /// Notes what is to be asked in this second: so much in all VLANs, and for each port.
    fn note_due(&mut self, now: Millis) {
        // Those that have waited longest, if there are many.
        let mut due: Vec<_> = self.own.iter().filter(|(_, own)| own.next <= now).collect();
        due.sort_by_key(|(_, own)| own.next);
        self.queries.extend(due.into_iter().take(AT_ONCE).map(|(key, _)| Due::General(*key)));
        // Ports that have come since: no other host is asked for them.
        let is_later = |key| self.own.get(key).is_some_and(|own| now < own.next);
        let unasked = self.domains.iter().filter(|(_, domain)| !domain.unasked.is_empty());
        let unasked = unasked.map(|(key, _)| key).filter(|key| is_later(key));
        let room = AT_ONCE - self.queries.len();
        self.queries.extend(unasked.take(room).map(|key| Due::Unasked(*key)));
        for (port, groups) in (0..=PortIndex::MAX).zip(&self.ports) {
            let leaving = groups.leaving.keys().take(LEAVES_AT_ONCE);
            self.queries.extend(leaving.map(|group| Due::Leaving(port, *group)));
        }
        if self.queries.is_empty() {
            self.asks_at = self.next_to_ask();
        }
    }

    /// Whether something is to be asked now.
    pub fn has_queries(&self) -> bool {
        !self.queries.is_empty()
    }

    /// What the switch asks now.
    pub fn next_query(&mut self, now: Millis) -> Option<Outgoing> {
        let mut outgoing = None;
        while outgoing.is_none()
            && let Some(due) = self.queries.pop_front()
        {
            outgoing = match due {
                Due::General(key) => self.ask_all(key, now),
                Due::Unasked(key) => self.ask_unasked(key, now),
                Due::Leaving(port, group) => self.ask_for(port, group, now),
            };
            if self.queries.is_empty() {
                self.asks_at = self.next_to_ask();
            }
        }
        outgoing
    }

    /// Asks all hosts; where another querier is heard, those behind ports that have not answered it: what it sends may be
    /// such as hosts do not believe. Those without groups are asked in vain.
    fn ask_all(&mut self, key: DomainKey, now: Millis) -> Option<Outgoing> {
        let own = self.own.get_mut(&key)?;
        let interval = if own.has_begun { INTERVAL } else { STARTUP_INTERVAL };
        let other_asks = now < own.other;
        let answered = now + RESPONSE;
        *own = OwnQuerier { next: now + interval, answered, has_begun: true, ..*own };
        let query = Query { response: RESPONSE, present: INTERVAL * 2 + RESPONSE / 2 };
        let mut to = PortSet::all();
        if let Some(domain) = self.domains.get_mut(&key) {
            let heard = std::mem::take(&mut domain.heard);
            if other_asks {
                let routers = domain.routers.set.or(self.all_routers.set);
                to = to.without(heard.or(routers)).or(domain.unasked);
            }
        }
        self.note_query(key, None, query, PortSet::default(), now);
        let (vlan, is_v6) = key;
        Some(Outgoing { to, vlan, is_v6, frame: self.asker.general(is_v6) })
    }

    fn ask_unasked(&mut self, key: DomainKey, now: Millis) -> Option<Outgoing> {
        let domain = self.domains.get_mut(&key)?;
        if domain.unasked.is_empty() || !self.own.contains_key(&key) {
            return None;
        }
        let to = domain.unasked;
        note_asked(domain, PortSet::default(), now + RESPONSE, now);
        let (vlan, is_v6) = key;
        Some(Outgoing { to, vlan, is_v6, frame: self.asker.general(is_v6) })
    }

    fn ask_for(&mut self, port: PortIndex, group: GroupKey, now: Millis) -> Option<Outgoing> {
        let is_asked = self.ports.get_mut(usize::from(port))?.leaving.get_mut(&group)?;
        if !std::mem::replace(is_asked, true) {
            self.shorten(group, port, now);
        }
        let (vlan, group) = group;
        let (to, is_v6) = (PortSet::of(port), group.is_ipv6());
        Some(Outgoing { to, vlan, is_v6, frame: self.asker.specific(group) })
    }

    /// What is known, from entry `from` on, some `most`.
    pub fn list(&self, from: usize, most: usize, now: Millis) -> GroupPage {
        let seconds = |until: Millis| until.saturating_sub(now).div_ceil(1000) as u32;
        let domains = self.domains.iter().flat_map(|(&(vlan, is_v6), domain)| {
            let learning = if domain.asked.is_empty() { 0 } else { seconds(domain.answered) };
            let querier =
                GroupEntry::Querier { is_v6, vlan, seconds: seconds(domain.until), learning };
            let routers = domain.routers.until.iter().map(move |&(port, until)| {
                GroupEntry::Router { is_v6, vlan, port, seconds: seconds(until) }
            });
            std::iter::once(querier).chain(routers)
        });
        let full = self.full.until.iter().chain(&self.all_routers.until);
        let full = full.map(|&(port, until)| GroupEntry::Full { port, seconds: seconds(until) });
        let members = self.groups.iter().flat_map(|(&(vlan, group), members)| {
            members.until.iter().map(move |&(port, until)| GroupEntry::Member {
                group,
                vlan,
                port,
                seconds: seconds(until),
            })
        });
        let mut rest = domains.chain(full).chain(members).skip(from);
        let page: Vec<_> = rest.by_ref().take(most).collect();
        let next = rest.next().map(|_| from + page.len());
        (page, next)
    }
}

/// The hosts of all ports that were not asked yet are asked now, but for those behind ports that were `missed`, and have
/// answered by then.
fn note_asked(domain: &mut Domain, missed: PortSet, answered: Millis, now: Millis) {
    let new = std::mem::take(&mut domain.unasked).without(missed);
    if new.is_empty() {
        return;
    }
    if domain.answered <= now {
        (domain.asked, domain.answered) = (new, answered);
    } else {
        (domain.asked, domain.answered) = (domain.asked.or(new), domain.answered.max(answered));
    }
}

/// Copies the first bytes of a frame, without a virtio-net header; returns how many. The header is what was
/// read before: the sender may write to the rest.
fn copy(frame: &Frame, burst: &Burst<'_>, to: &mut [u8]) -> usize {
    let Some((first, others)) = burst.behind_header(frame) else { return 0 };
    let mut at = 0;
    for (buf, length) in std::iter::once(&first).chain(others) {
        let Some(rest) = to.get_mut(at..).filter(|rest| !rest.is_empty()) else { break };
        let length = rest.len().min(*length as usize);
        if let Some(rest) = rest.get_mut(..length) {
            buf.copy_to(length, rest);
        }
        at += length;
    }
    if let (Some(header), true) = (to.get_mut(..HEADER), at >= HEADER) {
        header.copy_from_slice(&frame.header());
    }
    at
}
