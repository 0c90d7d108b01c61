//! Switches that an operator has declared, in the daemon's configuration: how they are made so, and what
//! differs from what there is.
//!
//! The declaration decides whenever it is read: what users have changed of a declared port since is set back,
//! what differs is changed alone, and the traffic of the rest is not touched. What was set up by hand beside it
//! stays.

use std::{collections::BTreeSet, fmt, time::Instant};

use ringway_proto::{Error, Forwarding, Multicast, NicMode, Result, Vlan, mac_text};
use serde::{Deserialize, Serialize};

use crate::{
    bridges::{
        MAX_ACTIVE, MAX_MIRRORS, MAX_STATICS, Misfit, check_address, check_learns, check_mirror,
        declared_mirrors, misfit,
    },
    caller::Caller,
    lasting::{
        Lasting, LastingAddress, LastingAttachment, LastingMirror, LastingNetns, LastingSettings,
        LastingSwitch,
    },
    name::check_name,
    netns::Netns,
    registry::Registry,
    switch_config::vlan_of,
    switch_ports,
    switches::{check_bridge_name, check_choices, check_forwarding},
};

/// A switch as it is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredSwitch {
    pub name: String,
    /// The user whose it is, besides root.
    pub owner: u32,
    pub one_address: bool,
    pub forwarding: Forwarding,
    #[serde(default, skip_serializing_if = "Multicast::is_flood")]
    pub multicast: Multicast,
    pub ports: Vec<DeclaredPort>,
    /// Static addresses.
    pub addresses: Vec<LastingAddress>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<LastingMirror>,
    /// The file and the line that declare it.
    #[serde(default)]
    pub place: String,
}

/// A port of it: an interface, or a name that a program opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredPort {
    /// With its full name, and the user whose it is.
    pub settings: LastingSettings,
    pub interface: Option<DeclaredInterface>,
    /// Only that user, and root, may open it. Otherwise each user that may have the name has the settings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_user_alone: bool,
    /// The file and the line that declare it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
}

/// How an interface of the daemon's network namespace is attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredInterface {
    /// With the host's stack behind it.
    pub stack: bool,
    pub mode: Option<NicMode>,
}

impl DeclaredPort {
    /// The user that alone may open it.
    fn user(&self) -> Option<u32> {
        self.for_user_alone.then_some(self.settings.uid)
    }
}

impl DeclaredSwitch {
    /// Refuses what no user could have by requests.
    ///
    /// # Errors
    /// Those of the requests that would set it up.
    pub fn check(&self) -> Result<()> {
        check_bridge_name(&self.name)?;
        check_forwarding(&self.name, &self.forwarding)?;
        let learns = self.learns();
        check_learns(&self.name, learns, self.multicast)?;
        let names = self.ports.iter().map(|port| port.settings.name.clone());
        let stacks = self.interfaces().filter(|(_, interface)| interface.stack);
        let names: BTreeSet<String> =
            names.chain(stacks.map(|(full, _)| format!("{full}^"))).collect();
        for (count, most, what) in [
            (names.len(), MAX_ACTIVE, "ports"),
            (self.addresses.len(), MAX_STATICS, "static addresses"),
            (self.mirrors.len(), MAX_MIRRORS, "mirrors"),
        ] {
            if count > most {
                let problem = format!("{count} {what}; {most} is the most");
                return Err(Error::invalid(problem).at(&self.name));
            }
        }
        for port in &self.ports {
            let settings = &port.settings;
            check_name(&settings.name)?;
            check_choices(&settings.name, &settings.wanted())?;
            if settings.max_addresses.is_some() && !learns {
                let problem = "its switch learns no addresses: there is nothing to limit";
                return Err(Error::invalid(problem).at(&settings.name));
            }
        }
        for mirror in &self.mirrors {
            check_mirror(&self.name, mirror)?;
        }
        for address in &self.addresses {
            let LastingAddress { mac, vlan, port } = address;
            check_address(&self.name, *mac, *vlan).map_err(|e| e.at(port))?;
            if !learns {
                let problem = "it does not forward by the addresses that it learns";
                let remedy = "static addresses are for learning; static forwarding has its own";
                return Err(Error::invalid(problem).at(&self.name).remedy(remedy));
            }
            self.check_fits(address)?;
        }
        Ok(())
    }

