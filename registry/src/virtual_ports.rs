//! Ports without hardware: VALE ports, persistent ports, and the parents of pipes.

use std::sync::Arc;

use ringway_abi::{nmreq_register, nmreq_vale_newif};
use ringway_kring::Bell;
use ringway_region::Sizes;
use ringway_vale::{RingPort, RxSide, TxSide};

use crate::{
    bridges::Place,
    error::{Error, Result},
    name::{IFNAMSIZ, PortName},
    nic,
    port::{Kind, Port, PortId, Shape, make_rings},
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
        if nic::exists(port, caller)? {
            return Err(Error::invalid(format!(
                "{name}: {port} is a network interface; attach it first: \
                 `ringway switch attach {bridge} {port}`"
            )));
        }
        let id = self.new_vale(caller, name, name.into(), reg, false)?;
        let attached = self.serve(id, bridge, name);
        if let Err(error) = attached {
            self.free_rings(id);
            self.remove(id);
            return Err(error);
        }
        Ok(id)
    }

    /// A port with rings for a bridge, not on any yet.
    fn new_vale(
        &mut self,
        caller: &Caller,
        name: &str,
        key: String,
        reg: &nmreq_register,
        persistent: bool,
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
        let worker = match Bell::new() {
            Ok(bell) => Arc::new(bell),
            Err(e) => {
                self.regions.drop_unused(region);
                return Err(Error::io("cannot create a bell", e));
            }
        };
        let [tx, rx] = match make_rings(&mut self.regions, region, shape) {
            Ok(rings) => rings,
            Err(error) => {
                self.regions.drop_unused(region);
                return Err(error);
            }
        };
        let kind = Kind::Vale { place: None, worker, persistent };
        let id = self.add_port(name, Some(key), caller.uid, region, kind);
        let port = self.port_mut(id);
        (port.tx, port.rx) = (tx, rx);
        Ok(id)
    }

    /// Puts a port on a bridge, under the full name `member`.
    fn serve(&mut self, id: PortId, bridge: &str, member: &str) -> Result<Place> {
        let side = served_side(self.port(id));
        let at = self.bridges.attach(bridge, member, Box::new(side))?;
        if let Kind::Vale { place, .. } = &mut self.port_mut(id).kind {
            *place = Some(at.clone());
        }
        self.retap(id);
        Ok(at)
    }

    /// A port that is only a name and a region, for pipes (S-PIPE-2).
    pub(crate) fn parent_port(
        &mut self,
        caller: &Caller,
        name: &str,
        mem_id: u16,
    ) -> Result<PortId> {
        let region = match mem_id {
            0 => {
                let slots = [DEFAULT_SLOTS; 2];
                self.regions
                    .private(caller.uid, &Sizes::private([2; 2], slots, ROOM_FOR_PIPES, 0))?
            }
            mem_id => self.regions.by_id(mem_id, caller.uid)?,
        };
        let key = plain_key(name, caller);
        Ok(self.add_port(name, Some(key), caller.uid, region, Kind::Parent))
    }

    /// NETMAP_REQ_VALE_NEWIF (S-VALE-12).
    pub(crate) fn vale_newif(
        &mut self,
        caller: &Caller,
        name: &str,
        conf: nmreq_vale_newif,
    ) -> Result<nmreq_vale_newif> {
        if name.is_empty() || name.starts_with("vale") || name.len() >= IFNAMSIZ {
            return Err(Error::invalid(format!(
                "{name}: a persistent port has a name of 1 to 15 characters that does not \
                 begin with `vale`"
            )));
        }
        if nic::exists(name, caller)? || self.names.contains_key(&plain_key(name, caller)) {
            return Err(Error::new(
                libc::EEXIST,
                format!("{name}: there is such an interface; choose another name"),
            ));
        }
        let is_persistent = |port: &&Port| matches!(port.kind, Kind::Vale { persistent: true, .. });
        if self.ports.values().filter(is_persistent).count() >= self.settings.max_bridges {
            // Each is a thread, and stays when the program that made it has gone.
            return Err(Error::no_memory(format!(
                "{name}: there are {} persistent ports already, the most that this daemon \
                 keeps; delete one or raise max_bridges in its configuration",
                self.settings.max_bridges
            )));
        }
        let reg = nmreq_register {
            nr_tx_slots: conf.nr_tx_slots,
            nr_rx_slots: conf.nr_rx_slots,
            nr_tx_rings: conf.nr_tx_rings,
            nr_rx_rings: conf.nr_rx_rings,
            nr_mem_id: conf.nr_mem_id,
            ..Default::default()
        };
        let id = self.new_vale(caller, name, plain_key(name, caller), &reg, true)?;
        if let Err(error) = self.serve(id, &limbo(id), name) {
            self.free_rings(id);
            self.remove(id);
            return Err(error);
        }
        let port = self.port(id);
        let Shape { rings, slots } = port.shape();
        let region = port.region;
        Ok(nmreq_vale_newif {
            nr_tx_slots: slots[0],
            nr_rx_slots: slots[1],
            nr_tx_rings: rings[0] as u16,
            nr_rx_rings: rings[1] as u16,
            nr_mem_id: self.regions.get(region).region.mem_id(),
            ..conf
        })
    }

    /// NETMAP_REQ_VALE_DELIF (S-VALE-15).
    pub(crate) fn vale_delif(&mut self, caller: &Caller, name: &str) -> Result<()> {
        let Some(&id) = self.names.get(&plain_key(name, caller)) else {
            return Err(match nic::exists(name, caller)? {
                true => Error::invalid(format!("{name}: not made by newif; nothing to delete")),
                false => Error::absent(format!("{name}: there is no such port")),
            });
        };
        let port = self.port_mut(id);
        let (bound, children) = (port.bindings > 0, port.children > 0);
        match &mut port.kind {
            Kind::Vale { place, persistent, .. } if *persistent => {
                if bound || children || place.as_ref().is_some_and(|p| !p.is_limbo()) {
                    return Err(Error::busy(format!(
                        "{name}: still open or attached; close it and detach it first"
                    )));
                }
                *persistent = false;
                self.reap(id);
                Ok(())
            }
            _ => Err(Error::invalid(format!("{name}: not made by newif; nothing to delete"))),
        }
    }

    /// NETMAP_REQ_VALE_ATTACH (S-VALE-13, 16): a persistent port or a NIC joins a bridge.
    pub(crate) fn vale_attach(
        &mut self,
        caller: &Caller,
        name: &str,
        reg: &nmreq_register,
    ) -> Result<u32> {
        let PortName::Vale { bridge, port } = PortName::parse(name, libc::ENOMEM)? else {
            return Err(Error::invalid(format!(
                "{name}: attach to a port name vale<switch>:<interface>"
            )));
        };
        if self.names.contains_key(name) {
            return Err(Error::busy(format!("{name}: attached already")));
        }
        if reg.nr_mem_id != 0 {
            let region = self.regions.by_id(reg.nr_mem_id, caller.uid)?;
            self.regions.drop_unused(region);
        }
        let persistent = self.names.get(&plain_key(port, caller)).copied();
        let place = match persistent {
            Some(id) => {
                self.owned(id, caller)?;
                let unused = self.port(id).bindings == 0;
                match &self.port(id).kind {
                    Kind::Vale { place: Some(now), persistent: true, .. }
                        if now.is_limbo() && unused =>
                    {
                        let now = now.clone();
                        self.move_to(id, &now, bridge, name)?
                    }
                    _ => {
                        return Err(Error::busy(format!(
                            "{port}: open, or attached to a bridge already"
                        )));
                    }
                }
            }
            None => self.attach_nic(caller, bridge, port, name, reg)?,
        };
        Ok(place.index.into())
    }

    /// NETMAP_REQ_VALE_DETACH (S-VALE-17).
    pub(crate) fn vale_detach(&mut self, caller: &Caller, name: &str) -> Result<u32> {
        if !name.starts_with("val") {
            return Err(Error::invalid(format!("{name}: detach takes a name vale<switch>:<port>")));
        }
        PortName::parse(name, libc::ENXIO)?;
        let Some(&id) = self.names.get(name) else {
            return Err(Error::absent(format!("{name}: there is no such port")));
        };
        self.owned(id, caller)?;
        let (place, nic) = match &self.port(id).kind {
            Kind::Attached { polling: true, .. } => {
                return Err(Error::busy(format!("{name}: polled; stop polling it first")));
            }
            Kind::Attached { place, .. } => (place.clone(), true),
            Kind::Vale { place: Some(place), persistent: true, .. } => (place.clone(), false),
            _ => {
                return Err(Error::busy(format!(
                    "{name}: lives as long as a program has it open; end that program"
                )));
            }
        };
        if nic {
            self.bridges.detach(&place);
            self.remove(id);
        } else {
            let plain = self.port(id).name.clone();
            self.move_to(id, &place, &limbo(id), &plain)?;
            self.names.remove(name);
        }
        Ok(place.index.into())
    }

    /// Moves a persistent port from one bridge to another. Its rings go on where they were.
    fn move_to(&mut self, id: PortId, from: &Place, bridge: &str, member: &str) -> Result<Place> {
        self.bridges.detach(from);
        match self.serve(id, bridge, member) {
            Ok(place) => {
                if !place.is_limbo() {
                    self.names.insert(member.into(), id);
                }
                Ok(place)
            }
            Err(error) => {
                // Back to where it was; that bridge has the place that was just given up.
                self.serve(id, &from.bridge, &self.port(id).name.clone())?;
                Err(error)
            }
        }
    }

    /// Makes a bridge that stays although it has no ports.
    pub(crate) fn switch_new(&mut self, caller: &Caller, bridge: &str) -> Result<()> {
        check_bridge_name(bridge)?;
        self.bridges.create(bridge, caller.uid)
    }

    /// Takes everything off a bridge that no program holds, and lets it go. Refused if any of
    /// it is another user's.
    pub(crate) fn switch_delete(&mut self, caller: &Caller, bridge: &str) -> Result<()> {
        check_bridge_name(bridge)?;
        self.bridges.keeper(bridge, caller.uid)?;
        let mut attached = Vec::new();
        for name in self.bridges.members(bridge)? {
            let Some(&id) = self.names.get(&name) else { continue };
            if let Kind::Attached { place, .. } = &self.port(id).kind {
                attached.push((self.owned(id, caller)?, place.clone()));
            }
        }
        for (id, place) in attached {
            self.bridges.detach(&place);
            self.remove(id);
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
        if port.uid == caller.uid || caller.uid == 0 {
            return Ok(id);
        }
        Err(Error::busy(format!(
            "{}: in use by user {}; choose another port name",
            port.name, port.uid
        )))
    }
}

