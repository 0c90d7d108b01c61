//! `ringway switch save`: switches as the daemon's configuration declares them.

use std::{collections::BTreeMap, ops::RangeInclusive, slice};

use ringway::{
    AddressInfo, AttachmentInfo, BridgeInfo, BridgePortInfo, Control, Declared, DeclaredFor,
    Filter, FloodLimit, Forwarding, Lossless, MirrorDirection, Multicast, MulticastRouter, NicMode,
    RateLimit, SourceAddresses, SwitchMirrorInfo, Vlan,
};
use rustix::process::geteuid;
use serde::Serialize;

use super::choose::{ranges, renamed};
use crate::endpoint::Mac;
use crate::error::{Error, Result};
use crate::namespace::name_of;
use crate::output::{Output, note};
use crate::printable::printable;

/// Numbers that systemd draws for units with `DynamicUser=`, each time another: systemd's UIDS-GIDS.md.
const DYNAMIC_USERS: RangeInclusive<u32> = 61184..=65519;

#[derive(clap::Args)]
#[command(after_help = "\
What it prints is for the system daemon's configuration, or for a file of its own in the folder
beside it. It has what stays: the switches, the interfaces on them, and how ports take part; not
the ports of programs of which nothing is chosen, mirrors that `ringway switch mirror` runs or that
users other than root have set, and processors that poll. Declared interfaces are in the daemon's
network namespace: where it is another, a comment says so, and standard error.

Examples:
  ringway switch save
  ringway switch save vale0 >/etc/ringway/ringwayd.d/vale0.toml")]
pub struct Args {
    /// The switches; without one, all
    switches: Vec<String>,
}

/// Of the daemon's configuration.
#[derive(Serialize)]
struct File<'a> {
    switch: &'a [Switch],
}

/// A switch as the daemon's configuration declares it: the configuration's schema describes the keys.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "switch_declaration")]
pub struct Declaration<'a> {
    #[serde(flatten)]
    switch: &'a Switch,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Switch {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    one_address: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    forward: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ageing: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    multicast: Option<&'static str>,
    #[serde(skip_serializing_if = "is_false")]
    drop_unknown: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    over: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    back: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    port: Vec<Port>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mirror: Vec<Mirror>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "DeclaredMirror"))]
