//! The filters and action programs of a NIC's receive rings, as a [transaction](crate::transaction).
//!
//! * Facts: what is asked for, [verified](Fit) by the kernel by itself.
//! * Plan: which rules the interface's program will have, for all queues, and which filter its host rings.
//! * Step: both are loaded, and put in the place of others. What is not committed is put back when it is dropped.
//! * Commit: they are the rings'.
//!
//! It holds nothing but its turn at the interface.

use std::sync::Arc;

use ringway_abi::Dir;
use ringway_nic_setup::{InstalledRules, Installer, Loader, QueueRule, QueueRules};
use ringway_proto::{Cause, Error, Filter, Reply, Result};

use crate::{
    actions::{InstalledAction, WantedAction},
    caller::Caller,
    charge::Charge,
    deferred::{Deferred, Progress},
    kinds::{
        nic::Nic,
        nic_receiving::Receiving,
        nic_stack::{HostFilterLoad, LoadedHostFilter},
    },
    port::{Port, PortId},
    ports::Ports,
    queues::RxAttachment,
    registry::Registry,
    rx_redirect::{Installed, RxRule, Wanted},
    setup_error::nic_error,
    shared_nic::SharedNic,
    subject::{NicKey, Subject},
    transaction::{Answer, Failed, Makes, Needs, Plan, plain},
};

/// What the filters and action programs of one user may cost on one interface: those of all users are
/// verified together, and the kernel gives up at a million instructions.
const MAX_COST: u64 = 62_500;

/// What is asked for some receive rings; `None`: they get everything again, or have no action program.
pub(crate) enum Asked {
    Filter(Option<Filter>),
    Action(Option<WantedAction>),
}

/// The same, found fit to be installed.
enum Fit {
    Filter(Option<Arc<Installed>>),
    Action(Option<Arc<InstalledAction>>),
}

/// The receive rings of a NIC that it is for.
struct RuleRings {
    id: PortId,
    key: NicKey,
    of_nic: Vec<u16>,
    of_host: Vec<u16>,
    /// Loads programs into the kernel; `None` where there can be none.
    loader: Option<Loader>,
}

/// The rules of some receive rings are going to be others.
pub(crate) struct RuleChange {
    /// The user that asks, and the rings; `None`: a registration, for rings that it is about to have.
    asked: Option<(u32, Receiving)>,
    id: PortId,
    key: NicKey,
    of_nic: Vec<u16>,
    fit: Fit,
    /// The rules of all queues, if the interface's program has others.
    rules: Option<(Installer, QueueRules)>,
    host: HostChange,
}

enum HostChange {
    None,
    /// All that the stack sends comes up.
    Remove,
    Load(HostFilterLoad),
}

/// What is in force, until it is dropped or committed.
#[derive(Default)]
pub(crate) struct Loaded {
    rules: Option<InstalledRules>,
    host: Option<LoadedHostFilter>,
}

impl Asked {
    /// In error messages.
    fn plural(&self) -> &'static str {
        match self {
            Asked::Filter(_) => "filters",
            Asked::Action(_) => "action programs",
        }
    }

    /// Changes the rules of receive rings that programs have.
    pub fn answer(
        self,
        registry: &mut Registry,
        caller: &Caller,
        receiving: Receiving,
    ) -> Result<Answer> {
        let (id, rings) = receiving.find(registry, caller)?;
        let mut change = RuleChange::plan(registry, id, &rings, self)?;
        change.asked = Some((caller.uid, receiving));
        match change.takes_time() {
            true => {
                let step = change.step();
                Err(registry.carry_out(change, step))
            }
            false => registry.enter(change, Loaded::default(), Charge::default()),
        }
    }
}

