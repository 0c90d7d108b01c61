//! Steering: what a connection has changed at a NIC, and how it is undone with its end.

use std::{collections::BTreeMap, io, sync::Arc};

use ringway_nic_setup::steer::{self, Plan};
use ringway_proto::{Cause, Error, Flow, Result, Steered};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::{
    caller::Caller,
    deferred::Deferred,
    handles::Handle,
    interfaces::{allowed_all, look_up},
    netns::enter,
    subject::Subject,
};

/// Undoes changes when this process ends without having done so: another process, which sees the
/// end whatever it is.
pub trait Janitor: Send + Sync {
    /// Before anything is changed by the plan of that number: from now on it is to be undone, in
    /// that network namespace (`None`: this process's). A number that is known has a new plan.
    fn remember(&self, number: u64, plan: &Plan, netns: Option<BorrowedFd<'_>>) -> io::Result<()>;
    /// It has been undone.
    fn forget(&self, number: u64);
}

/// Changes that stay until this is dropped.
pub(crate) struct Steering {
    handle: Handle,
    uid: u32,
    /// Number of the interface, and of its namespace.
    interface: (u32, Option<u64>),
    number: u64,
    plan: Plan,
    netns: Option<OwnedFd>,
    janitor: Option<Arc<dyn Janitor>>,
}

impl Steering {
    pub fn subject(&self) -> Subject {
        let (index, netns) = self.interface;
        Subject::Interface(netns.unwrap_or(0), index)
    }
}

impl Drop for Steering {
    fn drop(&mut self) {
        // The namespace is there as long as its descriptor.
        let undone = enter(self.netns.as_ref().map(|ns| ns.as_fd()), || self.plan.undo());
        if matches!(undone, Ok(Ok(())))
            && let Some(janitor) = &self.janitor
        {
            janitor.forget(self.number);
        }
    }
}

/// All that is steered.
#[derive(Default)]
pub(crate) struct Steerings {
    /// By number.
    all: BTreeMap<u64, Steering>,
    last: u64,
    pub janitor: Option<Arc<dyn Janitor>>,
}

impl Steerings {
    /// How many are a user's.
    pub fn of(&self, users: impl Fn(u32) -> bool) -> usize {
        self.all.values().filter(|steering| users(steering.uid)).count()
    }

    /// Takes out what a handle has changed: dropping it undoes it.
    pub fn take(&mut self, handle: Handle) -> Vec<Steering> {
        crate::fault::step();
        let its = |_: &u64, steering: &mut Steering| steering.handle == handle;
        self.all.extract_if(.., its).map(|(_, steering)| steering).collect()
    }

    /// Keeps everything but `flows` off a queue of an interface, as long as the handle is open.
    pub fn steer(
        &mut self,
        handle: Handle,
        caller: &Caller,
        interface: &str,
        queue: u16,
        flows: &[Flow],
        deferred: &mut Deferred,
    ) -> Result<Steered> {
        let is_mixed =
            |flow: &Flow| flow.hosts.iter().flatten().any(|host| host.is_ipv6() != flow.version6);
        if flows.iter().any(is_mixed) {
            return Err(Error::invalid("a flow has addresses of one version of IP")
                .at(interface)
                .remedy("steer two flows"));
        }
        let found = look_up(interface, caller)?;
        allowed_all(caller, interface)?;
        let interface_key = (found.index, caller.netns_id());
        if self.all.values().any(|steering| steering.interface == interface_key) {
            return Err(Error::busy("flows are steered there already")
                .at(interface)
                .remedy("end that `ringway steer` first, or give it all flows"));
        }
        let netns = caller.netns.other_fd().map(|ns| ns.try_clone_to_owned()).transpose();
        let netns = netns.map_err(|e| Error::io("cannot keep the network namespace", e))?;
        let (number, janitor) = (self.last + 1, self.janitor.clone());
        let (uid, name, flows) = (caller.uid, interface.to_string(), flows.to_vec());
        let carry_out = move || -> Result<_> {
            let refused = |e: steer::Error| {
                let refusal = Error::new(Cause::System(e.errno()), e.problem());
                refusal.at(e.interface()).remedy(e.remedy())
            };
            let within = netns.as_ref().map(|ns| ns.as_fd());
            let plan = enter(within, || Plan::make(&name, queue.into(), &flows))?;
            let mut plan = plan.map_err(refused)?;
            let remember = |plan: &Plan| {
                janitor.as_ref().map_or(Ok(()), |janitor| janitor.remember(number, plan, within))
            };
            remember(&plan).map_err(|e| Error::io("no process could undo it later", e))?;
            // If a place cannot be told, we still know it ourselves.
            let done = enter(within, || plan.carry_out(|plan| drop(remember(plan))));
            let steering =
                Steering { handle, uid, interface: interface_key, number, plan, netns, janitor };
            Ok((steering, done?.map_err(refused)?))
        };
        let subject = Subject::Interface(caller.netns_id().unwrap_or(0), found.index);
        if !deferred.is_done(&subject) {
            // Other steering that is begun meanwhile has another number.
            self.last = number;
        }
        let (steering, done) = deferred.off_loop(subject, carry_out)??;
        let steer::Steered { moved, table, rules_turned_on, rules } = done;
        crate::fault::step();
        let number = steering.number;
        self.all.insert(number, steering);
        Ok(Steered { moved, table, rules_turned_on, rules })
    }
}
