//! What users see of bridges.

use std::time::{Duration, Instant};

use ringway_proto::{
    AttachmentInfo, BridgeInfo, BridgePortInfo, Cause, Declared, Error, Filter, PortTotals, Result,
    SwitchMirrorInfo, SwitchPosition,
};
use ringway_switch_port::PortIndex;
use ringway_vale::{ByWorker, PortCounters, PortState};

use super::{
    BridgeEntry, BridgePortRef, Bridges, PortEntry,
    ended::{Drops, PortOfUser},
};
use crate::{
    lasting::LastingSettings,
    page::{page, switch_bytes, switch_mirror_bytes, switch_port_bytes},
    switch_config::{
        shown_lossless, shown_multicast_router, shown_rate, shown_rounds, shown_sources,
        shown_totals, shown_vlan,
    },
};

/// The first index that no port has: those that are to come back are shown there.
const FIRST_ABSENT: u32 = 256;

/// Where the mirrors of a switch are among its ports: behind all.
const FIRST_MIRROR: u32 = 1 << 16;

/// How long all workers together may take to bring their counters up to date.
const COUNTING: Duration = Duration::from_millis(40);

/// What a port has dropped.
pub(super) fn drops_of(counters: &PortCounters) -> Drops {
    shown_totals(counters.totals()).drops.reasons().map(|(_, frames)| frames)
}

impl Bridges {
    /// What users see of the bridges from a position on, as far as it fits a page, and where the next
    /// one begins. `about` says how the interface of that name is driven and attached, or why not.
    pub fn info(
        &self,
        from: SwitchPosition,
        about: impl Fn(&str) -> AboutPort,
    ) -> (Vec<BridgeInfo>, Option<SwitchPosition>) {
        let visible = || {
            let all = self.entries.iter().enumerate().skip(from.switch.into());
            all.filter_map(|(at, entry)| {
                Some((at as u16, entry.as_ref().filter(|e| e.is_visible())?))
            })
        };
        // All workers bring their counters up to date at the same time. The counters of one that
        // does not come to it are a little older.
        let counts: Vec<_> = visible().map(|(_, entry)| entry.worker.begin_count()).collect();
        let end = Instant::now() + COUNTING;
        for count in counts {
            let _ = count.recv_timeout(end.saturating_duration_since(Instant::now()));
        }
        // A bridge, then its ports.
        let items = visible().flat_map(|(at, entry)| {
            let from = if at == from.switch { from.port } else { 0 };
            let mut ports: Vec<_> = entry.ports.iter().collect();
            ports.sort_by_key(|port| port.index);
            let ports = ports.into_iter().filter(move |port| u32::from(port.index) >= from);
            let shown = ports.map(|port| {
                (port.index.into(), Shown::Port(Box::new(port.info(entry, about(&port.name)))))
            });
            let absent = (FIRST_ABSENT..).zip(entry.absent()).filter(move |(at, _)| *at >= from);
            let absent = absent.map(|(at, (name, uid))| {
                let info = entry.absent_info(name, uid, at, about(name));
                (at, Shown::Port(Box::new(info)))
            });
            let mirrors =
                (FIRST_MIRROR..).zip(entry.mirrors_info()).filter(move |(at, _)| *at >= from);
            let mirrors = mirrors.map(|(at, mirror)| (at, Shown::Mirror(Box::new(mirror))));
            let shown = shown.chain(absent).chain(mirrors);
            let begin = (from, Shown::Bridge(entry.info()));
            let position = move |(port, shown)| (SwitchPosition { switch: at, port }, shown);
            std::iter::once(begin).chain(shown).map(position)
        });
        let (page, next) = page(items, Shown::bytes);
        let mut bridges: Vec<BridgeInfo> = Vec::new();
        for shown in page {
            match shown {
                Shown::Bridge(bridge) => bridges.push(bridge),
                Shown::Port(port) => {
                    if let Some(bridge) = bridges.last_mut() {
                        bridge.ports.push(*port);
                    }
                }
                Shown::Mirror(mirror) => {
                    if let Some(bridge) = bridges.last_mut() {
                        bridge.mirrors.push(*mirror);
                    }
                }
            }
        }
        (bridges, next)
    }

    /// What each port has dropped, as of the last time that its worker has told: often while it is busy, and before
    /// it sleeps.
    pub fn drops(&self) -> impl Iterator<Item = (PortOfUser, Drops)> {
        let visible = self.entries.iter().flatten().filter(|entry| entry.is_visible());
        visible
            .flat_map(|entry| &entry.ports)
            .map(|port| ((port.name.clone(), port.uid), drops_of(&port.counters)))
    }

