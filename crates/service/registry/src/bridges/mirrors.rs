//! Mirrors of a bridge: users name ports, which come and go; the worker has those that are there.
//!
//! A mirror shows what others send and receive, so setting one takes the right to
//! [configure](Bridges::check_may_configure) the bridge. Besides, it shows what a monitor of its user could show: root's
//! shows all ports, another user's that user's own. The copies are for the port of one user: a name is not enough,
//! since another may open it first.

use std::{collections::BTreeSet, sync::Arc};

use ringway_proto::{
    Cause, Declared, Error, MirrorDirection, MirrorTotals, Result, SwitchMirror, SwitchMirrorInfo,
};
use ringway_vale::{MirrorCounters, MirrorSources, PortFilter};

use super::{BridgeEntry, Bridges, PortEntry, forwarding::full_name, no_bridge};
use crate::{
    caller::Caller,
    declared::DeclaredSwitch,
    lasting::LastingMirror,
    name::{PortName, check_name},
    switch_config::filter_of,
};

/// Mirrors of a bridge at most.
pub(crate) const MAX_MIRRORS: usize = ringway_vale::MAX_MIRRORS;
/// Ports that a mirror names at most; it can have all.
const MAX_FROM: usize = 64;
/// Bytes of a mirror's name at most.
const MAX_NAME: usize = 31;

/// A mirror, and what its worker has of it.
pub(super) struct MirrorEntry {
    pub mirror: LastingMirror,
    filter: Option<Arc<PortFilter>>,
    counters: Arc<MirrorCounters>,
}

impl MirrorEntry {
    fn new(mirror: LastingMirror) -> Result<MirrorEntry> {
        let filter = mirror.filter.as_ref().map(filter_of).transpose()?;
        Ok(MirrorEntry { mirror, filter, counters: Arc::default() })
    }

    /// Whether it may show, or be given, what a port has.
    fn may_show(&self, port: &PortEntry) -> bool {
        [port.uid, 0].contains(&self.mirror.uid)
    }

    fn names(&self, port: &str) -> bool {
        self.mirror.to != port
            && self.mirror.from.as_ref().is_none_or(|it| it.iter().any(|it| it == port))
    }

    /// The ports that it shows, as the worker is to know them.
    fn sources(&self, ports: &[PortEntry]) -> MirrorSources {
        if self.mirror.from.is_none() && self.mirror.uid == 0 {
            return MirrorSources::All;
        }
        let shown = ports.iter().filter(|port| self.names(&port.name) && self.may_show(port));
        MirrorSources::Ports(shown.map(|port| port.index).collect())
    }

    /// `None`: the port for its copies is not there, or is another user's.
    fn of_worker(&self, ports: &[PortEntry]) -> Option<ringway_vale::SwitchMirror> {
        let LastingMirror { to, to_uid, direction, .. } = &self.mirror;
        let to = ports.iter().find(|port| port.name == *to && port.uid == *to_uid)?.index;
        Some(ringway_vale::SwitchMirror {
            from: self.sources(ports),
            sent: *direction != MirrorDirection::Received,
            received: *direction != MirrorDirection::Sent,
            to,
            filter: self.filter.clone(),
            counters: self.counters.clone(),
        })
    }

    fn info(&self, ports: &[PortEntry], declared: Declared) -> SwitchMirrorInfo {
        let LastingMirror { name, uid, from, direction, to, to_uid, filter } = &self.mirror;
        let port = |name: &String| ports.iter().find(|port| port.name == *name);
        let named = from.iter().flatten().chain([to]);
        let is_foreign = |name: &String| {
            port(name).is_some_and(|port| {
                if name == to { port.uid != *to_uid } else { !self.may_show(port) }
            })
        };
        SwitchMirrorInfo {
            name: name.clone(),
            from: from.clone(),
            direction: *direction,
            to: to.clone(),
            user: *to_uid,
            filter: filter.as_ref().map(|filter| filter.text.clone()),
            uid: *uid,
            absent: named.clone().filter(|name| port(name).is_none()).cloned().collect(),
            foreign: named.filter(|name| is_foreign(name)).cloned().collect(),
            declared,
            totals: shown_totals(self.counters.totals()),
        }
    }
}

