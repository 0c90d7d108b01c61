//! What a user should know of a port, and would otherwise wonder about.

use crate::error::Error;
use crate::namespace;
use crate::output::note;
use crate::sys;
use ringway::{
    Cause, Control, FileSpec, FilterInfo, Port, PortInfo, PortKind, PortSpec, RingInfo,
    RingSelection,
};
use ringway_abi::Dir;
use std::io;
use std::path::Path;

/// Says why a port may receive nothing, or not everything: its interface is down, or another program
/// receives from it. `name`: as the user wrote it. Of a port that only sends, says that its interface is down.
pub fn receiving(port: &Port, name: &str) {
    let wants = port.binding().registration().monitor;
    if wants.zero_copy
        && name.split_once('/').is_some_and(|(_, f)| f.contains('r') != f.contains('t'))
    {
        note(format_args!(
            "{name}: a zero-copy monitor gets what is received and what is sent (S-MON-1); leave \
             the z out to have one of them"
        ));
    }
    interface_down(port);
    if port.rx_rings() == 0 {
        return;
    }
    if diverts_nothing(port).unwrap_or(false) {
        let plain = name.split('^').next().unwrap_or(name);
        note(format_args!(
            "{name}: what the stack sends comes here only while a program has the interface's own transmit \
             rings, too, and none has; open {plain}* to have both"
        ));
    }
    let Ok(Some(shared)) = shared(port, Dir::Rx) else { return };
    let of_port = match port.kind() {
        PortKind::Nic => format!("netmap:{}", port.name()),
        _ => name.split(['/', '@']).next().unwrap_or(name).into(),
    };
    note(format_args!(
        "{name}: another program receives from this port, too, and each frame goes to one of \
         them; a monitor, `ringway recv {}`, gets copies of all",
        quoted(&format!("{of_port}/r"))
    ));
    for filter in shared.filters {
        let sample = match filter.one_in {
            1 => String::new(),
            one_in => format!(", one in {one_in}"),
        };
        note(format_args!(
            "{name}: its filter `{}`{sample} chooses what arrives, for all programs that receive by these rings",
            filter.text
        ));
    }
}

/// Says why a port may send nothing: its interface is down. Says as well that another program may send by the same
/// ring: none of the two notices.
pub fn sending(port: &Port, name: &str) {
    interface_down(port);
    if let Ok(Some(_)) = shared(port, Dir::Tx) {
        let remedy = match port.kind() {
            PortKind::Vale => "open a port of another name for each".into(),
            PortKind::Pipe => "open another pipe for each".into(),
            _ => format!("open another ring for each, as netmap:{}-1", port.name()),
        };
        note(format_args!(
            "{name}: another program has the transmit ring of this port open, too; if both send at a time, \
             frames of both are lost: {remedy}"
        ));
    }
}

/// Says whose the switch is that a port has joined, where another user decides over its frames.
pub fn switch_owner(port: &Port) {
    // Then the library has said so.
    if ringway::is_verbose() {
        return;
    }
    if let Some(owner) = port.binding().switch_owner() {
        foreign_switch(port.name(), port.name().split(':').next().unwrap_or_default(), owner);
    }
}

/// Whether that is a user other than root and the one that asks.
pub fn is_another_user(uid: u32) -> bool {
    ![0, rustix::process::geteuid().as_raw()].contains(&uid)
}

/// The same of what has joined it.
pub fn foreign_switch(name: &str, switch: &str, owner: u32) {
    note(format_args!(
        "{name}: the switch {switch} is user {owner}'s, who decides where its frames go; `ringway switch new` \
         makes one of your own"
    ));
}

/// Says which switch is meant by a name without an id, as in netmap: a slip more often than not.
pub fn without_id(port: &Port) {
    if let Some(end) = port.name().strip_prefix("vale:") {
        note(format_args!(
            "vale:{end} is a port of the switch `vale`, which has no id; a port of a switch is named \
             vale<id>:<port>, as vale0:{end}"
        ));
    }
}

