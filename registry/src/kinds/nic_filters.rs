//! The filters of a NIC's receive rings, and which of its queues are redirected, as users choose them.

use std::{collections::HashMap, sync::Arc};

use ringway_abi::Dir;
use ringway_nic_setup::{Filters, Loader};
use ringway_proto::{Cause, Error, Filter, Result, RxSelector};

use crate::{
    deferred::{Deferred, Subject},
    handles::Handle,
    interfaces::nic_error,
    kinds::{nic::Nic, nic_stack::NicStack},
    port::{Port, PortId},
    ports::Ports,
    queues::RxAttachment,
    registry::{Caller, Registry},
    rx_redirect::{Installed, Wanted},
    shared_nic::{NicKey, SharedNic},
};

/// What the filters of one user may cost on one interface: the filters of all users are verified together,
/// and the kernel gives up at a million instructions.
const MAX_COST: u64 = 62_500;

impl Nic {
    /// Changes the filter of receive rings; `None`: they get everything again. Without a name, of
    /// those that the handle has.
    pub(crate) fn set_filter(
        registry: &mut Registry,
        handle: Handle,
        caller: &Caller,
        name: &str,
        rings: RxSelector,
        filter: Option<Filter>,
    ) -> Result<()> {
        let (id, rings) = match name {
            "" => {
                let binding = registry.handles.binding(handle)?;
                let [_, received] = &binding.rings;
                (binding.port, received.clone())
            }
            _ => Nic::receiving(&registry.ports, caller, name, rings)?,
        };
        Nic::install_filter(registry, id, &rings, filter)
    }

    /// Redirects the frames of queues to the programs that have their rings, or withholds them: of
    /// all these queues or, if no program has one of them, of none.
    pub(crate) fn redirect_queues(
        registry: &mut Registry,
        caller: &Caller,
        name: &str,
        queues: &[u16],
        to_program: bool,
    ) -> Result<()> {
        let (id, _) = Nic::receiving(&registry.ports, caller, name, RxSelector::Queues)?;
        for &queue in queues {
            Nic::receiving(&registry.ports, caller, name, RxSelector::Queue(queue))?;
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

    /// A NIC of the caller's, and of those receive rings of it the ones that programs have.
    fn receiving(
        ports: &Ports,
        caller: &Caller,
        name: &str,
        which: RxSelector,
    ) -> Result<(PortId, Vec<u16>)> {
        let id = Nic::named(ports, caller, name)?.ok_or_else(|| {
            Error::absent("no program of yours has it open").at(name).remedy("open it, then choose")
        })?;
        let port = ports.port(id);
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
        registry: &mut Registry,
        id: PortId,
        rings: &[u16],
        filter: Option<Filter>,
    ) -> Result<()> {
        let port = registry.port(id);
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
        let attachment = registry.shared.get(&key).and_then(SharedNic::attachment);
        let loader = attachment.and_then(RxAttachment::filter_loader).cloned();
        if filter.is_some() && !of_nic.is_empty() && loader.is_none() {
            return refused("packet mode has no filters", "open it in another mode");
        }
        let installed = match filter {
            Some(filter) => {
                let wanted = Wanted::new(name, filter)?;
                let loader = loader.filter(|_| !of_nic.is_empty());
                let Registry { ports, deferred, .. } = &mut *registry;
                Some(Nic::verified(ports.port(id), deferred, wanted, loader, &of_nic)?)
            }
            None => None,
        };
        if !of_host.is_empty() {
            NicStack::set_filter(registry, id, installed.clone())?;
        }
        if of_nic.is_empty() {
            return Ok(());
        }
        let shared = registry.shared.get(&key);
        let asked = |shared| Nic::asked_filters(shared, &registry.ports);
        let mut filters = shared.map(asked).unwrap_or_default();
        for &ring in &of_nic {
            let at = usize::from(ring);
            filters.resize(filters.len().max(at + 1), None);
            if let Some(place) = filters.get_mut(at) {
                *place = installed.as_ref().map(|filter| filter.kernel.clone());
            }
        }
        Nic::load_filters(&mut registry.shared, &mut registry.deferred, key, filters)?;
        crate::fault::step();
        let nic = registry.ports.get_mut(id).and_then(|port| port.get_mut::<Nic>());
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
        port: &Port,
        deferred: &mut Deferred,
        wanted: Wanted,
        loader: Option<Arc<Loader>>,
        queues: &[u16],
    ) -> Result<Arc<Installed>> {
        if let Some(filter) = &deferred.progress.filter {
            return Ok(filter.clone());
        }
        let of = queues.to_vec();
        let make = move || Installed::new(wanted, loader.as_ref(), &of);
        let installed = Arc::new(deferred.off_loop(Subject::User(port.uid), make)??);
        let nic = port.get::<Nic>();
        if let Some(sockets) = nic.and_then(|nic| nic.sockets.as_ref()) {
            let cost = sockets.cost_with(&installed, queues);
            if cost > MAX_COST {
                return Err(too_complicated(&port.name, cost));
            }
        }
        deferred.progress.filter = Some(installed.clone());
        Ok(installed)
    }

    /// The filters that programs have chosen for an interface, by queue.
    fn asked_filters(shared: &SharedNic, ports: &Ports) -> Filters {
        let mut filters = Filters::new();
        for (queue, holder) in shared.holders() {
            let nic = ports.get(holder).and_then(|port| port.get::<Nic>());
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
    pub(crate) fn drop_old_filters(
        registry: &mut Registry,
        id: PortId,
        rings: &[u16],
    ) -> Result<()> {
        let Some(&Nic { key, .. }) = registry.port(id).get() else { return Ok(()) };
        let Some(shared) = registry.shared.get(&key) else { return Ok(()) };
        let Some(attachment) = shared.attachment() else { return Ok(()) };
        let chosen = Nic::asked_filters(shared, &registry.ports);
        let at = |filters: &[Option<_>], ring: &u16| {
            filters.get(usize::from(*ring)).is_some_and(Option::is_some)
        };
        match rings.iter().any(|ring| at(attachment.filters(), ring) && !at(&chosen, ring)) {
            true => Nic::load_filters(&mut registry.shared, &mut registry.deferred, key, chosen),
            false => Ok(()),
        }
    }

    /// Installs these filters for the queues of an interface, and no others.
    fn load_filters(
        all_shared: &mut HashMap<NicKey, SharedNic>,
        deferred: &mut Deferred,
        key: NicKey,
        filters: Filters,
    ) -> Result<()> {
        let Some(attachment) = all_shared.get(&key).and_then(SharedNic::attachment) else {
            return Ok(());
        };
        let Some(installer) = attachment.filter_installer() else { return Ok(()) };
        if attachment.has_filters(&filters) {
            return Ok(());
        }
        let wanted = filters.clone();
        let installed = deferred.off_loop(key, move || installer.install(wanted))?;
        let installed = installed.map_err(nic_error)?;
        let attachment = all_shared.get_mut(&key).and_then(SharedNic::attachment_mut);
        let left = match attachment {
            Some(attachment) => attachment.adopt(installed),
            None => Some(installed),
        };
        let Some(left) = left else { return Ok(()) };
        // The interface was let go of, and opened again, meanwhile.
        deferred.close_off_loop(key, left);
        Nic::load_filters(all_shared, deferred, key, filters)
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
