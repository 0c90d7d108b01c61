//! `[[switch]]`: switches with their ports, as the operator writes them.

use std::collections::{BTreeMap, BTreeSet};

use ringway_ipc::{USERS, id_of};
use ringway_proto::{
    FloodLimit, Forwarding, Lossless, Mac, Multicast, MulticastRouter, NicMode, RateLimit,
    SourceAddresses, Vlan, parse_mac, parse_vids,
};
use ringway_registry::{
    DeclaredInterface, DeclaredPort, DeclaredSwitch, IFNAMSIZ, LastingAddress, LastingMirror,
    LastingSettings, NOT_IN_NAMES,
};
use serde::Deserialize;
use toml::Spanned;

#[cfg(test)]
use super::described;
use super::{
    Error,
    mirrors::Mirror,
    place,
    text::{FilterText, Read, Text},
};

/// A switch that stays, and what is to be on it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = described::of_switch))]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// `vale0`, say.
    #[cfg_attr(test, schemars(with = "String", regex(pattern = described::SWITCH_NAME)))]
    name: Spanned<String>,
    /// The user whose it is, besides root; only the two may change it. A name or a number.
    #[serde(default = "root")]
    owner: String,
    /// Ports of programs may send with one source address each.
    #[serde(default)]
    one_address: bool,
    /// How it forwards.
    #[serde(default)]
    forward: Forward,
    /// Learning: seconds after which an address is forgotten; 0: never.
    ageing: Option<u32>,
    /// Learning: what becomes of frames for groups of IP.
    multicast: Option<Groups>,
    /// Static: what is for other addresses is dropped, and not flooded.
    drop_unknown: Option<bool>,
    /// Hash: the ports that share what all others send.
    #[cfg_attr(test, schemars(length(min = 1)))]
    over: Option<Vec<String>>,
    /// Hash: the port that gets what those send.
    back: Option<String>,
    /// Its ports: interfaces, and those that programs open.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<Port>"))]
    port: Vec<Spanned<Port>>,
    /// Its mirrors.
    #[serde(default)]
    mirror: Vec<Mirror>,
    /// The file and the line.
    #[serde(skip)]
    pub(super) place: String,
}