    /// EINVAL if a static address would have no effect behind its port, or the port's limit none beside its addresses.
    fn check_fits(&self, address: &LastingAddress) -> Result<()> {
        let LastingAddress { vlan, port: full, .. } = address;
        let Some(port) = self.port(full) else { return Ok(()) };
        let any_vlan = self.ports.iter().any(|port| port.settings.vlan != Vlan::Unaware);
        if let Some(Misfit { problem, its }) =
            misfit(&vlan_of(&port.settings.vlan), any_vlan, *vlan)
        {
            return Err(Error::invalid(problem).at(full).remedy(match its {
                None => "no port of the switch is in a VLAN: leave it out of the address".into(),
                Some(vid) => format!("write one of its own behind the address: vlan {vid}"),
            }));
        }
        let its = self.addresses.iter().filter(|it| it.port == *full).count();
        match port.settings.max_addresses.filter(|most| usize::from(*most) < its) {
            None => Ok(()),
            Some(most) => Err(Error::invalid(format!(
                "{its} static addresses, and a limit of {most}, in which these count"
            ))
            .at(full)
            .remedy(format!("raise max_addresses to {its} or more"))),
        }
    }

    /// Whether it forwards by the addresses that it learns: static ones, and limits for them, are for that alone.
    pub(crate) fn learns(&self) -> bool {
        matches!(self.forwarding, Forwarding::Learning { .. })
    }

    fn port(&self, full: &str) -> Option<&DeclaredPort> {
        self.ports.iter().find(|port| port.settings.name == full)
    }

    /// How a port is to take part, of any user.
    pub(crate) fn settings_of_any(&self, full: &str) -> Option<&LastingSettings> {
        self.port(full).map(|port| &port.settings)
    }

    /// The file and the line that declare a port.
    pub(crate) fn place_of(&self, full: &str) -> Option<&str> {
        Some(&*self.port(full)?.place).filter(|place| !place.is_empty())
    }

    /// The user that alone may open a port.
    pub(crate) fn user_of(&self, full: &str) -> Option<u32> {
        self.port(full)?.user()
    }

    /// EBUSY if a port of that name is for another user alone.
    pub(crate) fn check_user(&self, full: &str, uid: u32) -> Result<()> {
        let Some(port) = self.port(full) else { return Ok(()) };
        let Some(user) = port.user().filter(|user| ![*user, 0].contains(&uid)) else {
            return Ok(());
        };
        let remedy = match &*port.place {
            "" => "choose another name".into(),
            place => format!("choose another name, or change `user`: {place}"),
        };
        let problem = format!("declared for user {user}, and opened by user {uid}");
        Err(Error::busy(problem).at(full).remedy(remedy))
    }

    /// Ports that have something by this declaration, and are in `wanted` no more.
    fn released<'a>(&'a self, wanted: &'a DeclaredSwitch) -> impl Iterator<Item = &'a str> {
        self.ports.iter().filter(|port| wanted.port(&port.settings.name).is_none()).filter_map(
            |port| {
                let settings = &port.settings;
                let is_interface = port.interface.is_some() || settings.name.ends_with('^');
                let unset = LastingSettings::unset(self.one_address && !is_interface);
                let has_something = port.for_user_alone || !settings.is_like(&unset);
                has_something.then_some(&*settings.name)
            },
        )
    }

    /// Whether an interface is to be a port of that name.
    pub fn attaches(&self, full: &str) -> bool {
        self.port(full).is_some_and(|port| port.interface.is_some())
    }

