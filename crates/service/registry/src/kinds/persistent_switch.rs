//! Persistent ports join switches and leave them (S-VALE-13, S-VALE-14).

use ringway_abi::Dir;
use ringway_proto::{Error, Result};
use ringway_ring::WorkerServed;
use ringway_vale::{PortConfig, ProgramPort};

use crate::{
    bridges::BridgePortRef,
    kinds::{
        monitor::Monitor,
        persistent::{Persistent, Stack, StackPort, hidden_bridge, no_device, stack_name},
        vale::{SwitchSide, served_side, vacant_side},
    },
    port::PortId,
    registry::Registry,
    subject::Subject,
};

impl Persistent {
    pub(crate) fn attach(
        registry: &mut Registry,
        id: PortId,
        bridge: &str,
        full: &str,
        with_stack: bool,
    ) -> Result<BridgePortRef> {
        let port = registry.port(id);
        let busy = |why: &str, remedy: &str| Error::busy(why).at(&port.name).remedy(remedy);
        let bound = !port.is_unused();
        let Some(Persistent {
            key, side: SwitchSide { bridge_port: Some(now), .. }, device, ..
        }) = port.get()
        else {
            return Err(busy("open, or attached to a switch already", "close or detach it first"));
        };
        if bound {
            return Err(busy("open", "close it first"));
        }
        if device.is_joined() {
            return Err(busy("attached to two switches already", "detach it from one"));
        }
        if with_stack && !matches!(device.stack, Stack::Nobody) {
            return Err(busy("its host stack is attached already", "attach it without"));
        }
        let now = now.clone();
        let (key, pair, uid) = (key.clone(), device.pair.clone(), port.uid);
        // Before the stack's port is opened; and once more before that is taken, which is undone elsewhere then.
        registry.bridges.check_room(bridge, uid, 1 + usize::from(with_stack))?;
        let subject = Subject::Device(key.clone());
        let open = || Persistent::open_stack(registry, key, pair, uid);
        let stack = with_stack.then(open).transpose()?;
        let joined = match now.is_hidden() {
            true => Persistent::move_to(registry, id, &now, bridge, full),
            false => Persistent::join_second_bridge(registry, id, bridge, full),
        };
        let bridge_port = match joined {
            Ok(bridge_port) => bridge_port,
            Err(error) => {
                registry.deferred.close_off_loop(subject, stack);
                return Err(error);
            }
        };
        if let Some(stack) = stack
            && let Err(error) = Persistent::attach_stack(registry, id, bridge, full, stack)
        {
            Persistent::detach(registry, id, bridge, full)?;
            return Err(error);
        }
        Ok(bridge_port)
    }

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
        let driver = WorkerServed { worker: side.worker.clone() };
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

    /// Makes the stack behind a device a port of a bridge, beside the port itself.
    pub(crate) fn attach_stack(
        registry: &mut Registry,
        id: PortId,
        bridge: &str,
        full: &str,
        stack: StackPort,
    ) -> Result<()> {
        let StackPort { port: stack, charge } = stack;
        let uid = registry.port(id).uid;
        let bridge_port = registry.bridges.attach(
            uid,
            bridge,
            &stack_name(full),
            Box::new(stack),
            PortConfig { leads_on: true, ..PortConfig::default() },
        )?;
        Persistent::device_mut(registry, id)?.stack =
            Stack::Bridge { at: bridge_port, _charge: charge };
        Ok(())
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
