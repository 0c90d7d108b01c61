//! Which of the frames that a NIC receives are redirected to its port; its stack gets the others.
//!
//! A queue is redirected while a program has its ring, unless a user withholds it. A filter selects
//! among a queue's frames. Both are forgotten when the last program lets the ring go.

use std::sync::Arc;

use ringway_abi::Dir;
use ringway_filter::Program;
use ringway_nic_setup::{Filters, Loader};
use ringway_proto::{Cause, Error, Filter, FilterInfo, Result, RxSelector};

use crate::{
    deferred::Subject,
    handles::Handle,
    interfaces::nic_error,
    kinds::{nic::Nic, nic_sockets::Sockets, nic_stack::NicStack},
    port::PortId,
    queues::RxAttachment,
    registry::{Caller, Registry},
    shared_nic::{NicKey, SharedNic},
};

/// Bytes of a filter's text at most.
const MAX_TEXT: usize = 4096;

/// What the filters of one user may cost on one interface: the filters of all users are verified together,
/// and the kernel gives up at a million instructions.
const MAX_COST: u64 = 62_500;

/// A filter at work.
pub(crate) struct Installed {
    text: String,
    one_in: u32,
    pub kernel: Arc<ringway_nic_setup::Filter>,
    /// Instructions that the kernel's verifier looks at for it, each attachment through it.
    cost: u32,
}

/// A filter that is asked for.
struct Wanted {
    interface: String,
    text: String,
    program: Program,
    one_in: u32,
}

impl Wanted {
    fn new(interface: &str, filter: Filter) -> Result<Wanted> {
        let Filter { text, insns, one_in } = filter;
        if text.len() > MAX_TEXT {
            return Err(Error::invalid(format!(
                "the text of a filter has {MAX_TEXT} bytes at most"
            ))
            .at(interface));
        }
        let program =
            Program::new(insns).map_err(|e| Error::invalid(format!("{interface}: {e}")))?;
        Ok(Wanted { interface: interface.into(), text, program, one_in: one_in.max(1) })
    }
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
    /// Makes the filter, and has the kernel verify it by itself, for these queues of an interface: that
    /// takes as long as the filter is complicated.
    fn new(wanted: Wanted, loader: Option<&Loader>, queues: &[u16]) -> Result<Installed> {
        let Wanted { interface, text, program, one_in } = wanted;
        let kernel =
            ringway_nic_setup::Filter::new(&interface, program, one_in).map_err(nic_error)?;
        let kernel = Arc::new(kernel);
        let mut cost = 0;
        if let Some(loader) = loader {
            let count = queues.iter().max().map_or(0, |&last| usize::from(last) + 1);
            let here = |queue: usize| queues.iter().any(|&at| usize::from(at) == queue);
            let alone = (0..count).map(|queue| here(queue).then(|| kernel.clone())).collect();
            cost = loader.load(alone).map_err(nic_error)?.verified();
        }
        Ok(Installed { text, one_in, kernel, cost })
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
        // The interface's program goes on asking these filters, for queues whose frames are the stack's in
        // any case, until it is made anew: that takes the verifier's time, and nobody waits for it here.
        for (rule, used) in self.rx_rules.iter_mut().zip(used) {
            if !used {
                rule.filter = None;
            }
        }
    }

    /// What the verifier looks at for the filters of all queues, each counted once, if `other` were in the
    /// place of those of `queues`.
    fn cost_with(&self, other: &Arc<Installed>, queues: &[u16]) -> u64 {
        let mut counted: Vec<&Arc<Installed>> = vec![other];
        for (queue, rule) in (0..).zip(&self.rx_rules) {
            if let Some(filter) = &rule.filter
                && !queues.contains(&queue)
                && !counted.iter().any(|one| Arc::ptr_eq(one, filter))
            {
                counted.push(filter);
            }
        }
        counted.iter().map(|filter| u64::from(filter.cost)).sum()
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
        let loader = attachment.and_then(RxAttachment::filter_loader).cloned();
        if filter.is_some() && !of_nic.is_empty() && loader.is_none() {
            return refused("packet mode has no filters", "open it in another mode");
        }
        let installed = match filter {
            Some(filter) => {
                let wanted = Wanted::new(name, filter)?;
                Some(self.verified(id, wanted, loader.filter(|_| !of_nic.is_empty()), &of_nic)?)
            }
            None => None,
        };
        if !of_host.is_empty() {
            NicStack::set_filter(self, id, installed.clone())?;
        }
        if of_nic.is_empty() {
            return Ok(());
        }
        let mut filters = self.asked_filters(key);
        for &ring in &of_nic {
            let at = usize::from(ring);
            filters.resize(filters.len().max(at + 1), None);
            if let Some(place) = filters.get_mut(at) {
                *place = installed.as_ref().map(|filter| filter.kernel.clone());
            }
        }
        self.load_filters(key, filters)?;
        let nic = self.ports.get_mut(id).and_then(|port| port.get_mut::<Nic>());
        if let Some(sockets) = nic.and_then(|nic| nic.sockets.as_mut()) {
            for ring in of_nic {
                if let Some(rule) = sockets.rx_rules.get_mut(usize::from(ring)) {
                    rule.filter = installed.clone();
                }
            }
        }
        Ok(())
    }

