//! Interfaces that several users have at once, each with queues of his own in a region of his own.
//!
//! Each user has a port of the interface. What the interface has but once is here: what redirects its
//! frames to programs, what keeps the stack's packets away, and the stack. It comes with the first
//! port that is in netmap mode, and goes with the last; what redirects frames goes with the last queue.

use std::collections::{BTreeMap, BTreeSet};

use ringway_nic_setup::{EgressRedirect, InjectMark};
use ringway_proto::{Error, NicMode, Refusals, Result};
use ringway_region::Timestamps;

use crate::{
    kinds::nic_stack::{LoadedHostFilter, NicStack},
    nic_mode::ModeRequest,
    port::PortId,
    queues::{Entry, OpenedQueues, Opening, RxAttachment, Socket},
    setup_error::nic_error,
};

/// What the ports of one interface share.
#[derive(Default)]
pub(crate) struct SharedNic {
    attachment: Option<RxAttachment>,
    /// The mode of the first queue, whose opener has decided for all; and why it is no better one.
    mode: Option<NicMode>,
    pub refused: Refusals,
    /// What the opener of the first queue wanted to know of frames, for all.
    pub timestamps: Option<Timestamps>,
    /// The port that has each queue.
    holders: BTreeMap<u32, PortId>,
    /// Present while a NIC tx ring has users (S-HOST-2), or a filter selects what comes up in host
    /// rings.
    pub egress_redirect: Option<EgressRedirect>,
    /// What those before it have dropped.
    dropped_before: u64,
    /// Ports whose NIC tx rings have users.
    senders: BTreeSet<PortId>,
    /// The port that has the host rings.
    pub stack: Option<PortId>,
}

/// What is ended when this is dropped, which waits for whoever changes interfaces.
#[derive(Default)]
pub(crate) struct Ending {
    attachment: Option<RxAttachment>,
    egress_redirect: Option<EgressRedirect>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(attachment) = self.attachment.take() {
            attachment.end();
        }
        if let Some(egress_redirect) = self.egress_redirect.take() {
            egress_redirect.end();
        }
    }
}

/// What a port leaves behind.
pub(crate) struct LeaveResult {
    /// Nothing: it was the last.
    pub last: bool,
    /// What directed the frames, if the port had the last queue.
    _attachment: Option<RxAttachment>,
}

impl SharedNic {
    /// EBUSY when the interface is in another mode than the one that is asked for by name, or without
    /// the timestamps.
    pub fn check(&self, name: &str, request: ModeRequest) -> Result<()> {
        if let Some(asked) = request.timestamps
            && self.attachment.is_some()
            && self.timestamps != request.timestamps
        {
            return Err(Error::busy(format!(
                "in use without {asked} timestamps, about which decides who opens it first"
            ))
            .at(name)
            .remedy("close it, or open it without them"));
        }
        match (request.mode, self.mode) {
            (Some(asked), Some(mode)) if asked != mode => {
                Err(Error::busy(format!("in use in {mode} mode, not in {asked} mode"))
                    .at(name)
                    .remedy("close it, or open it in that mode too"))
            }
            _ => Ok(()),
        }
    }

    /// How queues that nobody has are opened: the first in the mode that is best, those after in the
    /// same.
    pub fn entry(&self, opening: &Opening, request: ModeRequest) -> Result<Entry> {
        match &self.attachment {
            None => Ok(Entry::First(request)),
            Some(RxAttachment::Xdp(_)) => Ok(Entry::JoinXdp(self.mode)),
            Some(attachment) if request.may_have_packet => {
                Ok(Entry::JoinPacket(attachment.pair().cloned(), self.timestamps))
            }
            Some(_) => Err(Error::busy(format!(
                "{}: in use in packet mode, which you are not granted; end the program that has it",
                opening.interface.name
            ))),
        }
    }

    /// False: queues were opened beside others that have gone meanwhile.
    pub fn fits(&self, opened: &OpenedQueues) -> bool {
        opened.first.is_none() == self.attachment.is_some()
    }

    /// Takes queues that have been opened, and [fit](Self::fits).
    pub fn take(&mut self, opened: OpenedQueues, request: ModeRequest) -> Vec<Socket> {
        crate::fault::step();
        let OpenedQueues { first, sockets, egress_redirect, .. } = opened;
        if self.egress_redirect.is_none() {
            self.egress_redirect = egress_redirect;
        }
        if let Some((attachment, refused)) = first {
            let first = sockets.first();
            self.mode = first.map(Socket::mode);
            self.refused = refused.then(first.map(Socket::refused).unwrap_or_default());
            (self.attachment, self.timestamps) = (Some(attachment), request.timestamps);
        }
        sockets
    }

    /// What directs the frames, while there are queues in use.
    pub fn attachment(&self) -> Option<&RxAttachment> {
        self.attachment.as_ref()
    }

    pub fn attachment_mut(&mut self) -> Option<&mut RxAttachment> {
        self.attachment.as_mut()
    }

    /// The ports that have anything of it.
    pub fn ports(&self) -> BTreeSet<PortId> {
        let holders = self.holders.values().chain(&self.senders).chain(&self.stack);
        holders.copied().collect()
    }

    /// From now on the port has the queue.
    pub fn set_holder(&mut self, queue: u32, id: PortId) {
        crate::fault::step();
        self.holders.insert(queue, id);
    }

    /// After a panic: these ports have the queues, and no others. Without any, nothing directs frames.
    pub fn recount(&mut self, holders: BTreeMap<u32, PortId>) -> Option<Ending> {
        self.holders = holders;
        let attachment = self.attachment.take_if(|_| self.holders.is_empty())?;
        (self.mode, self.refused) = (None, Refusals::default());
        Some(Ending { attachment: Some(attachment), egress_redirect: None })
    }

