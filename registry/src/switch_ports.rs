//! Interfaces and persistent ports join a switch, and leave it (S-VALE-13, 14, 16, 17).

use ringway_proto::{Cause, Error, NicMode, Result};

use crate::{
    kinds::{attached::Attached, persistent::Persistent},
    name::{PortName, plain_key},
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
    /// A persistent port or a NIC joins a switch (S-VALE-13, 14, 16).
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
        if how.mem_id != 0 {
            let region = self.regions.by_id(how.mem_id, caller.uid)?;
            self.regions.drop_unused(region);
        }
        self.check_may_join(caller, bridge)?;
        let bridge_port = match self.ports.named(&plain_key(port, caller)) {
            Some(id) => Persistent::attach(self, self.owned(id, caller)?, bridge, name, how.stack)?,
            None => Attached::attach(self, caller, bridge, port, name, how)?,
        };
        Ok(bridge_port.index.into())
    }

    /// A persistent port or a NIC leaves a switch (S-VALE-14, 17).
    pub(crate) fn switch_detach(&mut self, caller: &Caller, name: &str) -> Result<u32> {
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
        self.owned(id, caller)?;
        let port = self.port(id);
        match port.get::<Attached>() {
            Some(Attached { polling: Some(_), .. }) => {
                Err(Error::busy("polled").at(name).remedy("stop polling it first"))
            }
            Some(nic) => {
                let index = nic.bridge_port.index.into();
                Attached::detach(self, id);
                Ok(index)
            }
            None if port.is::<Persistent>() => Persistent::detach(self, id, bridge, name),
            None => Err(Error::busy("lives as long as a program has it open")
                .at(name)
                .remedy("end that program")),
        }
    }
}
