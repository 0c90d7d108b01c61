//! VALE ports: rings of a program that a switch's worker serves (S-VALE).
//!
//! The rings are there while a program has the port: as the parent of pipes, or as a name that somebody
//! asks about, it takes no memory of its region.

use std::sync::{Arc, atomic::AtomicBool};

use ringway_abi::Dir;
use ringway_kring::Doorbell;
use ringway_proto::{Error, PortKind, Registration, Result, RingBackend};
use ringway_region::Sizes;
use ringway_vale::{RingPort, RxSide, TxSide};

use crate::{
    bind_reply::Fds,
    bridges::BridgePortRef,
    interfaces,
    kinds::{OpenRequest, PortBackend, RingAt, monitor::Monitor},
    name::PortName,
    nic_mode::ModeRequest,
    port::{Port, PortId, Ring, Shape, make_rings},
    regions::{GLOBAL_ID, RegionKey, Regions},
    registry::Registry,
    selection::Selection,
    settings::Settings,
};

/// Pipes that the region of a VALE port has room for (S-MEM-8).
pub(crate) const ROOM_FOR_PIPES: u32 = 2;
const MAX_RINGS: u16 = 16;
pub(crate) const MAX_SLOTS: u32 = 4096;
pub(crate) const DEFAULT_SLOTS: u32 = 1024;
/// Extra buffers of a new VALE port at most (S-MEM-9).
pub(crate) const MAX_EXTRA: u32 = 524_288;

/// What a request asks of a port that it creates (S-VALE-3): defaults 1 ring, 1024 slots.
fn asked_shape(rings: [u16; 2], slots: [u32; 2]) -> Shape {
    let slot = |n| if n == 0 { DEFAULT_SLOTS } else { std::cmp::min(n, MAX_SLOTS) };
    Shape { rings: rings.map(|n| n.clamp(1, MAX_RINGS).into()), slots: slots.map(slot) }
}

/// Where a switch's worker serves a port.
#[derive(Clone)]
pub(crate) struct SwitchSide {
    /// `None`: on no switch yet, or any more.
    pub bridge_port: Option<BridgePortRef>,
    /// What the worker sleeps on.
    pub worker: Arc<Doorbell>,
    /// Rings and slots that the port has while there are any.
    pub shape: Shape,
}

/// A port that lives as long as a program, or a pipe, has it.
pub(crate) struct Vale {
    pub side: SwitchSide,
}

impl Vale {
    pub fn open(registry: &mut Registry, request: &OpenRequest<'_>) -> Result<Option<PortId>> {
        match request.port_name()? {
            PortName::Vale { .. } => Vale::find_or_make(registry, request).map(Some),
            _ => Ok(None),
        }
    }
}

impl PortBackend for Vale {
    fn display_kind(&self) -> Option<PortKind> {
        Some(PortKind::Vale)
    }

    fn link(&self, _at: &RingAt<'_>, fds: &mut Fds) -> Result<RingBackend> {
        Ok(RingBackend::Served { worker: fds.add(self.side.worker.as_ref())? })
    }

    fn shape(&self, _settings: &Settings, _port: &Port) -> Shape {
        self.side.shape
    }

    fn descriptors(&self, _registry: &Registry, _port: &Port) -> usize {
        // The worker's doorbell.
        1
    }

    fn max_extra_bufs(&self, port: &Port) -> u32 {
        if port.bindings == 0 { MAX_EXTRA } else { u32::MAX }
    }

    fn switch_side(&self) -> Option<&SwitchSide> {
        Some(&self.side)
    }

    fn switch_side_mut(&mut self) -> Option<&mut SwitchSide> {
        Some(&mut self.side)
    }

    /// The first program's rings come into being, and the worker serves them.
    fn bind(
        registry: &mut Registry,
        id: PortId,
        _wanted: &Selection,
        _request: ModeRequest,
    ) -> Result<()> {
        let port = registry.port(id);
        let Some(Vale { side }) = port.get() else { return Ok(()) };
        if port.all_rings().next().is_none() {
            let (region, bridge_port, shape) = (port.region, side.bridge_port.clone(), side.shape);
            // What stayed for its pipes may have had a program before.
            registry.await_drained(id)?;
            let rings = make_rings(&mut registry.regions, region, shape)?;
            registry.port_mut(id).set_rings(rings);
            if let Some(served) = served_side(registry.port(id))
                && let Some(bridge_port) = bridge_port
            {
                registry.bridges.replace(&bridge_port, Box::new(served));
            }
        }
        Ok(())
    }

