//! Which of the frames that a NIC receives are redirected to its port; its stack gets the others.
//!
//! A queue is redirected while a program has its ring, unless a user withholds it. A filter selects
//! among a queue's frames. Both are forgotten when the last program lets the ring go.

use std::sync::Arc;

use ringway_abi::Dir;
use ringway_filter::Program;
use ringway_proto::{Cause, Error, Filter, FilterInfo, Result, RxSelector};

use crate::{
    handles::Handle,
    interfaces::nic_error,
    kinds::{nic::Nic, nic_sockets::Sockets, nic_stack::NicStack},
    port::PortId,
    queues::RxAttachment,
    registry::{Caller, Registry},
    shared_nic::SharedNic,
};

/// Bytes of a filter's text at most.
const MAX_TEXT: usize = 4096;

/// A filter at work.
pub(crate) struct Installed {
    text: String,
    one_in: u32,
    pub kernel: Arc<ringway_nic_setup::Filter>,
}

/// What one receive queue has been told to do with its frames.
#[derive(Clone, Default)]
pub(crate) struct RxRule {
    filter: Option<Arc<Installed>>,
    withheld: bool,
    /// What the interface's XDP program does now.
    redirected: bool,
}

impl Installed {
    fn new(interface: &str, filter: Filter) -> Result<Installed> {
        let Filter { text, insns, one_in } = filter;
        if text.len() > MAX_TEXT {
            return Err(Error::invalid(format!(
                "the text of a filter has {MAX_TEXT} bytes at most"
            ))
            .at(interface));
        }
        let program =
            Program::new(insns).map_err(|e| Error::invalid(format!("{interface}: {e}")))?;
        let one_in = one_in.max(1);
        let kernel =
            ringway_nic_setup::Filter::new(interface, program, one_in).map_err(nic_error)?;
        Ok(Installed { text, one_in, kernel: Arc::new(kernel) })
    }

    /// With what it has counted, for these receive queues.
    pub fn info(&self, queues: Vec<u32>) -> FilterInfo {
        let ringway_nic_setup::FilterCounters { matched, taken, passed } =
            self.kernel.counters().unwrap_or_default();
        let (text, one_in) = (self.text.clone(), self.one_in);
        FilterInfo { text, one_in, queues, host: false, matched, taken, passed }
    }
}

impl Sockets {
    /// Redirects the frames of the queues whose rings programs have, and forgets the rules of the others.
    /// `attachment` is that of the interface.
    pub fn redirect(&mut self, attachment: &mut RxAttachment, used: &[bool]) {
        for (queue, &used) in (0..).zip(used) {
            let Some(rule) = self.rx_rules.get_mut(queue as usize) else { return };
            rule.withheld &= used;
            let redirected = used && !rule.withheld;
            match (std::mem::replace(&mut rule.redirected, redirected), redirected, self.get(queue))
            {
                // The queue was looked at when it was opened.
                (false, true, Some(socket)) => drop(attachment.set_queue(queue, socket)),
                (true, false, socket) => {
                    attachment.unset_queue(queue);
                    socket.inspect(|socket| socket.stop_listening());
                }
                _ => {}
            }
        }
        let forgotten = self.rx_rules.iter().zip(used).any(|(c, used)| !used && c.filter.is_some());
        if forgotten {
            let kept = |(c, used): (&RxRule, &bool)| c.filter.clone().filter(|_| *used);
            let filters = self.rx_rules.iter().zip(used).map(kept).collect();
            // If the kernel has no memory for the rest, the frames of the others are still right.
            let _ = self.filter(attachment, filters);
        }
    }

    /// Installs these filters, one for each queue; other ports of the interface keep theirs.
    fn filter(
        &mut self,
        attachment: &mut RxAttachment,
        filters: Vec<Option<Arc<Installed>>>,
    ) -> Result<()> {
        let mut all = attachment.filters().to_vec();
        all.resize(all.len().max(filters.len()), None);
        for ((queue, filter), entry) in (0..).zip(&filters).zip(&mut all) {
            if self.get(queue).is_some() {
                *entry = filter.as_ref().map(|filter| filter.kernel.clone());
            }
        }
        attachment.set_filters(all)?;
        for (rule, filter) in self.rx_rules.iter_mut().zip(filters) {
            rule.filter = filter;
        }
        Ok(())
    }

    /// The queues whose frames are redirected to programs, all or some.
    pub fn redirected_queues(&self) -> Vec<u32> {
        (0..)
            .zip(&self.rx_rules)
            .filter(|(_, rule)| rule.redirected)
            .map(|(queue, _)| queue)
            .collect()
    }