    pub(crate) fn interfaces(&self) -> impl Iterator<Item = (&str, &DeclaredInterface)> {
        let interface = |port: &'_ DeclaredPort| port.interface.is_some();
        self.ports
            .iter()
            .filter(move |port| interface(port))
            .filter_map(|port| Some((&*port.settings.name, port.interface.as_ref()?)))
    }
}

/// Something that is otherwise than declared, as it is to become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An interface leaves its switch.
    Detach(String),
    /// A switch is not declared any more: it goes with its last port.
    LetGo(String),
    Make(String),
    /// Whose a switch is, or what its programs may send with.
    Owner(String),
    Forward(String),
    Addresses(String),
    Mirrors(String),
    Attach(String),
    /// The same of an interface that is on another switch, where it was attached by hand.
    AttachLater {
        port: String,
        /// The port that it is.
        held_by: String,
    },
    /// A port is not declared any more: its open port, and its name, lose what was.
    Release(String),
    /// How a port takes part.
    Settings(String),
}

impl Change {
    /// The switch or the port that changes.
    pub fn of(&self) -> &str {
        match self {
            Change::Detach(name)
            | Change::LetGo(name)
            | Change::Make(name)
            | Change::Owner(name)
            | Change::Forward(name)
            | Change::Addresses(name)
            | Change::Mirrors(name)
            | Change::Attach(name)
            | Change::AttachLater { port: name, .. }
            | Change::Release(name)
            | Change::Settings(name) => name,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Detach(port) => write!(f, "detach {port}"),
            Change::LetGo(switch) => {
                write!(f, "let {switch} go with its last port, without its declared settings")
            }
            Change::Make(switch) => write!(f, "make {switch}"),
            Change::Owner(switch) => write!(f, "change the owner and the rules of {switch}"),
            Change::Forward(switch) => write!(f, "change how {switch} forwards"),
            Change::Addresses(switch) => write!(f, "change the static addresses of {switch}"),
            Change::Mirrors(switch) => write!(f, "change the mirrors of {switch}"),
            Change::Attach(port) => write!(f, "attach {port}"),
            Change::AttachLater { port, held_by } => {
                let remedy = detach_by_hand(held_by);
                write!(f, "attach {port} when {held_by} was detached, which {remedy} does")
            }
            Change::Release(port) => write!(f, "take the declared settings from {port}"),
            Change::Settings(port) => write!(f, "change how {port} takes part"),
        }
    }
}

/// How an interface that was attached by hand leaves its switch.
fn detach_by_hand(full: &str) -> String {
    let (switch, interface) = full.split_once(':').unwrap_or_default();
    format!("`ringway switch detach {switch} {interface}`")
}

/// The port of another switch that the interface of a declared port is, and stays after `changes`.
fn held_by<'a>(
    now: &'a Lasting,
    changes: &[Change],
    own: LastingNetns,
    full: &str,
) -> Option<&'a str> {
    let (_, interface) = full.split_once(':')?;
    if is_persistent(now, full) {
        return None;
    }
    let is_it = |it: &&LastingAttachment| {
        let is_same = it.interface() == Some(interface);
        let is_there = !(it.absent || it.never_there);
        is_same && is_there && it.name != full && it.netns.other_than(own).is_none()
    };
    let held = now.attached.iter().find(is_it)?;
    (!changes.contains(&Change::Detach(held.name.clone()))).then_some(&held.name)
}

/// Whether a port of a switch is a persistent port, which may be on two, and is known by its name wherever its device is.
fn is_persistent(now: &Lasting, full: &str) -> bool {
    now.ports.iter().any(|port| full.split_once(':').is_some_and(|(_, name)| name == port.name))
}

/// A declared interface that is waited for because it is on another switch: that switch's port, and what to do.
pub fn why_not_attached(now: &Lasting, own: LastingNetns, full: &str) -> Option<String> {
    let held_by = held_by(now, &[], own, full)?;
    Some(format!("it is on a switch as {held_by}; {} takes it off", detach_by_hand(held_by)))
}

