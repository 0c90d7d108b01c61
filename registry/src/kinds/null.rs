//! A null port: rings that nothing moves (S-NULL-1), to measure with, or to reserve memory of a region.

use ringway_abi::{NR_REG_NULL, NR_SINK};
use ringway_proto::{Error, PortKind, Result, RingBackend};

use crate::{
    bind_reply::Fds,
    kinds::{Ask, PortBackend, RingAt},
    port::{PortId, Shape, make_rings},
    regions::GLOBAL_ID,
    registry::Registry,
};

pub(crate) struct Null {
    /// It takes what is sent.
    sink: bool,
}

impl Null {
    pub fn open(registry: &mut Registry, ask: &Ask<'_>) -> Result<Option<PortId>> {
        let &Ask { caller, name, reg } = ask;
        if reg.nr_mode != NR_REG_NULL {
            return Ok(None);
        }
        if reg.nr_mem_id == 0 {
            return Err(Error::invalid(format!(
                "{name}: a null port needs the id of a region; {GLOBAL_ID} is the global one"
            )));
        }
        let region = registry.regions.by_id(reg.nr_mem_id, caller.uid)?;
        let shape = Shape {
            rings: [reg.nr_tx_rings.into(), reg.nr_rx_rings.into()],
            slots: [reg.nr_tx_slots, reg.nr_rx_slots],
        };
        let rings = make_rings(&mut registry.regions, region, shape)?;
        let backend = Null { sink: reg.nr_flags & NR_SINK != 0 };
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
