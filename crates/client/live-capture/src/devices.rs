//! The ports that a list of devices shows: those that there are.

use std::collections::BTreeSet;

use ringway::{Control, PortInfo, PortKind, SocketPath};

use crate::{name, namespace::is_named_here};

/// A port in a list.
pub struct Device {
    pub name: String,
    pub description: &'static str,
}

/// All ports that the daemon knows; none if no daemon runs. None is started: a list changes nothing.
pub fn devices() -> Vec<Device> {
    if SocketPath::find().answer().is_err() {
        return Vec::new();
    }
    let Ok(control) = Control::connect() else { return Vec::new() };
    let ports = control.ports().unwrap_or_default();
    let is_here = |port: &&PortInfo| is_named_here(port, &port.name);
    let mut found: Vec<Device> =
        ports.iter().filter(is_here).filter_map(|port| device(&port.name, port.kind)).collect();
    let known: BTreeSet<String> = found.iter().map(|device| device.name.clone()).collect();
    // Interfaces that are attached are the switch's ports.
    let attached =
        control.switches().unwrap_or_default().into_iter().flat_map(|switch| switch.ports);
    let attached = attached.filter(|port| !known.contains(&port.name) && name::is_port(&port.name));
    found.extend(
        attached.map(|port| Device { name: port.name, description: "Ringway: port of a switch" }),
    );
    found
}

fn device(name: &str, kind: PortKind) -> Option<Device> {
    let description = match kind {
        PortKind::Vale => "Ringway: port of a switch",
        PortKind::Pipe => "Ringway: end of a pipe",
        PortKind::Nic => "Ringway: network interface",
        PortKind::Monitor | PortKind::Null => return None,
    };
    let name = if name::is_port(name) { name.into() } else { format!("netmap:{name}") };
    Some(Device { name, description })
}
