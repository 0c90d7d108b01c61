//! Persistent ports move from switch to switch, and leave them (S-VALE-13, S-VALE-14).

use ringway_abi::Dir;
use ringway_proto::{Error, Result};
use ringway_ring::WorkerServed;
use ringway_vale::{PortConfig, ProgramPort};

use crate::{
    bridges::BridgePortRef,
    kinds::{
        monitor::Monitor,
        persistent::{Persistent, Stack, hidden_bridge, no_device},
        vale::{SwitchSide, served_side, vacant_side},
    },
    port::PortId,
    registry::Registry,
    subject::Subject,
};

impl Persistent {
    /// Makes a second bridge the program of a port that is on one (S-VALE-14).
    pub(crate) fn join_second_bridge(
        registry: &mut Registry,
        id: PortId,
        bridge: &str,
        full: &str,
    ) -> Result<BridgePortRef> {
        let port = registry.port(id);
        let Some(side) = port.backend.switch_side() else { return Err(no_device(port)) };
        let tx = port.nic_rings(Dir::Tx).iter().map(|ring| ring.kring.clone()).collect();
        let rx = port.nic_rings(Dir::Rx).iter();
        let rx = rx.map(|ring| (ring.kring.clone(), ring.doorbell.clone())).collect();
        let driver = WorkerServed::new(side.worker.clone());
        let program = ProgramPort::new(tx, rx, driver)
            .map_err(|e| Error::io(&format!("{full}: cannot be attached"), e))?;
        let (uid, first) = (port.uid, side.bridge_port.clone());
        // Each of the two switches is behind a port of the other.
        let config = PortConfig { leads_on: true, ..port.config.clone() };
        let bridge_port = registry.bridges.attach(uid, bridge, full, Box::new(program), config)?;
        set_leads_on(registry, first.as_ref(), true);
        registry.ports.name(full, id);
        Persistent::device_mut(registry, id)?.second = Some(bridge_port.clone());
        registry.port(id).update_receives();
        Ok(bridge_port)
    }

    /// EBUSY if a persistent port cannot leave that bridge, because another is its program.
    pub(crate) fn check_detach(&self, bridge: &str, full: &str) -> Result<()> {
        match &self.side.bridge_port {
            Some(first) if self.device.is_joined() && first.bridge == bridge => {
                Err(Error::busy("another switch uses it")
                    .at(full)
                    .remedy("detach it from that one first"))
            }
            _ => Ok(()),
        }
    }

    /// Takes a persistent port off one of its bridges. Returns its index there.
    pub(crate) fn detach(
        registry: &mut Registry,
        id: PortId,
        bridge: &str,
        full: &str,
    ) -> Result<u32> {
        let port = registry.port_mut(id);
        port.get::<Persistent>().map_or(Ok(()), |port| port.check_detach(bridge, full))?;
        let Some(Persistent {
            key, side: SwitchSide { bridge_port: Some(first), .. }, device, ..
        }) = port.get_mut()
        else {
            return Err(no_device(port));
        };
        let (first, subject) = (first.clone(), Subject::Device(key.clone()));
        let second = device.second.take();
        let stack = match &device.stack {
            Stack::Bridge { at, .. } if at.bridge == bridge => Some(at.clone()),
            _ => None,
        };
        if let Some(bridge_port) = stack {
            device.stack = Stack::Nobody;
            let closed = registry.bridges.detach(&bridge_port);
            registry.deferred.close_off_loop(subject, closed);
        }
        let bridge_port = match second {
            Some(second) => {
                // Rings are closed at once.
                drop(registry.bridges.detach(&second));
                set_leads_on(registry, Some(&first), false);
                registry.port(id).update_receives();
                registry.reclaim_region(registry.port(id).region);
                second
            }
            None => {
                let plain = registry.port(id).name.clone();
                Persistent::move_to(registry, id, &first, &hidden_bridge(id), &plain)?;
                first
            }
        };
        registry.ports.forget(full);
        Ok(bridge_port.index.into())
    }

    /// Moves a persistent port from one bridge to another. Its rings go on where they were. Where
    /// there is no place for it, it stays where it is.
    pub(crate) fn move_to(
        registry: &mut Registry,
        id: PortId,
        from: &BridgePortRef,
        bridge: &str,
        full: &str,
    ) -> Result<BridgePortRef> {
        let port = registry.port(id);
        let Some(vacant) = vacant_side(port) else { return Err(no_device(port)) };
        let (uid, config) = (port.uid, port.config.clone());
        let to = registry.bridges.attach(uid, bridge, full, Box::new(vacant), config)?;
        drop(registry.bridges.detach(from));
        // The rings have one worker at a time.
        if let Some(served) = served_side(registry.port(id)) {
            registry.bridges.replace(&to, Box::new(served));
        }
        if let Some(side) = registry.port_mut(id).backend.switch_side_mut() {
            side.bridge_port = Some(to.clone());
        }
        Monitor::update_mirrors_if_any(registry, id);
        if !to.is_hidden() {
            registry.ports.name(full, id);
        }
        Ok(to)
    }
}

/// Notes whether another switch is behind a port.
fn set_leads_on(registry: &mut Registry, at: Option<&BridgePortRef>, leads_on: bool) {
    if let Some(BridgePortRef { bridge, index }) = at {
        registry.bridges.change(bridge, *index, |config| config.leads_on = leads_on);
    }
}
