//! The receive rings of a NIC that a request is about, as users name them, and which of its queues are redirected.

use ringway_abi::Dir;
use ringway_proto::{Cause, Error, Result, RxSelector};

use crate::{
    caller::Caller,
    handles::Handle,
    kinds::nic::Nic,
    port::{Port, PortId},
    ports::Ports,
    registry::Registry,
};

/// Receive rings of a NIC that programs have.
pub(crate) struct Receiving {
    pub handle: Handle,
    /// Of the NIC; empty: the rings are those that the handle has.
    pub name: String,
    pub which: RxSelector,
}

impl Receiving {
    /// Their port, and their indices there.
    pub fn find(&self, registry: &Registry, caller: &Caller) -> Result<(PortId, Vec<u16>)> {
        let id = match self.name.is_empty() {
            true => registry.handles.binding(self.handle)?.port,
            false => find_nic(&registry.ports, caller, &self.name)?,
        };
        Ok((id, self.of(registry, id)?))
    }

    /// Those of the port that was found before which programs have now.
    pub fn of(&self, registry: &Registry, id: PortId) -> Result<Vec<u16>> {
        if self.name.is_empty() {
            let [_, received] = &registry.handles.binding(self.handle)?.rings;
            return Ok(received.clone());
        }
        let port = registry.ports.get(id).filter(|port| !port.gone);
        used(port.ok_or_else(|| not_open(&self.name))?, &self.name, self.which)
    }
}

impl Nic {
    /// Redirects the frames of queues to the programs that have their rings, or withholds them: of
    /// all these queues or, if no program has one of them, of none.
    pub(crate) fn redirect_queues(
        registry: &mut Registry,
        caller: &Caller,
        name: &str,
        queues: &[u16],
        to_program: bool,
    ) -> Result<()> {
        let id = find_nic(&registry.ports, caller, name)?;
        used(registry.port(id), name, RxSelector::Queues)?;
        for &queue in queues {
            used(registry.port(id), name, RxSelector::Queue(queue))?;
        }
        if let Some(Nic { sockets: Some(sockets), .. }) = registry.port_mut(id).get_mut() {
            for &queue in queues {
                if let Some(rule) = sockets.rx_rules.get_mut(usize::from(queue)) {
                    rule.withheld = !to_program;
                }
            }
        }
        registry.users_changed(id);
        Ok(())
    }
}

/// A NIC of the caller's.
fn find_nic(ports: &Ports, caller: &Caller, name: &str) -> Result<PortId> {
    // No interface has such a name: to open the port would not help.
    if name.contains([':', '{', '}']) {
        return Err(Error::new(Cause::Unsupported, "it is no network interface")
            .at(name)
            .remedy("name one, as netmap:eth0"));
    }
    Nic::named(ports, caller, name)?.ok_or_else(|| {
        let is_it = |port: &Port| !port.gone && port.uid == caller.uid && port.name == name;
        let mut others = ports.iter().map(|(_, port)| port);
        match others.any(|port| port.is::<Nic>() && is_it(port)) {
            true => Error::absent("no program of yours has it open in this network namespace")
                .at(name)
                .remedy("one has it in another, so run this there (`ip netns exec NAME ...`)"),
            false => not_open(name),
        }
    })
}

fn not_open(name: &str) -> Error {
    Error::absent("no program of yours has it open").at(name).remedy("open it, then choose")
}

/// Of those receive rings the ones that programs have.
fn used(port: &Port, name: &str, which: RxSelector) -> Result<Vec<u16>> {
    let (all, queues) = (port.rings(Dir::Rx), port.nic_rings(Dir::Rx).len() as u16);
    let used = |i: &u16| all.get(usize::from(*i)).is_some_and(|ring| ring.users > 0);
    let rings: Vec<u16> = match which {
        RxSelector::Queues => (0..queues).filter(used).collect(),
        RxSelector::Queue(queue) => {
            [queue].into_iter().filter(|i| *i < queues && used(i)).collect()
        }
        // They have one filter in common, whichever program has which.
        RxSelector::Host => (queues..all.len() as u16).collect(),
    };
    match (rings.is_empty(), which) {
        (false, _) => Ok(rings),
        (true, RxSelector::Queues) => Err(Error::invalid("no program receives on it").at(name)),
        (true, RxSelector::Queue(queue)) if queue >= queues => {
            let problem = format!("there is no queue {queue}, only {queues} (numbered from 0)");
            let remedy = "name one of those; a port has the queues that its interface had when it was opened";
            Err(Error::invalid(problem).at(name).remedy(remedy))
        }
        (true, RxSelector::Queue(queue)) => {
            Err(Error::invalid(format!("no program receives on queue {queue}"))
                .at(name)
                .remedy(format!("open {name}~{queue} first")))
        }
        (true, RxSelector::Host) => Err(Error::invalid("no program has its host rings")
            .at(name)
            .remedy(format!("open {name}^ first"))),
    }
}