/// Says what a file is called as a port, where a command has failed because one was named as it is; and which of port
/// and file is which, where they are the wrong way round.
pub fn file(error: &Error) {
    match error {
        Error::Ringway(error) => {
            let name = error.port().filter(|name| !FileSpec::is_file(name));
            match name {
                Some(name) if Path::new(name).is_file() => {
                    note(format_args!("{name} is a file: as a port, it is file:{name}"));
                }
                Some(name) if is_file_name(name) => {
                    note(format_args!(
                        "a capture file is named file:{name} where a port is wanted"
                    ));
                }
                _ => {}
            }
        }
        Error::File(error) => {
            if let ringway_file::Error::Open { file, source } = &**error
                && source.kind() == io::ErrorKind::NotFound
                && let Some(name) = file.to_str().filter(|name| is_port_name(name))
            {
                note(format_args!(
                    "{name} is the name of a port, where a file is wanted; a command that takes both takes the port \
                     first"
                ));
            }
        }
        _ => {}
    }
}

/// Whether a name is that of a file more likely than that of a port.
fn is_file_name(name: &str) -> bool {
    let path = name.split('@').next().unwrap_or(name);
    let path = [".gz", ".zst"].iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path);
    name.starts_with(['/', '.'])
        || [".pcap", ".pcapng", ".cap"].iter().any(|end| path.ends_with(end))
}

/// Whether a name is that of a port of a switch, of a pipe, or of an interface.
fn is_port_name(name: &str) -> bool {
    let is_marked = name.starts_with("vale") && name.contains(':')
        || name.starts_with("netmap:")
        || name.contains(['{', '}']);
    is_marked && PortSpec::parse(name).is_ok()
}

/// Says that frames circle between two ports, because both are on one switch.
pub fn one_switch(a: &Port, b: &Port) {
    let switch = |port: &Port| match port.kind() {
        PortKind::Vale => port.name().split_once(':').map(|(switch, _)| switch.to_owned()),
        _ => None,
    };
    if let Some(name) = switch(a).filter(|name| switch(b).as_ref() == Some(name)) {
        note(format_args!(
            "{} and {}: both are on {name}: what is sent by one comes back by the other; name a port of another \
             switch",
            a.name(),
            b.name()
        ));
    }
}

/// Says that a command goes on with the next daemon.
pub fn waiting_for_daemon(error: &ringway::Error) {
    match error.cause() {
        // There is nothing to be done about it.
        Cause::Gone => note(format_args!("ringwayd has ended; waiting for a daemon")),
        _ => note(format_args!("waiting for a daemon: {error}")),
    }
}

/// The same of a port's interface, if it has one.
fn interface_down(port: &Port) {
    if port.kind() == PortKind::Nic {
        down(port.name());
    }
}

/// Says that an interface of this network namespace is down, if it is.
pub fn down(interface: &str) {
    // One that is not here is another namespace's, by the daemon's grant.
    if let Ok(false) = sys::is_up(interface) {
        note(format_args!(
            "{interface}: the interface is down, so nothing arrives or leaves; `ip link set {interface} up`"
        ));
    }
}

/// Whether these are receive rings of the stack alone, and no program has transmit rings of the interface (S-HOST-2).
fn diverts_nothing(port: &Port) -> Result<bool, ringway::Error> {
    let rings = port.binding().registration().rings;
    if !matches!(rings, RingSelection::Host | RingSelection::OneHost(_)) {
        return Ok(false);
    }
    let control = Control::connect()?;
    let Some(info) = info(port, control.ports()?) else { return Ok(false) };
    let is_interfaces = |ring: &RingInfo| !ring.receives && !ring.host && ring.users > 0;
    Ok(!control.rings(&info)?.iter().any(is_interfaces))
}

/// The port among all those of the daemon.
fn info(port: &Port, all: Vec<PortInfo>) -> Option<PortInfo> {
    this(all, port.name(), port.mem_id(), namespace::here())
}