/// Declared interfaces that have another name by now: they are taken off, since what is declared is found by its name,
/// also by the next daemon.
pub fn renamed_interfaces(now: &Lasting, wanted: &[DeclaredSwitch]) -> Vec<Error> {
    let is_declared = |full: &str| wanted.iter().any(|switch| switch.attaches(full));
    let renamed = now.attached.iter().filter(|it| is_declared(&it.name)).filter_map(|it| {
        let problem = format!("its interface is called {} now", it.renamed.as_ref()?);
        let remedy = "to keep it there, rename it back, or change the name in what is declared";
        Some(Error::invalid(problem).at(&it.name).remedy(remedy))
    });
    renamed.collect()
}

/// What is to change for `wanted` to be true, in an order in which it can: what goes first makes room. `own`: the network
/// namespace of the daemon, in which declared interfaces are.
pub fn changes(now: &Lasting, wanted: &[DeclaredSwitch], own: LastingNetns) -> Vec<Change> {
    let attached = |full: &str| now.attached.iter().find(|it| it.name == full);
    let is_wanted = |full: &str| {
        let as_wanted = |there: &LastingAttachment, to_be: &DeclaredInterface| {
            let is_here = is_persistent(now, full) || there.netns.other_than(own).is_none();
            let is_it = is_here && there.renamed.is_none();
            is_it && there.stack == to_be.stack && there.mode == to_be.mode
        };
        let mut interfaces = wanted.iter().flat_map(DeclaredSwitch::interfaces);
        let to_be = interfaces.find(|(name, _)| *name == full).map(|(_, to_be)| to_be);
        let known = attached(full);
        to_be.is_some_and(|to_be| known.is_some_and(|there| as_wanted(there, to_be)))
    };
    let declared_before = now.switches.iter().filter_map(|switch| switch.declared.as_ref());
    let interfaces = declared_before.clone().chain(wanted).flat_map(DeclaredSwitch::interfaces);
    let mut leaving: Vec<&str> = interfaces
        .map(|(full, _)| full)
        .filter(|full| attached(full).is_some() && !is_wanted(full))
        .collect();
    leaving.sort_unstable();
    leaving.dedup();
    let mut changes: Vec<_> = leaving.iter().map(|full| Change::Detach((*full).into())).collect();
    let let_go = declared_before.filter(|before| !wanted.iter().any(|it| it.name == before.name));
    changes.extend(let_go.map(|switch| Change::LetGo(switch.name.clone())));
    for switch in wanted {
        let there = now.switches.iter().find(|it| it.name == switch.name);
        changes.extend(changes_of(there, switch));
        let before = there.and_then(|there| there.declared.as_ref());
        let released = before.into_iter().flat_map(|before| before.released(switch));
        // An interface that leaves is named already, and the host's stack behind it goes with it.
        let stays = |full: &&str| {
            let base = full.trim_end_matches('^');
            switch.attaches(base) || !leaving.contains(&base)
        };
        changes.extend(released.filter(stays).map(|full| Change::Release(full.into())));
        let missing = switch.interfaces().filter(|(full, _)| !is_wanted(full));
        let attach = |full: &str, changes: &[Change]| match held_by(now, changes, own, full) {
            None => Change::Attach(full.into()),
            Some(held_by) => Change::AttachLater { port: full.into(), held_by: held_by.into() },
        };
        let missing: Vec<_> = missing.map(|(full, _)| attach(full, &changes)).collect();
        changes.extend(missing);
    }
    changes
}