fn shown_totals(totals: ringway_vale::MirrorTotals) -> MirrorTotals {
    let ringway_vale::MirrorTotals {
        copied_packets,
        copied_bytes,
        ring_full,
        too_long,
        denied,
        bad_slot,
        bad_offload,
        no_destination,
    } = totals;
    MirrorTotals {
        copied_packets,
        copied_bytes,
        ring_full,
        too_long,
        denied,
        bad_slot,
        bad_offload,
        no_destination,
    }
}

impl Bridges {
    /// Sets a mirror. EEXIST if there is one of that name that is otherwise.
    pub fn add_mirror(
        &mut self,
        caller: &Caller,
        bridge: &str,
        mirror: SwitchMirror,
    ) -> Result<()> {
        self.check_may_configure(caller, bridge)?;
        let mirror = lasting(caller, bridge, mirror);
        check_mirror(bridge, &mirror)?;
        if mirror.to_uid != caller.uid && caller.uid != 0 {
            return Err(Error::new(Cause::Denied, "the copies would be for another user")
                .at(&mirror.to)
                .remedy("have root set it"));
        }
        let entry = self.find(bridge).ok_or_else(|| no_bridge(bridge))?;
        entry.check_ports_of(&mirror)?;
        match entry.mirrors.iter().find(|it| it.mirror.name == mirror.name) {
            Some(there) if there.mirror == mirror => return Ok(()),
            Some(_) => {
                let problem = format!("there is a mirror {} already", mirror.name);
                return Err(Error::new(Cause::Exists, problem).at(bridge).remedy(format!(
                    "delete it first: `ringway switch mirror del {bridge} {}`",
                    mirror.name
                )));
            }
            None => {}
        }
        if entry.mirrors.len() >= MAX_MIRRORS {
            let problem = format!("it has {MAX_MIRRORS} mirrors, which is the most");
            return Err(Error::no_memory(problem)
                .at(bridge)
                .remedy("delete one: `ringway switch mirror del`"));
        }
        self.check_kept_bytes(mirror.uid, 0, mirror.bytes()).map_err(|e| e.at(bridge))?;
        let entry = self.find(bridge).ok_or_else(|| no_bridge(bridge))?;
        entry.mirrors.push(MirrorEntry::new(mirror)?);
        entry.apply_mirrors();
        self.note_mirrors_changed(caller, bridge);
        Ok(())
    }

    /// Removes a mirror. ENOENT if there is none of that name.
    pub fn delete_mirror(&mut self, caller: &Caller, bridge: &str, name: &str) -> Result<()> {
        self.check_may_configure(caller, bridge)?;
        let entry = self.find(bridge).ok_or_else(|| no_bridge(bridge))?;
        let at = entry.mirrors.iter().position(|it| it.mirror.name == name).ok_or_else(|| {
            Error::new(Cause::NotFound, "it has no mirror of that name")
                .at(bridge)
                .remedy(format!("`ringway switch mirror show {bridge}` shows those there are"))
        })?;
        entry.check_may_delete(caller, at)?;
        entry.mirrors.remove(at);
        entry.apply_mirrors();
        self.note_mirrors_changed(caller, bridge);
        Ok(())
    }

    fn note_mirrors_changed(&mut self, caller: &Caller, bridge: &str) {
        self.lasting_changed = true;
        self.note_configured_by(bridge, caller.uid);
    }