    /// The mode of an interface that is a port, and whether the worker forwards for it all the same.
    pub fn describe_path(&self, port: &BridgePortRef, mode: &str) -> String {
        let bridge = self.entries.iter().flatten().find(|entry| entry.name == port.bridge);
        let entry = bridge.and_then(|bridge| bridge.port(port.index));
        with_path(mode, entry.and_then(|entry| entry.counters.state().by_worker))
    }

    /// Where a port is among the bridges (S-VALE-18); without a name, the first one at or after `from`.
    pub fn position(&self, name: &str, from: SwitchPosition) -> Result<(String, SwitchPosition)> {
        let at = |switch: usize, port: u32| SwitchPosition { switch: switch as u16, port };
        if name.is_empty() {
            let first = self.first_from(from.switch.into(), from.port);
            let (bridge, port, name) = first.ok_or_else(|| {
                Error::new(Cause::NotFound, "there are no more ports on any switch")
            })?;
            return Ok((name, at(bridge, port.into())));
        }
        if !name.starts_with("vale") {
            return Err(Error::invalid("a switch is named vale<id>").at(name));
        }
        let bridge = name.split_once(':').map(|(bridge, _)| bridge);
        let found = bridge.and_then(|bridge| self.locate(bridge, name));
        let (bridge, port) =
            found.ok_or_else(|| Error::new(Cause::NotFound, "there is no such switch").at(name))?;
        Ok((name.into(), at(bridge, port.map_or(255, u32::from))))
    }

    /// The first port at or after the given indices, in their order.
    fn first_from(&self, bridge: usize, port: u32) -> Option<(usize, PortIndex, String)> {
        (bridge..self.entries.len()).find_map(|at| {
            let least = if at == bridge { port } else { 0 };
            let entry = self.entries.get(at)?.as_ref().filter(|e| e.is_visible())?;
            let next = entry.ports.iter().filter(|m| u32::from(m.index) >= least);
            next.min_by_key(|m| m.index).map(|m| (at, m.index, m.name.clone()))
        })
    }
}

/// Nothing is known of such a port.
fn no_port(full: &str) -> Error {
    Error::absent("there is no such port")
        .at(full)
        .remedy("`ringway switch list` shows those there are")
}

impl Bridges {
    /// Why nothing can be done with a port that is not on that bridge now.
    pub fn no_port(&self, bridge: &str, full: &str) -> Error {
        self.entry(bridge).map_or_else(|| no_port(full), |entry| entry.no_port(full))
    }

    /// Whether that is a declared port of a program, and none has it open.
    pub fn is_program_absent(&self, bridge: &str, full: &str) -> bool {
        self.entry(bridge).and_then(|entry| entry.waits_for_program(full)) == Some(true)
    }
}

impl BridgeEntry {
    /// As users see it, without its ports.
    fn info(&self) -> BridgeInfo {
        let (name, forwarding) = (self.name.clone(), self.forwarding.clone());
        BridgeInfo {
            name,
            forwarding,
            multicast: self.multicast,
            ports: Vec::new(),
            owner: self.user(),
            declared: self.is_declared(),
            declared_at: self.declared.as_ref().map(|declared| declared.place.clone()),
            one_address: self.one_address,
            rounds: shown_rounds(&self.worker.rounds()),
            mirrors: Vec::new(),
        }
    }

    /// The names of ports that are to come back, or that programs have not opened yet, and whose they are.
    fn absent(&self) -> impl Iterator<Item = (&str, u32)> {
        let expected = self.expected.iter().map(|(name, uid)| (&**name, *uid));
        // A host's stack is there with its interface.
        let programs = self.declared_of_absent().filter(|settings| {
            let of_interface = self.declared.as_ref().is_some_and(|it| it.attaches(&settings.name));
            !of_interface && !settings.name.ends_with('^')
        });
        expected.chain(programs.map(|settings| (&*settings.name, settings.uid)))
    }

    /// Whether a port that is not there is to be opened by a program, or is an interface; `None`: nothing waits
    /// for such a port.
    fn waits_for_program(&self, full: &str) -> Option<bool> {
        let of_interface = self.expected.iter().any(|(name, _)| name == full);
        self.absent().any(|(name, _)| name == full).then_some(!of_interface)
    }

    /// Why nothing can be done with a port that is not there now.
    pub(super) fn no_port(&self, full: &str) -> Error {
        let (problem, remedy) = match self.waits_for_program(full) {
            Some(true) => (
                "no program has it open",
                "open it first, or change what the configuration declares of it",
            ),
            Some(false) => (
                "its interface is not attached at the moment",
                "`ringway switch list` says why; try again when it is there",
            ),
            None => return no_port(full),
        };
        Error::absent(problem).at(full).remedy(remedy)
    }