/// The port of that name and region. Interfaces of several network namespaces, and ports of several users, may have one
/// name: one of an interface `here` comes first. By the daemon's grant an interface may be another namespace's.
fn this(all: Vec<PortInfo>, name: &str, mem_id: u16, here: Option<u64>) -> Option<PortInfo> {
    let same = all.into_iter().filter(|info| info.name == name && info.mem_id == mem_id);
    same.min_by_key(|info| info.netns.is_some() && info.netns != here)
}

/// What another handle has of a port, too.
struct Shared {
    /// Those of the shared rings, in the kernel.
    filters: Vec<FilterInfo>,
}

/// Whether another handle has one of the rings of that direction that `port` has.
fn shared(port: &Port, dir: Dir) -> Result<Option<Shared>, ringway::Error> {
    if ![PortKind::Nic, PortKind::Vale, PortKind::Pipe].contains(&port.kind()) {
        return Ok(None);
    }
    let control = Control::connect()?;
    let Some(info) = info(port, control.ports()?) else { return Ok(None) };
    let registration = port.binding().registration();
    let (own, ours) = match dir {
        Dir::Tx => (
            registration.tx_rings,
            (0..port.tx_rings()).map(|at| port.tx_index(at)).collect::<Vec<_>>(),
        ),
        Dir::Rx => {
            (registration.rx_rings, (0..port.rx_rings()).map(|at| port.rx_index(at)).collect())
        }
    };
    let index = |ring: &RingInfo| if ring.host { own + ring.index } else { ring.index };
    let is_ours =
        |ring: &RingInfo| ring.receives == (dir == Dir::Rx) && ours.contains(&Some(index(ring)));
    let rings = control.rings(&info)?;
    let shared: Vec<_> = rings.iter().filter(|ring| ring.users > 1 && is_ours(ring)).collect();
    if shared.is_empty() {
        return Ok(None);
    }
    let is_for = |filter: &FilterInfo, ring: &RingInfo| match ring.host {
        true => filter.host,
        false => filter.queues.contains(&ring.index.into()),
    };
    let of_shared = |filter: &FilterInfo| shared.iter().any(|ring| is_for(filter, ring));
    let filters = info.filters.into_iter().filter(of_shared).collect();
    Ok(Some(Shared { filters }))
}

/// A name as a shell takes it.
fn quoted(name: &str) -> String {
    match name.contains(['{', '}', '*', '~']) {
        true => format!("'{name}'"),
        false => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_port_is_found_by_its_namespace_too() {
        let port = |id: u64, name: &str, mem_id: u16, netns: Option<u64>| -> PortInfo {
            serde_json::from_value(json!({
                "id": id, "name": name, "kind": "Nic", "mem_id": mem_id, "buf_size": 2048, "uid": 0, "rings": [1, 1],
                "slots": [64, 64], "users": 1, "mtu": null, "mode": null, "queues": [], "filters": [], "actions": [],
                "switch_owner": null, "added_queues": [], "gets_nothing": false, "netns": netns,
            }))
            .unwrap()
        };
        let all = || {
            vec![
                port(1, "eth0", 3, Some(7)),
                port(2, "eth0", 3, Some(8)),
                port(3, "eth0", 4, Some(8)),
                port(4, "eth1", 3, Some(7)),
                port(5, "p{1", 3, None),
            ]
        };
        for (name, mem_id, here, expected) in [
            ("eth0", 3, Some(7), Some(1)),
            ("eth0", 3, Some(8), Some(2)),
            ("eth0", 4, Some(8), Some(3)),
            // Another namespace's, by the daemon's grant.
            ("eth1", 3, Some(8), Some(4)),
            ("p{1", 3, Some(8), Some(5)),
            ("eth1", 4, Some(7), None),
        ] {
            let found = this(all(), name, mem_id, here).map(|info| info.id);
            assert_eq!(found, expected, "{name} of region {mem_id} from {here:?}");
        }
    }
}