/// Those of a switch itself, and of how its ports take part.
fn changes_of(there: Option<&LastingSwitch>, wanted: &DeclaredSwitch) -> Vec<Change> {
    let name = || wanted.name.clone();
    let Some(there) = there else { return vec![Change::Make(name())] };
    let mut changes = Vec::new();
    if (there.keeper, there.one_address) != (Some(wanted.owner), wanted.one_address) {
        changes.push(Change::Owner(name()));
    }
    if (&there.forwarding, there.multicast) != (&wanted.forwarding, wanted.multicast) {
        changes.push(Change::Forward(name()));
    }
    let statics = static_addresses(&there.addresses, there.declared.as_ref(), wanted);
    if !is_same_set(&statics, &there.addresses) {
        changes.push(Change::Addresses(name()));
    }
    let mirrors = declared_mirrors(&there.mirrors, there.declared.as_ref(), wanted);
    let is_there = |mirror| there.mirrors.contains(mirror);
    if mirrors.len() != there.mirrors.len() || !mirrors.iter().all(is_there) {
        changes.push(Change::Mirrors(name()));
    }
    for port in &wanted.ports {
        let settings = &port.settings;
        let before = there.declared.as_ref().and_then(|before| before.port(&settings.name));
        let now = there.settings.iter().find(|it| it.name == settings.name);
        let is_so = match now {
            Some(now) => now.is_like(settings),
            None => settings.is_like(&LastingSettings::unset(there.one_address)),
        };
        let same_user = before.is_none_or(|before| before.user() == port.user());
        if !(is_so && same_user) {
            changes.push(Change::Settings(settings.name.clone()));
        }
    }
    changes
}

/// Static addresses as they are to be: those that were added by hand stay, unless they are declared
/// behind another port, or the switch does not learn.
pub(crate) fn static_addresses(
    now: &[LastingAddress],
    before: Option<&DeclaredSwitch>,
    wanted: &DeclaredSwitch,
) -> Vec<LastingAddress> {
    if !wanted.learns() {
        return Vec::new();
    }
    let was_declared =
        |it: &LastingAddress| before.is_some_and(|before| before.addresses.contains(it));
    let is_declared = |it: &LastingAddress| {
        wanted.addresses.iter().any(|other| (other.mac, other.vlan) == (it.mac, it.vlan))
    };
    let by_hand = now.iter().filter(|it| !was_declared(it) && !is_declared(it));
    let room = MAX_STATICS.saturating_sub(wanted.addresses.len());
    wanted.addresses.iter().chain(by_hand.take(room)).cloned().collect()
}

/// Static addresses that were added by hand, and will have no effect when `wanted` is true: they stay, and
/// the operator is to know. `fdb add` refuses such an address.
pub fn idle_addresses(now: &Lasting, wanted: &[DeclaredSwitch]) -> Vec<Error> {
    let both = wanted.iter().filter_map(|switch| {
        Some((now.switches.iter().find(|it| it.name == switch.name)?, switch))
    });
    both.flat_map(|(there, switch)| idle_addresses_of(there, switch)).collect()
}

fn idle_addresses_of(there: &LastingSwitch, wanted: &DeclaredSwitch) -> Vec<Error> {
    let before = |full: &str| there.declared.as_ref()?.settings_of_any(full);
    // What was declared, and is not any more, is as at first.
    let stays = |it: &&LastingSettings| {
        wanted.port(&it.name).is_none() && before(&it.name).is_none_or(|old| old.vlan != it.vlan)
    };
    let declared = wanted.ports.iter().map(|port| &port.settings);
    let vlans: Vec<(&str, &Vlan)> = declared
        .chain(there.settings.iter().filter(stays))
        .map(|it| (&*it.name, &it.vlan))
        .collect();
    let any_vlan = vlans.iter().any(|(_, vlan)| **vlan != Vlan::Unaware);
    let statics = static_addresses(&there.addresses, there.declared.as_ref(), wanted);
    let by_hand = statics.into_iter().filter(|it| !wanted.addresses.contains(it));
    by_hand
        .filter_map(|LastingAddress { mac, vlan: of, port: full }| {
            let vlan = vlans.iter().find(|(name, _)| *name == full).map(|(_, vlan)| *vlan);
            let misfit = misfit(&vlan_of(vlan.unwrap_or(&Vlan::Unaware)), any_vlan, of)?;
            let (mac, bridge) = (mac_text(mac), &wanted.name);
            let (its, option) = match of {
                0 => (String::new(), String::new()),
                vlan => (format!(" in VLAN {vlan}"), format!(" --vlan {vlan}")),
            };
            let problem =
                format!("its static address {mac}{its} has no effect: {}", misfit.problem);
            let remedy = format!("delete it: `ringway switch fdb del {bridge} {mac}{option}`");
            Some(Error::invalid(problem).at(full).remedy(remedy))
        })
        .collect()
}