    /// Such a port as users see it.
    fn absent_info(&self, name: &str, uid: u32, index: u32, about: AboutPort) -> BridgePortInfo {
        let declared = self.declared.as_ref().and_then(|it| it.settings_of_any(name));
        let kept = self.settings.iter().find(|it| it.name == name).or(declared).cloned();
        let settings = kept.unwrap_or_else(|| LastingSettings::unset(false));
        let text = |filter: Option<Filter>| filter.map(|filter| filter.text);
        BridgePortInfo {
            name: name.into(),
            index,
            totals: PortTotals::default(),
            vlan: settings.vlan,
            sources: settings.sources,
            lossless: settings.lossless,
            group_forward: settings.group_forward,
            isolated: settings.isolated,
            swap_buffers: settings.swap_buffers,
            filter_in: text(settings.filter_in),
            filter_out: text(settings.filter_out),
            max_addresses: settings.max_addresses,
            rate: settings.rate,
            storm: settings.storm,
            storm_broadcast: settings.storm_broadcast,
            storm_multicast: settings.storm_multicast,
            storm_unknown: settings.storm_unknown,
            multicast_router: settings.multicast_router,
            waits_for: None,
            loops_with: None,
            mode: about.mode.or_else(|| Some("no program has it open".into())),
            absent: true,
            uid,
            attachment: about.attachment,
            declared: if declared.is_some() { Declared::Yes } else { Declared::No },
            declared_for: self.declared_for(name).into(),
            interface: None,
            netns: about.netns,
            declared_at: self.declared_at(name),
        }
    }
}

impl PortEntry {
    /// As users see it, on that bridge.
    fn info(&self, bridge: &BridgeEntry, about: AboutPort) -> BridgePortInfo {
        let PortState { waits_for, loops_with, by_worker } = self.counters.state();
        let name_of = |index: PortIndex| bridge.port(index).map(|port| port.name.clone());
        let [storm_broadcast, storm_multicast, storm_unknown] = self.storm_kinds();
        BridgePortInfo {
            name: self.name.clone(),
            index: self.index.into(),
            totals: shown_totals(self.counters.totals()),
            vlan: shown_vlan(&self.config.vlan),
            sources: shown_sources(&self.config.sources),
            lossless: self.config.lossless.map(shown_lossless),
            group_forward: self.config.group_forward,
            isolated: self.config.isolated,
            swap_buffers: self.config.swap_buffers,
            filter_in: self.config.filter_in.as_ref().map(|filter| filter.text.clone()),
            filter_out: self.config.filter_out.as_ref().map(|filter| filter.text.clone()),
            max_addresses: self.config.max_addresses,
            rate: self.config.rate.map(shown_rate),
            storm: self.config.storm,
            storm_broadcast,
            storm_multicast,
            storm_unknown,
            multicast_router: shown_multicast_router(&self.config),
            waits_for: waits_for.and_then(name_of),
            loops_with: loops_with.and_then(name_of),
            mode: about.mode.map(|mode| with_path(&mode, by_worker)),
            absent: false,
            uid: self.uid,
            attachment: about.attachment,
            declared: self.is_declared(bridge),
            declared_for: bridge.declared_for(&self.name).into(),
            interface: about.interface,
            netns: about.netns,
            declared_at: bridge.declared_at(&self.name),
        }
    }
}

/// A mode, and why the worker forwards for the port all the same.
fn with_path(mode: &str, by_worker: Option<ByWorker>) -> String {
    let why = match by_worker {
        None => return mode.into(),
        Some(ByWorker::Monitored) => "it has monitors",
        Some(ByWorker::Lossless) => "it is lossless",
        Some(ByWorker::Blocked) => "it is blocked",
        Some(ByWorker::Filtered) => "it has a filter",
        Some(ByWorker::NoLink) => "it has no link",
        Some(ByWorker::Mirrored) => "it is mirrored",
        Some(ByWorker::MirrorPort) => "it gets a mirror's copies",
        Some(ByWorker::Forwarding) => "the switch does not forward by what it learns",
    };
    format!("{mode}, by the worker: {why}")
}

/// What others know of a port.
pub(crate) struct AboutPort {
    /// How the interface is driven, or why it is not there.
    pub mode: Option<String>,
    pub attachment: Option<AttachmentInfo>,
    /// What the interface is called now.
    pub interface: Option<String>,
    /// The number of another network namespace than this process's.
    pub netns: Option<u64>,
}

/// What pages are made of.
enum Shown {
    Bridge(BridgeInfo),
    Port(Box<BridgePortInfo>),
    Mirror(Box<SwitchMirrorInfo>),
}

impl Shown {
    fn bytes(&self) -> usize {
        match self {
            Shown::Bridge(bridge) => switch_bytes(bridge),
            Shown::Port(port) => switch_port_bytes(port),
            Shown::Mirror(mirror) => switch_mirror_bytes(mirror),
        }
    }
}