    /// Bridges whose workers have other mirrors than they are to have.
    #[cfg(feature = "faults")]
    pub fn wrong_mirrors(&self) -> impl Iterator<Item = &str> {
        let is_same = |a: &ringway_vale::SwitchMirror, b: &ringway_vale::SwitchMirror| {
            (&a.from, a.sent, a.received, a.to, &a.filter)
                == (&b.from, b.sent, b.received, b.to, &b.filter)
                && Arc::ptr_eq(&a.counters, &b.counters)
        };
        let is_wrong = move |entry: &&BridgeEntry| {
            let wanted: Vec<_> = entry.mirrors_of_worker().collect();
            let has = entry.worker.switch_mirrors();
            has.is_some_and(|has| {
                has.len() != wanted.len() || !has.iter().zip(&wanted).all(|(a, b)| is_same(a, b))
            })
        };
        self.entries.iter().flatten().filter(is_wrong).map(|entry| &*entry.name)
    }
}

impl BridgeEntry {
    fn mirrors_of_worker(&self) -> impl Iterator<Item = ringway_vale::SwitchMirror> {
        self.mirrors.iter().filter_map(|it| it.of_worker(&self.ports))
    }

    /// Tells the worker which ports are there by now.
    pub(super) fn apply_mirrors(&self) {
        self.worker.set_switch_mirrors(self.mirrors_of_worker().collect());
    }

    /// A port has come, or gone.
    pub(super) fn mirrored_ports_changed(&self, full: &str) {
        if self.mirrors.iter().any(|it| it.names(full) || it.mirror.to == full) {
            self.apply_mirrors();
        }
    }

    /// From now on these are its mirrors. Those that stay go on counting.
    pub(super) fn set_mirrors(&mut self, wanted: Vec<LastingMirror>) -> Result<()> {
        if self.mirrors.iter().map(|it| &it.mirror).eq(&wanted) {
            return Ok(());
        }
        let mut before = std::mem::take(&mut self.mirrors);
        let mut failed = Ok(());
        for mirror in wanted {
            match before.iter().position(|it| it.mirror == mirror) {
                Some(at) => self.mirrors.push(before.swap_remove(at)),
                None => match MirrorEntry::new(mirror) {
                    Ok(entry) => self.mirrors.push(entry),
                    Err(error) => failed = Err(error),
                },
            }
        }
        self.apply_mirrors();
        failed
    }

    pub(super) fn lasting_mirrors(&self) -> Vec<LastingMirror> {
        self.mirrors.iter().map(|it| it.mirror.clone()).collect()
    }

    /// The mirrors as users see them.
    pub(super) fn mirrors_info(&self) -> impl Iterator<Item = SwitchMirrorInfo> {
        let declared = |mirror: &LastingMirror| match &self.declared {
            Some(declared) => declared_as(declared, mirror),
            None => Declared::No,
        };
        self.mirrors.iter().map(move |it| it.info(&self.ports, declared(&it.mirror)))
    }

    /// EPERM if a port that a mirror names is there, and is for others: it would wait for ever.
    fn check_ports_of(&self, mirror: &LastingMirror) -> Result<()> {
        let LastingMirror { uid, from, to, to_uid, .. } = mirror;
        let port = |name: &String| self.ports.iter().find(|port| port.name == *name);
        if let Some(port) = port(to).filter(|port| port.uid != *to_uid) {
            let problem = format!("the port is user {}'s, and so would the copies be", port.uid);
            let remedy = match uid {
                0 => format!("say so: `--user {}`", port.uid),
                _ => "name a port of your own".into(),
            };
            return Err(Error::new(Cause::Denied, problem).at(to).remedy(remedy));
        }
        let foreign = from.iter().flatten().filter_map(port);
        match foreign.into_iter().find(|port| ![port.uid, 0].contains(uid)) {
            None => Ok(()),
            Some(port) => {
                let problem = format!("the port is user {}'s", port.uid);
                Err(Error::new(Cause::Denied, problem)
                    .at(&port.name)
                    .remedy("name ports of your own, or have root set it"))
            }
        }
    }

