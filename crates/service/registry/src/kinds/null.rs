//! A null port: rings that nothing moves (S-NULL-1), to measure with, or to reserve memory of a region.

use ringway_proto::{Error, PortKind, Result, RingBackend, RingSelection};

use crate::{
    bind_reply::Fds,
    kinds::{OpenRequest, PortBackend, RingAt},
    port::{PortId, Shape, make_rings},
    regions::GLOBAL_ID,
    registry::Registry,
};

pub(crate) struct Null {
    /// It takes what is sent.
    sink: bool,
}

impl Null {
    pub fn open(registry: &mut Registry, request: &OpenRequest<'_>) -> Result<Option<PortId>> {
        let &OpenRequest { caller, name, reg, .. } = request;
        let RingSelection::Null { sink } = reg.rings else { return Ok(None) };
        if reg.mem_id == 0 {
            return Err(Error::invalid("a null port needs the id of a region")
                .at(name)
                .remedy(format!("{GLOBAL_ID} is the global one")));
        }
        let region = registry.regions.by_id(reg.mem_id, caller.uid)?;
        let shape = Shape {
            rings: [reg.tx_rings.into(), reg.rx_rings.into()],
            slots: [reg.tx_slots, reg.rx_slots],
        };
        let rings = make_rings(&mut registry.regions, region, shape)?;
        let backend = Null { sink };
        let id = registry.add_port(name, None, caller.uid, region, backend);
        registry.port_mut(id).set_rings(rings);
        Ok(Some(id))
    }
}

impl PortBackend for Null {
    fn display_kind(&self) -> Option<PortKind> {
        Some(PortKind::Null)
    }

    fn link(&self, _at: &RingAt<'_>, _fds: &mut Fds) -> Result<RingBackend> {
        Ok(if self.sink { RingBackend::Sink } else { RingBackend::Null })
    }
}