fn root() -> String {
    "root".into()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum Forward {
    /// By the addresses that it learns.
    #[default]
    Learning,
    /// By the `addresses` of its ports alone.
    Static,
    /// By flows, over some ports.
    Hash,
    /// Everything to everybody.
    Flood,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum Groups {
    /// They go to all ports.
    Flood,
    /// They go to members and routers alone, where hosts are asked for their groups.
    Snooping,
    /// The same, and the switch asks, where no other does.
    Querier,
}

impl Groups {
    fn multicast(self) -> Multicast {
        match self {
            Groups::Flood => Multicast::Flood,
            Groups::Snooping => Multicast::Snooping,
            Groups::Querier => Multicast::Querier,
        }
    }
}

/// A port of a switch: an interface, or a name that a program opens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = described::of_port))]
#[serde(deny_unknown_fields)]
struct Port {
    /// A network interface, which is attached as soon as it is there.
    #[cfg_attr(test, schemars(with = "Option<String>", regex(pattern = described::PORT_NAME)))]
    interface: Option<Spanned<String>>,
    /// The name of a port that a program or a machine opens; `eth1^`: the host's stack behind `eth1`.
    #[cfg_attr(test, schemars(with = "Option<String>", regex(pattern = described::PORT_NAME)))]
    name: Option<Spanned<String>>,
    /// The user whose program it is; others are refused the name. Without it: any that may have the name.
    user: Option<String>,
    /// With the host's stack behind the interface, as another port.
    #[serde(default)]
    host: bool,
    /// The mode of the interface, and no other.
    #[cfg_attr(test, schemars(with = "Option<described::Mode>"))]
    mode: Option<Text<NicMode>>,
    /// In this VLAN, without tags.
    #[cfg_attr(test, schemars(range(min = 1, max = 4094)))]
    access: Option<u16>,
    /// In these VLANs, with tags: `10,20-29`.
    #[cfg_attr(test, schemars(with = "Option<String>", regex(pattern = described::VIDS)))]
    trunk: Option<Text<Vids>>,
    /// The VLAN of the trunk's frames without tags.
    #[cfg_attr(test, schemars(range(min = 1, max = 4094)))]
    native: Option<u16>,
    /// The source addresses that it may send with.
    sources: Option<Sources>,
    /// Senders wait when it is full: for so many milliseconds, or 1000.
    lossless: Option<Wait>,
    /// Of the groups 01:80:c2:00:00:00 to 0f those that it passes on, a bit for each.
    group_forward: Option<u16>,
    /// Whether it gets all groups of IP, as one with a router does; `auto`: if queries come by it.
    #[serde(default)]
    multicast_router: Router,
    /// Nothing passes between it and other isolated ports.
    #[serde(default)]
    isolated: bool,
    /// Buffers change hands between it and other such ports of its memory.
    #[serde(default)]
    swap_buffers: bool,
    /// Addresses behind it at most.
    #[cfg_attr(test, schemars(range(min = 1, max = 1024)))]
    max_addresses: Option<u16>,
    /// Bits a second that it may send.
    #[cfg_attr(test, schemars(range(min = 8_000u64, max = 1_000_000_000_000u64)))]
    rate: Option<u64>,
    /// Bytes that it may send at once.
    #[cfg_attr(test, schemars(range(min = 1514u64, max = 1u64 << 34)))]
    burst: Option<u64>,
    /// Frames a second that it may send and that are flooded.
    #[cfg_attr(test, schemars(range(min = 1, max = 1_000_000_000)))]
    storm: Option<u32>,
    /// Frames a second to all that it may send, beside that.
    #[cfg_attr(test, schemars(range(min = 1, max = 1_000_000_000)))]
    storm_broadcast: Option<u32>,
    /// As many of these at once. Without it: as many as a second has.
    #[cfg_attr(test, schemars(range(min = 1, max = 1_000_000_000)))]
    storm_broadcast_burst: Option<u32>,
    /// Frames a second to other groups that it may send, whether they are flooded or not.
    #[cfg_attr(test, schemars(range(min = 1, max = 1_000_000_000)))]
    storm_multicast: Option<u32>,
    /// As many of these at once.
    #[cfg_attr(test, schemars(range(min = 1, max = 1_000_000_000)))]
    storm_multicast_burst: Option<u32>,
    /// Frames a second that it may send to addresses that the switch does not know.
    #[cfg_attr(test, schemars(range(min = 1, max = 1_000_000_000)))]
    storm_unknown: Option<u32>,
    /// As many of these at once.
    #[cfg_attr(test, schemars(range(min = 1, max = 1_000_000_000)))]
    storm_unknown_burst: Option<u32>,
    /// What it may send.
    filter_in: Option<FilterText>,
    /// What it gets.
    filter_out: Option<FilterText>,
    /// Addresses that are behind it: `02:00:00:00:00:01`, or `02:00:00:00:00:01 vlan 10`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>", inner(regex(pattern = described::ADDRESS))))]
    addresses: Vec<Text<Address>>,
    /// The file and the line.
    #[serde(skip)]
    place: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum Router {
    /// If queries come by it.
    #[default]
    Auto,
    /// It gets all groups.
    Always,
}

impl Router {
    fn multicast_router(self) -> MulticastRouter {
        match self {
            Router::Auto => MulticastRouter::Auto,
            Router::Always => MulticastRouter::Always,
        }
    }
}

impl Read for NicMode {
    fn read(text: &str) -> Result<NicMode, String> {
        text.parse()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Vids(BTreeSet<u16>);

impl Read for Vids {
    fn read(text: &str) -> Result<Vids, String> {
        parse_vids(text).map(Vids)
    }
}

impl Read for Mac {
    fn read(text: &str) -> Result<Mac, String> {
        parse_mac(text)
            .ok_or_else(|| format!("`{text}` is not a MAC address; write 02:00:00:00:00:01"))
    }
}

/// An address, and its VLAN where it is not the port's.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Address {
    mac: Mac,
    vlan: Option<u16>,
}

impl Read for Address {
    fn read(text: &str) -> Result<Address, String> {
        let (mac, vlan) = match text.split_once(" vlan ") {
            Some((mac, vlan)) => (mac, Some(vlan)),
            None => (text, None),
        };
        let vlan = vlan.map(|vlan| {
            vlan.parse().map_err(|_| format!("`{vlan}` is no VLAN: write a number behind `vlan`"))
        });
        Ok(Address { mac: Mac::read(mac)?, vlan: vlan.transpose()? })
    }
}

/// `"any"`, `"one"`, or a list of addresses.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "write \"any\", \"one\" or a list of MAC addresses")]
enum Sources {
    Kind(SourcesKind),
    Only(
        #[cfg_attr(
            test,
            schemars(
                with = "Vec<String>",
                length(min = 1, max = 64),
                inner(regex(pattern = described::MAC))
            )
        )]
        Vec<Text<Mac>>,
    ),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum SourcesKind {
    Any,
    One,
}

/// `true`, or milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "write true, or milliseconds")]
enum Wait {
    Is(bool),
    Milliseconds(#[cfg_attr(test, schemars(range(min = 1, max = 60_000)))] u32),
}

impl Switch {
    /// Notes which lines of the file at `path`, which has that text, it is from.
    pub(super) fn note_place(&mut self, path: &str, text: &str) {
        self.place = place::of(path, text, self.name.span().start);
        for port in &mut self.port {
            let its = port.span();
            let port = port.get_mut();
            let name = port.interface.as_ref().or(port.name.as_ref()).map(Spanned::span);
            port.place = place::of(path, text, name.unwrap_or(its).start);
        }
        for mirror in &mut self.mirror {
            mirror.place = place::of(path, text, mirror.name.span().start);
        }
    }

    /// The line of the port of that full name, or of the switch.
    fn place_of(&self, full: &str) -> String {
        let own = full.strip_prefix(self.name()).and_then(|rest| rest.strip_prefix(':'));
        let is_it = |port: &&Port| own.is_some() && port.name() == own;
        self.ports().find(is_it).map_or(&self.place, |port| &port.place).clone()
    }

    /// That it is one more than the daemon runs.
    pub(super) fn too_many(&self, declared: usize, most: usize) -> Error {
        let problem = format!(
            "{}: {declared} switches are declared, and the daemon runs {most}; write max_bridges = {declared}",
            self.name()
        );
        Error::Switch { place: self.place.clone(), problem }
    }

    pub(super) fn name(&self) -> &str {
        self.name.get_ref()
    }

    fn ports(&self) -> impl Iterator<Item = &Port> {
        self.port.iter().map(Spanned::get_ref)
    }

    /// What the registry is to know of it. `is_lossless_user`: whether a user's ports may be lossless.
    pub(super) fn declared(
        &self,
        is_lossless_user: impl Fn(u32) -> bool,
    ) -> Result<DeclaredSwitch, Error> {
        let problem = |problem: String| Error::Switch { place: self.place.clone(), problem };
        let wrong = |full: &str, text: String| {
            let problem = format!("{}: {text}", self.name());
            Err(Error::Switch { place: self.place_of(full), problem })
        };
        let owner = self.uid(&self.owner).map_err(&problem)?;
        let mut ports = Vec::new();
        let (mut addresses, mut table) = (Vec::new(), Vec::new());
        for port in self.ports() {
            let problem = |problem| Error::Switch { place: port.place.clone(), problem };
            let wrong = |text: String| Err(problem(format!("{}: {text}", self.name())));
            let declared = port.declared(self, owner).map_err(problem)?;
            let (full, uid) = (&declared.settings.name, declared.settings.uid);
            if ports.iter().any(|other: &DeclaredPort| other.settings.name == *full) {
                return wrong(format!("{full} stands there twice"));
            }
            if declared.settings.lossless.is_some() && !is_lossless_user(uid) {
                return wrong(format!("{full}: user {uid} is not among lossless_users"));
            }
            for Text(Address { mac, vlan }) in &port.addresses {
                table.push((*mac, full.clone()));
                let vlan = vlan.or(port.access).or(port.native).unwrap_or(0);
                addresses.push(LastingAddress { mac: *mac, vlan, port: full.clone() });
            }
            ports.push(declared);
        }
        let mut behind = BTreeMap::new();
        for LastingAddress { mac, vlan, port } in &addresses {
            if let Some(other) = behind.insert((mac, vlan), port) {
                if other == port {
                    let text = format!("{port} has an address twice: leave one of them out");
                    return wrong(port, text);
                }
                return wrong(port, format!("one address is behind {other} and behind {port}"));
            }
        }
        for (full, base) in ports.iter().filter_map(|port| {
            let full = &port.settings.name;
            Some((full, full.strip_suffix('^')?))
        }) {
            let has_stack = |port: &DeclaredPort| {
                port.settings.name == base && port.interface.as_ref().is_some_and(|it| it.stack)
            };
            if !ports.iter().any(has_stack) {
                let text = "is the host's stack behind an interface: write `host = true` there";
                return wrong(full, format!("{full} {text}"));
            }
        }
        let mut mirrors: Vec<LastingMirror> = Vec::new();
        for mirror in &self.mirror {
            let problem = |text: String| {
                let problem = format!("{}: {text}", self.name());
                Error::Switch { place: mirror.place.clone(), problem }
            };
            let declared = mirror.declared(self.name(), |user| self.uid(user), &ports);
            let declared = declared.map_err(problem)?;
            if mirrors.iter().any(|other| other.name == declared.name) {
                return Err(problem(format!("mirror {} stands there twice", declared.name)));
            }
            mirrors.push(declared);
        }
        if self.forward == Forward::Static {
            addresses.clear();
        }
        let forwarding = self.forwarding(table).map_err(&problem)?;
        let switch = DeclaredSwitch {
            name: self.name().to_owned(),
            owner,
            one_address: self.one_address,
            forwarding,
            multicast: self.multicast.map(Groups::multicast).unwrap_or_default(),
            ports,
            addresses,
            mirrors,
            place: self.place.clone(),
        };
        switch.check().map_err(|error| {
            let is_of =
                |mirror: &LastingMirror| mirror.check(self.name()).is_err_and(|its| its == error);
            let mut mirrors = self.mirror.iter().zip(&switch.mirrors);
            let place = match mirrors.find(|(_, declared)| is_of(declared)) {
                Some((mirror, _)) => mirror.place.clone(),
                None => self.place_of(&error.port),
            };
            Error::Switch { place, problem: error.to_string() }
        })?;
        Ok(switch)
    }

    fn uid(&self, user: &str) -> Result<u32, String> {
        id_of(user, USERS).ok_or_else(|| format!("{}: {user} is no user here", self.name()))
    }

    /// That a port of hash forwarding is, or can be, one of its own: nothing would ever be forwarded to another.
    fn check_own(&self, port: &str) -> Result<(), String> {
        let own = match port.split_once(':') {
            Some((switch, own)) if switch == self.name() => own,
            Some(_) => "",
            None => port,
        };
        match is_port_name(own) {
            true => Ok(()),
            false => {
                Err(format!("{}: `{port}` is no port of it; write a port's name", self.name()))
            }
        }
    }

    fn forwarding(&self, mut table: Vec<(Mac, String)>) -> Result<Forwarding, String> {
        let keys = [
            (Forward::Learning, "learning", "ageing", self.ageing.is_some()),
            (Forward::Learning, "learning", "multicast", self.multicast.is_some()),
            (Forward::Static, "static", "drop_unknown", self.drop_unknown.is_some()),
            (Forward::Hash, "hash", "over", self.over.is_some()),
            (Forward::Hash, "hash", "back", self.back.is_some()),
        ];
        let stray = keys.iter().find(|(forward, .., is_set)| *is_set && *forward != self.forward);
        if let Some((_, forward, key, _)) = stray {
            return Err(format!(
                "{}: `{key}` is for `forward = \"{forward}\"` alone; remove one of them",
                self.name()
            ));
        }
        let full = |port: &String| match port.contains(':') {
            true => port.clone(),
            false => format!("{}:{port}", self.name()),
        };
        Ok(match self.forward {
            Forward::Learning => match self.ageing {
                Some(ageing_seconds) => Forwarding::Learning { ageing_seconds },
                None => Forwarding::default(),
            },
            Forward::Static => {
                table.sort_unstable();
                let flood_unknown = !self.drop_unknown.unwrap_or(false);
                Forwarding::Static { addresses: table, flood_unknown }
            }
            Forward::Hash => {
                for port in self.over.iter().flatten().chain(&self.back) {
                    self.check_own(port)?;
                }
                let over: Vec<_> = self.over.iter().flatten().map(full).collect();
                if over.is_empty() {
                    let name = self.name();
                    return Err(format!("{name}: hash needs ports: write `over = [\"a\", \"b\"]`"));
                }
                Forwarding::Hash { over, back: self.back.as_ref().map(full) }
            }
            Forward::Flood => Forwarding::Flood,
        })
    }
}

/// As many a second, and at once.
fn flood_limit(frames_per_second: u32, burst: Option<u32>) -> FloodLimit {
    let limit = FloodLimit::new(frames_per_second);
    FloodLimit { burst_frames: burst.unwrap_or(limit.burst_frames), ..limit }
}

/// Whether an interface, a port or the host's stack behind an interface can have that name.
pub(super) fn is_port_name(name: &str) -> bool {
    let length = name.trim_end_matches('^').len();
    (1..IFNAMSIZ).contains(&length) && !name.contains(NOT_IN_NAMES)
}

impl Port {
    fn name(&self) -> Option<&str> {
        self.interface.as_ref().or(self.name.as_ref()).map(|name| name.get_ref().as_str())
    }

    fn declared(&self, switch: &Switch, owner: u32) -> Result<DeclaredPort, String> {
        let (name, is_interface) = match (&self.interface, &self.name) {
            (Some(name), None) => (name.get_ref(), true),
            (None, Some(name)) => (name.get_ref(), false),
            _ => {
                return Err(format!("{}: a port has either `interface` or `name`", switch.name()));
            }
        };
        let full = format!("{}:{name}", switch.name());
        let wrong = |text: &str| Err(format!("{full}: {text}"));
        let is_stack = name.ends_with('^');
        // Nothing would ever have the settings.
        if !is_port_name(name) {
            return wrong(
                "no interface and no port has that name: they have 1 to 15 bytes, and none of / : @ { }",
            );
        }
        if !is_interface && (self.host || self.mode.is_some()) {
            return wrong("`host` and `mode` are for an `interface`");
        }
        if (is_interface || is_stack) && self.user.is_some() {
            return wrong("`user` is for a program's port, by its `name`");
        }
        if !is_interface && self.group_forward.is_some() {
            return wrong(
                "`group_forward` is for an `interface`: programs and the host get these groups",
            );
        }
        if (is_interface || is_stack) && self.swap_buffers {
            return wrong("`swap_buffers` is for a program's port, by its `name`");
        }
        let vlan = match (self.access, &self.trunk, self.native) {
            (None, None, None) => Vlan::Unaware,
            (Some(vid), None, None) => Vlan::Access(vid),
            (None, Some(Text(Vids(allowed))), native) => {
                Vlan::Trunk { allowed: allowed.clone(), native }
            }
            _ => return wrong("a port has `access`, or `trunk` and perhaps `native`"),
        };
        let rate = match (self.rate, self.burst) {
            (None, None) => None,
            (None, Some(_)) => return wrong("`burst` goes with a `rate`"),
            (Some(rate), None) => Some(RateLimit::new(rate)),
            (Some(bits_per_second), Some(burst_bytes)) => {
                Some(RateLimit { bits_per_second, burst_bytes })
            }
        };
        if rate.is_some() && !matches!(self.lossless, None | Some(Wait::Is(false))) {
            return wrong(
                "a `rate` drops frames of the port, and a `lossless` port loses none; remove one of the two keys",
            );
        }
        let kinds = [
            ("storm_broadcast", self.storm_broadcast, self.storm_broadcast_burst),
            ("storm_multicast", self.storm_multicast, self.storm_multicast_burst),
            ("storm_unknown", self.storm_unknown, self.storm_unknown_burst),
        ];
        for (key, limit, burst) in kinds {
            if limit.is_none() && burst.is_some() {
                return wrong(&format!("`{key}_burst` goes with `{key}`"));
            }
        }
        let [storm_broadcast, storm_multicast, storm_unknown] =
            kinds.map(|(_, limit, burst)| limit.map(|frames| flood_limit(frames, burst)));
        let filter = |filter: &Option<FilterText>| filter.as_ref().map(FilterText::filter);
        let uid = match &self.user {
            _ if is_interface || is_stack => 0,
            Some(user) => switch.uid(user)?,
            None => owner,
        };
        let settings = LastingSettings {
            name: full.clone(),
            uid,
            group_forward: self.group_forward.unwrap_or(0),
            isolated: self.isolated,
            swap_buffers: self.swap_buffers,
            filter_in: filter(&self.filter_in),
            filter_out: filter(&self.filter_out),
            max_addresses: self.max_addresses,
            rate,
            storm: self.storm,
            storm_broadcast,
            storm_multicast,
            storm_unknown,
            multicast_router: self.multicast_router.multicast_router(),
            vlan,
            sources: match &self.sources {
                None if switch.one_address && !is_interface && !is_stack => SourceAddresses::One,
                None | Some(Sources::Kind(SourcesKind::Any)) => SourceAddresses::Any,
                Some(Sources::Kind(SourcesKind::One)) => SourceAddresses::One,
                Some(Sources::Only(macs)) => {
                    SourceAddresses::Only(macs.iter().map(|Text(mac)| *mac).collect())
                }
            },
            lossless: match self.lossless {
                None | Some(Wait::Is(false)) => None,
                Some(Wait::Is(true)) => Some(Lossless::default()),
                Some(Wait::Milliseconds(patience_ms)) => Some(Lossless { patience_ms }),
            },
        };
        let interface = is_interface.then(|| DeclaredInterface {
            stack: self.host,
            mode: self.mode.as_ref().map(|Text(mode)| *mode),
        });
        let (for_user_alone, place) = (self.user.is_some(), self.place.clone());
        Ok(DeclaredPort { settings, interface, for_user_alone, place })
    }
}

/// Switches of several files: each is declared once.
pub(super) fn check_names(switches: &[Switch]) -> Result<(), Error> {
    let mut places = BTreeMap::new();
    let mut interfaces = BTreeMap::new();
    for switch in switches {
        for port in switch.ports() {
            let Some(interface) = &port.interface else { continue };
            if let Some(other) = interfaces.insert(interface.get_ref(), switch.name()) {
                let problem = format!("{} is on {other}, too; remove one", interface.get_ref());
                return Err(Error::Switch { place: port.place.clone(), problem });
            }
        }
        if let Some(other) = places.insert(switch.name(), &switch.place) {
            let problem = format!("{} is declared in {other}, too; remove one", switch.name());
            return Err(Error::Switch { place: switch.place.clone(), problem });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn declared(text: &str) -> Result<Vec<DeclaredSwitch>, String> {
        let config = Config::take_in("x.toml", text, "").map_err(|error| error.to_string())?;
        config.declared().map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_said_is_as_requests_have_it() {
        let text = "[[switch]]\nname = 'vale0'\nowner = '7'\none_address = true\n\
                    [[switch.port]]\ninterface = 'e'\n[[switch.port]]\nname = 'a'\naccess = 9\n\
                    addresses = ['02:00:00:00:00:01', '02:00:00:00:00:02 vlan 9']\n";
        let switches = declared(text).unwrap();
        let [switch] = &switches[..] else { panic!("{switches:?}") };
        assert_eq!((switch.owner, &switch.forwarding), (7, &Forwarding::default()));
        assert_eq!(switch.multicast, Multicast::Flood);
        let [interface, program] = &switch.ports[..] else { panic!("{switch:?}") };
        let unset =
            |name: &str| LastingSettings { name: name.into(), ..LastingSettings::unset(false) };
        assert_eq!(interface.settings, unset("vale0:e"));
        assert_eq!(interface.interface, Some(DeclaredInterface { stack: false, mode: None }));
        let vlan = Vlan::Access(9);
        let sources = SourceAddresses::One;
        let of_program = LastingSettings { uid: 7, vlan, sources, ..unset("vale0:a") };
        assert_eq!((&program.settings, &program.interface), (&of_program, &None));
        assert!(!program.for_user_alone);
        let of_user = text.replace("access = 9", "user = '8'").replace(" vlan 9", "");
        let named = &declared(&of_user).unwrap()[0].ports[1];
        assert!(named.for_user_alone && named.settings.uid == 8);
        let vlans: Vec<_> = switch.addresses.iter().map(|it| it.vlan).collect();
        assert_eq!(vlans, [9, 9]);

        let text = "[[switch]]\nname = 'vale0'\nmulticast = 'querier'\n";
        assert_eq!(declared(text).unwrap()[0].multicast, Multicast::Querier);

        let text = "[[switch]]\nname = 'vale0'\nforward = 'static'\ndrop_unknown = true\n\
                    [[switch.port]]\nname = 'a'\naddresses = ['02:00:00:00:00:01']\nrate = 1000000\n";
        let switch = &declared(text).unwrap()[0];
        let addresses = vec![([2, 0, 0, 0, 0, 1], "vale0:a".into())];
        assert_eq!(switch.forwarding, Forwarding::Static { addresses, flood_unknown: false });
        assert!(switch.addresses.is_empty());
        assert_eq!(switch.ports[0].settings.rate, Some(RateLimit::new(1_000_000)));

        let text = "[[switch]]\nname = 'vale0'\n[[switch.port]]\nname = 'a'\n\
                    storm_broadcast = 5\nstorm_broadcast_burst = 6\nstorm_unknown = 7\n";
        let settings = &declared(text).unwrap()[0].ports[0].settings;
        let broadcast = FloodLimit { frames_per_second: 5, burst_frames: 6 };
        let limits = [settings.storm_broadcast, settings.storm_multicast, settings.storm_unknown];
        assert_eq!(limits, [Some(broadcast), None, Some(FloodLimit::new(7))]);
        assert_eq!(settings.multicast_router, MulticastRouter::Auto);

        let text = "[[switch]]\nname = 'vale0'\n[[switch.port]]\nname = 'a'\nmulticast_router = 'always'\n";
        let settings = &declared(text).unwrap()[0].ports[0].settings;
        assert_eq!(settings.multicast_router, MulticastRouter::Always);
    }

    /// Each error has the place, and names what to do or what is possible.
    #[test]
    fn errors_have_their_lines() {
        let port = |keys: &str| format!("\n[[switch]]\nname = 'vale0'\n[[switch.port]]\n{keys}\n");
        let switch = |keys: &str| format!("\n\n[[switch]]\nname = 'vale0'\n{keys}\n");
        let many = |count| {
            let port = |at| format!("[[switch.port]]\ninterface = 'e{at}'\nhost = true\n");
            "[[switch]]\nname = 'vale0'\n".to_owned() + &(0..count).map(port).collect::<String>()
        };
        for (text, line, word) in [
            (switch("ageing = 'long'"), 5, "expected a number from 0 to 4294967295"),
            (switch("forward = 'bridge'"), 5, "expected one of `learning`"),
            (switch("forward = 'flood'\nageing = 5"), 4, "`ageing` is for"),
            (switch("forward = 'flood'\nmulticast = 'snooping'"), 4, "`multicast` is for"),
            (switch("multicast = 'on'"), 5, "expected one of `flood`"),
            (switch("forward = 'hash'"), 4, "over = [\"a\", \"b\"]"),
            (switch("owner = 'nobody at all'"), 4, "no user here"),
            (switch("[[switch]]\nname = 'vale0'"), 6, "declared in x.toml: line 4, too"),
            (switch("").replace("vale0", "bridge0"), 4, "vale<id>"),
            (switch("").replace("vale0", "vale0:a"), 4, "vale<id>"),
            (switch("forward = 'hash'\nover = ['a/b']"), 4, "no port of it"),
            (switch("forward = 'hash'\nover = ['vale1:a']"), 4, "no port of it"),
            (switch("forward = 'hash'\nover = ['a', 'vale0:b']\nback = ''"), 4, "no port of it"),
            (switch("forward = 'hash'\nover = ['a', 'b']\nback = 'b'"), 4, "what comes back"),
            (many(130), 2, "260 ports; 252 is the most"),
            (port("name = 'a'\nmulticast_router = 'never'"), 6, "expected `auto` or `always`"),
            (port("access = 10"), 4, "either `interface` or `name`"),
            (port("name = 'a'\nstorm_unknown_burst = 9"), 5, "goes with `storm_unknown`"),
            (port("name = 'a'\nstorm_multicast = 0"), 5, "0 flooded frames a second"),
            (port("interface = 'e'\nname = 'e'"), 5, "either `interface` or `name`"),
            (port("name = 'a'\nhost = true"), 5, "for an `interface`"),
            (port("interface = 'e'\nuser = 'root'"), 5, "a program's port"),
            (port("interface = 'sixteen-letters-'"), 5, "1 to 15 bytes"),
            (port("name = ''"), 5, "1 to 15 bytes"),
            (port("name = 'a/rt'"), 5, "1 to 15 bytes"),
            (
                format!("max_bridges = 1{}", switch("[[switch]]\nname = 'vale1'")),
                6,
                "max_bridges = 2",
            ),
            (port("name = 'e^'"), 5, "write `host = true`"),
            (port("name = 'a'\ngroup_forward = 1"), 5, "for an `interface`"),
            (port("interface = 'a'\nswap_buffers = true"), 5, "by its `name`"),
            (port("name = 'a^'\nswap_buffers = true"), 5, "by its `name`"),
            (
                port(
                    "interface = 'e'\nhost = true\n[[switch.port]]\nname = 'e^'\ngroup_forward = 1",
                ),
                8,
                "for an `interface`",
            ),
            (port("interface = 'e'\nmode = 'fast'"), 6, "zerocopy, copy, generic, packet"),
            (port("name = 'a'\naccess = 1\ntrunk = '2'"), 5, "`trunk` and perhaps `native`"),
            (port("name = 'a'\naccess = -1"), 6, "expected a number from 1 to 4094"),
            (port("name = 'a'\nnative = 70000"), 6, "expected a number from 1 to 4094"),
            (port("name = 'a'\nrate = '1M'"), 6, "expected a number from 8000 to 1000000000000"),
            (port("name = 'a'\nisolated = 1"), 6, "expected true or false"),
            (port("name = 'a'\naddresses = '1'"), 6, "expected a list"),
            (port("name = 'a'\nfilter_in = 'ip'"), 6, "`ringway switch save`"),
            (port("name = 'a'").replace("[[", "[").replace("]]", "]"), 2, "expected a list"),
            (port("name = 'a'\nnative = 1"), 5, "`trunk` and perhaps `native`"),
            (port("name = 'a'\naccess = 4095"), 5, "no VLAN 4095"),
            (port("name = 'a'\ntrunk = '20-10'"), 6, "write 10-20"),
            (port("name = 'a'\nsources = 'all'"), 6, "a list of MAC addresses"),
            (port("name = 'a'\nlossless = 'yes'"), 6, "true, or milliseconds"),
            (port("name = 'a'\nlossless = 5\nrate = 1000000"), 5, "remove one of the two keys"),
            (port("name = 'a'\nburst = 5"), 5, "goes with a `rate`"),
            (port("name = 'a'\nrate = 5"), 5, "8 kbit/s"),
            (port("name = 'a'\naddresses = ['1:2']"), 6, "02:00:00:00:00:01"),
            (port("name = 'a'\naddresses = ['01:00:5e:00:00:01']"), 5, "a group's"),
            (
                port("name = 'a'\naddresses = ['02:0:0:0:0:1', '02:0:0:0:0:1']"),
                5,
                "vale0:a has an address twice",
            ),
            (port("name = 'a'\n[[switch.port]]\nname = 'a'"), 7, "twice"),
            (port("name = 'a'\nsources = []"), 5, "could send nothing"),
            (port("name = 'a'\nsources = ['01:00:5e:00:00:01']"), 5, "a group's"),
            (port("name = 'a'\nlossless = 0"), 5, "wait for no time"),
            (port("name = 'a'\naccess = 10\naddresses = ['02:0:0:0:0:1 vlan 20']"), 5, "VLAN 20"),
            (port("name = 'a'\ntrunk = '10'\naddresses = ['02:0:0:0:0:1']"), 5, "in a VLAN"),
            (port("name = 'a'\naddresses = ['02:0:0:0:0:1 vlan 9']"), 5, "not in VLAN 9"),
            (
                port("name = 'a'\nmax_addresses = 1\naddresses = ['02:0:0:0:0:1', '02:0:0:0:0:2']"),
                5,
                "2 static addresses",
            ),
            (
                port("name = 'a'\nfilter_in = { expression = '', bytecode = '2,6 0 0 1' }"),
                6,
                "save",
            ),
            (port("name = 'a'\nfilter_in = { expression = '', bytecode = '1,9 9 9 9' }"), 5, ""),
            (
                port(
                    "interface = 'e'\n[[switch]]\nname = 'vale1'\n[[switch.port]]\ninterface = 'e'",
                ),
                9,
                "is on vale0, too",
            ),
        ] {
            let said = declared(&text).unwrap_err();
            let place = format!("x.toml: line {line}");
            assert!(said.starts_with(&place) && said.contains(word), "{text}\n{said}");
        }
        let lossless = "lossless_users = []\n[[switch]]\nname = 'vale0'\n[[switch.port]]\n\
                        name = 'a'\nuser = '7'\nlossless = true\n";
        assert!(declared(lossless).unwrap_err().contains("lossless_users"));
        assert!(declared(&lossless.replace("'7'", "'0'")).is_ok());
    }
}