    /// All filters, with what they have counted.
    pub fn filters(&self) -> Vec<FilterInfo> {
        let mut found: Vec<(&Arc<Installed>, Vec<u32>)> = Vec::new();
        for (queue, rule) in (0..).zip(&self.rx_rules) {
            let Some(filter) = &rule.filter else { continue };
            match found.iter_mut().find(|(other, _)| Arc::ptr_eq(other, filter)) {
                Some((_, queues)) => queues.push(queue),
                None => found.push((filter, vec![queue])),
            }
        }
        found.into_iter().map(|(filter, queues)| filter.info(queues)).collect()
    }
}

impl Registry {
    /// Changes the filter of receive rings; `None`: they get everything again. Without a name, of
    /// those that the handle has.
    pub(crate) fn set_filter(
        &mut self,
        handle: Handle,
        caller: &Caller,
        name: &str,
        rings: RxSelector,
        filter: Option<Filter>,
    ) -> Result<()> {
        let (id, rings) = match name {
            "" => {
                let binding = self.handles.binding(handle)?;
                let [_, received] = &binding.rings;
                (binding.port, received.clone())
            }
            _ => self.receiving_port(caller, name, rings)?,
        };
        self.install_filter(id, &rings, filter)
    }

    /// Redirects the frames of queues to the programs that have their rings, or withholds them: of
    /// all these queues or, if no program has one of them, of none.
    pub(crate) fn redirect_queues(
        &mut self,
        caller: &Caller,
        name: &str,
        queues: &[u16],
        to_program: bool,
    ) -> Result<()> {
        let (id, _) = self.receiving_port(caller, name, RxSelector::Queues)?;
        for &queue in queues {
            self.receiving_port(caller, name, RxSelector::Queue(queue))?;
        }
        if let Some(Nic { sockets: Some(sockets), .. }) = self.port_mut(id).get_mut() {
            for &queue in queues {
                if let Some(rule) = sockets.rx_rules.get_mut(usize::from(queue)) {
                    rule.withheld = !to_program;
                }
            }
        }
        self.users_changed(id);
        Ok(())
    }

    /// A NIC of the caller's, and of those receive rings of it the ones that programs have.
    fn receiving_port(
        &self,
        caller: &Caller,
        name: &str,
        which: RxSelector,
    ) -> Result<(PortId, Vec<u16>)> {
        let id = Nic::named(self, caller, name).ok_or_else(|| {
            Error::absent("no program of yours has it open").at(name).remedy("open it, then choose")
        })?;
        let port = self.port(id);
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
            (false, _) => Ok((id, rings)),
            (true, RxSelector::Queues) => Err(Error::invalid("no program receives on it").at(name)),
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

    /// Installs a filter for those receive rings of a port.
    pub(crate) fn install_filter(
        &mut self,
        id: PortId,
        rings: &[u16],
        filter: Option<Filter>,
    ) -> Result<()> {
        let port = self.port(id);
        let name = &port.name;
        let refused = |problem: &str, remedy: &str| {
            Err(Error::new(Cause::Unsupported, problem).at(name).remedy(remedy))
        };
        let Some(nic) = port.get::<Nic>() else {
            return refused("network interfaces alone have filters", "leave the filter out");
        };
        let queues = port.nic_rings(Dir::Rx).len();
        let (of_nic, of_host): (Vec<u16>, Vec<u16>) =
            rings.iter().partition(|&&ring| usize::from(ring) < queues);
        if rings.is_empty() {
            return refused("nothing is received there", "filter where receive rings are open");
        }
        if !of_host.is_empty() && of_host.len() != port.host_rings(Dir::Rx).len() {
            return refused("host rings have one filter in common", "open all of them, by ^ or *");
        }
        let key = nic.key;
        let attachment = self.shared.get(&key).and_then(SharedNic::attachment);
        let has_filters = attachment.is_some_and(RxAttachment::has_filters);
        if filter.is_some() && !of_nic.is_empty() && !has_filters {
            return refused("packet mode has no filters", "open it in another mode");
        }
        let installed = match filter {
            Some(filter) => Some(Arc::new(Installed::new(name, filter)?)),
            None => None,
        };
        if !of_host.is_empty() {
            NicStack::set_filter(self, id, installed.clone())?;
        }
        let nic = self.ports.get_mut(id).and_then(|port| port.get_mut::<Nic>());
        let sockets = nic.and_then(|nic| nic.sockets.as_mut());
        let attachment = self.shared.get_mut(&key).and_then(SharedNic::attachment_mut);
        let (Some(sockets), Some(attachment), false) = (sockets, attachment, of_nic.is_empty())
        else {
            return Ok(());
        };
        let mut filters: Vec<_> = sockets.rx_rules.iter().map(|c| c.filter.clone()).collect();
        for ring in of_nic {
            if let Some(entry) = filters.get_mut(usize::from(ring)) {
                *entry = installed.clone();
            }
        }
        sockets.filter(attachment, filters)
    }
}
