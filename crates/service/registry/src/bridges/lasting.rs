//! What of a bridge is to outlive the daemon, and how it comes back.

use std::sync::Arc;

use ringway_proto::{Cause, Error, FloodLimit, Forwarding, Multicast, Result};
use ringway_switch_port::PortIndex;
use ringway_vale::{PortConfig, PortFilter, SourceAddresses};

use super::{BridgeEntry, Bridges, HIDDEN_PREFIX, MAX_ACTIVE, PortEntry};
use crate::{
    compact::{filter_bytes, port_bytes},
    lasting::{LastingMirror, LastingSettings, LastingSwitch},
    switch_config::{
        apply, shown_filter, shown_flood_limit, shown_lossless, shown_multicast_router, shown_rate,
        shown_sources, shown_vlan,
    },
};

/// Bridges that wait for programs of a registry before this one, at most, and of them those of one user.
const MAX_RETURNING: usize = 64;
const MAX_RETURNING_OF_ONE: usize = 16;

/// What all users have together, in shares: there may be any number of accounts. Root has as many.
const SHARES: usize = 8;

/// Whether a bridge waits for programs of that user: of those that have chosen something, or had it chosen for a
/// port. What root has chosen for the bridge alone waits for any.
fn is_user_of(switch: &LastingSwitch, uid: u32) -> bool {
    let mut users = switch.settings.iter().map(|it| it.uid).chain(switch.configured_by).peekable();
    users.peek().is_none() || users.any(|user| user == uid)
}

/// The user that has chosen what a bridge comes back with.
fn user_of(switch: &LastingSwitch) -> u32 {
    let of_port = || switch.settings.first().map(|it| it.uid);
    switch.configured_by.or_else(of_port).unwrap_or(0)
}

impl PortEntry {
    /// The limits of broadcasts, of frames to other groups, and of those to addresses that are not known.
    pub(super) fn storm_kinds(&self) -> [Option<FloodLimit>; 3] {
        self.config.storm_kinds.map(|limit| limit.map(shown_flood_limit))
    }

    pub(super) fn settings(&self) -> LastingSettings {
        let [storm_broadcast, storm_multicast, storm_unknown] = self.storm_kinds();
        LastingSettings {
            name: self.name.clone(),
            uid: self.uid,
            vlan: shown_vlan(&self.config.vlan),
            sources: shown_sources(&self.config.sources),
            lossless: self.config.lossless.map(shown_lossless),
            group_forward: self.config.group_forward,
            isolated: self.config.isolated,
            swap_buffers: self.config.swap_buffers,
            filter_in: self.config.filter_in.as_deref().map(shown_filter),
            filter_out: self.config.filter_out.as_deref().map(shown_filter),
            max_addresses: self.config.max_addresses,
            rate: self.config.rate.map(shown_rate),
            storm: self.config.storm,
            storm_broadcast,
            storm_multicast,
            storm_unknown,
            multicast_router: shown_multicast_router(&self.config),
        }
    }
}

impl BridgeEntry {
    /// What source addresses a program's port may send with that joins.
    pub(super) fn default_sources(&self) -> SourceAddresses {
        if self.one_address { SourceAddresses::One } else { SourceAddresses::Any }
    }

    /// Whether users have chosen something for a port.
    pub(super) fn is_set(&self, config: &PortConfig) -> bool {
        *config != self.without_choices(config, self.default_sources())
    }

    /// The same port without what users have chosen.
    pub(super) fn without_choices(
        &self,
        config: &PortConfig,
        sources: SourceAddresses,
    ) -> PortConfig {
        let PortConfig {
            header_len, max_frame, is_interface, leads_on, unblocked, is_down, ..
        } = *config;
        PortConfig {
            sources,
            header_len,
            max_frame,
            is_interface,
            leads_on,
            unblocked,
            is_down,
            ..PortConfig::default()
        }
    }

    /// The settings of a port of user `uid` that comes back, or is declared, if there are any. What is declared is
    /// for any user, unless it is for one alone: then EBUSY.
    pub(super) fn settle(&self, name: &str, uid: u32, config: &mut PortConfig) -> Result<()> {
        self.declared.as_ref().map_or(Ok(()), |declared| declared.check_user(name, uid))?;
        match self.settings_of(name, uid) {
            Some(settings) => apply(settings.wanted(), config),
            None => Ok(()),
        }
    }

    fn settings_of(&self, name: &str, uid: u32) -> Option<&LastingSettings> {
        let at = self.position_of_settings(name, uid);
        let kept = at.and_then(|at| self.settings.get(at));
        kept.or_else(|| self.declared.as_ref()?.settings_of_any(name))
    }

    fn position_of_settings(&self, name: &str, uid: u32) -> Option<usize> {
        self.settings.iter().position(|it| it.name == name && it.uid == uid)
    }

