//! The queues of a NIC are opened for a port whose programs want them, and what the stack sends by it is redirected:
//! parts of a registration, each a [transaction](crate::transaction).
//!
//! Queues are opened all or none. Their rings are the port's before, which stays for the request.

use std::collections::BTreeSet;

use ringway_abi::Dir;
use ringway_nic_setup::{EgressRedirect, Interface};
use ringway_proto::{Error, Reply, Result};

use crate::{
    charge::Charge,
    kept_sockets::KeptQueue,
    kinds::{
        nic::{Nic, ring_counts},
        nic_sockets::{Sockets, Uses},
    },
    netns::OpenNetns,
    nic_mode::ModeRequest,
    port::{Port, PortId, fill_ring, split_host},
    queues::{Entry, OpenedQueues, Opening},
    registry::Registry,
    setup_error::nic_error,
    shared_nic::SharedNic,
    subject::{NicKey, Subject},
    transaction::{Answer, Failed, Needs, Plan, plain},
};

/// Queues that are going to be opened for a port.
struct OpenQueues {
    id: PortId,
    key: NicKey,
    queues: Vec<u32>,
    request: ModeRequest,
}

/// How they are opened.
struct HowToOpen {
    opening: Opening,
    entry: Entry,
    /// Those that programs kept a moment ago.
    kept: Vec<KeptQueue>,
    // The caller may have moved to another namespace, where the number is another interface's.
    netns: OpenNetns,
}

impl HowToOpen {
    fn open(self) -> Result<OpenedQueues> {
        let HowToOpen { opening, entry, kept, netns } = self;
        kept.iter().try_for_each(KeptQueue::await_closed)?;
        netns.inside(|| opening.open(entry))?
    }
}

impl Nic {
    /// Opens the queues that the port has not got yet. If they send, begins what
    /// [`redirect_egress`](Self::redirect_egress) does, if it has to be.
    pub(super) fn open_queues(
        registry: &mut Registry,
        id: PortId,
        queues: &BTreeSet<u32>,
        request: ModeRequest,
        uses: Uses,
    ) -> Result<()> {
        Nic::free_queues(registry, id, queues)?;
        match OpenQueues::plan(registry, id, queues, request, uses)? {
            Some((plan, how)) => Err(registry.carry_out_part(plan, move || how.open())),
            None => Ok(()),
        }
    }

    /// The stack's packets are not to go out through a NIC whose tx rings programs have.
    pub(super) fn redirect_egress(registry: &mut Registry, id: PortId) -> Result<()> {
        let Some(nic) = registry.port(id).get::<Nic>() else { return Ok(()) };
        let shared = registry.shared.get(&nic.key);
        if shared.is_some_and(|shared| shared.egress_redirect.is_some()) {
            return Ok(());
        }
        let (key, netns, interface) = (nic.key, nic.netns.clone(), nic.interface.clone());
        let begin =
            move || netns.inside(|| EgressRedirect::begin(&interface).map_err(nic_error)).flatten();
        Err(registry.carry_out_part(RedirectEgress { id, key }, begin))
    }
}

impl OpenQueues {
    /// `None`: the port has all of them. Their rings get their buffers here.
    fn plan(
        registry: &mut Registry,
        id: PortId,
        queues: &BTreeSet<u32>,
        request: ModeRequest,
        uses: Uses,
    ) -> Result<Option<(OpenQueues, HowToOpen)>> {
        let Registry { settings, ports, regions, shared, kept_sockets, .. } = registry;
        let slots = settings.nic_slots;
        let port = ports.port_mut(id);
        let Some(nic) = port.get::<Nic>() else { return Ok(None) };
        let has =
            |queue: &u32| nic.sockets.as_ref().is_some_and(|sockets| sockets.get(*queue).is_some());
        let missing: Vec<u32> = queues.iter().copied().filter(|queue| !has(queue)).collect();
        let (key, netns, interface) = (nic.key, nic.netns.clone(), nic.interface.clone());
        let shared = shared.entry(key).or_default();
        shared.check(&interface.name, request)?;
        if missing.is_empty() {
            return Ok(None);
        }
        if let Some(queue) = missing.iter().find(|&&queue| shared.is_anothers(queue, id)) {
            return Err(taken(shared, id, &interface, *queue));
        }
        let region = port.region;
        let book = regions.get(region);
        for dir in [Dir::Tx, Dir::Rx] {
            let nic_rings = port.nic_rings(dir).len();
            for &queue in missing.iter().filter(|&&queue| (queue as usize) < nic_rings) {
                let ring = port.rings_mut(dir).get_mut(queue as usize);
                ring.map_or(Ok(()), |ring| fill_ring(book, ring))?;
            }
        }
        let reach = book.reach(slots);
        let krings = |dir| {
            let rings = port.nic_rings(dir);
            let kring = |&queue: &u32| rings.get(queue as usize).map(|ring| ring.kring.clone());
            missing.iter().map(kring).collect()
        };
        let opening = Opening {
            tx: krings(Dir::Tx),
            rx: krings(Dir::Rx),
            reach,
            timestamps: request.timestamps.or(shared.timestamps).is_some(),
            interface,
            queues: missing.clone(),
            region: regions.region(region).clone(),
            slots,
            frags: true,
            redirects_egress: uses.sends && shared.egress_redirect.is_none(),
            receives: uses.receives,
        };
        let entry = shared.entry(&opening, request)?;
        let kept = kept_sockets.of_queues(key, &opening.queues);
        let plan = OpenQueues { id, key, queues: missing, request };
        Ok(Some((plan, HowToOpen { opening, entry, kept, netns })))
    }

