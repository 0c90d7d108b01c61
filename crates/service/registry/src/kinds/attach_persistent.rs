//! A persistent port joins a bridge (S-VALE-13, S-VALE-14): at once, or, with the stack behind its device, as a
//! [transaction](crate::transaction).

use ringway_nic_setup::{PortAttachment, STACK_PORT_MEMORY, open_nic_port};
use ringway_proto::{Error, Reply, Result};
use ringway_vale::PortConfig;
use ringway_xdp::NicPort;

use crate::{
    bridges::{BridgePortRef, HeldPlaces},
    charge::Charge,
    kinds::{
        attached::Attached,
        persistent::{Persistent, Stack, stack_name},
    },
    port::PortId,
    registry::Registry,
    setup_error::nic_error,
    subject::Subject,
    transaction::{Answer, Failed, Needs, Plan, plain},
};

/// Which port joins which bridge, and by what name.
pub(crate) struct AttachPersistent {
    id: PortId,
    /// By which the port is found.
    key: String,
    /// By which its device is known.
    device: String,
    bridge: String,
    full: String,
    /// Whether the stack behind the device comes along, as a second port.
    stack: bool,
    uid: u32,
}

type StackPort = NicPort<PortAttachment>;

impl AttachPersistent {
    pub fn plan(
        registry: &Registry,
        (id, key): (PortId, String),
        bridge: &str,
        full: &str,
        stack: bool,
    ) -> Result<AttachPersistent> {
        let (port, _) = joinable(registry, id, stack)?;
        let (uid, device) = (registry.port(id).uid, port.key.clone());
        registry.bridges.check_room(bridge, uid, 1 + usize::from(stack))?;
        if stack {
            registry.regions.check_asked(uid, STACK_PORT_MEMORY)?;
        }
        let (bridge, full) = (bridge.into(), full.into());
        Ok(AttachPersistent { id, key, device, bridge, full, stack, uid })
    }

    /// Joins it.
    pub fn carry_out(self, registry: &mut Registry) -> Result<Reply> {
        match self.stack {
            true => {
                let pair = Persistent::device_mut(registry, self.id)?.pair.clone();
                let step = move || pair.inside(open_nic_port).map_err(nic_error);
                Err(registry.carry_out(self, step))
            }
            false => self.join(registry).map(|place| self.enter(registry, &place)),
        }
    }

    fn join(&self, registry: &mut Registry) -> Result<BridgePortRef> {
        let AttachPersistent { id, bridge, full, .. } = self;
        let (_, now) = joinable(registry, *id, self.stack)?;
        match now.is_hidden() {
            true => Persistent::move_to(registry, *id, &now.clone(), bridge, full),
            false => Persistent::join_second_bridge(registry, *id, bridge, full),
        }
    }

    /// The stack comes along. Otherwise the port leaves again, and what of the stack was not taken is returned.
    fn join_stack(
        &self,
        registry: &mut Registry,
        port: StackPort,
    ) -> Result<BridgePortRef, (Error, Option<Box<dyn ringway_switch_port::Port>>)> {
        let AttachPersistent { id, bridge, full, uid, .. } = self;
        let config = PortConfig { leads_on: true, ..PortConfig::default() };
        let (name, port) = (stack_name(full), Box::new(port));
        let attached = registry.bridges.attach_interface(*uid, bridge, &name, port, config, None);
        attached.map_err(|(error, port)| {
            let left = Persistent::detach(registry, *id, bridge, full);
            (left.err().unwrap_or(error), port)
        })
    }

    /// Nothing of it fails.
    fn enter(&self, registry: &mut Registry, place: &BridgePortRef) -> Reply {
        let Registry { bridges, expected, .. } = registry;
        expected.attached_again(&self.bridge, &self.full, bridges);
        Reply::Index(place.index.into())
    }
}

/// A port that can join a bridge now, and where it is.
fn joinable(registry: &Registry, id: PortId, stack: bool) -> Result<(&Persistent, &BridgePortRef)> {
    let Some(port) = registry.ports.get(id) else { return Err(Error::absent("the port has gone")) };
    let busy = |why: &str, remedy: &str| Err(Error::busy(why).at(&port.name).remedy(remedy));
    if port.is::<Attached>() {
        return busy("attached to a switch already", "detach it first");
    }
    let persistent = port.get::<Persistent>();
    let Some((persistent, now)) =
        persistent.and_then(|it| Some((it, it.side.bridge_port.as_ref()?)))
    else {
        return busy("open, or attached to a switch already", "close or detach it first");
    };
    if !port.is_unused() {
        return busy("open", "close it first");
    }
    if persistent.device.is_joined() {
        return busy("attached to two switches already", "detach it from one");
    }
    if stack && !matches!(persistent.device.stack, Stack::Nobody) {
        return busy("its host stack is attached already", "attach it without");
    }
    Ok((persistent, now))
}

impl Plan for AttachPersistent {
    type Made = StackPort;

    fn subject(&self) -> Subject {
        Subject::Device(self.device.clone())
    }

    fn needs(&self) -> Needs {
        let AttachPersistent { key, bridge, full, uid, .. } = self;
        Needs {
            names: vec![full.clone(), key.clone()],
            places: Some(HeldPlaces { bridge: bridge.clone(), uid: *uid, ports: 2 }),
            memory: STACK_PORT_MEMORY,
            ..Needs::nothing(*uid)
        }
    }

    fn commit(
        self,
        registry: &mut Registry,
        port: StackPort,
        memory: Charge,
    ) -> Result<Answer, Failed> {
        let place = match self.join(registry) {
            Ok(place) => place,
            Err(error) => return Err(Failed::new(error, (port, memory))),
        };
        match self.join_stack(registry, port) {
            Ok(at) => {
                if let Ok(device) = Persistent::device_mut(registry, self.id) {
                    device.stack = Stack::Bridge { at, _charge: memory };
                }
                Ok(plain(self.enter(registry, &place)))
            }
            Err((error, port)) => Err(Failed::new(error, (port, memory))),
        }
    }
}
