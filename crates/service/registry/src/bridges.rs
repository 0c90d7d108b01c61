//! The book of bridges.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    sync::{Arc, Weak},
};

use ringway_abi::Dir;
use ringway_fastpath::FastPath;
use ringway_kring::{Doorbell, Offsets};
use ringway_proto::{Cause, Error, Forwarding, Multicast, Result};
use ringway_switch_port::{Port as BridgePort, PortIndex, PortMirrors};
use ringway_vale::{Bridge, Draining, PortConfig, PortCounters, Remainder, SourceAddresses};

use crate::{
    accounts::Accounts,
    declared::DeclaredSwitch,
    fast_switch::FastSwitch,
    lasting::{LastingAddress, LastingSettings, LastingSwitch},
    settings::Settings,
};

mod addresses;
mod declared;
mod ended;
mod forwarding;
mod held;
mod info;
mod lasting;
mod mirrors;
mod multicast;
mod statics;

pub(crate) use ended::{Drops, PortOfUser, sum};
pub(crate) use forwarding::full_name;
pub(crate) use held::HeldPlaces;
pub(crate) use info::AboutPort;
pub(crate) use mirrors::{MAX_MIRRORS, check_mirror, declared_mirrors};
pub(crate) use multicast::check_learns;
pub(crate) use statics::{Flush, MAX_STATICS, Misfit, check_address, misfit};

/// Ports of a bridge at most, besides two spare places (S-VALE-2).
pub(crate) const MAX_ACTIVE: usize = 252;

/// Begins the names of bridges that no user sees.
pub(crate) const HIDDEN_PREFIX: &str = "limbo ";

/// Where a port is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BridgePortRef {
    pub bridge: String,
    pub index: PortIndex,
}

impl BridgePortRef {
    /// Whether the port is on no bridge that a user knows of.
    pub fn is_hidden(&self) -> bool {
        self.bridge.starts_with(HIDDEN_PREFIX)
    }
}

struct PortEntry {
    index: PortIndex,
    /// Whose it is.
    uid: u32,
    /// Full name, `valeX:port`.
    name: String,
    counters: Arc<PortCounters>,
    config: PortConfig,
    /// How many addresses had moved to it when that was last reported.
    reported: u64,
    /// The port with which it was said to be in a loop.
    reported_loop: Option<PortIndex>,
}

struct BridgeEntry {
    name: String,
    worker: Bridge,
    ports: Vec<PortEntry>,
    forwarding: Forwarding,
    /// What becomes of frames for groups of IP.
    multicast: Multicast,
    /// The user who asked for it by name: it stays without ports.
    keeper: Option<u32>,
    /// Ports of programs that join it may send with one address only.
    one_address: bool,
    /// The ports that want it to poll, and on which processors.
    polled: BTreeMap<PortIndex, Vec<usize>>,
    /// The user who configured it while no user kept it.
    configured_by: Option<u32>,
    /// Full names of ports that are to come back, and whose they are.
    expected: Vec<(String, u32)>,
    /// What ports have again when they come back.
    settings: Vec<LastingSettings>,
    /// Addresses that were added to those that it learns.
    statics: Vec<LastingAddress>,
    mirrors: Vec<MirrorEntry>,
    /// What it was for the registry before, as long as no program of its users has opened a port: should it go before
    /// that, it waits again.
    awaited: Option<LastingSwitch>,
    /// What the operator has declared of it.
    declared: Option<DeclaredSwitch>,
    /// The table that the worker shares with a program in the kernel.
    table: Option<Arc<FastPath>>,
}

use ended::Ended;
use mirrors::MirrorEntry;

impl BridgeEntry {
    /// Has it poll on the processors of all ports that want it, or sleep where none does.
    fn apply_polling(&self) {
        self.worker.poll(self.polled.values().flatten().copied().collect());
    }

    /// The user whose share it is: the one who made it to stay, or who has the first of its ports.
    fn user(&self) -> Option<u32> {
        let first = self.ports.first().map(|port| port.uid);
        self.keeper.or(first).or_else(|| self.expected.first().map(|(_, uid)| *uid))
    }