struct Mirror {
    name: String,
    from: Mirrored,
    to: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<FilterText>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
#[cfg_attr(test, schemars(rename = "DeclaredMirrored"))]
enum Mirrored {
    All(&'static str),
    Ports(Vec<String>),
}

#[derive(Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "DeclaredPort"))]
struct Port {
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    host: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trunk: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    native: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<Sources>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lossless: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_forward: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    multicast_router: Option<&'static str>,
    #[serde(skip_serializing_if = "is_false")]
    isolated: bool,
    #[serde(skip_serializing_if = "is_false")]
    swap_buffers: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_addresses: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storm: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storm_broadcast: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storm_broadcast_burst: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storm_multicast: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storm_multicast_burst: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storm_unknown: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storm_unknown_burst: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter_in: Option<FilterText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter_out: Option<FilterText>,
}

#[derive(PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
#[cfg_attr(test, schemars(rename = "DeclaredSources"))]
enum Sources {
    Kind(&'static str),
    Only(Vec<String>),
}

/// An expression, and what it is compiled to: the daemon reads none.
#[derive(PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FilterText {
    expression: String,
    bytecode: String,
}

fn is_false(value: &bool) -> bool {
    !value
}

pub fn run(control: &Control, args: &Args) -> Result<()> {
    let all = control.switches()?;
    let is_there = |name: &String| all.iter().any(|switch| switch.name == *name);
    if let Some(missing) = args.switches.iter().find(|name| !is_there(name)) {
        return Err(Error::Value(format!(
            "{missing}: there is no such switch; `ringway switch list` shows those there are"
        )));
    }
    let (mut switches, mut left_out) = (Vec::new(), Vec::new());
    for switch in all {
        if !args.switches.is_empty() && !args.switches.contains(&switch.name) {
            continue;
        }
        let addresses = match switch.forwarding {
            Forwarding::Learning { .. } => control.switch_addresses(&switch.name)?,
            _ => Vec::new(),
        };
        for port in switch.ports.iter().filter(|port| port.attachment.is_some()) {
            if let Some(renamed) = renamed(port) {
                note(format_args!(
                    "{}: {renamed}; what is declared is found by its name, so rename it back, or change the name in what \
                     is saved",
                    port.name
                ));
            }
        }
        let others: Vec<_> = switch.ports.iter().filter_map(elsewhere).collect();
        others.iter().for_each(|why| note(format_args!("{why}, and is left out")));
        switches.push(saved(&switch, &addresses)?);
        left_out.push(others);
    }
    let lines: Vec<_> = switches.iter().map(|switch| Declaration { switch }).collect();
    Output::chosen().write_all(&lines, || {
        let texts = switches.iter().zip(&left_out).map(|(switch, left_out)| {
            // Numbers, texts and lists of them: there is nothing that TOML has not.
            let file = File { switch: slice::from_ref(switch) };
            let mut text = toml::to_string(&file).unwrap_or_default().trim_end().to_owned();
            for why in left_out {
                text.push_str(&format!("\n# {}", printable(why, &[])));
            }
            text
        });
        texts.collect::<Vec<_>>().join("\n\n")
    })
}

/// Why an interface cannot be declared: the daemon finds declared ones in its own network namespace.
fn elsewhere(port: &BridgePortInfo) -> Option<String> {
    let number = port.netns?;
    let namespace = match name_of(number) {
        Some(name) => format!("in namespace {name}"),
        None => "in another network namespace, which has no name in `ip netns`".into(),
    };
    Some(format!("{}: {namespace}: cannot be declared", port.name))
}

/// A port's name without its switch's.
fn plain(full: &str) -> &str {
    full.split_once(':').map_or(full, |(_, port)| port)
}

fn saved(switch: &BridgeInfo, known: &[AddressInfo]) -> Result<Switch> {
    let mut saved = Switch {
        name: switch.name.clone(),
        owner: switch.owner.filter(|uid| *uid != 0).map(|uid| uid.to_string()),
        one_address: switch.one_address,
        forward: None,
        ageing: None,
        multicast: Some(switch.multicast).filter(|it| !it.is_flood()).map(Multicast::name),
        drop_unknown: false,
        over: Vec::new(),
        back: None,
        port: Vec::new(),
        mirror: Vec::new(),
    };
    // By the names of ports.
    let mut addresses: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for AddressInfo { mac, vlan, port, .. } in known.iter().filter(|it| it.age_seconds.is_none()) {
        let vlan = if *vlan == 0 { String::new() } else { format!(" vlan {vlan}") };
        addresses.entry(plain(port)).or_default().push(format!("{}{vlan}", Mac(*mac)));
    }
    match &switch.forwarding {
        Forwarding::Learning { ageing_seconds } => {
            let is_default = switch.forwarding == Forwarding::default();
            saved.ageing = (!is_default).then_some(*ageing_seconds);
        }
        Forwarding::Static { addresses: table, flood_unknown } => {
            (saved.forward, saved.drop_unknown) = (Some("static"), !flood_unknown);
            for (mac, port) in table {
                addresses.entry(plain(port)).or_default().push(Mac(*mac).to_string());
            }
        }
        Forwarding::Hash { over, back } => {
            saved.forward = Some("hash");
            saved.over = over.iter().map(|port| plain(port).into()).collect();
            saved.back = back.as_ref().map(|port| plain(port).into());
        }
        Forwarding::Flood => saved.forward = Some("flood"),
    }
    let mut ports: Vec<_> = switch.ports.iter().collect();
    ports.sort_by(|a, b| a.name.cmp(&b.name));
    for port in ports {
        let addresses = addresses.remove(plain(&port.name)).unwrap_or_default();
        // The host's stack behind an interface goes with it.
        let base = port.name.trim_end_matches('^');
        if switch.ports.iter().any(|it| it.name == base && it.netns.is_some()) {
            continue;
        }
        saved.port.extend(saved_port(switch, port, addresses)?);
    }
    // Of ports that are away.
    for (name, addresses) in addresses {
        saved.port.push(Port { name: Some(name.into()), addresses, ..Port::default() });
    }
    for mirror in &switch.mirrors {
        saved.mirror.extend(saved_mirror(mirror)?);
    }
    Ok(saved)
}

/// `None`: what is declared shows the ports of all users, and so does this not.
fn saved_mirror(mirror: &SwitchMirrorInfo) -> Result<Option<Mirror>> {
    if ![0, geteuid().as_raw()].contains(&mirror.uid) {
        note(format_args!("mirror {} of user {} is left out", mirror.name, mirror.uid));
        return Ok(None);
    }
    let from = match &mirror.from {
        None => Mirrored::All("all"),
        Some(ports) => Mirrored::Ports(ports.iter().map(|port| plain(port).into()).collect()),
    };
    Ok(Some(Mirror {
        name: mirror.name.clone(),
        from,
        to: plain(&mirror.to).into(),
        user: (mirror.user != 0).then(|| mirror.user.to_string()),
        direction: Some(mirror.direction).filter(|it| !it.is_both()).map(MirrorDirection::name),
        filter: mirror.filter.as_deref().map(compiled).transpose()?,
    }))
}

/// `None`: there is nothing to say of the port.
fn saved_port(
    switch: &BridgeInfo,
    port: &BridgePortInfo,
    addresses: Vec<String>,
) -> Result<Option<Port>> {
    let name = plain(&port.name).to_owned();
    let is_stack = name.ends_with('^');
    let is_program = port.attachment.is_none() && !is_stack;
    let (access, trunk, native) = match &port.vlan {
        Vlan::Unaware => (None, None, None),
        Vlan::Access(vid) => (Some(*vid), None, None),
        Vlan::Trunk { allowed, native } => (None, Some(ranges(allowed)), *native),
    };
    // What a program's port has without a word.
    let usual = if switch.one_address && is_program { "one" } else { "any" };
    let sources = match &port.sources {
        SourceAddresses::Any => Sources::Kind("any"),
        SourceAddresses::One => Sources::Kind("one"),
        SourceAddresses::Only(macs) => {
            Sources::Only(macs.iter().map(|mac| Mac(*mac).to_string()).collect())
        }
    };
    let [broadcast, multicast, unknown] =
        [port.storm_broadcast, port.storm_multicast, port.storm_unknown].map(|limit| {
            (limit.map(|limit| limit.frames_per_second), limit.and_then(unusual_burst))
        });
    let said = Port {
        access,
        trunk,
        native,
        sources: Some(sources).filter(|sources| *sources != Sources::Kind(usual)),
        lossless: port.lossless.map(|Lossless { patience_ms }| patience_ms),
        group_forward: Some(port.group_forward).filter(|mask| *mask != 0),
        multicast_router: Some(port.multicast_router)
            .filter(|router| !router.is_auto())
            .map(MulticastRouter::name),
        isolated: port.isolated,
        swap_buffers: port.swap_buffers,
        max_addresses: port.max_addresses,
        rate: port.rate.map(|RateLimit { bits_per_second, .. }| bits_per_second),
        burst: port.rate.map(|RateLimit { burst_bytes, .. }| burst_bytes),
        storm: port.storm,
        storm_broadcast: broadcast.0,
        storm_broadcast_burst: broadcast.1,
        storm_multicast: multicast.0,
        storm_multicast_burst: multicast.1,
        storm_unknown: unknown.0,
        storm_unknown_burst: unknown.1,
        addresses,
        filter_in: port.filter_in.as_deref().map(compiled).transpose()?,
        filter_out: port.filter_out.as_deref().map(compiled).transpose()?,
        ..Port::default()
    };
    Ok(match port.attachment {
        Some(AttachmentInfo { stack, mode }) => {
            let mode = mode.map(NicMode::name);
            Some(Port { interface: Some(name), host: stack, mode, ..said })
        }
        // Of a declared port, `user` is as declared: another user may have it open.
        None if port.declared != Declared::No => {
            let user = declared_user(port).map(|uid| uid.to_string());
            let is_nothing = user.is_none() && said == Port::default();
            (!is_nothing).then_some(Port { name: Some(name), user, ..said })
        }
        None if said == Port::default() => None,
        None => {
            let is_owners = switch.owner == Some(port.uid);
            let is_lasting = !DYNAMIC_USERS.contains(&port.uid);
            let user = (is_program && !is_owners && is_lasting).then(|| port.uid.to_string());
            Some(Port { name: Some(name), user, ..said })
        }
    })
}

/// The user that a declared port is for alone. An older daemon does not tell: then it is the user that has the port, and
/// not all of them.
fn declared_user(port: &BridgePortInfo) -> Option<u32> {
    if port.declared_for == DeclaredFor::Untold {
        note(format_args!(
            "{}: this ringwayd is too old to tell which user may open it; user {} is written, which has it: compare with \
             what is declared, or upgrade ringwayd",
            port.name, port.uid
        ));
        return Some(port.uid);
    }
    port.declared_for.user()
}

/// The burst of a limit, if it is not a second of the limit.
fn unusual_burst(limit: FloodLimit) -> Option<u32> {
    let usual = FloodLimit::new(limit.frames_per_second);
    (limit != usual).then_some(limit.burst_frames)
}

fn compiled(expression: &str) -> Result<FilterText> {
    let filter = Filter::new(expression)?;
    let insns = filter.insns();
    let lines = insns.iter().map(|it| format!("{} {} {} {}", it.code, it.jt, it.jf, it.k));
    let bytecode: Vec<_> = std::iter::once(insns.len().to_string()).chain(lines).collect();
    Ok(FilterText { expression: expression.into(), bytecode: bytecode.join(",") })
}
