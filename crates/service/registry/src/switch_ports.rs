//! Interfaces and persistent ports join a switch, and leave it (S-VALE-13, S-VALE-14, S-VALE-16,
//! S-VALE-17).

use std::collections::BTreeSet;

use ringway_proto::{Cause, Error, Reply, Request, Result};

use crate::{
    bridges::Bridges,
    caller::Caller,
    keys::plain_key,
    kinds::{
        attach_nic::{AttachNic, Facts},
        attach_persistent::AttachPersistent,
        attached::{Attach, Attached},
        persistent::Persistent,
    },
    name::{NOT_IN_NAMES, PortName},
    port::{Port, PortId},
    ports::Ports,
    registry::Registry,
    taken_names,
};

/// A persistent port or a NIC joins a switch (S-VALE-13, S-VALE-14, S-VALE-16).
pub(crate) fn attach(
    registry: &mut Registry,
    caller: &Caller,
    name: &str,
    how: &Attach,
) -> Result<Reply> {
    if let Some((_, own)) = name.split_once(':').filter(|(_, own)| own.contains(NOT_IN_NAMES)) {
        let problem = "the name of a port of a switch has none of / : @ { }";
        let remedy = match own.contains(['/', ':']) {
            // No interface can be called so.
            true => "name it as `ip link` does".into(),
            false => {
                format!("give the interface another name: `ip link set dev '{own}' name NAME`")
            }
        };
        return Err(Error::invalid(problem).at(name).remedy(remedy));
    }
    let PortName::Vale { bridge, port } = PortName::parse(name, Cause::NoRoom)? else {
        return Err(Error::invalid("attach to a port name vale<switch>:<interface>").at(name));
    };
    if let Some(id) = registry.named(name)? {
        let returned = Attached::take_returned(&mut registry.ports, id, caller, how);
        let returned = returned.ok_or_else(|| Error::busy("attached already").at(name));
        return returned.map(Reply::Index);
    }
    registry.expected.check_not_expected(caller, name)?;
    if how.mem_id != 0 {
        registry.regions.check_id(how.mem_id, caller.uid)?;
    }
    registry.bridges.check_may_join(caller, bridge)?;
    let key = plain_key(port, caller);
    match registry.named(&key)? {
        Some(id) => {
            registry.ports.managed(id, caller)?;
            AttachPersistent::plan(registry, (id, key), bridge, name, how.stack)?
                .carry_out(registry)
        }
        None if registry.expected.is_expected_port(caller, port) => {
            Err(Error::busy("the persistent port is to come back")
                .at(port)
                .remedy("try again, or give it up: delete it"))
        }
        None => {
            let facts = Facts::of(caller, port)?;
            // By an alternative name. The port has the interface's own, by which it is found again; what is declared by
            // the other has that.
            if facts.name() != port && registry.expected.attachment(name).is_none() {
                let name = format!("{bridge}:{}", facts.name());
                let &Attach { stack, all_rings, mem_id, mode } = how;
                let request = Request::SwitchAttach { name, stack, all_rings, mem_id, mode };
                taken_names::check(&registry.bridges, caller, &request)?;
                return attach(registry, caller, request.name(), how);
            }
            let plan = AttachNic::plan(registry, caller, (bridge, port, name), how, facts)?;
            Err(plan.carry_out(registry))
        }
    }
}

/// A persistent port or a NIC leaves a switch (S-VALE-14, S-VALE-17).
pub(crate) fn detach(registry: &mut Registry, caller: &Caller, name: &str) -> Result<u32> {
    let Registry { ports, bridges, expected, .. } = registry;
    if let Some(given_up) = expected.give_up_attachment(caller, name, bridges) {
        return given_up.map(|()| 0);
    }
    let id = detachable(ports, bridges, caller, name)?;
    take_off(registry, id, name)
}