impl RuleRings {
    /// Fails if these rings cannot have what is asked for.
    fn new(registry: &Registry, id: PortId, rings: &[u16], asked: &Asked) -> Result<RuleRings> {
        let (port, what) = (registry.port(id), asked.plural());
        let refused = |problem: &str, remedy: &str| {
            Err(Error::new(Cause::Unsupported, problem).at(&port.name).remedy(remedy))
        };
        let Some(&Nic { key, .. }) = port.get() else {
            return refused(&format!("network interfaces alone have {what}"), "leave it out");
        };
        if rings.is_empty() {
            return refused("nothing is received there", "set it where receive rings are open");
        }
        let queues = port.nic_rings(Dir::Rx).len();
        let (of_nic, of_host): (Vec<_>, Vec<_>) =
            rings.iter().partition(|&&ring| usize::from(ring) < queues);
        let attachment = registry.shared.get(&key).and_then(SharedNic::attachment);
        let loader = attachment.and_then(RxAttachment::loader);
        match asked {
            Asked::Filter(_)
                if !of_host.is_empty() && of_host.len() != port.host_rings(Dir::Rx).len() =>
            {
                refused("host rings have one filter in common", "open all of them, by ^ or *")
            }
            Asked::Filter(Some(_)) if !of_nic.is_empty() && loader.is_none() => refused(
                "its programs in packet mode have all that it receives",
                &format!(
                    "close it, and open it with a filter, such as netmap:{}@filter=udp: that one \
                     can be changed",
                    port.name
                ),
            ),
            Asked::Action(_) if !of_host.is_empty() => {
                refused(&format!("host rings have no {what}"), "open it without ^ or *")
            }
            Asked::Action(Some(_)) if !loader.as_ref().is_some_and(Loader::takes_actions) => {
                refused(
                    &format!("packet mode has no {what}"),
                    &format!("open it in another mode, such as netmap:{}@mode=copy", port.name),
                )
            }
            _ => Ok(RuleRings { id, key, of_nic, of_host, loader }),
        }
    }
}

impl Fit {
    /// As long as the kernel has not verified it, the request fails, without a lasting change.
    fn verified(
        ports: &Ports,
        deferred: &mut Deferred,
        asked: Asked,
        rings: &RuleRings,
    ) -> Result<Fit> {
        let port = ports.port(rings.id);
        Ok(match asked {
            Asked::Filter(None) => Fit::Filter(None),
            Asked::Action(None) => Fit::Action(None),
            Asked::Filter(Some(filter)) => {
                let wanted = Wanted::new(&port.name, filter)?;
                let of_nic = rings.of_nic.clone();
                let loader = rings.loader.clone().filter(|_| !of_nic.is_empty());
                let make = move || Installed::new(wanted, loader.as_ref(), &of_nic);
                Fit::Filter(Some(once(deferred, port.uid, |known| &mut known.filter, make)?))
            }
            Asked::Action(Some(action)) => {
                let action = action.within(&port.name, rings.key)?;
                let name = port.name.clone();
                let make = move || InstalledAction::new(&name, action);
                Fit::Action(Some(once(deferred, port.uid, |known| &mut known.action, make)?))
            }
        })
    }

    /// Fails if the user's rules for the interface would cost too much.
    fn check_cost(&self, port: &Port, queues: &[u16]) -> Result<()> {
        if matches!(self, Fit::Filter(None) | Fit::Action(None)) {
            return Ok(());
        }
        let sockets = port.get::<Nic>().and_then(|nic| nic.sockets.as_ref());
        match sockets.map_or(0, |sockets| sockets.cost_with(queues, |rule| self.put(rule))) {
            cost if cost > MAX_COST => Err(too_complicated(&port.name, cost)),
            _ => Ok(()),
        }
    }

    /// [`check_joined`], of what may have been asked for meanwhile.
    fn check_joined(&self, port: &Port, rings: &[u16]) -> Result<()> {
        match self {
            Fit::Filter(None) | Fit::Action(None) => Ok(()),
            Fit::Filter(Some(filter)) => {
                check_filters(port, rings, |now| now.is_like_other(filter))
            }
            Fit::Action(Some(action)) => {
                check_actions(port, rings, |now| now.is_like_other(action))
            }
        }
    }

    fn put(&self, rule: &mut RxRule) {
        match self {
            Fit::Filter(filter) => rule.filter.clone_from(filter),
            Fit::Action(action) => rule.action.clone_from(action),
        }
    }
}

