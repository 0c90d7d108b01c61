//! The parent of pipes where nothing else has its name: a name and a region, which no program can open
//! (S-PIPE-2). It takes no rings.

use ringway_proto::{Error, PortKind, Registration, Result, RingBackend};
use ringway_region::Sizes;

use crate::{
    bind_reply::Fds,
    caller::Caller,
    keys::plain_key,
    kinds::{
        OpenRequest, PortBackend, RingAt,
        vale::{DEFAULT_SLOTS, MAX_SLOTS, ROOM_FOR_PIPES},
    },
    name::PortName,
    port::{Port, PortId, Shape},
    registry::Registry,
    settings::Settings,
};

pub(crate) struct Parent;

impl Parent {
    /// A registration cannot have it, nor an interface of its name.
    pub fn open(registry: &mut Registry, request: &OpenRequest<'_>) -> Result<Option<PortId>> {
        let PortName::Plain(name) = request.port_name()? else { return Ok(None) };
        match registry.ports.find::<Parent>(&plain_key(name, request.caller)) {
            Some(_) => Err(Error::absent("only the parent of pipes").at(name)),
            None => Ok(None),
        }
    }
}

impl PortBackend for Parent {
    fn display_kind(&self) -> Option<PortKind> {
        None
    }

    fn link(&self, at: &RingAt<'_>, _fds: &mut Fds) -> Result<RingBackend> {
        Err(Error::absent(format!("{}: only the parent of pipes", at.port.name)))
    }

    /// What its pipes have by default.
    fn shape(&self, _settings: &Settings, _port: &Port) -> Shape {
        Shape { rings: [0; 2], slots: [DEFAULT_SLOTS; 2] }
    }
}

impl Parent {
    /// A parent in the region asked for, or in one of its own with room for the slots asked for.
    pub(crate) fn find_or_make(
        registry: &mut Registry,
        caller: &Caller,
        name: &str,
        reg: &Registration,
    ) -> Result<PortId> {
        let key = plain_key(name, caller);
        match reg.mem_id {
            0 => Parent::private(registry, caller, name, reg, key),
            mem_id => {
                let region = registry.regions.by_id(mem_id, caller.uid)?;
                Ok(registry.add_port(name, Some(key), caller.uid, region, Parent))
            }
        }
    }

    /// The same with a region of its own, and that key.
    pub(crate) fn private(
        registry: &mut Registry,
        caller: &Caller,
        name: &str,
        reg: &Registration,
        key: String,
    ) -> Result<PortId> {
        let slots = [reg.tx_slots, reg.rx_slots].map(|asked| asked.clamp(DEFAULT_SLOTS, MAX_SLOTS));
        let sizes = Sizes::private([2; 2], slots, ROOM_FOR_PIPES, 0);
        let region = registry.regions.private(caller.uid, &sizes)?;
        Ok(registry.add_port(name, Some(key), caller.uid, region, Parent))
    }
}