    /// The filter that the request asks for, found fit to be installed for these receive queues.
    fn verified(
        &mut self,
        id: PortId,
        wanted: Wanted,
        loader: Option<Arc<Loader>>,
        queues: &[u16],
    ) -> Result<Arc<Installed>> {
        if let Some(filter) = &self.progress.filter {
            return Ok(filter.clone());
        }
        let (uid, of) = (self.port(id).uid, queues.to_vec());
        let make = move || Installed::new(wanted, loader.as_deref(), &of);
        let installed = Arc::new(self.off_loop(Subject::User(uid), make)??);
        let nic = self.port(id).get::<Nic>();
        if let Some(sockets) = nic.and_then(|nic| nic.sockets.as_ref()) {
            let cost = sockets.cost_with(&installed, queues);
            if cost > MAX_COST {
                return Err(too_complicated(&self.port(id).name, cost));
            }
        }
        self.progress.filter = Some(installed.clone());
        Ok(installed)
    }

    /// The filters that programs have chosen for an interface, by queue.
    fn asked_filters(&self, key: NicKey) -> Filters {
        let mut filters = Filters::new();
        let Some(shared) = self.shared.get(&key) else { return filters };
        for (queue, holder) in shared.holders() {
            let nic = self.ports.get(holder).and_then(|port| port.get::<Nic>());
            let sockets = nic.and_then(|nic| nic.sockets.as_ref());
            let rule = sockets.and_then(|sockets| sockets.rx_rules.get(queue as usize));
            if let Some(filter) = rule.and_then(|rule| rule.filter.as_ref()) {
                let at = queue as usize;
                filters.resize(filters.len().max(at + 1), None);
                if let Some(place) = filters.get_mut(at) {
                    *place = Some(filter.kernel.clone());
                }
            }
        }
        filters
    }

    /// Gives receive rings that nobody had all frames again, if the interface's program still asks a
    /// filter that they had before.
    pub(crate) fn drop_old_filters(&mut self, id: PortId, rings: &[u16]) -> Result<()> {
        let Some(nic) = self.port(id).get::<Nic>() else { return Ok(()) };
        let key = nic.key;
        let Some(attachment) = self.shared.get(&key).and_then(SharedNic::attachment) else {
            return Ok(());
        };
        let chosen = self.asked_filters(key);
        let at = |filters: &[Option<_>], ring: &u16| {
            filters.get(usize::from(*ring)).is_some_and(Option::is_some)
        };
        match rings.iter().any(|ring| at(attachment.filters(), ring) && !at(&chosen, ring)) {
            true => self.load_filters(key, chosen),
            false => Ok(()),
        }
    }

    /// Installs these filters for the queues of an interface, and no others.
    fn load_filters(&mut self, key: NicKey, filters: Filters) -> Result<()> {
        let Some(attachment) = self.shared.get(&key).and_then(SharedNic::attachment) else {
            return Ok(());
        };
        let Some(loader) = attachment.filter_loader().cloned() else { return Ok(()) };
        if attachment.has_filters(&filters) {
            return Ok(());
        }
        let (load, wanted) = (loader.clone(), filters.clone());
        let loaded = self.off_loop(key, move || load.load(wanted))?.map_err(nic_error)?;
        let attachment = self.shared.get_mut(&key).and_then(SharedNic::attachment_mut);
        match attachment {
            Some(attachment)
                if attachment.filter_loader().is_some_and(|now| Arc::ptr_eq(now, &loader)) =>
            {
                attachment.install(loaded)
            }
            // The interface was let go of, and opened again, meanwhile.
            _ => self.load_filters(key, filters),
        }
    }
}

fn too_complicated(port: &str, cost: u64) -> Error {
    Error::no_memory(format!(
        "the kernel would verify {cost} instructions for your filters here, and a user may have \
         {MAX_COST} of an interface"
    ))
    .at(port)
    .remedy(
        "ask for less in one filter, or use fewer filters; the program can look at frames itself",
    )
}