    /// Whether they were opened for the rings that the port has now, and beside what there is of the interface.
    fn fits(&self, port: &Port, shared: &SharedNic, opened: &OpenedQueues) -> bool {
        let rx = split_host(&port.rx, port.host.made(Dir::Rx)).0;
        let object = |queue: &u32| rx.get(*queue as usize).map(|ring| ring.kring.object());
        self.queues.iter().map(object).eq(opened.lent.iter().copied()) && shared.fits(opened)
    }
}

/// EBUSY for a queue that is another user's.
fn taken(shared: &SharedNic, id: PortId, interface: &Interface, queue: u32) -> Error {
    let name = &interface.name;
    let [tx, rx] = ring_counts(interface);
    let is_free = |&queue: &u32| !shared.is_anothers(queue, id);
    // Where a direction has fewer queues, a port of one ring has its first.
    let both = |queue: &u32| {
        [tx, rx].iter().all(|&count| is_free(if *queue < count { queue } else { &0 }))
    };
    let or_other = match (0..tx.max(rx)).find(both) {
        Some(free) => Some(format!(", or open others, such as netmap:{name}-{free}")),
        None => (tx..rx)
            .find(is_free)
            .map(|free| format!(", or receive alone, as by netmap:{name}-{free}/R")),
    };
    Error::busy(format!("queue {queue} is another user's"))
        .at(name)
        .remedy(format!("end their program{}", or_other.unwrap_or_default()))
}

impl Plan for OpenQueues {
    type Made = OpenedQueues;

    fn subject(&self) -> Subject {
        self.key.into()
    }

    fn needs(&self) -> Needs {
        Needs::nothing(0)
    }

    fn commit(
        self,
        registry: &mut Registry,
        opened: OpenedQueues,
        _memory: Charge,
    ) -> Result<Answer, Failed> {
        let Registry { ports, shared, .. } = registry;
        let port = ports.port_mut(self.id);
        if let Err(error) = port.check_there() {
            return Err(Failed::new(error, opened));
        }
        let shared = shared.entry(self.key).or_default();
        if !self.fits(port, shared, &opened) {
            return Err(Failed::again(opened));
        }
        let Some(nic) = port.get_mut::<Nic>() else { return Err(Failed::again(opened)) };
        let all = nic.interface.queues();
        let sockets = nic.sockets.get_or_insert_with(|| Sockets::none(all));
        let opened = shared.take(opened, self.request);
        for (queue, socket) in self.queues.into_iter().zip(opened) {
            sockets.set(queue, socket);
            shared.set_holder(queue, self.id);
        }
        Ok(plain(Reply::Done))
    }
}

/// What the stack sends is going to be redirected, for a port that has all its queues.
struct RedirectEgress {
    id: PortId,
    key: NicKey,
}

impl Plan for RedirectEgress {
    type Made = EgressRedirect;

    fn subject(&self) -> Subject {
        self.key.into()
    }

    fn needs(&self) -> Needs {
        Needs::nothing(0)
    }

    fn commit(
        self,
        registry: &mut Registry,
        redirect: EgressRedirect,
        _memory: Charge,
    ) -> Result<Answer, Failed> {
        if let Err(error) = registry.port(self.id).check_there() {
            return Err(Failed::new(error, redirect));
        }
        let shared = registry.shared.entry(self.key).or_default();
        if shared.egress_redirect.is_some() {
            return Err(Failed::again(redirect));
        }
        shared.egress_redirect = Some(redirect);
        Ok(plain(Reply::Done))
    }
}
