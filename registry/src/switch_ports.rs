//! Interfaces and persistent ports join a switch, and leave it (S-VALE-13, S-VALE-14, S-VALE-16,
//! S-VALE-17).

use std::collections::BTreeSet;

use ringway_proto::{Cause, Error, NicMode, Result};

use crate::{
    kinds::{attached::Attached, persistent::Persistent},
    name::{PortName, plain_key},
    port::PortId,
    registry::{Caller, Registry},
};

/// How an interface or a persistent port is to join a switch; see [`Request::SwitchAttach`].
///
/// [`Request::SwitchAttach`]: ringway_proto::Request::SwitchAttach
pub(crate) struct Attach {
    pub stack: bool,
    pub all_rings: bool,
    pub mem_id: u16,
    pub mode: Option<NicMode>,
}

impl Registry {
    /// A persistent port or a NIC joins a switch (S-VALE-13, S-VALE-14, S-VALE-16).
    pub(crate) fn switch_attach(
        &mut self,
        caller: &Caller,
        name: &str,
        how: &Attach,
    ) -> Result<u32> {
        let PortName::Vale { bridge, port } = PortName::parse(name, Cause::NoRoom)? else {
            return Err(Error::invalid("attach to a port name vale<switch>:<interface>").at(name));
        };
        if self.ports.named(name).is_some() {
            return Err(Error::busy("attached already").at(name));
        }
        self.check_not_expected(caller, name)?;
        if how.mem_id != 0 {
            let region = self.regions.by_id(how.mem_id, caller.uid)?;
            self.regions.drop_unused(region);
        }
        self.check_may_join(caller, bridge)?;
        let bridge_port = match self.ports.named(&plain_key(port, caller)) {
            Some(id) => {
                Persistent::attach(self, self.managed(id, caller)?, bridge, name, how.stack)?
            }
            None if self.is_expected_port(caller, port) => {
                return Err(Error::busy("the persistent port is to come back")
                    .at(port)
                    .remedy("try again, or give it up: delete it"));
            }
            None => Attached::attach(self, caller, bridge, port, name, how)?,
        };
        self.attached_again(bridge, name);
        Ok(bridge_port.index.into())
    }

    /// A persistent port or a NIC leaves a switch (S-VALE-14, S-VALE-17).
    pub(crate) fn switch_detach(&mut self, caller: &Caller, name: &str) -> Result<u32> {
        if let Some(given_up) = self.give_up_attachment(caller, name) {
            return given_up.map(|()| 0);
        }
        let id = self.detachable(caller, name)?;
        self.detach(id, name)
    }

    /// Several leave it, or, if one of them cannot, none.
    pub(crate) fn switch_detach_all(
        &mut self,
        caller: &Caller,
        bridge: &str,
        ports: &[String],
    ) -> Result<()> {
        let names: BTreeSet<String> = ports.iter().map(|port| format!("{bridge}:{port}")).collect();
        let (absent, names): (BTreeSet<_>, BTreeSet<_>) =
            names.into_iter().partition(|name| self.check_free_for_program(name).is_err());
        for name in &absent {
            self.check_not_expected(caller, name)?;
        }
        let mut leaving = Vec::new();
        for name in names {
            leaving.push((self.detachable(caller, &name)?, name));
        }
        // Those first that need a place elsewhere: there may be none.
        leaving.sort_by_key(|(id, _)| self.port(*id).is::<Attached>());
        for (id, name) in leaving {
            self.detach(id, &name)?;
        }
        for name in &absent {
            self.give_up_attachment(caller, name).transpose()?;
        }
        Ok(())
    }

    /// The port of a switch that could leave it.
    fn detachable(&self, caller: &Caller, name: &str) -> Result<PortId> {
        if !name.starts_with("val") {
            return Err(Error::invalid("detach takes a name vale<switch>:<port>").at(name));
        }
        let PortName::Vale { bridge, .. } = PortName::parse(name, Cause::NoPort)? else {
            return Err(Error::absent("no pipe is attached to a switch").at(name));
        };
        let Some(id) = self.ports.named(name) else {
            return Err(match self.bridges.has(bridge, name) {
                true => Error::busy("goes with its interface").at(name).remedy("detach that"),
                false => Error::absent("there is no such port").at(name),
            });
        };
        self.managed(id, caller)?;
        let port = self.port(id);
        match port.get::<Attached>() {
            Some(Attached { polling: Some(_), .. }) => {
                Err(Error::busy("polled").at(name).remedy("stop polling it first"))
            }
            Some(_) => Ok(id),
            None if port.is::<Persistent>() => {
                Persistent::check_detach(self, id, bridge, name)?;
                Ok(id)
            }
            None => Err(Error::busy("lives as long as a program has it open")
                .at(name)
                .remedy("end that program")),
        }
    }

    /// Takes one that [could](Self::detachable) off its switch. Returns its index there.
    fn detach(&mut self, id: PortId, name: &str) -> Result<u32> {
        self.expected.changed = true;
        if let Some(nic) = self.port(id).get::<Attached>() {
            let index = nic.bridge_port.index.into();
            Attached::detach(self, id);
            return Ok(index);
        }
        match PortName::parse(name, Cause::NoPort)? {
            PortName::Vale { bridge, .. } => Persistent::detach(self, id, bridge, name),
            _ => Err(Error::absent("no pipe is attached to a switch").at(name)),
        }
    }
}
