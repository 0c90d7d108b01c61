//! Rules with wildcards: looked at one by one, by their numbers.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    AUTO_RULE_ID, Action, Looked, Outlet, TUNNEL_ID_FLAG, Transmission, Verdict, filtering_rule,
};
use crate::abi::{ip_addr, pkt_parsing_info};

const TCP: u8 = 6;

struct Rule {
    rule: filtering_rule,
    action: Action,
    outlet: Option<Arc<Outlet>>,
    used: Instant,
}

/// All of a ring's.
#[derive(Default)]
pub struct List(Vec<Rule>);

impl List {
    /// Whether there was no rule of that number; one that asks for a number gets the first that is free.
    pub fn add(
        &mut self,
        mut rule: filtering_rule,
        action: Action,
        outlet: Option<Arc<Outlet>>,
    ) -> bool {
        if rule.rule_id == AUTO_RULE_ID {
            let numbers = 0..AUTO_RULE_ID;
            let Some(free) = numbers.into_iter().find(|id| self.place(*id).is_err()) else {
                return false;
            };
            rule.rule_id = free;
        }
        if rule.balance_id > rule.balance_pool {
            rule.balance_id = 0;
        }
        match self.place(rule.rule_id) {
            Ok(_) => false,
            Err(place) => {
                self.0.insert(place, Rule { rule, action, outlet, used: Instant::now() });
                true
            }
        }
    }

    fn place(&self, id: u16) -> Result<usize, usize> {
        self.0.binary_search_by_key(&id, |rule| rule.rule.rule_id)
    }

    /// Whether there was one.
    pub fn remove(&mut self, id: u16) -> bool {
        self.place(id).map(|place| self.0.remove(place)).is_ok()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes what has matched nothing for so long, and is not locked.
    pub fn purge(&mut self, idle: Duration) {
        self.0.retain(|rule| rule.rule.locked != 0 || rule.used.elapsed() <= idle);
    }

    /// Goes through the rules; whether one says that packets as this one are to be taken from now on.
    pub fn judge(&mut self, packet: &Looked<'_>, hash: u32, verdict: &mut Verdict) -> bool {
        for rule in &mut self.0 {
            if !matches(&rule.rule, packet, hash) {
                continue;
            }
            rule.used = packet.now;
            verdict.rule_id = Some(rule.rule.rule_id);
            match rule.action {
                Action::Forward => verdict.takes = true,
                Action::ForwardAndAdd => {
                    verdict.takes = true;
                    return true;
                }
                Action::Drop => verdict.takes = false,
                Action::Stop => {}
                Action::Continue => continue,
                Action::Transmit { bounce, go_on } => {
                    let outlet = rule.outlet.clone();
                    verdict.transmissions.push(Transmission { outlet, bounce });
                    verdict.takes = go_on;
                    if go_on {
                        continue;
                    }
                }
            }
            return false;
        }
        false
    }
}

/// Whether a rule is for a packet: what is 0 in it is for all.
fn matches(rule: &filtering_rule, packet: &Looked<'_>, hash: u32) -> bool {
    let (core, info) = (rule.core, packet.info);
    let any_or = |wanted: u32, is: u32| wanted == 0 || wanted == is;
    let is_asked = (info.l3_proto != TCP || any_or(core.tcp_flags.into(), info.tcp_flags.into()))
        && (core.if_index == 0 || { core.if_index } == packet.if_index)
        && any_or({ core.vlan_id }.into(), { info.vlan_id }.into())
        && any_or({ core.eth_type }.into(), { info.eth_type }.into())
        && any_or(core.proto.into(), info.l3_proto.into());
    if !is_asked || !in_tunnel(rule, info) {
        return false;
    }
    let there = Sides {
        macs: [info.smac, info.dmac],
        hosts: [info.ip_src, info.ip_dst],
        ports: [info.l4_src_port, info.l4_dst_port],
    };
    let is_back = || rule.bidirectional != 0 && there.back().matches(rule, info);
    if !(there.matches(rule, info) || is_back()) {
        return false;
    }
    if rule.balance_pool > 0 && hash % u32::from(rule.balance_pool) != rule.balance_id.into() {
        return false;
    }
    has_payload(&rule.payload_pattern, packet)
}

/// As the reference has it: the outer source is held against the rule's destination, and the other way round.
fn in_tunnel(rule: &filtering_rule, info: &pkt_parsing_info) -> bool {
    let (tunnel, version) = (rule.tunnel, info.ip_version);
    (rule.optional_fields & TUNNEL_ID_FLAG == 0 || { tunnel.id } == { info.tunnel.id })
        && is_within(version, &info.ip_src, &tunnel.dhost, &tunnel.dhost_mask)
        && is_within(version, &info.ip_dst, &tunnel.shost, &tunnel.shost_mask)
}

/// Whether an address is in a network. Without a mask all are.
fn is_within(version: u8, address: &ip_addr, host: &ip_addr, mask: &ip_addr) -> bool {
    let first = |bytes: &ip_addr| bytes[..4] != [0; 4];
    let count = match version {
        6 if !first(mask) => return true,
        6 => 16,
        _ => 4,
    };
    (0..count).all(|at| address[at] & mask[at] == host[at] & mask[at])
}

/// What differs by the direction: the source first.
struct Sides {
    macs: [[u8; 6]; 2],
    hosts: [ip_addr; 2],
    ports: [u16; 2],
}

impl Sides {
    fn back(&self) -> Sides {
        let Sides { macs: [a, b], hosts: [c, d], ports: [e, f] } = *self;
        Sides { macs: [b, a], hosts: [d, c], ports: [f, e] }
    }

    fn matches(&self, rule: &filtering_rule, info: &pkt_parsing_info) -> bool {
        let core = rule.core;
        let is_mac = |wanted: [u8; 6], is: [u8; 6]| wanted == [0; 6] || wanted == is;
        let is_port = |low: u16, high: u16, is: u16| high == 0 || (low..=high).contains(&is);
        let version = info.ip_version;
        is_mac(core.smac, self.macs[0])
            && is_mac(core.dmac, self.macs[1])
            && is_within(version, &self.hosts[0], &core.shost, &core.shost_mask)
            && is_within(version, &self.hosts[1], &core.dhost, &core.dhost_mask)
            && is_port(core.sport_low, core.sport_high, self.ports[0])
            && is_port(core.dport_low, core.dport_high, self.ports[1])
    }
}

/// Whether one of the texts between bars is in the payload, in upper or lower case.
fn has_payload(pattern: &[u8; 32], packet: &Looked<'_>) -> bool {
    let pattern = pattern.split(|byte| *byte == 0).next().unwrap_or_default();
    if pattern.is_empty() {
        return true;
    }
    let start = usize::try_from(packet.info.offset.payload).unwrap_or(0);
    let payload = packet.bytes.get(start..).filter(|_| start > 0).unwrap_or_default();
    let mut texts = pattern.split(|byte| *byte == b'|').filter(|text| !text.is_empty());
    texts.any(|text| payload.windows(text.len()).any(|part| part.eq_ignore_ascii_case(text)))
}
