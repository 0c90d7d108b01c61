//! The host rings of a persistent port are connected with the stack behind its device, as a part of a request: a
//! [transaction](crate::transaction).

use ringway_nic_setup::{STACK_PORT_MEMORY, open_nic_port};
use ringway_proto::{Error, Reply, Result};

use crate::{
    charge::Charge,
    kinds::{
        persistent::{Persistent, Stack},
        persistent_host::{HostSwitch, StackPort},
    },
    port::PortId,
    registry::Registry,
    setup_error::nic_error,
    subject::Subject,
    transaction::{Answer, Failed, Needs, Plan, plain},
};

/// Which port's are going to be.
struct ConnectHost {
    id: PortId,
    uid: u32,
    /// By which the device is known.
    device: String,
}

impl Persistent {
    /// Connects host rings, which have just been made, so there is memory for them. Fails until that is done.
    pub(super) fn connect_stack(registry: &mut Registry, id: PortId) -> Result<()> {
        let port = registry.port(id);
        let Some(Persistent { key, device, .. }) = port.get() else { return Ok(()) };
        if let Stack::Bridge { at, .. } = &device.stack {
            let problem = format!("its host stack is attached to {}", at.bridge);
            return Err(Error::busy(problem).at(&port.name).remedy("detach it first"));
        }
        let plan = ConnectHost { id, uid: port.uid, device: key.clone() };
        let pair = device.pair.clone();
        let step = move || pair.inside(open_nic_port).map_err(nic_error);
        Err(registry.carry_out_part(plan, step))
    }
}

impl ConnectHost {
    /// Makes the rings once more, for what connects them.
    fn make_rings(&self, registry: &mut Registry) -> bool {
        let Registry { settings, ports, regions, .. } = registry;
        let port = ports.port_mut(self.id);
        let stack = port.get::<Persistent>().map(|persistent| &persistent.device.stack);
        let slots = port.shape(settings).slots;
        matches!(stack, Some(Stack::Nobody))
            && !port.host.open
            && port.make_host_rings(slots, regions.get(port.region)).is_ok()
    }
}

impl Plan for ConnectHost {
    type Made = StackPort;

    fn subject(&self) -> Subject {
        Subject::Device(self.device.clone())
    }

    fn needs(&self) -> Needs {
        Needs { memory: STACK_PORT_MEMORY, ..Needs::nothing(self.uid) }
    }

    fn commit(
        self,
        registry: &mut Registry,
        stack: StackPort,
        memory: Charge,
    ) -> Result<Answer, Failed> {
        if let Err(error) = registry.port(self.id).check_there() {
            return Err(Failed::new(error, (stack, memory)));
        }
        if !self.make_rings(registry) {
            return Err(Failed::again((stack, memory)));
        }
        let lost = registry.leftovers.doorbell();
        let port = registry.ports.port_mut(self.id);
        match HostSwitch::start(port, stack, lost) {
            Ok(host) => {
                if let Some(Persistent { device, .. }) = port.get_mut() {
                    device.stack = Stack::Rings { host, _charge: memory };
                }
                Ok(plain(Reply::Done))
            }
            Err(failed) => Err(failed.and(memory).with_rings(port.region, port.take_host_rings())),
        }
    }
}
