//! The filters and action programs of a NIC's receive rings, and which of its queues are redirected, as users
//! choose them.

use std::{collections::HashMap, sync::Arc};

use ringway_abi::Dir;
use ringway_nic_setup::{Loader, QueueRule, QueueRules};
use ringway_proto::{Cause, Error, Filter, Result, RxSelector};

use crate::{
    actions::{InstalledAction, WantedAction},
    caller::Caller,
    deferred::Deferred,
    handles::Handle,
    kinds::{nic::Nic, nic_stack::NicStack},
    port::{Port, PortId},
    ports::Ports,
    queues::RxAttachment,
    registry::Registry,
    rx_redirect::{Installed, RxRule, Wanted},
    setup_error::nic_error,
    shared_nic::SharedNic,
    subject::{NicKey, Subject},
};

/// What the filters and action programs of one user may cost on one interface: those of all users are
/// verified together, and the kernel gives up at a million instructions.
const MAX_COST: u64 = 62_500;

/// The receive rings of a NIC that a filter or an action program is for.
struct RuleRings {
    of_nic: Vec<u16>,
    of_host: Vec<u16>,
    /// Loads programs into the kernel; `None` where there can be none.
    loader: Option<Loader>,
}

impl RuleRings {
    /// `what`: "filters", say.
    fn new(registry: &Registry, id: PortId, rings: &[u16], what: &str) -> Result<RuleRings> {
        let port = registry.port(id);
        let Some(nic) = port.get::<Nic>() else {
            let problem = format!("network interfaces alone have {what}");
            return Err(unsupported(&port.name, problem, "leave it out"));
        };
        if rings.is_empty() {
            let remedy = "set it where receive rings are open";
            return Err(unsupported(&port.name, "nothing is received there", remedy));
        }
        let queues = port.nic_rings(Dir::Rx).len();
        let (of_nic, of_host) = rings.iter().partition(|&&ring| usize::from(ring) < queues);
        let attachment = registry.shared.get(&nic.key).and_then(SharedNic::attachment);
        let loader = attachment.and_then(RxAttachment::loader);
        Ok(RuleRings { of_nic, of_host, loader })
    }
}

fn unsupported(name: &str, problem: impl Into<String>, remedy: &str) -> Error {
    Error::new(Cause::Unsupported, problem).at(name).remedy(remedy)
}

