//! Persistent ports: VALE ports with a network device (S-VALE-12 to 17).
//!
//! The device is the outer end of a private pair, in the network namespace of whoever asked for it.
//! Behind the inner end are the port's host rings, or, on a bridge, a port of its own.
//!
//! ```text
//!   program        bridge                           host stack
//!   NIC rings  <-> valeX:NAME
//!   host rings <------------------------> inner ====== NAME
//!                  valeX:NAME^ <--------> inner
//! ```

use ringway_abi::{NR_REG_NIC_SW, nmreq_register, nmreq_vale_newif};
use ringway_drivers::WorkerServed;
use ringway_proto::{Error, NicMode, Result};
use ringway_vale::{PortConfig, ProgramPort};
use ringway_xdp::{LinkWatch, NicPort, OuterEnd, PairConfig, PrivatePair};

use crate::{
    bridges::BridgePortRef,
    host::Wire,
    name::{IFNAMSIZ, PortName, plain_key},
    nic::{self, nic_error},
    port::{Kind, Port, PortId, Shape},
    registry::{Caller, Registry},
    virtual_ports::{served_side, vacant_side},
};

const MTU: u32 = 1500;

/// What makes a VALE port persistent.
pub(crate) struct Device {
    pub pair: PrivatePair,
    /// The bridge that is the port's program, besides the one that the port is on.
    pub second: Option<BridgePortRef>,
    pub stack: Stack,
}

/// Who speaks with the stack behind a device.
pub(crate) enum Stack {
    Nobody,
    /// A bridge, for which it is a port.
    Bridge(BridgePortRef),
    /// Programs, by host rings.
    Rings(Wire),
}

impl Device {
    /// Where a bridge is the port's program.
    pub fn second(&self) -> Option<&BridgePortRef> {
        self.second.as_ref()
    }

    /// Whether a bridge is the port's program.
    pub fn is_joined(&self) -> bool {
        self.second.is_some()
    }

    /// The stack as a port of a bridge.
    pub fn stack_port(&self) -> Result<NicPort> {
        self.pair.inside(NicPort::open).map_err(nic_error)
    }
}