/// EBUSY if a program has one of these receive rings with another filter, or another action program, than a
/// registration asks for. The programs share the ring's frames, so what the second asks for would take them away
/// from the first. A registration that asks for nothing has what the ring has.
pub(crate) fn check_joined(
    port: &Port,
    rings: &[u16],
    filter: Option<&Filter>,
    action: Option<&WantedAction>,
) -> Result<()> {
    if let Some(action) = action {
        check_actions(port, rings, |now| now.is_like(action))?;
    }
    if let Some(filter) = filter {
        check_filters(port, rings, |now| now.is_like(&filter.insns, filter.one_in))?;
    }
    Ok(())
}

/// Whether a program has a receive ring. Host rings have their rules in common, so any of them counts.
fn has_user(port: &Port, ring: u16) -> bool {
    match port.nic_rings(Dir::Rx).get(usize::from(ring)) {
        Some(ring) => ring.users > 0,
        None => port.host_rings(Dir::Rx).iter().any(|ring| ring.users > 0),
    }
}

fn check_filters(port: &Port, rings: &[u16], is_same: impl Fn(&Installed) -> bool) -> Result<()> {
    let Some(nic) = port.get::<Nic>() else { return Ok(()) };
    let queues = port.nic_rings(Dir::Rx).len();
    for ring in rings.iter().copied().filter(|&ring| has_user(port, ring)) {
        let now = match usize::from(ring) < queues {
            true => rule(nic, ring).and_then(|rule| rule.filter.as_ref()),
            false => nic.stack.as_ref().and_then(|stack| stack.installed()),
        };
        if !now.is_some_and(|now| is_same(now)) {
            let with =
                now.map_or("without a filter".into(), |now| format!("with {}", now.describe()));
            return Err(Error::busy(format!("in use {with}")).at(&port.name).remedy(format!(
                "close what has it open, open a monitor (netmap:{}/r) with your filter, or change the filter \
                 for all that have the port by `ringway filter set`",
                port.name
            )));
        }
    }
    Ok(())
}

fn check_actions(
    port: &Port,
    rings: &[u16],
    is_same: impl Fn(&InstalledAction) -> bool,
) -> Result<()> {
    let Some(nic) = port.get::<Nic>() else { return Ok(()) };
    for ring in rings.iter().copied().filter(|&ring| has_user(port, ring)) {
        let now = rule(nic, ring).and_then(|rule| rule.action.as_ref());
        if !now.is_some_and(|now| is_same(now)) {
            let with = now.map_or("without an action program".into(), |now| {
                format!("with {}", now.describe())
            });
            return Err(Error::busy(format!("in use {with}")).at(&port.name).remedy(
                "close what has it open, or change the action program for all that have the port by \
                 `ringway action set`",
            ));
        }
    }
    Ok(())
}

/// What a receive queue does with its frames.
fn rule(nic: &Nic, queue: u16) -> Option<&RxRule> {
    nic.sockets.as_ref()?.rx_rules.get(usize::from(queue))
}

/// What the kernel has verified for a user, once for the request.
fn once<T: Send + Sync + 'static>(
    deferred: &mut Deferred,
    uid: u32,
    known: impl Fn(&mut Progress) -> &mut Option<Arc<T>>,
    make: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<Arc<T>> {
    if let Some(known) = known(&mut deferred.progress) {
        return Ok(known.clone());
    }
    let made = Arc::new(deferred.off_loop(Subject::User(uid), make)??);
    Ok(known(&mut deferred.progress).insert(made).clone())
}