fn is_same_set(a: &[LastingAddress], b: &[LastingAddress]) -> bool {
    a.len() == b.len() && a.iter().all(|address| b.contains(address))
}

/// What has come of a declaration.
#[derive(Debug)]
pub struct Outcome {
    pub changes: Vec<Change>,
    /// What could not be changed.
    pub failed: Vec<Error>,
    /// See [`renamed_interfaces`] and [`idle_addresses`].
    pub notes: Vec<Error>,
}

impl Registry {
    /// Makes what is declared true, as soon as it can be: switches at once, interfaces as soon as they are
    /// there. [`check`](DeclaredSwitch::check) takes each switch. Returns what has been changed,
    /// what could not be, and what has no effect any more.
    pub fn declare(&mut self, wanted: &[DeclaredSwitch], now: Instant) -> Outcome {
        let lasting = Lasting::of(&self.ports, &self.bridges, &self.expected);
        let own = LastingNetns::of(&Netns::Own);
        let changes = changes(&lasting, wanted, own);
        let mut notes = renamed_interfaces(&lasting, wanted);
        notes.extend(idle_addresses(&lasting, wanted));
        let (mut failed, mut stay) = (Vec::new(), Vec::new());
        for change in &changes {
            if let Change::Detach(full) = change
                && let Err(error) = switch_ports::detach(self, &operator(), full)
            {
                failed.push(error);
                stay.push(full);
            }
        }
        for switch in lasting.switches.iter().filter(|switch| switch.declared.is_some()) {
            if !wanted.iter().any(|it| it.name == switch.name)
                && let Err(error) = self.bridges.undeclare(&switch.name)
            {
                failed.push(error);
            }
        }
        for switch in wanted {
            if let Err(error) = self.bridges.declare(switch) {
                failed.push(error);
            }
        }
        let interfaces = wanted.iter().flat_map(DeclaredSwitch::interfaces);
        for (full, DeclaredInterface { stack, mode }) in interfaces {
            let is_attached_anew = |change: &Change| match change {
                Change::Attach(port) | Change::AttachLater { port, .. } => port == full,
                _ => false,
            };
            // What could not be detached is there.
            if !changes.iter().any(is_attached_anew) || stay.iter().any(|it| *it == full) {
                continue;
            }
            let attachment = LastingAttachment {
                name: full.into(),
                uid: 0,
                netns: own,
                stack: *stack,
                mode: *mode,
                polling: None,
                never_there: true,
                renamed: None,
                absent: true,
            };
            if let Err(error) = self.expected.declare(attachment, now, &mut self.bridges) {
                failed.push(error);
            }
        }
        Outcome { changes, failed, notes }
    }
}

impl Registry {
    /// What users may have of switches from now on; see [`Settings`](crate::Settings). What is more than
    /// that stays.
    pub fn change_limits(
        &mut self,
        switches_per_user: usize,
        switch_ports_per_user: usize,
        lossless_users: Option<Vec<u32>>,
    ) {
        self.bridges.change_limits(switches_per_user, switch_ports_per_user, lossless_users);
    }
}

/// The caller that asks for what is declared.
fn operator() -> Caller {
    let mut caller = Caller::new(0, Netns::Own);
    caller.may_use_nics = true;
    caller
}