    /// What stays for its pipes has no rings.
    fn unbind(registry: &mut Registry, id: PortId) {
        let port = registry.port(id);
        if port.children == 0 {
            // It goes: its rings are freed when what was sent has been forwarded.
            return;
        }
        let Some(Vale { side: SwitchSide { bridge_port, .. } }) = port.get() else { return };
        let mut draining = None;
        if let (Some(bridge_port), Some(vacant)) = (bridge_port.clone(), vacant_side(port)) {
            let doorbell = registry.leftovers.doorbell();
            draining = registry.bridges.begin_replace(&bridge_port, Box::new(vacant), doorbell);
        }
        if let Some(port) = registry.ports.get_mut(id) {
            registry.leftovers.free_rings_after(id, port, draining, &mut registry.regions);
        }
    }

    fn reclaim(registry: &mut Registry, id: PortId) {
        let side = registry.port(id).backend.switch_side();
        let bridge_port = side.and_then(|side| side.bridge_port.clone());
        let doorbell = registry.leftovers.doorbell();
        let draining = bridge_port.and_then(|port| registry.bridges.begin_detach(&port, doorbell));
        if let Some(port) = registry.ports.get_mut(id) {
            registry.leftovers.free_rings_after(id, port, draining, &mut registry.regions);
        }
        registry.remove(id);
    }

    fn offsets_changed(registry: &mut Registry, id: PortId, dir: Dir, ring: usize) {
        set_worker_offsets(registry, id, dir, ring);
    }

    fn mirrors_changed(registry: &mut Registry, id: PortId, generation: u32) {
        set_worker_mirrors(registry, id, generation);
    }
}

/// Tells the worker of the offsets of a port's ring.
pub(crate) fn set_worker_offsets(registry: &mut Registry, id: PortId, dir: Dir, ring: usize) {
    let port = registry.port(id);
    let offsets = port.rings(dir).get(ring).and_then(|ring| ring.offsets);
    let bridge_port = port.backend.switch_side().and_then(|side| side.bridge_port.clone());
    if let (Some(bridge_port), Some(offsets)) = (bridge_port, offsets) {
        registry.bridges.set_offsets(&bridge_port, dir, ring, offsets);
    }
}

/// Tells the worker of the monitors of a port; when this returns it feeds no others.
pub(crate) fn set_worker_mirrors(registry: &mut Registry, id: PortId, generation: u32) {
    let port = registry.port(id);
    match port.backend.switch_side().and_then(|side| side.bridge_port.clone()) {
        Some(bridge_port) => {
            let mirrors = Monitor::port_mirrors(registry, id, false);
            registry.bridges.set_mirrors(&bridge_port, mirrors);
        }
        // It has lost its device, and with that its place on the switch.
        None => port.all_rings().for_each(|ring| ring.kring.set_monitors(generation)),
    }
}

impl Vale {
    /// The VALE port of that name, which comes into being if need be (S-VALE-3, S-VALE-4).
    pub(crate) fn find_or_make(
        registry: &mut Registry,
        request: &OpenRequest<'_>,
    ) -> Result<PortId> {
        let &OpenRequest { caller, name, reg, is_question } = request;
        if let Some(id) = registry.named(name)? {
            return registry.ports.owned(id, caller);
        }
        let PortName::Vale { bridge, port } = request.port_name()? else {
            return Err(Error::invalid("not a VALE port").at(name));
        };
        if registry.bridges.has(bridge, name) {
            return Err(Error::busy("the host's stack").at(name).remedy("open its interface"));
        }
        if name.ends_with('^') {
            // By such a name it would be taken for one.
            return Err(Error::invalid("a name with ^ at its end is that of a host's stack")
                .at(name)
                .remedy("choose another name"));
        }
        // A switch port needs no network namespace: where the caller's cannot be entered (a user namespace
        // has made it, say), no interface of it can be attached either.
        if interfaces::exists_if_known(port, caller)? {
            return Err(Error::invalid(format!("{port} is a network interface"))
                .at(name)
                .remedy(format!("attach it first: `ringway switch attach {bridge} {port}`")));
        }
        registry.expected.check_free_for_program(name)?;
        registry.bridges.check_may_join(caller, bridge)?;
        let mut reg = *reg;
        // Buffers change hands within a region.
        if reg.mem_id == 0 && registry.bridges.will_swap_buffers(bridge, name, caller.uid) {
            reg.mem_id = GLOBAL_ID;
        }
        let (region, side) = Vale::new_side(&mut registry.regions, caller.uid, &reg)?;
        let id = registry.add_port(name, Some(name.into()), caller.uid, region, Vale { side });
        registry.port_mut(id).config.sources = registry.bridges.sources_of_new(bridge);
        let joined = match is_question {
            true => registry.bridges.check_attach(caller.uid, bridge, name),
            false => Vale::serve(registry, id, bridge, name).map(drop),
        };
        joined.map(|()| id).inspect_err(|_| registry.remove(id))
    }