    /// Has the worker share its table, unless it does.
    fn share(&mut self, table: Option<Arc<FastPath>>) {
        let Some(new) = table else { return };
        if !self.table.as_ref().is_some_and(|table| Arc::ptr_eq(table, &new)) {
            self.worker.share_table(new.clone());
            self.table = Some(new);
        }
    }

    /// The port of that index.
    fn port(&self, index: PortIndex) -> Option<&PortEntry> {
        self.ports.iter().find(|port| port.index == index)
    }

    fn is_visible(&self) -> bool {
        !self.name.starts_with(HIDDEN_PREFIX)
    }
}

/// All bridges. Their indices are stable while they exist (S-VALE-18).
pub(crate) struct Bridges {
    entries: Vec<Option<BridgeEntry>>,
    max: usize,
    /// What each user may have of them, and on each.
    share: usize,
    ports_share: usize,
    kept_bytes_share: usize,
    accounts: Arc<Accounts>,
    lossless_users: Option<Vec<u32>>,
    /// Whether what is to outlive the daemon may have changed.
    pub lasting_changed: bool,
    /// Rung by a worker that has lost ports. Only where something listens to events.
    doorbell: Option<Arc<Doorbell>>,
    /// By the name of the switch, with the network namespace of the interfaces.
    fast: BTreeMap<String, (u64, Weak<FastSwitch>)>,
    /// Places that requests hold.
    held: Vec<HeldPlaces>,
    /// Bridges of the registry before, on which programs alone had ports: with the first port that is opened again,
    /// they go on as they were.
    returning: Vec<LastingSwitch>,
    /// Ports that have gone since drops were looked at.
    ended: Ended,
}

impl Bridges {
    pub fn new(settings: &Settings) -> Bridges {
        Bridges {
            entries: Vec::new(),
            max: settings.max_bridges,
            share: settings.switches_per_user,
            ports_share: settings.switch_ports_per_user,
            kept_bytes_share: settings.kept_bytes_per_user,
            accounts: settings.accounts.clone(),
            lossless_users: settings.lossless_users.clone(),
            lasting_changed: false,
            doorbell: None,
            fast: BTreeMap::new(),
            held: Vec::new(),
            returning: Vec::new(),
            ended: Ended::new(info::drops_of),
        }
    }

    /// What users may have from now on; what is more than that stays.
    pub fn change_limits(&mut self, share: usize, ports: usize, lossless: Option<Vec<u32>>) {
        (self.share, self.ports_share, self.lossless_users) = (share, ports, lossless);
    }