fn in_other_mode(name: &str) -> String {
    format!("open it in another mode, such as netmap:{name}@mode=copy")
}

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
        let (id, rings) = Nic::chosen(registry, handle, caller, name, rings)?;
        Nic::install_filter(registry, id, &rings, filter)
    }

    /// The same for the action program; `None`: they have none.
    pub(crate) fn set_action(
        registry: &mut Registry,
        handle: Handle,
        caller: &Caller,
        name: &str,
        rings: RxSelector,
        action: Option<WantedAction>,
    ) -> Result<()> {
        let (id, rings) = Nic::chosen(registry, handle, caller, name, rings)?;
        Nic::install_action(registry, id, &rings, action)
    }

    /// The receive rings that a request is about, and their port.
    fn chosen(
        registry: &Registry,
        handle: Handle,
        caller: &Caller,
        name: &str,
        rings: RxSelector,
    ) -> Result<(PortId, Vec<u16>)> {
        if !name.is_empty() {
            return Nic::receiving(&registry.ports, caller, name, rings);
        }
        let binding = registry.handles.binding(handle)?;
        let [_, received] = &binding.rings;
        Ok((binding.port, received.clone()))
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
        // No interface has such a name: to open the port would not help.
        if name.contains([':', '{', '}']) {
            return Err(unsupported(
                name,
                "it is no network interface",
                "name one, as netmap:eth0",
            ));
        }
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
        let RuleRings { of_nic, of_host, loader } = RuleRings::new(registry, id, rings, "filters")?;
        let port = registry.port(id);
        let name = &port.name;
        if !of_host.is_empty() && of_host.len() != port.host_rings(Dir::Rx).len() {
            let problem = "host rings have one filter in common";
            return Err(unsupported(name, problem, "open all of them, by ^ or *"));
        }
        let installed = match filter {
            Some(_) if !of_nic.is_empty() && loader.is_none() => {
                let problem = "its programs in packet mode have all that it receives";
                let remedy = format!(
                    "close it, and open it with a filter, such as netmap:{name}@filter=udp: that one \
                     can be changed"
                );
                return Err(unsupported(name, problem, &remedy));
            }
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
        Nic::change_rules(registry, id, &of_nic, |rule| rule.filter = installed.clone())
    }

    /// Installs an action program for those receive rings of a port.
    pub(crate) fn install_action(
        registry: &mut Registry,
        id: PortId,
        rings: &[u16],
        action: Option<WantedAction>,
    ) -> Result<()> {
        let what = "action programs";
        let RuleRings { of_nic, of_host, loader } = RuleRings::new(registry, id, rings, what)?;
        let Some(&Nic { key, .. }) = registry.port(id).get() else { return Ok(()) };
        let name = &registry.port(id).name;
        if !of_host.is_empty() {
            let problem = "host rings have no action programs";
            return Err(unsupported(name, problem, "open it without ^ or *"));
        }
        let installed = match action {
            Some(_) if !loader.is_some_and(|loader| loader.takes_actions()) => {
                let problem = format!("packet mode has no {what}");
                return Err(unsupported(name, problem, &in_other_mode(name)));
            }
            Some(action) => {
                let action = action.within(name, key)?;
                let Registry { ports, deferred, .. } = &mut *registry;
                Some(Nic::verified_action(ports.port(id), deferred, action, &of_nic)?)
            }
            None => None,
        };
        Nic::change_rules(registry, id, &of_nic, |rule| rule.action = installed.clone())
    }

    /// Changes the rules of these receive queues of a port, and loads them.
    fn change_rules(
        registry: &mut Registry,
        id: PortId,
        queues: &[u16],
        change: impl Fn(&mut RxRule),
    ) -> Result<()> {
        let Some(nic) = registry.port(id).get::<Nic>() else { return Ok(()) };
        let key = nic.key;
        let now = |queue: u16| nic.sockets.as_ref()?.rx_rules.get(usize::from(queue));
        let shared = registry.shared.get(&key);
        let mut rules =
            shared.map(|shared| Nic::asked_rules(shared, &registry.ports)).unwrap_or_default();
        for &queue in queues {
            let mut rule = now(queue).cloned().unwrap_or_default();
            change(&mut rule);
            put(&mut rules, queue.into(), rule.kernel());
        }
        Nic::load_rules(&mut registry.shared, &mut registry.deferred, key, rules)?;
        crate::fault::step();
        let nic = registry.ports.get_mut(id).and_then(|port| port.get_mut::<Nic>());
        if let Some(sockets) = nic.and_then(|nic| nic.sockets.as_mut()) {
            for &queue in queues {
                if let Some(rule) = sockets.rx_rules.get_mut(usize::from(queue)) {
                    change(rule);
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
        loader: Option<Loader>,
        queues: &[u16],
    ) -> Result<Arc<Installed>> {
        if let Some(filter) = &deferred.progress.filter {
            return Ok(filter.clone());
        }
        let of = queues.to_vec();
        let make = move || Installed::new(wanted, loader.as_ref(), &of);
        let installed = Arc::new(deferred.off_loop(Subject::User(port.uid), make)??);
        check_cost(port, queues, |rule| rule.filter = Some(installed.clone()))?;
        deferred.progress.filter = Some(installed.clone());
        Ok(installed)
    }

    /// The same of an action program.
    fn verified_action(
        port: &Port,
        deferred: &mut Deferred,
        wanted: WantedAction,
        queues: &[u16],
    ) -> Result<Arc<InstalledAction>> {
        if let Some(action) = &deferred.progress.action {
            return Ok(action.clone());
        }
        let name = port.name.clone();
        let make = move || InstalledAction::new(&name, wanted);
        let installed = Arc::new(deferred.off_loop(Subject::User(port.uid), make)??);
        check_cost(port, queues, |rule| rule.action = Some(installed.clone()))?;
        deferred.progress.action = Some(installed.clone());
        Ok(installed)
    }

    /// What programs have chosen for an interface, by queue.
    fn asked_rules(shared: &SharedNic, ports: &Ports) -> QueueRules {
        let mut rules = QueueRules::new();
        for (queue, holder) in shared.holders() {
            let nic = ports.get(holder).and_then(|port| port.get::<Nic>());
            let sockets = nic.and_then(|nic| nic.sockets.as_ref());
            let rule = sockets.and_then(|sockets| sockets.rx_rules.get(queue as usize));
            let rule = rule.map(RxRule::kernel).filter(|rule| !rule.is_empty());
            if let Some(rule) = rule {
                put(&mut rules, queue as usize, rule);
            }
        }
        rules
    }

    /// Gives receive rings that nobody had all frames again, if the interface's program still asks a
    /// filter, or an action program, that they had before.
    pub(crate) fn drop_old_rules(registry: &mut Registry, id: PortId, rings: &[u16]) -> Result<()> {
        let Some(&Nic { key, .. }) = registry.port(id).get() else { return Ok(()) };
        let Some(shared) = registry.shared.get(&key) else { return Ok(()) };
        let Some(attachment) = shared.attachment() else { return Ok(()) };
        let chosen = Nic::asked_rules(shared, &registry.ports);
        let at = |rules: &[QueueRule], ring: &u16| {
            rules.get(usize::from(*ring)).cloned().unwrap_or_default()
        };
        match rings.iter().all(|ring| at(attachment.rules(), ring).is(&at(&chosen, ring))) {
            true => Ok(()),
            false => Nic::load_rules(&mut registry.shared, &mut registry.deferred, key, chosen),
        }
    }

    /// Installs these rules for the queues of an interface, and no others.
    fn load_rules(
        all_shared: &mut HashMap<NicKey, SharedNic>,
        deferred: &mut Deferred,
        key: NicKey,
        rules: QueueRules,
    ) -> Result<()> {
        let Some(attachment) = all_shared.get(&key).and_then(SharedNic::attachment) else {
            return Ok(());
        };
        let Some(installer) = attachment.installer() else { return Ok(()) };
        if attachment.has_rules(&rules) {
            return Ok(());
        }
        let wanted = rules.clone();
        let installed = deferred.make_off_loop(key, move || installer.install(wanted))?;
        let installed = installed.map_err(nic_error)?.take();
        let attachment = all_shared.get_mut(&key).and_then(SharedNic::attachment_mut);
        let left = match attachment {
            Some(attachment) => attachment.adopt(installed),
            None => Some(installed),
        };
        let Some(left) = left else { return Ok(()) };
        // The interface was let go of, and opened again, meanwhile.
        deferred.close_off_loop(key, left);
        Nic::load_rules(all_shared, deferred, key, rules)
    }
}

/// Sets the rule of a queue.
fn put(rules: &mut QueueRules, queue: usize, rule: QueueRule) {
    rules.resize(rules.len().max(queue + 1), QueueRule::default());
    if let Some(place) = rules.get_mut(queue) {
        *place = rule;
    }
}

/// Fails if a user's rules for an interface would cost too much, changed so for these queues.
fn check_cost(port: &Port, queues: &[u16], change: impl Fn(&mut RxRule)) -> Result<()> {
    let nic = port.get::<Nic>();
    let sockets = nic.and_then(|nic| nic.sockets.as_ref());
    match sockets.map_or(0, |sockets| sockets.cost_with(queues, change)) {
        cost if cost > MAX_COST => Err(too_complicated(&port.name, cost)),
        _ => Ok(()),
    }
}

fn too_complicated(port: &str, cost: u64) -> Error {
    Error::no_memory(format!(
        "the kernel would verify {cost} instructions for your filters and action programs here, and a \
         user may have {MAX_COST} of an interface"
    ))
    .at(port)
    .remedy(
        "ask for less in one filter, or use fewer filters; the program can look at frames itself",
    )
}
