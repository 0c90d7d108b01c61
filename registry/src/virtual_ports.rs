//! Ports without hardware: VALE ports and the parents of pipes.

use std::sync::{Arc, atomic::AtomicBool};

use ringway_abi::{Dir, nmreq_register};
use ringway_kring::Doorbell;
use ringway_proto::{Error, Result};
use ringway_region::Sizes;
use ringway_vale::{RingPort, RxSide, TxSide};

use crate::{
    bridges::BridgePortRef,
    name::{PortName, plain_key},
    nic,
    port::{Kind, Port, PortId, Ring, Shape, make_rings},
    registry::{Caller, Registry},
};

/// Pipes that the region of a VALE port has room for (S-MEM-8).
const ROOM_FOR_PIPES: u32 = 2;
const MAX_RINGS: u16 = 16;
pub(crate) const MAX_SLOTS: u32 = 4096;
const DEFAULT_SLOTS: u32 = 1024;
/// Extra buffers of a new VALE port at most (S-MEM-9).
pub(crate) const MAX_EXTRA: u32 = 524_288;

/// What a request asks of a port that it creates (S-VALE-3): defaults 1 ring, 1024 slots.
pub(crate) fn asked_shape(rings: [u16; 2], slots: [u32; 2]) -> Shape {
    let slot = |n| if n == 0 { DEFAULT_SLOTS } else { std::cmp::min(n, MAX_SLOTS) };
    Shape { rings: rings.map(|n| n.clamp(1, MAX_RINGS).into()), slots: slots.map(slot) }
}

impl Registry {
    /// The VALE port of that name, which comes into being if need be (S-VALE-3, 4).
    pub(crate) fn vale_port(
        &mut self,
        caller: &Caller,
        name: &str,
        reg: &nmreq_register,
    ) -> Result<PortId> {
        if let Some(&id) = self.names.get(name) {
            return self.owned(id, caller);
        }
        let PortName::Vale { bridge, port } = PortName::parse(name, libc::ENOMEM)? else {
            return Err(Error::invalid(format!("{name}: not a VALE port")));
        };
        if self.bridges.has(bridge, name) {
            return Err(Error::busy(format!("{name}: the host's stack; open its interface")));
        }
        if nic::exists(port, caller)? {
            return Err(Error::invalid(format!(
                "{name}: {port} is a network interface; attach it first: \
                 `ringway switch attach {bridge} {port}`"
            )));
        }
        self.may_join(caller, bridge)?;
        let id = self.new_vale(caller, name, name.into(), reg)?;
        let attached = self.serve(id, bridge, name);
        if let Err(error) = attached {
            self.free_rings(id);
            self.remove(id);
            return Err(error);
        }
        Ok(id)
    }

    /// A port with rings for a bridge, not on any yet.
    pub(crate) fn new_vale(
        &mut self,
        caller: &Caller,
        name: &str,
        key: String,
        reg: &nmreq_register,
    ) -> Result<PortId> {
        let shape =
            asked_shape([reg.nr_tx_rings, reg.nr_rx_rings], [reg.nr_tx_slots, reg.nr_rx_slots]);
        let region = match reg.nr_mem_id {
            0 => {
                let fake_host = shape.rings.map(|n| n + 1);
                let extra = reg.nr_extra_bufs.min(MAX_EXTRA);
                let sizes = Sizes::private(fake_host, shape.slots, ROOM_FOR_PIPES, extra);
                self.regions.private(caller.uid, &sizes)?
            }
            mem_id => self.regions.by_id(mem_id, caller.uid)?,
        };
        let worker = match Doorbell::new() {
            Ok(doorbell) => Arc::new(doorbell),
            Err(e) => {
                self.regions.drop_unused(region);
                return Err(Error::io("cannot create a doorbell", e));
            }
        };
        let [tx, rx] = match make_rings(&mut self.regions, region, shape) {
            Ok(rings) => rings,
            Err(error) => {
                self.regions.drop_unused(region);
                return Err(error);
            }
        };
        let kind = Kind::Vale { place: None, worker, device: None };
        let id = self.add_port(name, Some(key), caller.uid, region, kind);
        let port = self.port_mut(id);
        (port.tx, port.rx) = (tx, rx);
        Ok(id)
    }

    /// Puts a port on a bridge, under the full name `member`.
    pub(crate) fn serve(
        &mut self,
        id: PortId,
        bridge: &str,
        member: &str,
    ) -> Result<BridgePortRef> {
        let side = served_side(self.port(id));
        let at =
            self.bridges.attach(bridge, member, Box::new(side), self.port(id).config.clone())?;
        if let Kind::Vale { place, .. } = &mut self.port_mut(id).kind {
            *place = Some(at.clone());
        }
        self.retap_monitored(id);
        Ok(at)
    }