    /// What a new port on a switch is made of: a region, and its side there, on no switch yet.
    pub(crate) fn new_side(
        regions: &mut Regions,
        uid: u32,
        reg: &Registration,
    ) -> Result<(RegionKey, SwitchSide)> {
        let shape = asked_shape([reg.tx_rings, reg.rx_rings], [reg.tx_slots, reg.rx_slots]);
        let worker = Doorbell::new().map_err(|e| Error::io("cannot create a doorbell", e))?;
        let region = match reg.mem_id {
            0 => regions.private(uid, &region_sizes(&shape, reg))?,
            mem_id => regions.by_id(mem_id, uid)?,
        };
        Ok((region, SwitchSide { bridge_port: None, worker: Arc::new(worker), shape }))
    }

    /// ENOMEM if the user may not have the memory of such a port.
    pub(crate) fn check_side(regions: &Regions, uid: u32, reg: &Registration) -> Result<()> {
        if reg.mem_id != 0 {
            return Ok(());
        }
        let shape = asked_shape([reg.tx_rings, reg.rx_rings], [reg.tx_slots, reg.rx_slots]);
        regions.check_private(uid, &region_sizes(&shape, reg))
    }

    /// Puts a port on a bridge, under the name `full`.
    pub(crate) fn serve(
        registry: &mut Registry,
        id: PortId,
        bridge: &str,
        full: &str,
    ) -> Result<BridgePortRef> {
        let port = registry.port(id);
        let side = served_side(port).ok_or_else(|| {
            Error::invalid("only ports with rings of their own are served").at(full)
        })?;
        let (uid, config) = (port.uid, port.config.clone());
        let at = registry.bridges.attach(uid, bridge, full, Box::new(side), config)?;
        if let Some(side) = registry.port_mut(id).backend.switch_side_mut() {
            side.bridge_port = Some(at.clone());
        }
        Monitor::update_mirrors_if_any(registry, id);
        Ok(at)
    }
}

/// The sizes of the region that such a port is to have for itself.
fn region_sizes(shape: &Shape, reg: &Registration) -> Sizes {
    let fake_host = shape.rings.map(|n| n + 1);
    Sizes::private(fake_host, shape.slots, ROOM_FOR_PIPES, reg.extra_bufs.min(MAX_EXTRA))
}

/// The rings of a VALE port as its bridge serves them.
pub(crate) fn served_side(port: &Port) -> Option<RingPort> {
    let worker = port.backend.switch_side()?.worker.clone();
    let (tx, rx) = (port.nic_rings(Dir::Tx), port.nic_rings(Dir::Rx));
    Some(bridge_side(tx, rx, worker, port.receives.clone()))
}

/// What has the place of a VALE port on a bridge that does not serve its rings now.
pub(crate) fn vacant_side(port: &Port) -> Option<RingPort> {
    let worker = port.backend.switch_side()?.worker.clone();
    Some(RingPort::new(Vec::new(), Vec::new(), worker, Arc::default()))
}

/// Rings as a bridge serves them.
pub(crate) fn bridge_side(
    tx: &[Ring],
    rx: &[Ring],
    worker: Arc<Doorbell>,
    receives: Arc<AtomicBool>,
) -> RingPort {
    let sent = |r: &Ring| TxSide::new(r.kring.clone(), r.doorbell.clone()).with_offsets(r.offsets);
    let received =
        |r: &Ring| RxSide::new(r.kring.clone(), r.doorbell.clone()).with_offsets(r.offsets);
    let (tx, rx) = (tx.iter().map(sent).collect(), rx.iter().map(received).collect());
    RingPort::new(tx, rx, worker, receives)
}