    /// It is back.
    pub(super) fn forget_settings(&mut self, name: &str, uid: u32) {
        if let Some(at) = self.position_of_settings(name, uid) {
            self.settings.remove(at);
        }
    }

    /// A port has gone. If it is to come back, or its user may open it again, it has its settings the next time,
    /// however long that takes: without them it would be in another network than it was.
    pub(super) fn keep_settings(&mut self, gone: &PortEntry, comes_back: bool) {
        if !self.is_set(&gone.config) || !(comes_back || self.is_expected(&gone.name)) {
            return;
        }
        let settings = gone.settings();
        let declared = self.declared.as_ref().and_then(|it| it.settings_of_any(&gone.name));
        if declared.is_some_and(|declared| declared.is_like(&settings)) {
            return;
        }
        self.forget_settings(&gone.name, gone.uid);
        if self.settings.len() >= MAX_ACTIVE {
            let of_program = self.settings.iter().position(|it| !self.is_expected(&it.name));
            self.settings.remove(of_program.unwrap_or(0));
        }
        self.settings.push(settings);
    }

    /// Whether an interface, or the stack behind it, is to come back by that full name.
    pub(super) fn is_expected(&self, full: &str) -> bool {
        let base = full.trim_end_matches('^');
        self.expected.iter().any(|(name, _)| name == base)
    }

    /// Whether users, or root, have chosen something that is there again although the bridge goes with its last port.
    fn has_choices(&self) -> bool {
        let is_set = |port: &PortEntry| self.is_set(&port.config);
        let of_bridge = self.forwarding != Forwarding::default()
            || self.multicast != Multicast::default()
            || !self.statics.is_empty()
            || !self.mirrors.is_empty();
        let of_ports = !self.settings.is_empty() || self.ports.iter().any(is_set);
        self.configured_by.is_some() || of_bridge || of_ports
    }

    /// Has what a bridge had before.
    fn resume(&mut self, before: LastingSwitch) -> Result<()> {
        self.configured_by = before.configured_by;
        (self.forwarding, self.settings) = (before.forwarding, before.settings);
        (self.statics, self.multicast) = (before.addresses, before.multicast);
        self.apply_forwarding();
        self.apply_multicast();
        self.set_mirrors(before.mirrors)
    }

    /// User `uid` has made it, by the name of a bridge whose daemon has ended under its programs. What root has chosen
    /// for the bridge is there again for all, and what a user has for that user, and for root; else ports alone have
    /// their settings again, each its user's.
    pub(super) fn go_on_from(&mut self, before: LastingSwitch, uid: u32) -> Result<()> {
        if uid == 0 || before.configured_by.is_none_or(|by| by == uid) {
            return self.resume(before);
        }
        self.settings = before.settings;
        Ok(())
    }

    fn lasting(&self) -> LastingSwitch {
        let there = self.ports.iter().filter(|port| self.is_set(&port.config));
        let absent = self.settings.iter().filter(|settings| {
            !self.ports.iter().any(|it| (&it.name, it.uid) == (&settings.name, settings.uid))
        });
        LastingSwitch {
            name: self.name.clone(),
            keeper: self.keeper,
            one_address: self.one_address,
            configured_by: self.configured_by,
            forwarding: self.forwarding.clone(),
            multicast: self.multicast,
            settings: there
                .map(PortEntry::settings)
                .chain(absent.chain(self.declared_of_absent()).cloned())
                .take(MAX_ACTIVE)
                .collect(),
            addresses: self.statics.clone(),
            mirrors: self.lasting_mirrors(),
            declared: self.declared.clone(),
        }
    }

    /// How declared ports are to take part that are not there, and have nothing else to come back with.
    pub(super) fn declared_of_absent(&self) -> impl Iterator<Item = &LastingSettings> {
        let declared = self.declared.iter().flat_map(|declared| &declared.ports);
        declared.map(|port| &port.settings).filter(|settings| {
            !self.ports.iter().any(|port| port.name == settings.name)
                && !self.settings.iter().any(|kept| kept.name == settings.name)
        })
    }
}

impl Bridges {
    /// Whether a port that a user is about to open is to swap buffers, as it did before, or is declared.
    pub fn will_swap_buffers(&self, bridge: &str, name: &str, uid: u32) -> bool {
        let settings = self.entry(bridge).and_then(|entry| entry.settings_of(name, uid));
        settings.is_some_and(|settings| settings.swap_buffers)
    }

    /// Of the bridges that a user made to stay, that something `stays` on, or that wait for their users' programs.
    pub fn lasting(&self, stays: impl Fn(&str) -> bool) -> Vec<LastingSwitch> {
        let visible = self.entries.iter().flatten().filter(|entry| entry.is_visible());
        let lasting = visible.filter_map(|entry| {
            let lasts = entry.keeper.is_some() || stays(&entry.name) || entry.has_choices();
            if lasts { Some(entry.lasting()) } else { entry.awaited.clone() }
        });
        lasting.chain(self.returning.iter().cloned()).collect()
    }

