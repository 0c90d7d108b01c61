//! Persistent ports: VALE ports with a network device (S-VALE-12 to 17).
//!
//! The device is the outer end of a private pair, in the network namespace of its maker.
//! Behind the inner end are the port's host rings, or, on a bridge, a port of its own.
//!
//! ```text
//!   program        bridge                           host stack
//!   NIC rings  <-> valeX:NAME
//!   host rings <------------------------> inner ====== NAME
//!                  valeX:NAME^ <--------> inner
//! ```

use std::sync::Arc;

use ringway_abi::Dir;
use ringway_nic_setup::{Link, LinkState, PrivatePair};
use ringway_proto::{Error, PortKind, Result, RingBackend};

use crate::{
    bind_reply::Fds,
    bridges::{BridgePortRef, HIDDEN_PREFIX},
    caller::Caller,
    charge::Charge,
    descriptors::{BRIDGE, BRIDGED, PAIR, WATCH},
    interfaces,
    keys::plain_key,
    kinds::{
        OpenRequest, PortBackend, RingAt, RingUse,
        monitor::Monitor,
        persistent_host::HostSwitch,
        vale::{SwitchSide, Vale, set_worker_mirrors, set_worker_offsets},
    },
    lasting::{LastingDevice, LastingNetns},
    name::PortName,
    nic_mode::ModeRequest,
    port::{Port, PortId, Shape},
    registry::Registry,
    selection::Selection,
    settings::Settings,
    subject::Subject,
};

/// A VALE port that stays without programs.
pub(crate) struct Persistent {
    /// By which its device is known.
    pub key: String,
    pub side: SwitchSide,
    pub device: Device,
    /// Where its device is.
    pub netns: LastingNetns,
    /// The same, as users see it.
    pub netns_inode: Option<u64>,
}

/// What makes a VALE port persistent.
pub(crate) struct Device {
    pub pair: Arc<PrivatePair>,
    /// What it was set to when that was last looked at.
    pub settings: Option<LastingDevice>,
    /// The bridge that is the port's program, besides the one that the port is on.
    pub second: Option<BridgePortRef>,
    pub stack: Stack,
}

/// Who speaks with the stack behind a device.
pub(crate) enum Stack {
    Nobody,
    /// A bridge, for which it is a port.
    Bridge {
        at: BridgePortRef,
        _charge: Charge,
    },
    /// Programs, by host rings.
    Rings {
        host: HostSwitch,
        _charge: Charge,
    },
}

impl Device {
    /// Whether a bridge is the port's program.
    pub fn is_joined(&self) -> bool {
        self.second.is_some()
    }

    fn descriptors(&self) -> usize {
        let stack = match self.stack {
            Stack::Nobody => 0,
            Stack::Bridge { .. } => BRIDGED + 1,
            // And a doorbell.
            Stack::Rings { .. } => BRIDGED + 1 + BRIDGE + 1,
        };
        // While it is on no bridge that a user knows of, it has one of its own.
        WATCH + PAIR + BRIDGE + stack
    }
}

impl Persistent {
    pub fn open(registry: &mut Registry, request: &OpenRequest<'_>) -> Result<Option<PortId>> {
        let PortName::Plain(name) = request.port_name()? else { return Ok(None) };
        let found = registry.named(&plain_key(name, request.caller))?;
        let found = found.filter(|&id| registry.port(id).is::<Persistent>());
        found.map(|id| registry.ports.owned(id, request.caller)).transpose()
    }
}

impl PortBackend for Persistent {
    fn display_kind(&self) -> Option<PortKind> {
        Some(PortKind::Vale)
    }

    fn link(&self, at: &RingAt<'_>, fds: &mut Fds) -> Result<RingBackend> {
        let worker = match (at.host(), &self.device.stack) {
            (None, _) => &self.side.worker,
            (Some(_), Stack::Rings { host, .. }) => &host.worker,
            (Some(_), _) => {
                return Err(Error::absent(format!("{}: its host rings have gone", at.port.name)));
            }
        };
        Ok(RingBackend::Served { worker: fds.add(worker.as_ref())? })
    }

    fn shape(&self, _settings: &Settings, _port: &Port) -> Shape {
        self.side.shape
    }

    fn netns(&self, _registry: &Registry) -> Option<u64> {
        self.netns_inode
    }

    fn descriptors(&self, _registry: &Registry, _port: &Port) -> usize {
        // And the worker's doorbell.
        1 + self.device.descriptors()
    }

    fn is_watched(&self) -> bool {
        true
    }

    fn closes_slowly(&self, _port: &Port) -> Option<Subject> {
        Some(Subject::Device(self.key.clone()))
    }

    fn check_bind(&self, port: &Port) -> Result<()> {
        match self.device.is_joined() {
            true => Err(Error::busy("a switch uses it")
                .at(&port.name)
                .remedy("detach it from that switch first")),
            false => Ok(()),
        }
    }

    fn switch_side(&self) -> Option<&SwitchSide> {
        Some(&self.side)
    }

    fn switch_side_mut(&mut self) -> Option<&mut SwitchSide> {
        Some(&mut self.side)
    }

    fn is_joined(&self) -> bool {
        self.device.is_joined()
    }

    fn bridge_ports(&self) -> Vec<BridgePortRef> {
        let stack = match &self.device.stack {
            Stack::Bridge { at, .. } => Some(at),
            _ => None,
        };
        let places = [self.side.bridge_port.as_ref(), self.device.second.as_ref(), stack];
        places.into_iter().flatten().cloned().collect()
    }