impl RuleChange {
    /// Of receive rings of a port.
    fn plan(
        registry: &mut Registry,
        id: PortId,
        rings: &[u16],
        asked: Asked,
    ) -> Result<RuleChange> {
        let rings = RuleRings::new(registry, id, rings, &asked)?;
        let Registry { ports, shared, deferred, .. } = registry;
        let fit = Fit::verified(ports, deferred, asked, &rings)?;
        let RuleRings { id, key, of_nic, of_host, .. } = rings;
        let (port, shared) = (ports.port(id), shared.get(&key));
        fit.check_cost(port, &of_nic)?;
        let host = match &fit {
            Fit::Filter(filter) if !of_host.is_empty() => {
                HostChange::of(port, shared, filter.as_ref())
            }
            _ => HostChange::None,
        };
        let mut rules = shared.map(|shared| asked_rules(shared, ports)).unwrap_or_default();
        let now = port.get::<Nic>().and_then(|nic| nic.sockets.as_ref());
        for &queue in &of_nic {
            let now = now.and_then(|sockets| sockets.rx_rules.get(usize::from(queue)));
            let mut rule = now.cloned().unwrap_or_default();
            fit.put(&mut rule);
            put(&mut rules, queue.into(), rule.kernel());
        }
        let attachment = shared.and_then(SharedNic::attachment).filter(|_| !of_nic.is_empty());
        let rules = attachment.and_then(|attachment| to_install(attachment, rules));
        Ok(RuleChange { asked: None, id, key, of_nic, fit, rules, host })
    }

    fn takes_time(&self) -> bool {
        self.rules.is_some() || matches!(self.host, HostChange::Load(_))
    }

    /// What a registration asks for those of its rings that no program has yet. The others have it already, by
    /// [`check_joined`].
    pub fn of_registration(
        registry: &mut Registry,
        id: PortId,
        rings: &[u16],
        asked: Asked,
    ) -> Result<()> {
        let port = registry.port(id);
        let free: Vec<u16> = rings.iter().copied().filter(|&ring| !has_user(port, ring)).collect();
        if free.is_empty() && !rings.is_empty() {
            return Ok(());
        }
        RuleChange::plan(registry, id, &free, asked)?.within_registration(registry)
    }

    /// Gives receive rings that no program had all frames again, if the interface's program still asks a
    /// filter, or an action program, that they had before.
    pub fn drop_old(registry: &mut Registry, id: PortId, rings: &[u16]) -> Result<()> {
        let Some(&Nic { key, .. }) = registry.port(id).get() else { return Ok(()) };
        let Some(shared) = registry.shared.get(&key) else { return Ok(()) };
        let Some(attachment) = shared.attachment() else { return Ok(()) };
        let chosen = asked_rules(shared, &registry.ports);
        let at = |rules: &[QueueRule], ring: &u16| {
            rules.get(usize::from(*ring)).cloned().unwrap_or_default()
        };
        if rings.iter().all(|ring| at(attachment.rules(), ring).is(&at(&chosen, ring))) {
            return Ok(());
        }
        let (rules, fit, host) =
            (to_install(attachment, chosen), Fit::Filter(None), HostChange::None);
        let of_nic = Vec::new();
        RuleChange { asked: None, id, key, of_nic, fit, rules, host }.within_registration(registry)
    }

    fn step(&self) -> impl Makes<Loaded> + use<> {
        let rules = self.rules.clone();
        let host = match &self.host {
            HostChange::Load(load) => Some(load.clone()),
            _ => None,
        };
        move || {
            let host = host.map(HostFilterLoad::load).transpose()?;
            let rules = rules.map(|(installer, rules)| installer.install(rules)).transpose();
            Ok(Loaded { host, rules: rules.map_err(nic_error)? })
        }
    }

    /// As a part of a registration.
    fn within_registration(self, registry: &mut Registry) -> Result<()> {
        match self.takes_time() {
            true => {
                let step = self.step();
                Err(registry.carry_out_part(self, step))
            }
            false => registry.enter(self, Loaded::default(), Charge::default()).map(drop),
        }
    }

    /// The receive queues that are to have the rule now: a program may have let some go.
    fn queues(&self, registry: &Registry) -> Result<Vec<u16>> {
        let mut queues = self.of_nic.clone();
        if let Some((uid, receiving)) = &self.asked {
            // The user may have taken up what was free when the plan was made.
            registry.check_descriptors(*uid, 1)?;
            let left = receiving.of(registry, self.id)?;
            queues.retain(|queue| left.contains(queue));
        } else {
            // Another registration may have taken up the rings since the plan was made.
            let (port, mut rings) = (registry.port(self.id), queues.clone());
            if !matches!(self.host, HostChange::None) {
                rings.push(port.nic_rings(Dir::Rx).len() as u16);
            }
            self.fit.check_joined(port, &rings)?;
        }
        if !matches!(self.host, HostChange::None) {
            registry.port(self.id).check_there()?;
        }
        Ok(queues)
    }