    /// What forwards between the interfaces of a bridge in the kernel, for one of network namespace `netns`; or
    /// why it cannot for that one.
    pub fn fast_switch(
        &mut self,
        bridge: &str,
        netns: u64,
    ) -> std::result::Result<Arc<FastSwitch>, &'static str> {
        self.fast.retain(|_, (_, fast)| fast.strong_count() > 0);
        let there = self.fast.get(bridge).and_then(|(at, fast)| Some((*at, fast.upgrade()?)));
        match there {
            Some((at, fast)) if at == netns => Ok(fast),
            Some(_) => Err("others of the switch are in another network namespace"),
            None => {
                let fast = Arc::default();
                self.fast.insert(bridge.into(), (netns, Arc::downgrade(&fast)));
                Ok(fast)
            }
        }
    }

    /// From now on `doorbell` is rung when a worker has lost ports.
    pub fn report_to(&mut self, doorbell: Arc<Doorbell>) {
        let workers = self.entries.iter().flatten().map(|entry| &entry.worker);
        workers.for_each(|worker| worker.report_to(doorbell.clone()));
        self.doorbell = Some(doorbell);
    }

    /// The ports that workers have lost by panics, with their names. Each is to be detached. A worker that has
    /// ended is started anew, without ports.
    ///
    /// `stays` says whose a port is that comes back: the bridge is there until then.
    pub fn take_lost(
        &mut self,
        stays: impl Fn(&str) -> Option<u32>,
    ) -> Vec<(BridgePortRef, String)> {
        let mut lost = Vec::new();
        for place in &mut self.entries {
            let Some(entry) = place else { continue };
            let from_worker = entry.worker.take_lost();
            if from_worker.is_nothing() {
                continue;
            }
            let bridge = entry.name.clone();
            let is_lost =
                |port: &&PortEntry| from_worker.all || from_worker.ports.contains(&port.index);
            let told = |port: &PortEntry| {
                (BridgePortRef { bridge: bridge.clone(), index: port.index }, port.name.clone())
            };
            lost.extend(entry.ports.iter().filter(is_lost).map(told));
            for port in entry.ports.iter().filter(is_lost) {
                // Its stack is behind it.
                let name = port.name.trim_end_matches('^');
                let expected = |(it, _): &(String, u32)| it == name;
                if let Some(uid) = stays(name).filter(|_| !entry.expected.iter().any(expected)) {
                    entry.expected.push((name.into(), uid));
                }
            }
            if !from_worker.all {
                let lost: Vec<_> = entry
                    .ports
                    .extract_if(.., |port| from_worker.ports.contains(&port.index))
                    .collect();
                lost.iter().for_each(|port| entry.keep_settings(port, true));
                entry.ports.extend(lost);
                continue;
            }
            match start(&bridge, self.doorbell.as_ref()) {
                Ok(worker) => {
                    entry.worker = worker;
                    entry.polled.clear();
                    for gone in std::mem::take(&mut entry.ports) {
                        entry.keep_settings(&gone, true);
                    }
                    entry.apply_forwarding();
                    entry.apply_multicast();
                    entry.apply_mirrors();
                    // What the old one had told the program went with it.
                    entry.table = None;
                }
                // The next port to join makes a new one.
                Err(_) => self.returning.extend(place.take().and_then(|gone| gone.awaited)),
            }
        }
        self.reap();
        lost
    }

    /// ENOMEM if there are as many bridges as there can be, or as user `uid` may have.
    fn check_share(&self, bridge: &str, uid: u32) -> Result<()> {
        let visible = || self.entries.iter().flatten().filter(|e| e.is_visible());
        if visible().count() + self.held_anew(bridge, |_| true) >= self.max {
            let problem =
                format!("there are {} switches already, the most that this daemon runs", self.max);
            return Err(Error::no_memory(problem)
                .at(bridge)
                .remedy("delete one or raise max_bridges in its configuration"));
        }
        let account = self.accounts.of(uid);
        let is_theirs = |user| self.accounts.of(user) == account;
        let theirs = visible().filter(|entry| entry.user().is_some_and(is_theirs)).count();
        if uid != 0 && theirs + self.held_anew(bridge, is_theirs) >= self.share {
            let whose = self.accounts.name(uid);
            let problem =
                format!("{whose} has {} switches already, the most that each may have", self.share);
            return Err(Error::no_memory(problem).at(bridge).remedy(
                "use one of those, or raise switches_per_user in the daemon's configuration",
            ));
        }
        Ok(())
    }

    /// ENOMEM if user `uid` may not have so many ports more on a bridge, or there is no room for them: to be
    /// asked before anything is opened for them.
    pub fn check_room(&self, bridge: &str, uid: u32, ports: usize) -> Result<()> {
        let held = self.held_on(bridge, |_| true);
        match self.entry(bridge) {
            None if !bridge.starts_with(HIDDEN_PREFIX) => self.check_share(bridge, uid)?,
            Some(entry) if entry.ports.len() + held + ports > MAX_ACTIVE => {
                return Err(no_place(bridge));
            }
            _ => {}
        }
        self.check_ports_share(bridge, uid, ports)
    }

    /// ENOMEM if user `uid` has as many ports on a bridge as each may have, or would with so many more.
    fn check_ports_share(&self, bridge: &str, uid: u32, ports: usize) -> Result<()> {
        let (accounts, share) = (&self.accounts, self.ports_share);
        let account = accounts.of(uid);
        let held = self.held_on(bridge, |user| accounts.of(user) == account);
        let Some(entry) = self.entry(bridge) else {
            return if uid == 0 || held + ports <= share.max(1) || bridge.starts_with(HIDDEN_PREFIX)
            {
                Ok(())
            } else {
                Err(self.no_share(bridge, uid))
            };
        };
        let theirs = entry.ports.iter().filter(|port| accounts.of(port.uid) == account).count();
        let is_keeper = entry.keeper.is_some_and(|keeper| accounts.of(keeper) == account);
        if uid == 0 || is_keeper || !entry.is_visible() || theirs + held + ports <= share {
            return Ok(());
        }
        Err(self.no_share(bridge, uid))
    }

    fn no_share(&self, bridge: &str, uid: u32) -> Error {
        let (whose, share) = (self.accounts.name(uid), self.ports_share);
        let problem = format!("{whose} may have no more than {share} ports there, as each user");
        Error::no_memory(problem).at(bridge).remedy(
            "close some, make a switch of your own with `ringway switch new`, or raise \
             switch_ports_per_user in the daemon's configuration",
        )
    }

    fn entry(&self, bridge: &str) -> Option<&BridgeEntry> {
        self.entries.iter().flatten().find(|entry| entry.name == bridge)
    }

    fn find(&mut self, bridge: &str) -> Option<&mut BridgeEntry> {
        self.entries.iter_mut().flatten().find(|e| e.name == bridge)
    }

    fn find_or_start(&mut self, bridge: &str, uid: u32) -> Result<&mut BridgeEntry> {
        let known = self.entries.iter().position(|e| e.as_ref().is_some_and(|e| e.name == bridge));
        if known.is_none() && !bridge.starts_with(HIDDEN_PREFIX) {
            self.check_share(bridge, uid)?;
        }
        let free = self.entries.iter().position(Option::is_none);
        let at = known.or(free).unwrap_or(self.entries.len());
        if at == self.entries.len() {
            self.entries.push(None);
        }
        #[expect(clippy::indexing_slicing, reason = "it was found, or made just before")]
        let slot = &mut self.entries[at];
        if slot.is_none() {
            let worker = start(bridge, self.doorbell.as_ref())
                .map_err(|e| Error::io(&format!("{bridge}: cannot start a worker"), e))
                .map_err(|e| {
                    e.remedy(
                        "raise the daemon's limit of tasks (TasksMax= of its unit, RLIMIT_NPROC), or of \
                         open files",
                    )
                })?;
            *slot = Some(BridgeEntry {
                name: bridge.into(),
                worker,
                ports: Vec::new(),
                forwarding: Forwarding::default(),
                multicast: Multicast::default(),
                keeper: None,
                one_address: false,
                polled: BTreeMap::new(),
                configured_by: None,
                expected: Vec::new(),
                settings: Vec::new(),
                statics: Vec::new(),
                mirrors: Vec::new(),
                awaited: None,
                declared: None,
                table: None,
            });
            let before = self.returning.iter().position(|switch| switch.name == bridge);
            if let (Some(entry), Some(before)) = (slot.as_mut(), before) {
                // Each of it was checked when it was read, and the port is opened in any case.
                let before = entry.awaited.insert(self.returning.remove(before)).clone();
                let _ = entry.go_on_from(before, uid);
            }
        }
        slot.as_mut().ok_or_else(|| no_bridge(bridge))
    }

    /// Makes a bridge that stays, for user `uid`; if `one_address`, ports of programs that join it may
    /// send with one address only.
    pub fn create(&mut self, bridge: &str, uid: u32, one_address: bool) -> Result<()> {
        let entry = self.find_or_start(bridge, uid)?;
        if entry.keeper.is_some() {
            return Err(Error::new(Cause::Exists, "there is such a switch").at(bridge));
        }
        (entry.keeper, entry.one_address) = (Some(uid), one_address);
        self.lasting_changed = true;
        Ok(())
    }

    /// What source addresses a program's port may send with that joins the bridge.
    pub fn sources_of_new(&self, bridge: &str) -> SourceAddresses {
        self.entry(bridge).map_or(SourceAddresses::Any, |entry| entry.default_sources())
    }

    /// The user who made the bridge to stay, if one did. Fails if there is no such bridge.
    pub fn keeper(&self, bridge: &str) -> Result<Option<u32>> {
        Ok(self.entry(bridge).ok_or_else(|| no_bridge(bridge))?.keeper)
    }

    /// The user whose the bridge is: the one who made it to stay, or who has the first of its
    /// ports.
    pub fn owner(&self, bridge: &str) -> Option<u32> {
        let entry = self.entry(bridge)?;
        entry.is_visible().then(|| entry.user())?
    }

    /// Notes that a user has configured a bridge, or a port of it.
    pub fn note_configured_by(&mut self, bridge: &str, uid: u32) {
        if let Some(entry) = self.find(bridge).filter(|e| e.keeper.is_none() && uid != 0) {
            entry.configured_by = Some(uid);
            self.lasting_changed = true;
        }
    }

    /// The user who has configured the bridge, if no user keeps it.
    pub fn configured_by(&self, bridge: &str) -> Option<u32> {
        self.entry(bridge).filter(|e| e.keeper.is_none())?.configured_by
    }

    /// Has a function of a test's decide where frames go.
    #[cfg(feature = "faults")]
    pub fn set_function(&mut self, bridge: &str, function: Box<dyn ringway_vale::Forward>) {
        if let Some(entry) = self.find(bridge) {
            entry.worker.set_function(function);
        }
    }

    /// Lets a bridge go with its last port. Fails if there is none of that name.
    pub fn release(&mut self, bridge: &str) -> Result<()> {
        let entry = self.find(bridge).ok_or_else(|| no_bridge(bridge))?;
        entry.keeper = None;
        self.lasting_changed = true;
        self.reap();
        Ok(())
    }

    /// Whether any bridge stays without ports: then so must the daemon.
    pub fn any_kept(&self) -> bool {
        self.entries.iter().flatten().any(|e| e.keeper.is_some())
    }

    /// How many bridges stay without ports for some users.
    pub fn kept_by(&self, users: impl Fn(u32) -> bool) -> usize {
        self.entries.iter().flatten().filter(|entry| entry.keeper.is_some_and(&users)).count()
    }

    /// Attaches a port of user `uid`, called `name`, to `bridge`, which comes into being if need be. A
    /// port that is refused is closed here: so it is one of rings alone.
    pub fn attach(
        &mut self,
        uid: u32,
        bridge: &str,
        name: &str,
        port: Box<dyn BridgePort>,
        config: PortConfig,
    ) -> Result<BridgePortRef> {
        let attached = self.attach_interface(uid, bridge, name, port, config, None);
        attached.map_err(|(error, _)| error)
    }

    /// The same for an interface, or the stack behind it, which takes the kernel its time to close: an
    /// error comes with it. `table`: of the program in the kernel that forwards for it.
    pub fn attach_interface(
        &mut self,
        uid: u32,
        bridge: &str,
        name: &str,
        port: Box<dyn BridgePort>,
        config: PortConfig,
        table: Option<Arc<FastPath>>,
    ) -> Result<BridgePortRef, (Error, Option<Box<dyn BridgePort>>)> {
        crate::fault::step();
        let config = match self.ready(uid, bridge, name, config, table) {
            Ok(config) => config,
            Err(error) => {
                self.reap();
                return Err((error, Some(port)));
            }
        };
        let counters = Arc::new(PortCounters::default());
        let entry = self.find(bridge);
        let attached = entry.and_then(|entry| {
            let index = entry.worker.attach(port, config.clone(), counters.clone())?;
            Some((entry, index))
        });
        let Some((entry, index)) = attached else {
            self.reap();
            return Err((no_place(bridge), None));
        };
        entry.ports.push(PortEntry {
            index,
            uid,
            name: name.into(),
            counters,
            config,
            reported: 0,
            reported_loop: None,
        });
        entry.forget_settings(name, uid);
        entry.ports_changed(name);
        Ok(BridgePortRef { bridge: bridge.into(), index })
    }

    /// Fails as [`attach`](Self::attach) would for a program's port, and attaches none.
    pub fn check_attach(&self, uid: u32, bridge: &str, name: &str) -> Result<()> {
        self.check_room(bridge, uid, 1)?;
        let declared = self.entry(bridge).and_then(|entry| entry.declared.as_ref());
        let checked = declared.map_or(Ok(()), |declared| declared.check_user(name, uid));
        checked.map_err(|e| e.at(name))
    }

    /// A bridge with room for a port, which comes into being if need be. Returns how the port takes part.
    fn ready(
        &mut self,
        uid: u32,
        bridge: &str,
        name: &str,
        mut config: PortConfig,
        table: Option<Arc<FastPath>>,
    ) -> Result<PortConfig> {
        self.check_ports_share(bridge, uid, 1)?;
        let may_be_lossless = self.may_be_lossless(uid);
        let held = self.held_on(bridge, |_| true);
        let entry = self.find_or_start(bridge, uid)?;
        entry.share(table);
        entry.settle(name, uid, &mut config).map_err(|e| e.at(name))?;
        config.lossless = config.lossless.filter(|_| may_be_lossless);
        match entry.ports.len() + held >= MAX_ACTIVE {
            true => Err(no_place(bridge)),
            false => Ok(config),
        }
    }

    /// Changes the settings of a port.
    pub fn change(&mut self, bridge: &str, index: PortIndex, f: impl FnOnce(&mut PortConfig)) {
        let Some(entry) = self.find(bridge) else { return };
        if let Some(port) = entry.ports.iter_mut().find(|m| m.index == index) {
            let before = port.config.clone();
            f(&mut port.config);
            if port.config != before {
                entry.worker.configure(index, port.config.clone());
                self.lasting_changed = true;
            }
        }
    }

    /// The same for several ports at once.
    pub(super) fn change_all(&mut self, bridge: &str, changes: Vec<(PortIndex, PortConfig)>) {
        let Some(entry) = self.find(bridge).filter(|_| !changes.is_empty()) else { return };
        for (index, config) in &changes {
            if let Some(port) = entry.ports.iter_mut().find(|port| port.index == *index) {
                port.config = config.clone();
            }
        }
        entry.worker.configure_all(changes);
        self.lasting_changed = true;
    }

    /// Sets the offsets of a ring of a port.
    pub fn set_offsets(
        &mut self,
        bridge_port: &BridgePortRef,
        dir: Dir,
        ring: usize,
        offsets: Offsets,
    ) {
        if let Some(entry) = self.find(&bridge_port.bridge) {
            entry.worker.set_offsets(bridge_port.index, dir, ring, Some(offsets));
        }
    }

    /// Puts `port`, which has the same doorbell, in the place of another. When this returns the rings
    /// of that one are not touched any more: what it had sent is lost as far as it is more than can be
    /// forwarded in some milliseconds.
    pub fn replace(&mut self, bridge_port: &BridgePortRef, port: Box<dyn BridgePort>) {
        crate::fault::step();
        if let Some(entry) = self.find(&bridge_port.bridge) {
            entry.worker.leave(bridge_port.index, Some(port), Remainder::Drop, None);
        }
    }

    /// As [`replace`](Self::replace), but what the old one has sent is all forwarded: the worker touches its
    /// rings as long as the answer says, and rings `doorbell` when it has done with them.
    pub fn begin_replace(
        &mut self,
        bridge_port: &BridgePortRef,
        port: Box<dyn BridgePort>,
        doorbell: Option<Arc<Doorbell>>,
    ) -> Option<Draining> {
        crate::fault::step();
        let entry = self.find(&bridge_port.bridge)?;
        entry.worker.leave(bridge_port.index, Some(port), Remainder::Forward, doorbell)
    }

    /// Takes a port off its bridge, as [`replace`](Self::replace). Returns what the worker had of an interface:
    /// to close that takes the kernel its time.
    #[must_use]
    pub fn detach(&mut self, bridge_port: &BridgePortRef) -> Option<Box<dyn BridgePort>> {
        self.take_off(bridge_port, Remainder::Drop, None, false).and_then(Draining::into_port)
    }

    /// Takes a program's port off its bridge. The worker touches its rings as long as the answer says, to forward
    /// what it has sent, and rings `doorbell` when it has done with them. The user's next port of that name has its
    /// settings.
    pub fn begin_detach(
        &mut self,
        bridge_port: &BridgePortRef,
        doorbell: Option<Arc<Doorbell>>,
    ) -> Option<Draining> {
        self.take_off(bridge_port, Remainder::Forward, doorbell, true)
    }

    fn take_off(
        &mut self,
        bridge_port: &BridgePortRef,
        remainder: Remainder,
        doorbell: Option<Arc<Doorbell>>,
        comes_back: bool,
    ) -> Option<Draining> {
        crate::fault::step();
        let (mut draining, mut was_set, mut ended) = (None, false, None);
        if let Some(entry) = self.find(&bridge_port.bridge) {
            draining = entry.worker.leave(bridge_port.index, None, remainder, doorbell);
            let gone = entry.ports.extract_if(.., |m| m.index == bridge_port.index).next();
            if let Some(gone) = gone {
                was_set = entry.is_set(&gone.config);
                ended = entry
                    .is_visible()
                    .then(|| (gone.name.clone(), gone.uid, gone.counters.clone()));
                entry.ports_changed(&gone.name);
                entry.keep_settings(&gone, comes_back);
            }
            if entry.polled.remove(&bridge_port.index).is_some() {
                entry.apply_polling();
            }
        }
        if let Some((name, uid, counters)) = ended {
            self.ended.add(name, uid, counters);
        }
        self.lasting_changed |= was_set;
        self.reap();
        draining
    }

    /// Whether ports have gone since drops were looked at.
    pub fn have_ended_ports(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Those ports, with what each had dropped.
    pub fn take_ended(&mut self) -> HashMap<PortOfUser, Drops> {
        self.ended.take()
    }

    /// Has the bridge of a port poll for it on `cpus`, or not for it.
    pub fn poll(&mut self, bridge_port: &BridgePortRef, cpus: Option<Vec<usize>>) {
        self.lasting_changed = true;
        let Some(entry) = self.find(&bridge_port.bridge) else { return };
        let changed = match cpus {
            Some(cpus) => entry.polled.insert(bridge_port.index, cpus.clone()) != Some(cpus),
            None => entry.polled.remove(&bridge_port.index).is_some(),
        };
        if changed {
            entry.apply_polling();
        }
    }

    /// Has what a port's rings carry shown to these monitors. When this returns, the old ones
    /// are not touched any more.
    pub fn set_mirrors(&mut self, bridge_port: &BridgePortRef, mirrors: PortMirrors) {
        if let Some(entry) = self.find(&bridge_port.bridge) {
            entry.worker.set_mirrors(bridge_port.index, mirrors);
        }
    }

    /// Ends the bridges that nothing needs.
    pub fn reap(&mut self) {
        for entry in &mut self.entries {
            let gone = entry
                .take_if(|e| e.ports.is_empty() && e.keeper.is_none() && e.expected.is_empty());
            if let Some(gone) = gone {
                self.lasting_changed |= gone.is_visible();
                self.returning.extend(gone.awaited);
            }
        }
    }

    /// Full names of the ports of a bridge.
    pub fn port_names(&self, bridge: &str) -> Result<Vec<String>> {
        let entry = self.entry(bridge).ok_or_else(|| no_bridge(bridge))?;
        Ok(entry.ports.iter().map(|m| m.name.clone()).collect())
    }

    /// The full name of a port of a bridge that is not user `uid`'s, if there is one.
    pub fn port_of_others(&self, bridge: &str, uid: u32) -> Option<&str> {
        let mut ports = self.entry(bridge)?.ports.iter();
        ports.find(|port| port.uid != uid).map(|port| &*port.name)
    }

    /// Indices of a bridge and of a port on it, if it is there.
    pub fn locate(&self, bridge: &str, name: &str) -> Option<(usize, Option<PortIndex>)> {
        let at = self.entries.iter().position(|e| e.as_ref().is_some_and(|e| e.name == bridge))?;
        let ports = &self.entries.get(at)?.as_ref()?.ports;
        Some((at, ports.iter().find(|m| m.name == name).map(|m| m.index)))
    }

    /// The places of all ports.
    pub fn places(&self) -> impl Iterator<Item = BridgePortRef> {
        let entries = self.entries.iter().flatten();
        entries.flat_map(|entry| {
            let place =
                |port: &PortEntry| BridgePortRef { bridge: entry.name.clone(), index: port.index };
            entry.ports.iter().map(place)
        })
    }

    /// Whether a port of that name is on the bridge.
    pub fn has(&self, bridge: &str, name: &str) -> bool {
        self.locate(bridge, name).is_some_and(|(_, port)| port.is_some())
    }

    /// Whether a port is a network interface.
    pub fn is_interface(&self, bridge: &str, index: PortIndex) -> bool {
        let port = self.entry(bridge).and_then(|entry| entry.port(index));
        port.is_some_and(|port| port.config.is_interface)
    }

    /// Whether a bridge forwards by the addresses that it learns.
    pub fn learns(&self, bridge: &str) -> bool {
        self.entry(bridge).is_some_and(|entry| entry.learns())
    }

    /// A port of a bridge that has a limit of addresses, and whether it is there, or is to have it when it is back.
    pub fn limited_port(&self, bridge: &str) -> Option<(String, bool)> {
        let entry = self.entry(bridge)?;
        let there = entry.ports.iter().find(|port| port.config.max_addresses.is_some());
        let kept = || {
            let mut kept = entry.settings.iter().filter(|it| entry.is_expected(&it.name));
            kept.find(|settings| settings.max_addresses.is_some())
        };
        there.map(|port| (port.name.clone(), true)).or_else(|| Some((kept()?.name.clone(), false)))
    }

    /// How a port takes part.
    pub fn config(&self, bridge: &str, index: PortIndex) -> Option<&PortConfig> {
        self.entry(bridge).and_then(|entry| entry.port(index)).map(|port| &port.config)
    }

    /// Whether ports of user `uid` may have others wait.
    fn may_be_lossless(&self, uid: u32) -> bool {
        let Some(users) = &self.lossless_users else { return true };
        uid == 0 || users.iter().any(|user| self.accounts.of(*user) == self.accounts.of(uid))
    }

    /// EPERM if a port must not be lossless, by the operator's configuration: for it is a user's who may not
    /// have others wait, or such a user asks for it.
    pub fn check_lossless(&self, caller: u32, bridge: &str, index: PortIndex) -> Result<()> {
        let owner = self.entry(bridge).and_then(|entry| entry.port(index)).map(|port| port.uid);
        let users = [Some(caller), owner];
        match users.into_iter().flatten().find(|uid| !self.may_be_lossless(*uid)) {
            None => Ok(()),
            Some(uid) => {
                let problem = format!("user {uid} may not have other users' programs wait");
                let remedy = "add the user to lossless_users in the daemon's configuration";
                Err(Error::new(Cause::Denied, problem).remedy(remedy))
            }
        }
    }

    /// The ports that were blocked since the last call, each with the other end of its loop.
    pub fn loops(&mut self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for entry in self.entries.iter_mut().flatten() {
            let names: BTreeMap<_, _> =
                entry.ports.iter().map(|port| (port.index, port.name.clone())).collect();
            for port in &mut entry.ports {
                let now = port.counters.state().loops_with;
                if std::mem::replace(&mut port.reported_loop, now) != now
                    && let Some(other) = now.and_then(|other| names.get(&other))
                {
                    found.push((port.name.clone(), other.clone()));
                }
            }
        }
        found
    }

    /// The ports to which addresses of others have moved since the last call, and how many.
    pub fn moves(&mut self) -> Vec<(String, u64)> {
        let ports = self.entries.iter_mut().flatten().flat_map(|entry| &mut entry.ports);
        let moved = ports.filter_map(|port| {
            let now = port.counters.totals().moved;
            let before = std::mem::replace(&mut port.reported, now);
            (now > before).then(|| (port.name.clone(), now - before))
        });
        moved.collect()
    }
}

/// A worker, which rings `doorbell` when it has lost ports.
fn start(bridge: &str, doorbell: Option<&Arc<Doorbell>>) -> io::Result<Bridge> {
    let worker = Bridge::start(bridge)?;
    doorbell.into_iter().for_each(|doorbell| worker.report_to(doorbell.clone()));
    Ok(worker)
}

fn no_place(bridge: &str) -> Error {
    Error::no_memory("no room for another port").at(bridge).remedy("use a second switch")
}

fn no_bridge(bridge: &str) -> Error {
    Error::new(Cause::NotFound, "there is no such switch")
        .at(bridge)
        .remedy("`ringway switch list` shows those there are")
}