    fn has_lost_worker(&self) -> bool {
        match &self.device.stack {
            Stack::Rings { host, .. } => !host.bridge.take_lost().is_nothing(),
            _ => false,
        }
    }

    fn is_set_up(&self) -> bool {
        true
    }

    fn ring_use(&self, port: &Port) -> RingUse {
        match &self.side.bridge_port {
            Some(bridge_port) if port.bindings == 0 && !self.device.is_joined() => {
                RingUse::Served(bridge_port.clone())
            }
            _ => RingUse::InUse,
        }
    }

    /// What its last program has sent may still be forwarded: then its rings are made anew first.
    fn bind(
        registry: &mut Registry,
        id: PortId,
        _wanted: &Selection,
        _request: ModeRequest,
    ) -> Result<()> {
        registry.await_drained(id)
    }

    fn connect_host(registry: &mut Registry, id: PortId) -> Result<()> {
        Persistent::connect_stack(registry, id)
    }

    fn disconnect_host(registry: &mut Registry, id: PortId) -> bool {
        let Some(port) = registry.ports.get_mut(id) else { return true };
        let (region, rings) = (port.region, port.take_host_rings());
        if let Some(Persistent { key, device, .. }) = port.get_mut() {
            let (subject, stack) =
                (Subject::Device(key.clone()), std::mem::replace(&mut device.stack, Stack::Nobody));
            // Its worker is at the rings until it has gone.
            registry.deferred.close_with_rings(
                subject,
                stack,
                Some((region, rings)),
                &mut registry.regions,
            );
        }
        true
    }

    fn reclaim(registry: &mut Registry, id: PortId) {
        Vale::reclaim(registry, id);
    }

    fn offsets_changed(registry: &mut Registry, id: PortId, dir: Dir, ring: usize) {
        set_worker_offsets(registry, id, dir, ring);
    }

    fn mirrors_changed(registry: &mut Registry, id: PortId, generation: u32) {
        let of_host = Monitor::port_mirrors(registry, id, true);
        if let Some(Persistent { device, .. }) = registry.port(id).get()
            && let Stack::Rings { host, .. } = &device.stack
        {
            host.bridge.set_mirrors(host.rings, of_host);
        }
        set_worker_mirrors(registry, id, generation);
    }

    fn link_changed(registry: &mut Registry, id: PortId, link: Link) {
        if link.state == LinkState::Gone {
            Persistent::lose_device(registry, id);
        }
    }
}

impl Persistent {
    /// A persistent port is deleted (S-VALE-15).
    pub(crate) fn delete(registry: &mut Registry, caller: &Caller, name: &str) -> Result<()> {
        let Some(id) = registry.named(&plain_key(name, caller))? else {
            if registry.expected.give_up_port(caller, name, &mut registry.bridges) {
                return Ok(());
            }
            return Err(match interfaces::exists(name, caller)? {
                true => Error::invalid("not made by newif").at(name).remedy("nothing to delete"),
                false => Error::absent("there is no such port").at(name),
            });
        };
        let port = registry.port(id);
        let Some(Persistent { side, .. }) = port.get() else {
            return Err(Error::invalid("not made by newif").at(name).remedy("nothing to delete"));
        };
        let used = !port.is_unused() || port.children > 0;
        if used || side.bridge_port.as_ref().is_some_and(|bridge_port| !bridge_port.is_hidden()) {
            return Err(Error::busy("still open or attached")
                .at(name)
                .remedy("close it and detach it first"));
        }
        Persistent::reclaim(registry, id);
        Ok(())
    }

    /// A persistent port is none any more without its device: it leaves its bridges, and goes with
    /// the last program that has it.
    fn lose_device(registry: &mut Registry, id: PortId) {
        registry.stop(id);
        let Some(Persistent { key, side, device, .. }) = registry.port_mut(id).get_mut() else {
            return;
        };
        let stack = match &device.stack {
            Stack::Bridge { at, .. } => Some(at.clone()),
            // They may be freed before the rest of it is closed.
            Stack::Rings { host, .. } => {
                host.let_go_of_rings();
                None
            }
            Stack::Nobody => None,
        };
        let bridge_ports = [stack, device.second.take(), side.bridge_port.take()];
        let (subject, side) = (Subject::Device(key.clone()), side.clone());
        let places = bridge_ports.iter().flatten();
        let closed: Vec<_> = places.filter_map(|place| registry.bridges.detach(place)).collect();
        let lost = std::mem::replace(&mut registry.port_mut(id).backend, Box::new(Vale { side }));
        // What is left of the pair, and its stack.
        registry.deferred.close_off_loop(subject, (lost, closed));
        registry.reap(id);
    }

    /// The device of a port that has one.
    pub(super) fn device_mut(registry: &mut Registry, id: PortId) -> Result<&mut Device> {
        let port = registry.port_mut(id);
        if !port.is::<Persistent>() {
            return Err(no_device(port));
        }
        match port.get_mut::<Persistent>() {
            Some(persistent) => Ok(&mut persistent.device),
            None => Err(Error::absent("the device has gone")),
        }
    }
}

pub(super) fn no_device(port: &Port) -> Error {
    Error::absent(format!("{}: its device has gone", port.name))
}

/// How a bridge knows the stack behind the interface that it has by the name of `full`.
pub(crate) fn stack_name(full: &str) -> String {
    format!("{full}^")
}

/// The bridge of a persistent port that is on none: what it sends is consumed and discarded
/// (S-VALE-5). No bridge that a user can name begins so.
pub(super) fn hidden_bridge(id: PortId) -> String {
    format!("{HIDDEN_PREFIX}{id}")
}