    /// Whether what it was loaded for is as it was.
    fn fits(&self, registry: &Registry, loaded: &Loaded) -> bool {
        let shared = registry.shared.get(&self.key);
        let attachment = shared.and_then(SharedNic::attachment);
        let is_its = |rules| attachment.is_some_and(|attachment| attachment.is_of(rules));
        let Loaded { rules, host } = loaded;
        rules.as_ref().is_none_or(is_its)
            && host.as_ref().is_none_or(|host| {
                let port = registry.ports.get(self.id).and_then(|port| port.get::<Nic>());
                port.is_some_and(|nic| nic.stack.is_some())
                    && host.begun.is_some() != has_begun(shared)
            })
    }
}

impl HostChange {
    fn of(port: &Port, shared: Option<&SharedNic>, filter: Option<&Arc<Installed>>) -> HostChange {
        let Some(nic) = port.get::<Nic>() else { return HostChange::None };
        let Some(stack) = &nic.stack else { return HostChange::None };
        match (stack.installed(), filter) {
            (None, None) => HostChange::None,
            (Some(now), Some(filter)) if Arc::ptr_eq(now, filter) => HostChange::None,
            (_, None) => HostChange::Remove,
            (_, Some(filter)) => {
                HostChange::Load(HostFilterLoad::new(nic, stack, filter, has_begun(shared)))
            }
        }
    }
}

/// Whether what the stack sends is redirected already.
fn has_begun(shared: Option<&SharedNic>) -> bool {
    shared.is_some_and(|shared| shared.egress_redirect.is_some())
}

impl Plan for RuleChange {
    type Made = Loaded;

    fn subject(&self) -> Subject {
        self.key.into()
    }

    fn needs(&self) -> Needs {
        Needs::nothing(self.asked.as_ref().map_or(0, |(uid, _)| *uid))
    }

    fn commit(
        self,
        registry: &mut Registry,
        mut loaded: Loaded,
        _memory: Charge,
    ) -> Result<Answer, Failed> {
        let queues = match self.queues(registry) {
            Ok(queues) => queues,
            Err(error) => return Err(Failed::new(error, loaded)),
        };
        if !self.fits(registry, &loaded) {
            return Err(Failed::again(loaded));
        }
        crate::fault::step();
        let Registry { ports, shared, deferred, .. } = registry;
        let Some(shared) = shared.get_mut(&self.key) else { return Ok(plain(Reply::Done)) };
        let Some(nic) = ports.port_mut(self.id).get_mut::<Nic>() else {
            return Ok(plain(Reply::Done));
        };
        if let (false, Some(stack)) = (matches!(self.host, HostChange::None), &mut nic.stack) {
            match shared.set_filter(stack, &mut loaded.host) {
                Ok(None) => {}
                Ok(Some(ending)) => deferred.end_off_loop(self.key, ending),
                Err(error) => return Err(Failed::new(error, loaded)),
            }
        }
        // From here on nothing fails.
        if let (Some(attachment), Some(rules)) = (shared.attachment_mut(), loaded.rules) {
            attachment.adopt(rules);
        }
        crate::fault::step();
        let rules = nic.sockets.as_mut().map(|sockets| &mut sockets.rx_rules);
        for (queue, rule) in (0..).zip(rules.into_iter().flatten()) {
            if queues.contains(&queue) {
                self.fit.put(rule);
            }
        }
        Ok(plain(Reply::Done))
    }
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

/// These rules for all queues of an interface, if its program has others.
fn to_install(attachment: &RxAttachment, rules: QueueRules) -> Option<(Installer, QueueRules)> {
    match attachment.has_rules(&rules) {
        true => None,
        false => Some((attachment.installer()?, rules)),
    }
}

/// Sets the rule of a queue.
fn put(rules: &mut QueueRules, queue: usize, rule: QueueRule) {
    rules.resize(rules.len().max(queue + 1), QueueRule::default());
    if let Some(place) = rules.get_mut(queue) {
        *place = rule;
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