impl Registry {
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
        let key = plain_key(name, caller);
        if nic::exists(name, caller)? || self.names.contains_key(&key) {
            return Err(Error::new(
                libc::EEXIST,
                format!("{name}: there is such an interface; choose another name"),
            ));
        }
        if conf.nr_mem_id != 0 {
            let region = self.regions.by_id(conf.nr_mem_id, caller.uid)?;
            self.regions.drop_unused(region);
        }
        nic::allowed_all(caller, name)?;
        let is_persistent = |port: &&Port| matches!(port.kind, Kind::Vale { device: Some(_), .. });
        if self.ports.values().filter(is_persistent).count() >= self.settings.max_bridges {
            // Each is a thread, and stays when the program that made it has gone.
            return Err(Error::no_memory(format!(
                "{name}: there are {} persistent ports already, the most that this daemon \
                 keeps; delete one or raise max_bridges in its configuration",
                self.settings.max_bridges
            )));
        }
        let config = PairConfig { name, mtu: MTU, queues: 1, outer: OuterEnd::Device };
        let pair = nic::inside(caller, || PrivatePair::new(&config))?.map_err(nic_error)?;
        // Where the one end goes, with its namespace perhaps, the other goes too: and this one is in
        // a namespace that lives as long as we.
        let watch = pair.inside(LinkWatch::open).map_err(nic_error)?;
        let reg = nmreq_register {
            nr_tx_slots: conf.nr_tx_slots,
            nr_rx_slots: conf.nr_rx_slots,
            nr_tx_rings: conf.nr_tx_rings,
            nr_rx_rings: conf.nr_rx_rings,
            nr_mem_id: conf.nr_mem_id,
            ..Default::default()
        };
        let id = self.new_vale(caller, name, key, &reg)?;
        let tied = self.tie(id, watch);
        if let Err(error) = tied.and_then(|()| self.serve(id, &limbo(id), name)) {
            self.free_rings(id);
            self.remove(id);
            return Err(error);
        }
        let port = self.port_mut(id);
        if let Kind::Vale { device, .. } = &mut port.kind {
            *device = Some(Box::new(Device { pair, second: None, stack: Stack::Nobody }));
        }
        port.host.counts = [1, 1];
        let (Shape { rings, slots }, region) = (port.shape(), port.region);
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
        let used = port.bindings > 0 || port.children > 0;
        match &mut port.kind {
            Kind::Vale { place, device: device @ Some(_), .. } => {
                if used || place.as_ref().is_some_and(|p| !p.is_limbo()) {
                    return Err(Error::busy(format!(
                        "{name}: still open or attached; close it and detach it first"
                    )));
                }
                *device = None;
                self.reap(id);
                Ok(())
            }
            _ => Err(Error::invalid(format!("{name}: not made by newif; nothing to delete"))),
        }
    }

    /// NETMAP_REQ_VALE_ATTACH (S-VALE-13, 14, 16): a persistent port or a NIC joins a bridge; the NIC in
    /// `mode`, if that is said.
    pub(crate) fn vale_attach(
        &mut self,
        caller: &Caller,
        name: &str,
        reg: &nmreq_register,
        mode: Option<NicMode>,
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
        self.may_join(caller, bridge)?;
        let place = match self.names.get(&plain_key(port, caller)).copied() {
            Some(id) => self.attach_persistent(self.owned(id, caller)?, bridge, name, reg)?,
            None => self.attach_nic(caller, bridge, port, name, reg, mode)?,
        };
        Ok(place.index.into())
    }

    fn attach_persistent(
        &mut self,
        id: PortId,
        bridge: &str,
        full: &str,
        reg: &nmreq_register,
    ) -> Result<BridgePortRef> {
        let port = self.port(id);
        let busy = |why: &str| Error::busy(format!("{}: {why}", port.name));
        let (bound, with_stack) = (port.bindings > 0, reg.nr_mode == NR_REG_NIC_SW);
        let Kind::Vale { place: Some(now), device: Some(device), .. } = &port.kind else {
            return Err(busy("open, or attached to a bridge already; close or detach it first"));
        };
        if bound {
            return Err(busy("open; close it first"));
        }
        if device.is_joined() {
            return Err(busy("attached to two bridges already; detach it from one"));
        }
        if with_stack && !matches!(device.stack, Stack::Nobody) {
            return Err(busy("its host stack is attached already; attach it without"));
        }
        let now = now.clone();
        let place = match now.is_limbo() {
            true => self.move_to(id, &now, bridge, full)?,
            false => self.join(id, bridge, full)?,
        };
        if with_stack && let Err(error) = self.attach_stack(id, bridge, full) {
            self.take_off(id, bridge, full)?;
            return Err(error);
        }
        Ok(place)
    }

    /// Makes a second bridge the program of a port that is on one (S-VALE-14).
    fn join(&mut self, id: PortId, bridge: &str, full: &str) -> Result<BridgePortRef> {
        use ringway_abi::Dir::{Rx, Tx};
        let port = self.port(id);
        let Kind::Vale { worker, .. } = &port.kind else { unreachable!("it has a device") };
        let tx = port.nic_rings(Tx).iter().map(|ring| ring.kring.clone()).collect();
        let rx = port.nic_rings(Rx).iter().map(|ring| (ring.kring.clone(), ring.doorbell.clone()));
        let driver = WorkerServed { worker: worker.clone() };
        let program = ProgramPort::new(tx, rx.collect(), driver)
            .map_err(|e| Error::io(&format!("{full}: cannot be attached"), e))?;
        let config = self.port(id).config.clone();
        let place = self.bridges.attach(bridge, full, Box::new(program), config)?;
        self.names.insert(full.into(), id);
        self.device(id).second = Some(place.clone());
        self.port(id).update_receives();
        Ok(place)
    }

    /// Makes the stack behind a device a port of a bridge, beside the port itself.
    fn attach_stack(&mut self, id: PortId, bridge: &str, full: &str) -> Result<()> {
        let stack = self.device(id).stack_port()?;
        let place = self.bridges.attach(
            bridge,
            &stack_name(full),
            Box::new(stack),
            PortConfig::default(),
        )?;
        self.device(id).stack = Stack::Bridge(place);
        Ok(())
    }

    /// NETMAP_REQ_VALE_DETACH (S-VALE-14, 17).
    pub(crate) fn vale_detach(&mut self, caller: &Caller, name: &str) -> Result<u32> {
        if !name.starts_with("val") {
            return Err(Error::invalid(format!("{name}: detach takes a name vale<switch>:<port>")));
        }
        let PortName::Vale { bridge, .. } = PortName::parse(name, libc::ENXIO)? else {
            return Err(Error::absent(format!("{name}: no pipe is attached to a bridge")));
        };
        let Some(&id) = self.names.get(name) else {
            return Err(match self.bridges.has(bridge, name) {
                true => Error::busy(format!("{name}: goes with its interface; detach that")),
                false => Error::absent(format!("{name}: there is no such port")),
            });
        };
        self.owned(id, caller)?;
        match &self.port(id).kind {
            Kind::Attached { polling: Some(_), .. } => {
                Err(Error::busy(format!("{name}: polled; stop polling it first")))
            }
            Kind::Attached { .. } => Ok(self.detach_nic(id)),
            Kind::Vale { device: Some(_), .. } => self.take_off(id, bridge, name),
            _ => Err(Error::busy(format!(
                "{name}: lives as long as a program has it open; end that program"
            ))),
        }
    }

    /// Takes a persistent port off one of its bridges. Returns the place it had.
    fn take_off(&mut self, id: PortId, bridge: &str, full: &str) -> Result<u32> {
        let Kind::Vale { place: Some(first), device: Some(device), .. } =
            &mut self.port_mut(id).kind
        else {
            unreachable!("it has a device")
        };
        let first = first.clone();
        if device.second.is_some() && first.bridge == bridge {
            return Err(Error::busy(format!(
                "{full}: another bridge uses it; detach it from that one first"
            )));
        }
        let second = device.second.take();
        let stack = match &device.stack {
            Stack::Bridge(place) if place.bridge == bridge => Some(place.clone()),
            _ => None,
        };
        if let Some(place) = stack {
            device.stack = Stack::Nobody;
            self.bridges.detach(&place);
        }
        let place = match second {
            Some(second) => {
                self.bridges.detach(&second);
                self.port(id).update_receives();
                self.reclaim(self.port(id).region);
                second
            }
            None => {
                let plain = self.port(id).name.clone();
                self.move_to(id, &first, &limbo(id), &plain)?;
                first
            }
        };
        self.names.remove(full);
        Ok(place.index.into())
    }

    /// Moves a persistent port from one bridge to another. Its rings go on where they were. Where
    /// there is no place for it, it stays where it is.
    fn move_to(
        &mut self,
        id: PortId,
        from: &BridgePortRef,
        bridge: &str,
        member: &str,
    ) -> Result<BridgePortRef> {
        let (vacant, config) = (vacant_side(self.port(id)), self.port(id).config.clone());
        let to = self.bridges.attach(bridge, member, Box::new(vacant), config)?;
        self.bridges.detach(from);
        // The rings have one worker at a time.
        self.bridges.replace(&to, Box::new(served_side(self.port(id))));
        if let Kind::Vale { place, .. } = &mut self.port_mut(id).kind {
            *place = Some(to.clone());
        }
        self.retap_monitored(id);
        if !to.is_limbo() {
            self.names.insert(member.into(), id);
        }
        Ok(to)
    }

    /// The device of a port that has one.
    pub(crate) fn device(&mut self, id: PortId) -> &mut Device {
        match &mut self.port_mut(id).kind {
            Kind::Vale { device: Some(device), .. } => device,
            _ => unreachable!("only persistent ports are asked for their device"),
        }
    }
}

/// How a bridge knows the stack behind the interface that it has by the name of `full`.
pub(crate) fn stack_name(full: &str) -> String {
    format!("{full}^")
}

/// The bridge of a persistent port that is on none: what it sends is consumed and discarded
/// (S-VALE-5). No bridge that a user can name begins so.
fn limbo(id: PortId) -> String {
    format!("{}{id}", crate::bridges::HIDDEN_PREFIX)
}