    /// Whether the XDP program is for this interface alone: such a one keeps its namespace.
    pub fn is_bound(&self) -> bool {
        matches!(&self.attachment, Some(RxAttachment::Xdp(program)) if program.is_bound())
    }

    /// The queues, each with the port that has it.
    pub fn holders(&self) -> impl Iterator<Item = (u32, PortId)> {
        self.holders.iter().map(|(&queue, &id)| (queue, id))
    }

    /// The port that has the queue.
    pub fn holder(&self, queue: u32) -> Option<PortId> {
        self.holders.get(&queue).copied()
    }

    /// Nobody has the queue any more.
    pub fn forget_holder(&mut self, queue: u32) {
        crate::fault::step();
        self.holders.remove(&queue);
    }

    /// Whether a port other than `id` has the queue.
    pub fn is_anothers(&self, queue: u32, id: PortId) -> bool {
        self.holders.get(&queue).is_some_and(|&holder| holder != id)
    }

    /// Whether frames of several buffers come by.
    pub fn takes_frags(&self) -> bool {
        self.attachment.as_ref().is_some_and(RxAttachment::takes_frags)
    }

    /// Whether a port's tx rings have users.
    pub fn set_sends(&mut self, id: PortId, sends: bool) {
        crate::fault::step();
        match sends {
            true => drop(self.senders.insert(id)),
            false => drop(self.senders.remove(&id)),
        }
    }

    /// Redirects what the stack sends to `stack`, all or what its filter takes, and lets what comes from
    /// there into the stack. Where no port needs that, the stack sends by itself, as soon as what is returned has
    /// been dropped. After an error the filter is the one before.
    pub fn connect(&mut self, stack: Option<&mut NicStack>) -> Result<Option<Ending>> {
        crate::fault::step();
        let inject_mark = match &mut self.attachment {
            Some(attachment) => attachment.set_injected(stack.is_some())?,
            None => InjectMark::None,
        };
        let stack = stack.map(|stack| {
            stack.end.set_inject_mark(inject_mark);
            &*stack
        });
        let filter = stack.and_then(NicStack::filter);
        let is_needed = !self.senders.is_empty() || filter.is_some();
        match &mut self.egress_redirect {
            Some(egress_redirect) if is_needed => {
                let end = stack.map(|stack| &stack.end);
                egress_redirect.redirect(end, filter).map_err(nic_error)?;
                Ok(None)
            }
            Some(_) => {
                let egress_redirect = self.take_redirect();
                Ok(Some(Ending { egress_redirect, attachment: None }))
            }
            None => Ok(None),
        }
    }

    /// From now on this selects what comes up in host rings; `None`: all that the stack sends does, while
    /// programs have tx rings. After an error the filter is the one before, and the refused one is given back.
    pub fn set_filter(
        &mut self,
        stack: &mut NicStack,
        loaded: &mut Option<LoadedHostFilter>,
    ) -> Result<Option<Ending>> {
        let (filter, begun) = match loaded.take() {
            Some(LoadedHostFilter { filter, begun }) => (Some(filter), begun),
            None => (None, None),
        };
        let has_begun = begun.is_some();
        if has_begun {
            self.egress_redirect = begun;
        }
        let before = std::mem::replace(&mut stack.filter, filter);
        self.connect(Some(stack)).inspect_err(|_| {
            let refused = std::mem::replace(&mut stack.filter, before);
            let begun = self.egress_redirect.take_if(|_| has_begun);
            *loaded = refused.map(|filter| LoadedHostFilter { filter, begun });
        })
    }

    /// The interface has gone from where it was, and may be in another network namespace by now:
    /// nothing of ours is to stay on it, although clients hold links.
    pub fn detach_programs(&mut self) -> Ending {
        self.mode = None;
        let (attachment, egress_redirect) = (self.attachment.take(), self.take_redirect());
        Ending { attachment, egress_redirect }
    }

    /// Frames that the stack has sent while programs had the tx rings, and the host rings were not open.
    pub fn stack_dropped(&self) -> u64 {
        self.dropped_before + self.egress_redirect.as_ref().map_or(0, EgressRedirect::dropped)
    }

    fn take_redirect(&mut self) -> Option<EgressRedirect> {
        self.dropped_before = self.stack_dropped();
        self.egress_redirect.take()
    }

    /// The port does not have the stack any more.
    pub fn leave_stack(&mut self, id: PortId) {
        crate::fault::step();
        if self.stack.take_if(|holder| *holder == id).is_some()
            && let Some(attachment) = &mut self.attachment
        {
            // A mark that could not be taken back has been told to no program.
            let _ = attachment.set_injected(false);
        }
    }

    /// A port has left netmap mode. With the last queue goes what directed the frames, and with it
    /// the mode: the next port to open one decides anew. Where another port has the stack, it is to be
    /// [connected](Self::connect) again as long as the [`LeaveResult`] is there: then nothing that is sent
    /// to the stack is marked for an attachment that has gone.
    pub fn leave(&mut self, id: PortId) -> LeaveResult {
        if let Some(attachment) = &mut self.attachment {
            let queues = self.holders.iter().filter(|(_, holder)| **holder == id);
            queues.for_each(|(&queue, _)| attachment.unset_queue(queue));
        }
        self.holders.retain(|_, holder| *holder != id);
        self.set_sends(id, false);
        self.leave_stack(id);
        let mut attachment = None;
        if self.holders.is_empty() {
            (attachment, self.mode, self.refused) =
                (self.attachment.take(), None, Refusals::default());
        }
        let last = self.holders.is_empty() && self.senders.is_empty() && self.stack.is_none();
        LeaveResult { last, _attachment: attachment }
    }
}
