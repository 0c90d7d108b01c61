//! Rules for packets between two ends, in both directions: one look finds the rule.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Action, Looked, Outlet, Transmission, Verdict, hash_filtering_rule_stats};
use crate::abi::{ip_addr, pkt_parsing_info};

/// Which packets a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    vlan: u16,
    version: u8,
    proto: u8,
    /// In one order, whatever the direction.
    ends: [(ip_addr, u16); 2],
}

impl Key {
    pub fn new(
        vlan: u16,
        version: u8,
        proto: u8,
        hosts: [ip_addr; 2],
        [one, other]: [u16; 2],
    ) -> Key {
        let mut ends = [(hosts[0], one), (hosts[1], other)];
        if version == 4 {
            // What is behind an IPv4 address is no part of it.
            ends.iter_mut().for_each(|(address, _)| address[4..].fill(0));
        }
        ends.sort_unstable();
        Key { vlan, version, proto, ends }
    }

    fn of(info: &pkt_parsing_info) -> Key {
        let (hosts, ports) = ([info.ip_src, info.ip_dst], [info.l4_src_port, info.l4_dst_port]);
        Key::new(info.vlan_id, info.ip_version, info.l3_proto, hosts, ports)
    }
}

struct Rule {
    action: Action,
    outlet: Option<Arc<Outlet>>,
    stats: hash_filtering_rule_stats,
    used: Instant,
}

/// All rules of a ring that have an end on either side.
#[derive(Default)]
pub struct Table {
    rules: HashMap<Key, Rule>,
    /// A rule was ever added.
    pub exists: bool,
    pub matched: u64,
    pub missed: u64,
    pub filtered: u64,
}

impl Table {
    /// Whether there was no such rule yet.
    pub fn add(&mut self, key: Key, action: Action, outlet: Option<Arc<Outlet>>) -> bool {
        self.exists = true;
        let Entry::Vacant(place) = self.rules.entry(key) else { return false };
        let stats = hash_filtering_rule_stats::default();
        place.insert(Rule { action, outlet, stats, used: Instant::now() });
        true
    }

    /// Whether there was one.
    pub fn remove(&mut self, key: &Key) -> bool {
        self.rules.remove(key).is_some()
    }

    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Removes what has matched nothing for so long.
    pub fn purge(&mut self, idle: Duration) {
        self.rules.retain(|_, rule| rule.used.elapsed() <= idle);
    }

    pub fn stats(&self, key: &Key) -> Option<hash_filtering_rule_stats> {
        let rule = self.rules.get(key)?;
        let inactivity = u32::try_from(rule.used.elapsed().as_secs()).unwrap_or(u32::MAX);
        Some(hash_filtering_rule_stats { inactivity, ..rule.stats })
    }

    /// From now on packets as this one are taken.
    pub fn forward(&mut self, packet: &Looked<'_>) {
        self.add(Key::of(packet.info), Action::Forward, None);
    }

    /// Whether a rule decides.
    pub fn judge(&mut self, packet: &Looked<'_>, sampling: u32, verdict: &mut Verdict) -> bool {
        if !self.exists {
            return false;
        }
        let Some(rule) = self.rules.get_mut(&Key::of(packet.info)) else {
            self.missed += 1;
            return false;
        };
        rule.used = packet.now;
        rule.stats.matched += 1;
        let decides = match rule.action {
            Action::Forward | Action::ForwardAndAdd => {
                verdict.takes = true;
                true
            }
            Action::Drop | Action::Stop => {
                verdict.takes = false;
                true
            }
            Action::Continue => {
                verdict.takes = false;
                self.missed += 1;
                return false;
            }
            Action::Transmit { bounce, go_on } => {
                verdict.takes = false;
                verdict.transmissions.push(Transmission { outlet: rule.outlet.clone(), bounce });
                !go_on
            }
        };
        self.matched += 1;
        // Of those that are dropped, some may be wanted all the same.
        let round = u64::from(sampling).saturating_mul(10);
        if decides && !verdict.takes && sampling > 0 && rule.stats.matched % round < 10 {
            verdict.takes = true;
        }
        match verdict.takes {
            true => rule.stats.match_forward += 1,
            false => {
                rule.stats.filtered += 1;
                self.filtered += 1;
            }
        }
        decides
    }
}