/// Several leave it, or, if one of them cannot, none.
pub(crate) fn detach_all(
    registry: &mut Registry,
    caller: &Caller,
    bridge: &str,
    ports: &[String],
) -> Result<()> {
    let Registry { ports: there, bridges, expected, .. } = registry;
    let names: BTreeSet<String> = ports.iter().map(|port| format!("{bridge}:{port}")).collect();
    let (absent, names): (BTreeSet<_>, BTreeSet<_>) =
        names.into_iter().partition(|name| expected.check_free_for_program(name).is_err());
    for name in &absent {
        expected.check_not_expected(caller, name)?;
    }
    let mut leaving = Vec::new();
    for name in names {
        leaving.push((detachable(there, bridges, caller, &name)?, name));
    }
    // Those first that need a place elsewhere: there may be none.
    leaving.sort_by_key(|(id, _)| there.port(*id).is::<Attached>());
    for (id, name) in leaving {
        take_off(registry, id, &name)?;
    }
    let Registry { bridges, expected, .. } = registry;
    for name in &absent {
        expected.give_up_attachment(caller, name, bridges).transpose()?;
    }
    Ok(())
}

/// The port of a switch that could leave it.
fn detachable(ports: &Ports, bridges: &Bridges, caller: &Caller, name: &str) -> Result<PortId> {
    if !name.starts_with("val") {
        return Err(Error::invalid("detach takes a name vale<switch>:<port>").at(name));
    }
    let PortName::Vale { bridge, .. } = PortName::parse(name, Cause::NoPort)? else {
        return Err(Error::absent("no pipe is attached to a switch").at(name));
    };
    let Some(id) = ports.named(name) else {
        return Err(match (bridges.has(bridge, name), named_before(ports, bridge, name)) {
            (true, _) => Error::busy("goes with its interface").at(name).remedy("detach that"),
            (false, Some(port)) => Error::absent("there is no such port")
                .at(name)
                .remedy(format!("the interface was renamed, and its port is {port} as before")),
            (false, None) => {
                let error = bridges.no_port(bridge, name);
                match bridges.is_program_absent(bridge, name) {
                    true => error.remedy("there is nothing to detach"),
                    false => error,
                }
            }
        });
    };
    ports.managed(id, caller)?;
    let port = ports.port(id);
    match (port.get::<Attached>(), port.get::<Persistent>()) {
        (Some(Attached { polling: Some(_), .. }), _) => {
            Err(Error::busy("polled").at(name).remedy("stop polling it first"))
        }
        (Some(_), _) => Ok(id),
        (None, Some(port)) => port.check_detach(bridge, name).map(|()| id),
        (None, None) => Err(Error::busy("lives as long as a program has it open")
            .at(name)
            .remedy("end that program")),
    }
}

/// The port of a bridge whose interface is called now as the port `full` would be.
fn named_before<'p>(ports: &'p Ports, bridge: &str, full: &str) -> Option<&'p str> {
    let interface = full.strip_prefix(bridge)?.strip_prefix(':')?;
    let is_it = |port: &&Port| {
        let of_it = port.name.strip_prefix(bridge).is_some_and(|rest| rest.starts_with(':'));
        of_it && port.get::<Attached>().is_some_and(|it| it.losses.interface_name() == interface)
    };
    ports.iter().map(|(_, port)| port).find(is_it).map(|port| &*port.name)
}

/// Takes one that [could](detachable) off its switch. Returns its index there.
fn take_off(registry: &mut Registry, id: PortId, name: &str) -> Result<u32> {
    registry.expected.changed = true;
    if let Some(nic) = registry.port(id).get::<Attached>() {
        let index = nic.bridge_port.index.into();
        Attached::detach(registry, id);
        return Ok(index);
    }
    match PortName::parse(name, Cause::NoPort)? {
        PortName::Vale { bridge, .. } => Persistent::detach(registry, id, bridge, name),
        _ => Err(Error::absent("no pipe is attached to a switch").at(name)),
    }
}