    /// A port that is only a name and a region, for pipes (S-PIPE-2).
    pub(crate) fn parent_port(
        &mut self,
        caller: &Caller,
        name: &str,
        mem_id: u16,
    ) -> Result<PortId> {
        let key = plain_key(name, caller);
        match mem_id {
            0 => self.private_parent(caller, name, key),
            mem_id => {
                let region = self.regions.by_id(mem_id, caller.uid)?;
                Ok(self.add_port(name, Some(key), caller.uid, region, Kind::Parent))
            }
        }
    }

    /// The same with a region of its own, and that key.
    pub(crate) fn private_parent(
        &mut self,
        caller: &Caller,
        name: &str,
        key: String,
    ) -> Result<PortId> {
        let sizes = Sizes::private([2; 2], [DEFAULT_SLOTS; 2], ROOM_FOR_PIPES, 0);
        let region = self.regions.private(caller.uid, &sizes)?;
        Ok(self.add_port(name, Some(key), caller.uid, region, Kind::Parent))
    }

    /// Makes a bridge that stays although it has no ports. One that is there already and stays for
    /// nobody becomes the caller's, unless others have ports there: it would rule over these.
    pub(crate) fn switch_new(&mut self, caller: &Caller, bridge: &str) -> Result<()> {
        check_bridge_name(bridge)?;
        if let Ok(None) = self.bridges.keeper(bridge) {
            self.may_rule(caller, bridge)?;
        }
        self.bridges.create(bridge, caller.uid)
    }

    /// Takes everything off a bridge that no program holds, and lets it go. Refused if any of
    /// it is another user's.
    pub(crate) fn switch_delete(&mut self, caller: &Caller, bridge: &str) -> Result<()> {
        check_bridge_name(bridge)?;
        if let Some(keeper) = self.bridges.keeper(bridge)?
            && ![keeper, 0].contains(&caller.uid)
        {
            return Err(Error::busy(format!(
                "{bridge}: made by user {keeper}, who alone can delete it; use another bridge"
            )));
        }
        let mut attached = Vec::new();
        for name in self.bridges.members(bridge)? {
            let Some(&id) = self.names.get(&name) else { continue };
            if matches!(self.port(id).kind, Kind::Attached { .. }) {
                attached.push(self.owned(id, caller)?);
            }
        }
        for id in attached {
            self.detach_nic(id);
        }
        // The bridge may have gone with its last NIC.
        match self.bridges.let_go(bridge) {
            Err(error) if error.errno == libc::ENOENT => Ok(()),
            other => other,
        }
    }

    /// The port, if it is the caller's: ports of other users are not shared (the region would
    /// be).
    pub(crate) fn owned(&self, id: PortId, caller: &Caller) -> Result<PortId> {
        let port = self.port(id);
        if [port.uid, 0].contains(&caller.uid) || port.shared_with == Some(caller.uid) {
            return Ok(id);
        }
        Err(Error::busy(format!(
            "{}: in use by user {}; choose another port name",
            port.name, port.uid
        )))
    }
}

fn check_bridge_name(bridge: &str) -> Result<()> {
    match PortName::parse(&format!("{bridge}:x"), libc::EINVAL) {
        Ok(PortName::Vale { .. }) => Ok(()),
        _ => Err(Error::invalid(format!(
            "{bridge}: a bridge is named vale<id>, at most 15 letters, digits and _"
        ))),
    }
}

/// The rings of a VALE port as its bridge serves them.
pub(crate) fn served_side(port: &Port) -> RingPort {
    let worker = bell_of(port);
    let (tx, rx) = (port.nic_rings(Dir::Tx), port.nic_rings(Dir::Rx));
    bridge_side(tx, rx, worker.clone(), port.receives.clone())
}

/// What has the place of a VALE port on a bridge that does not serve its rings now.
pub(crate) fn vacant_side(port: &Port) -> RingPort {
    RingPort::new(Vec::new(), Vec::new(), bell_of(port).clone(), Arc::default())
}

/// What the worker of a VALE port's bridge sleeps on.
fn bell_of(port: &Port) -> &Arc<Doorbell> {
    let Kind::Vale { worker, .. } = &port.kind else {
        unreachable!("only VALE ports are served by a bridge")
    };
    worker
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
