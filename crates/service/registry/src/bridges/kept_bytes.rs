//! How much of what users have chosen for ports and mirrors the file of the [state](crate::Lasting) has to take.
//!
//! A daemon writes it in its loop, and reads it when it starts: it has an end, and so has the part of each account.

use std::sync::Arc;

use ringway_proto::{Error, Filter, Result, SourceAddresses, Vlan};
use ringway_switch_port::PortIndex;
use ringway_vale::{PortConfig, PortFilter};

use super::{BridgeEntry, Bridges, PortEntry};
use crate::{
    compact::{filter_bytes, vlan_bytes},
    lasting::{LastingMirror, LastingSettings, LastingSwitch},
};

/// What all users have together, in shares: there may be any number of accounts. Root has as many.
const SHARES: usize = 8;

/// Of the keys and the numbers of one port or mirror, and its name.
const NUMBERS: usize = 1200;
const MAC: usize = 32;
/// A name of 63 printable characters, of which each may take two bytes in JSON.
const NAME: usize = 130;

/// Bytes that the settings of a port take at most.
fn of_config(config: &PortConfig) -> usize {
    let allowed = match &config.vlan {
        ringway_vale::Vlan::Trunk { allowed, .. } => allowed.len(),
        _ => 0,
    };
    let sources = match &config.sources {
        ringway_vale::SourceAddresses::Only(macs) => macs.len(),
        _ => 0,
    };
    let filters = [&config.filter_in, &config.filter_out].into_iter().flatten();
    let filter = |it: &Arc<PortFilter>| filter_bytes(&it.text, it.program.insns().len());
    of_port(allowed, sources, filters.map(filter).sum())
}

/// The same of a port that is away.
fn of_settings(settings: &LastingSettings) -> usize {
    let allowed = match &settings.vlan {
        Vlan::Trunk { allowed, .. } => allowed.len(),
        _ => 0,
    };
    let sources = match &settings.sources {
        SourceAddresses::Only(macs) => macs.len(),
        _ => 0,
    };
    let filters = [&settings.filter_in, &settings.filter_out].into_iter().flatten();
    of_port(allowed, sources, filters.map(of_filter).sum())
}

fn of_port(allowed: usize, sources: usize, filters: usize) -> usize {
    NUMBERS + vlan_bytes(allowed) + MAC * sources + filters
}

fn of_filter(filter: &Filter) -> usize {
    filter_bytes(&filter.text, filter.insns.len())
}

/// Bytes that a mirror takes at most.
pub(super) fn of_mirror(mirror: &LastingMirror) -> usize {
    let from = mirror.from.as_ref().map_or(0, Vec::len);
    NUMBERS + NAME * from + mirror.filter.as_ref().map_or(0, of_filter)
}

impl BridgeEntry {
    /// What is kept of the ports and mirrors of each user, beside what is declared.
    fn kept_bytes(&self) -> impl Iterator<Item = (u32, usize)> {
        let is_set = |port: &&PortEntry| self.is_set(&port.config);
        let there = self.ports.iter().filter(is_set);
        let there = there.map(|port| (port.uid, self.beside_declared(&port.name, &port.config)));
        let absent = self.settings.iter().map(|it| (it.uid, of_settings(it)));
        let is_declared = |mirror: &LastingMirror| {
            self.declared.as_ref().is_some_and(|it| it.mirrors.contains(mirror))
        };
        let mirrors = self.mirrors.iter().map(|it| &it.mirror).filter(move |it| !is_declared(it));
        there.chain(absent).chain(mirrors.map(|it| (it.uid, of_mirror(it))))
    }

    /// What a port takes beside what is declared of it, which the operator answers for.
    fn beside_declared(&self, name: &str, config: &PortConfig) -> usize {
        let declared = self.declared.as_ref().and_then(|it| it.settings_of_any(name));
        of_config(config).saturating_sub(declared.map_or(0, of_settings))
    }
}

fn of_returning(switch: &LastingSwitch) -> impl Iterator<Item = (u32, usize)> {
    let settings = switch.settings.iter().map(|it| (it.uid, of_settings(it)));
    settings.chain(switch.mirrors.iter().map(|it| (it.uid, of_mirror(it))))
}

impl Bridges {
    /// The same for a port that is to be otherwise.
    pub fn check_room_for(
        &self,
        bridge: &str,
        index: PortIndex,
        config: &PortConfig,
    ) -> Result<()> {
        let Some(entry) = self.entry(bridge) else { return Ok(()) };
        let Some(port) = entry.port(index) else { return Ok(()) };
        let bytes = |config| match entry.is_set(config) {
            true => entry.beside_declared(&port.name, config),
            false => 0,
        };
        self.check_kept_bytes(port.uid, bytes(&port.config), bytes(config))
    }

    /// ENOMEM if what user `uid` has for its ports and mirrors, or what all have, would take too many bytes with `after`
    /// in the place of `before`. Less than there was is never refused.
    pub(super) fn check_kept_bytes(&self, uid: u32, before: usize, after: usize) -> Result<()> {
        if after <= before {
            return Ok(());
        }
        let account = self.accounts.of(uid);
        let (mut theirs, mut users) = (after - before, after - before);
        let there = self.entries.iter().flatten().flat_map(BridgeEntry::kept_bytes);
        for (user, bytes) in there.chain(self.returning.iter().flat_map(of_returning)) {
            let of = self.accounts.of(user);
            theirs += if of == account { bytes } else { 0 };
            users += if of == 0 { 0 } else { bytes };
        }
        let all = self.kept_bytes_share.saturating_mul(SHARES);
        let most = if account == 0 { all } else { self.kept_bytes_share };
        let problem = if theirs > most {
            let whose = self.accounts.name(uid);
            format!(
                "{whose} would have {theirs} bytes of settings of ports and mirrors, and {most} is the most"
            )
        } else if account != 0 && users > all {
            format!(
                "the settings of all users' ports and mirrors would have {users} bytes, and {all} is the most"
            )
        } else {
            return Ok(());
        };
        Err(Error::no_memory(problem).remedy(
            "take filters off ports (`ringway switch port --no-filter-in --no-filter-out`), or shorten them; \
             a closed port's settings go with its switch",
        ))
    }
}
