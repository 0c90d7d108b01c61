//! Flows are steered to a queue of a NIC, as a [transaction](crate::transaction).

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use ringway_nic_setup::steer;
use ringway_proto::{Cause, Error, Flow, Reply, Result, Steered};

use crate::{
    caller::Caller,
    charge::Charge,
    handles::Handle,
    interfaces::{allowed_all, look_up, nic_key},
    netns::OpenNetns,
    registry::Registry,
    steering::{Janitor, Steering, Steerings},
    subject::{NicKey, Subject},
    transaction::{Answer, Failed, Makes, Needs, Plan, plain},
};

/// Everything but `flows` is going to be kept off a queue of an interface, as long as the handle is open.
pub(crate) struct Steer {
    handle: Handle,
    uid: u32,
    name: String,
    interface: NicKey,
    netns: OpenNetns,
    queue: u16,
    flows: Vec<Flow>,
    last: Arc<AtomicU64>,
    janitor: Option<Arc<dyn Janitor>>,
}

impl Steer {
    pub fn plan(
        steerings: &Steerings,
        handle: Handle,
        caller: &Caller,
        interface: &str,
        (queue, flows): (u16, Vec<Flow>),
    ) -> Result<Steer> {
        let is_mixed =
            |flow: &Flow| flow.hosts.iter().flatten().any(|host| host.is_ipv6() != flow.version6);
        if flows.iter().any(is_mixed) {
            return Err(Error::invalid("a flow has addresses of one version of IP")
                .at(interface)
                .remedy("steer two flows"));
        }
        let key = nic_key(caller, &look_up(interface, caller)?);
        allowed_all(caller, interface)?;
        if steerings.is_steered(key) {
            return Err(Error::busy("flows are steered there already")
                .at(interface)
                .remedy("end that `ringway steer` first, or give it all flows"));
        }
        let netns = OpenNetns::of(&caller.netns)?;
        let (last, janitor) = (steerings.last.clone(), steerings.janitor.clone());
        let (uid, name) = (caller.uid, interface.to_string());
        Ok(Steer { handle, uid, name, interface: key, netns, queue, flows, last, janitor })
    }

    pub fn carry_out(self, registry: &mut Registry) -> Error {
        let step = self.step();
        registry.carry_out(self, step)
    }

    fn step(&self) -> impl Makes<(Steering, Steered)> + use<> {
        let &Steer { handle, uid, interface, queue, .. } = self;
        let (name, flows) = (self.name.clone(), self.flows.clone());
        let (netns, last, janitor) = (self.netns.clone(), self.last.clone(), self.janitor.clone());
        move || {
            let refused = |e: steer::Error| {
                let refusal = Error::new(Cause::System(e.errno()), e.problem());
                refusal.at(e.interface()).remedy(e.remedy())
            };
            let plan = netns.inside(|| steer::Plan::make(&name, queue.into(), &flows))?;
            let mut plan = plan.map_err(refused)?;
            let number = last.fetch_add(1, Relaxed) + 1;
            let remember = |plan: &steer::Plan| match &janitor {
                Some(janitor) => janitor.remember(number, plan, netns.fd()),
                None => Ok(()),
            };
            remember(&plan).map_err(|e| Error::io("no process could undo it later", e))?;
            // If a place cannot be told, we still know it ourselves.
            let done = netns.inside(|| plan.carry_out(|plan| drop(remember(plan))));
            let steering = Steering { handle, uid, interface, number, plan, netns, janitor };
            let steer::Steered { moved, table, rules_turned_on, rules } = done?.map_err(refused)?;
            Ok((steering, Steered { moved, table, rules_turned_on, rules }))
        }
    }
}

impl Plan for Steer {
    type Made = (Steering, Steered);

    fn subject(&self) -> Subject {
        self.interface.into()
    }

    fn needs(&self) -> Needs {
        Needs::nothing(self.uid)
    }

    fn commit(
        self,
        registry: &mut Registry,
        made: Self::Made,
        _memory: Charge,
    ) -> Result<Answer, Failed> {
        // The user may have taken up what was free when the plan was made.
        if let Err(error) = registry.check_descriptors(self.uid, 1) {
            return Err(Failed::new(error, made));
        }
        crate::fault::step();
        let (steering, steered) = made;
        registry.steerings.add(steering);
        Ok(plain(Reply::Steered(steered)))
    }
}
