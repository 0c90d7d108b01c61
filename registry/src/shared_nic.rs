//! Interfaces that several users have at once, each with queues of his own in a region of his own.
//!
//! Each user has a port of the interface. What the interface has but once is here: its XDP program,
//! what keeps the stack's packets away, and the stack. It comes with the first port that is in netmap
//! mode, and goes with the last.

use std::collections::{BTreeMap, BTreeSet};

use ringway_xdp::{AttachMode, Diversion, HostEnd, Interface, XdpProgram};

use crate::port::PortId;

/// Which interface: the number of its network namespace, 0 for this process's, and its own there.
pub(crate) type NicKey = (u64, u32);

/// What the ports of one interface share.
#[derive(Default)]
pub(crate) struct SharedNic {
    /// Held, here and by every client, for as long as the traffic is to come to us.
    program: Option<XdpProgram>,
    /// The port that has each queue.
    holders: BTreeMap<u32, PortId>,
    /// Present while a NIC tx ring has users (S-HOST-2).
    pub diversion: Option<Diversion>,
    /// Ports whose NIC tx rings have users.
    senders: BTreeSet<PortId>,
    /// The port that has the host rings.
    pub stack: Option<PortId>,
}

impl SharedNic {
    /// The XDP program, attached by the first who asks, who is in the interface's network namespace.
    pub fn attach(&mut self, interface: &Interface) -> Result<&XdpProgram, ringway_xdp::Error> {
        if self.program.is_none() {
            self.program = Some(XdpProgram::attach(interface)?);
        }
        Ok(self.program())
    }

    /// The XDP program. There are queues in use.
    pub fn program(&self) -> &XdpProgram {
        self.program.as_ref().expect("attached before the first queue was opened")
    }

    /// The XDP program, and who has which queue. There are queues in use.
    pub fn parts(&mut self) -> (&mut XdpProgram, &mut BTreeMap<u32, PortId>) {
        let program = self.program.as_mut().expect("attached before the first queue was opened");
        (program, &mut self.holders)
    }

    /// Whether a port other than `id` has the queue.
    pub fn is_anothers(&self, queue: u32, id: PortId) -> bool {
        self.holders.get(&queue).is_some_and(|&holder| holder != id)
    }

    /// Whether frames of several buffers come by.
    pub fn takes_frags(&self) -> bool {
        self.program.as_ref().is_some_and(XdpProgram::frags)
    }

    /// Whether a port's tx rings have users. When nobody's have, the stack sends again.
    pub fn set_sends(&mut self, id: PortId, sends: bool) {
        match sends {
            true => drop(self.senders.insert(id)),
            false => drop(self.senders.remove(&id)),
        }
        if self.senders.is_empty()
            && let Some(diversion) = self.diversion.take()
        {
            diversion.end();
        }
    }

    /// Leads what the stack sends to `end`, and lets what comes from there into the stack.
    pub fn connect(&mut self, end: Option<&mut HostEnd>) {
        let generic = self.program.as_ref().is_some_and(|p| p.mode() == AttachMode::Generic);
        let end = end.map(|end| {
            end.pass_generic_xdp(generic);
            &*end
        });
        if let Some(diversion) = &mut self.diversion {
            diversion.lead_to(end);
        }
    }

    /// A port has left netmap mode. True if it was the last.
    pub fn leave(&mut self, id: PortId) -> bool {
        if let Some(program) = &mut self.program {
            let queues = self.holders.iter().filter(|(_, holder)| **holder == id);
            queues.for_each(|(&queue, _)| program.unset_queue(queue));
        }
        self.holders.retain(|_, holder| *holder != id);
        self.set_sends(id, false);
        if self.stack == Some(id) {
            self.stack = None;
        }
        self.holders.is_empty() && self.senders.is_empty() && self.stack.is_none()
    }
}