/// The bridge of a persistent port that is on none: what it sends is consumed and discarded
/// (S-VALE-5). No bridge that a user can name begins so.
fn limbo(id: PortId) -> String {
    format!("{}{id}", crate::bridges::LIMBO)
}

/// The key of a port that is known by a plain name, per user.
pub(crate) fn plain_key(name: &str, caller: &Caller) -> String {
    format!("{name}\0{}", caller.uid)
}

fn check_bridge_name(bridge: &str) -> Result<()> {
    match PortName::parse(&format!("{bridge}:x"), libc::EINVAL) {
        Ok(PortName::Vale { .. }) => Ok(()),
        _ => Err(Error::invalid(format!(
            "{bridge}: a bridge is named vale<id>, at most 15 letters, digits and _"
        ))),
    }
}

fn served_side(port: &Port) -> RingPort {
    let Kind::Vale { worker, .. } = &port.kind else {
        unreachable!("only VALE ports are served by a bridge")
    };
    let tx = port.tx.iter().map(|r| TxSide::new(r.kring.clone(), r.bell.clone())).collect();
    let rx = port.rx.iter().map(|r| RxSide::new(r.kring.clone(), r.bell.clone())).collect();
    RingPort::new(tx, rx, worker.clone(), port.receives.clone())
}