    /// A program of user `uid` has opened a port of a bridge.
    pub fn note_opened(&mut self, bridge: &str, uid: u32) {
        let entry = self.find(bridge);
        let its = entry.and_then(|it| it.awaited.take_if(|awaited| is_user_of(awaited, uid)));
        self.lasting_changed |= its.is_some();
    }

    /// User `uid` deletes a bridge: root, and its users, what it would wait with, too.
    pub fn note_deleted(&mut self, bridge: &str, uid: u32) {
        if let Some(entry) = self.find(bridge) {
            entry.awaited.take_if(|awaited| uid == 0 || is_user_of(awaited, uid));
        }
    }

    /// Bridges that users know, each with the full name of a port.
    pub fn visible_ports(&self) -> impl Iterator<Item = (&str, &str)> {
        let visible = self.entries.iter().flatten().filter(|entry| entry.is_visible());
        visible.flat_map(|entry| entry.ports.iter().map(|port| (&*entry.name, &*port.name)))
    }

    /// A bridge comes back, in the share of user `uid`.
    pub fn restore(&mut self, switch: LastingSwitch, uid: u32) -> Result<()> {
        let name = switch.name.clone();
        if name.starts_with(HIDDEN_PREFIX) || self.find(&name).is_some() {
            return Err(Error::busy("there is such a switch").at(name));
        }
        let entry = self.find_or_start(&name, uid)?;
        (entry.keeper, entry.one_address) = (switch.keeper, switch.one_address);
        entry.declared = switch.declared.clone();
        entry.resume(switch)
    }

    /// A bridge comes back when a program opens a port of it again: nothing else is to be on it.
    ///
    /// # Errors
    /// [`Cause::NoRoom`]: too many of its user's wait, or of all.
    pub fn await_programs(&mut self, switch: LastingSwitch) -> Result<()> {
        let is_known = self.returning.iter().any(|it| it.name == switch.name);
        if is_known || self.entry(&switch.name).is_some() {
            return Ok(());
        }
        let user = user_of(&switch);
        let of_same = self.returning.iter().filter(|it| user_of(it) == user).count();
        if of_same >= MAX_RETURNING_OF_ONE || self.returning.len() >= MAX_RETURNING {
            let problem = "its settings are forgotten: those of too many switches wait for programs; set them again";
            return Err(Error::new(Cause::NoRoom, problem).at(switch.name));
        }
        self.returning.push(switch);
        Ok(())
    }

    /// A port of user `uid` is to come back: the bridge stays until then.
    pub fn expect(&mut self, bridge: &str, name: &str, uid: u32) -> Result<()> {
        let entry = self.find_or_start(bridge, uid)?;
        if !entry.expected.iter().any(|(expected, _)| expected == name) {
            entry.expected.push((name.into(), uid));
        }
        Ok(())
    }

    /// It is back, or is not to come back.
    pub fn expect_no_more(&mut self, bridge: &str, name: &str) {
        if let Some(entry) = self.find(bridge) {
            entry.expected.retain(|(expected, _)| expected != name);
        }
        self.reap();
    }

    /// What is to come back to a bridge, with whose it is.
    pub fn expected_on(&self, bridge: &str) -> Vec<(String, u32)> {
        self.entry(bridge).map(|entry| entry.expected.clone()).unwrap_or_default()
    }
}

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
    port_bytes(allowed, sources, filters.map(filter).sum())
}

impl BridgeEntry {
    /// What is kept of the ports and mirrors of each user, beside what is declared.
    fn kept_bytes(&self) -> impl Iterator<Item = (u32, usize)> {
        let is_set = |port: &&PortEntry| self.is_set(&port.config);
        let there = self.ports.iter().filter(is_set);
        let there = there.map(|port| (port.uid, self.beside_declared(&port.name, &port.config)));
        let absent = self.settings.iter().map(|it| (it.uid, it.bytes()));
        let is_declared = |mirror: &LastingMirror| {
            self.declared.as_ref().is_some_and(|it| it.mirrors.contains(mirror))
        };
        let mirrors = self.mirrors.iter().map(|it| &it.mirror).filter(move |it| !is_declared(it));
        there.chain(absent).chain(mirrors.map(|it| (it.uid, it.bytes())))
    }

    /// What a port takes beside what is declared of it, which the operator answers for.
    fn beside_declared(&self, name: &str, config: &PortConfig) -> usize {
        let declared = self.declared.as_ref().and_then(|it| it.settings_of_any(name));
        of_config(config).saturating_sub(declared.map_or(0, LastingSettings::bytes))
    }
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
        for (user, bytes) in there.chain(self.returning.iter().flat_map(LastingSwitch::bytes)) {
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