    /// EPERM if it is root's, or another user's.
    fn check_may_delete(&self, caller: &Caller, at: usize) -> Result<()> {
        match self.mirrors.get(at) {
            Some(it) if ![it.mirror.uid, 0].contains(&caller.uid) => {
                let problem = format!("user {} has set the mirror", it.mirror.uid);
                Err(Error::new(Cause::Denied, problem)
                    .at(&self.name)
                    .remedy("have that user, or root, delete it"))
            }
            _ => Ok(()),
        }
    }
}

/// What a declaration has to do with a mirror.
fn declared_as(declared: &DeclaredSwitch, mirror: &LastingMirror) -> Declared {
    match declared.mirrors.iter().find(|it| it.name == mirror.name) {
        None => Declared::No,
        Some(it) if it == mirror => Declared::Yes,
        Some(_) => Declared::Changed,
    }
}

/// A mirror that is asked for.
fn lasting(caller: &Caller, bridge: &str, mirror: SwitchMirror) -> LastingMirror {
    let SwitchMirror { name, from, direction, to, user, filter } = mirror;
    let full = |port: String| full_name(bridge, &port);
    let from = from.map(|ports| {
        let ports: BTreeSet<String> = ports.into_iter().map(full).collect();
        ports.into_iter().collect()
    });
    LastingMirror {
        name,
        uid: caller.uid,
        from,
        direction,
        to: full(to),
        to_uid: user.unwrap_or(caller.uid),
        filter,
    }
}

/// EINVAL if there can be no such mirror on a bridge.
pub(crate) fn check_mirror(bridge: &str, mirror: &LastingMirror) -> Result<()> {
    let LastingMirror { name, from, to, filter, .. } = mirror;
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !(1..=MAX_NAME).contains(&name.len()) || !name.chars().all(is_in_name) {
        let problem = format!("no mirror can be called `{}`", name.escape_debug());
        let remedy = format!("use up to {MAX_NAME} letters, digits and -_.");
        return Err(Error::invalid(problem).at(bridge).remedy(remedy));
    }
    let wrong =
        |problem: String| Err(Error::invalid(problem).at(format!("{bridge}, mirror {name}")));
    match from.as_ref().map(Vec::len) {
        Some(0) => return wrong("it has no ports".into()),
        Some(count) if count > MAX_FROM => {
            return wrong(format!("{count} ports; {MAX_FROM} is the most, or all"));
        }
        _ => {}
    }
    for port in from.iter().flatten().chain([to]) {
        check_name(port)?;
        match PortName::parse(port, Cause::Invalid) {
            Ok(PortName::Vale { bridge: its, .. }) if its == bridge => {}
            _ => return wrong(format!("`{port}` is no port of it; name a port of the switch")),
        }
    }
    if from.iter().flatten().any(|port| port == to) {
        return wrong(format!("{to} would get copies of its own; name another port for them"));
    }
    filter.as_ref().map_or(Ok(()), |filter| filter_of(filter).map(drop).map_err(|e| e.at(bridge)))
}

impl LastingMirror {
    /// Refuses what no user could set on a switch.
    ///
    /// # Errors
    /// Those of the request that would set it.
    pub fn check(&self, switch: &str) -> Result<()> {
        check_mirror(switch, self)
    }
}

/// Mirrors as they are to be: those that were set by hand stay, unless one of that name is declared.
pub(crate) fn declared_mirrors(
    now: &[LastingMirror],
    before: Option<&DeclaredSwitch>,
    wanted: &DeclaredSwitch,
) -> Vec<LastingMirror> {
    let was_declared =
        |it: &LastingMirror| before.is_some_and(|before| before.mirrors.contains(it));
    let is_declared = |it: &LastingMirror| wanted.mirrors.iter().any(|other| other.name == it.name);
    let by_hand = now.iter().filter(|it| !was_declared(it) && !is_declared(it));
    let room = MAX_MIRRORS.saturating_sub(wanted.mirrors.len());
    wanted.mirrors.iter().chain(by_hand.take(room)).cloned().collect()
}
