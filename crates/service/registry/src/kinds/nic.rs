//! NIC ports: the privileged half. The registry makes the rings, the sockets and what redirects
//! frames to them; the client runs them.

use std::{collections::BTreeSet, ops::Range, sync::atomic::Ordering::Relaxed};

use ringway_abi::Dir;
use ringway_nic_setup::{Interface, Link, LinkState, QUEUES, check_queues, losses};
use ringway_proto::{Cause, Error, Offsets, PortKind, Registration, Result, RingBackend};

use crate::{
    added_queues::QueueCount,
    arrivals,
    bind_reply::Fds,
    caller::Caller,
    descriptors::{BOUND, EGRESS_REDIRECT, HOST_END, PROGRAM, WATCH, tc_filters},
    device_losses::DeviceLosses,
    host_rings::MAX_HOST_RINGS,
    interfaces::{allowed, look_up, nic_key, not_private},
    keys::plain_key,
    kinds::{
        KindInfo, OpenRequest, PortBackend, RingAt,
        nic_sockets::{Sockets, Uses},
        nic_stack::{ConnectStack, NicStack},
    },
    link_events::watch,
    name::PortName,
    netns::OpenNetns,
    nic_mode::ModeRequest,
    port::{Port, PortId, Ring, Shape, make_all_rings, make_empty_ring},
    ports::Ports,
    queues::{LinkedRing, Socket},
    registry::Registry,
    selection::Selection,
    settings::Settings,
    setup_error::nic_error,
    shared_nic::SharedNic,
    subject::{NicKey, Subject},
};

/// How many rings the ports of an interface have, tx before rx. Of one with more queues than programs know, they have
/// the first ones.
pub(crate) fn ring_counts(interface: &Interface) -> [u32; 2] {
    [interface.tx_queues, interface.rx_queues].map(|queues| queues.min(QUEUES))
}

/// A NIC that ports are made of.
pub(crate) struct Nic {
    pub interface: Interface,
    pub netns: OpenNetns,
    /// What it shares with the ports that other users have of the same interface.
    pub key: NicKey,
    losses: DeviceLosses,
    queue_count: QueueCount,
    /// Whether what is sent can arrive, as was told last.
    has_link: bool,
    /// Present while in netmap mode: from the first binding of a ring of the NIC to the last
    /// binding.
    pub sockets: Option<Sockets>,
    /// Present while a host ring has users.
    pub stack: Option<NicStack>,
}

impl Nic {
    /// Whether what is sent can arrive.
    pub fn has_link(&self) -> bool {
        self.has_link
    }

    /// The interface has another name now.
    pub fn rename(&mut self, name: &str) {
        self.interface.name = name.into();
        self.losses.rename(name);
    }

    /// An interface that programs have, or could have.
    pub fn open(registry: &mut Registry, request: &OpenRequest<'_>) -> Result<Option<PortId>> {
        match request.port_name()? {
            PortName::Plain(name) => {
                Nic::find_or_make(registry, request.caller, name, request.reg.mem_id).map(Some)
            }
            _ => Ok(None),
        }
    }
}

impl PortBackend for Nic {
    fn display_kind(&self) -> Option<PortKind> {
        Some(PortKind::Nic)
    }

    fn device_losses(&self) -> Option<&DeviceLosses> {
        Some(&self.losses)
    }

    fn stack_dropped(&self, registry: &Registry) -> u64 {
        registry.shared.get(&self.key).map_or(0, SharedNic::stack_dropped)
    }

    /// In packet mode the sockets share out what the others receive.
    fn added_queues(&self, port: &Port) -> Range<u32> {
        let receives = port.nic_rings(Dir::Rx).iter().any(|ring| ring.users > 0);
        let by_queue = receives && self.sockets.as_ref().is_some_and(Sockets::are_of_queues);
        if by_queue { self.queue_count.without_rings() } else { 0..0 }
    }

    fn queue_count(&mut self) -> Option<&mut QueueCount> {
        Some(&mut self.queue_count)
    }

    fn is_watched(&self) -> bool {
        true
    }

    fn link(&self, at: &RingAt<'_>, fds: &mut Fds) -> Result<RingBackend> {
        let &RingAt { registry, port, dir, index } = at;
        let gone = || Error::absent(format!("{}: its queues have gone", port.name));
        let may_keep = port.may_keep_traffic();
        if let Some(queue) = at.host() {
            let stack = self.stack.as_ref().ok_or_else(gone)?;
            let program = may_keep.then(|| stack.link_fd(dir));
            let ring = LinkedRing { dir, queue, host: true, timestamps: None };
            return stack.socket(queue).ok_or_else(gone)?.link(ring, program, fds);
        }
        if let Some(ring) = port.rings(dir).get(usize::from(index)) {
            self.tell_longest(ring);
        }
        let shared = registry.shared.get(&self.key).ok_or_else(gone)?;
        // Each ring holds what it needs: frames redirected to it, or the stack kept away.
        let program = match (dir, &shared.egress_redirect) {
            (Dir::Tx, Some(egress_redirect)) => egress_redirect.link_fd(),
            _ => shared.attachment().ok_or_else(gone)?.link_fd(),
        };
        let queue = index.into();
        let ring = LinkedRing { dir, queue, host: false, timestamps: shared.timestamps };
        let socket = self.sockets.as_ref().and_then(|sockets| sockets.get(queue));
        socket.ok_or_else(gone)?.link(ring, may_keep.then_some(program), fds)
    }

    fn shape(&self, settings: &Settings, _port: &Port) -> Shape {
        // S-EMU-1. The kernel sends nothing by a queue that receives only, and the other way round.
        Shape { rings: ring_counts(&self.interface), slots: [settings.nic_slots; 2] }
    }

    fn info(&self, registry: &Registry, port: &Port) -> KindInfo {
        let sockets = self.sockets.as_ref();
        let shared = registry.shared.get(&self.key);
        let mode = sockets.zip(shared).map(|(sockets, shared)| sockets.describe(&shared.refused));
        let missing = sockets.filter(|sockets| sockets.arrivals.are_missing());
        let missing = missing.and_then(Sockets::mode).map(|mode| {
            let remedy = arrivals::remedy(&port.name, mode);
            format!("its interface receives frames and the port gets none; {remedy}")
        });
        let lost = Nic::lost_by_mtu(registry, port);
        let parts: Vec<_> = mode.into_iter().chain(missing).chain(lost).collect();
        let mut filters = sockets.map(Sockets::filters).unwrap_or_default();
        filters.extend(self.stack.as_ref().and_then(NicStack::filter_info));
        KindInfo {
            mode: (!parts.is_empty()).then(|| parts.join("; ")),
            mtu: (!port.gone).then_some(self.interface.mtu),
            queues: sockets.map(Sockets::redirected_queues).unwrap_or_default(),
            filters,
            actions: sockets.map(Sockets::actions).unwrap_or_default(),
        }
    }

    fn socket(&self, host: bool, index: u32) -> Option<&Socket> {
        match host {
            true => self.stack.as_ref()?.socket(index),
            false => self.sockets.as_ref()?.get(index),
        }
    }

    fn descriptors(&self, registry: &Registry, port: &Port) -> usize {
        let host = port.host_rings(Dir::Rx).len().max(port.host_rings(Dir::Tx).len());
        // The program, and what each filter and each action program counts in.
        let of_queues = |sockets: &Sockets| {
            let counters = sockets.filters().len() + sockets.actions().len();
            PROGRAM + sockets.descriptors() + counters
        };
        let of_stack =
            |stack: &NicStack| HOST_END + PROGRAM + host + usize::from(stack.filter().is_some());
        // An XDP program may be for this interface alone.
        let is_bound = registry.shared.get(&self.key).is_some_and(SharedNic::is_bound);
        // The namespace, too; and what it shares with others counts as the user's own.
        1 + WATCH
            + EGRESS_REDIRECT
            + tc_filters()
            + self.sockets.as_ref().map_or(0, of_queues)
            + self.stack.as_ref().map_or(0, of_stack)
            + if is_bound { BOUND } else { 0 }
    }

    /// Host rings are as many as the first binding asks for (S-REG-8).
    fn asked_host(&self, port: &Port, reg: &Registration) -> [u16; 2] {
        let or = |asked: u16, now| if asked == 0 { now } else { asked.min(MAX_HOST_RINGS) };
        let [tx, rx] = port.host.counts;
        match port.bindings {
            0 if !port.host.open => [or(reg.host_tx_rings, tx), or(reg.host_rx_rings, rx)],
            _ => port.host.counts,
        }
    }

    fn check_offsets(&self, port: &Port, asked: &Offsets, receives: bool) -> Result<()> {
        match asked.min_gap != 0 && receives {
            true => Err(Error::new(
                Cause::Unsupported,
                format!(
                    "{}: the kernel may fill the whole of a buffer, so slots cannot share one; \
                     ask for no gap between offsets, or for sending alone",
                    port.name
                ),
            )),
            false => Ok(()),
        }
    }

    /// The interface goes into netmap mode, with the queues that are wanted.
    fn bind(
        registry: &mut Registry,
        id: PortId,
        wanted: &Selection,
        request: ModeRequest,
    ) -> Result<()> {
        let shape = registry.port(id).shape(&registry.settings);
        Nic::make_rings(registry, id)?;
        let of_nic = |wanted: &[u16], rings: u32| -> BTreeSet<u32> {
            wanted.iter().map(|&i| u32::from(i)).filter(|&i| i < rings).collect()
        };
        let ([tx, rx], [tx_rings, rx_rings]) = (wanted, shape.rings);
        if let Some(nic) = registry.port(id).get::<Nic>()
            && tx.len().max(rx.len()) > 1
        {
            check_queues(&nic.interface, nic.interface.queues()).map_err(nic_error)?;
        }
        let (tx, rx) = (of_nic(tx, tx_rings), of_nic(rx, rx_rings));
        let (sends, receives) = (!tx.is_empty(), !rx.is_empty());
        let queues = &tx | &rx;
        Nic::open_queues(registry, id, &queues, request, Uses { sends, receives })?;
        if receives {
            Nic::check_mtu(registry, id)?;
        }
        if sends {
            Nic::redirect_egress(registry, id)?;
        }
        Ok(())
    }

    /// Directs traffic by the users that the rings have now.
    fn users_changed(registry: &mut Registry, id: PortId) {
        Nic::empty_unopened(registry, id);
        let Some(port) = registry.ports.get_mut(id) else { return };
        let sends = port.nic_rings(Dir::Tx).iter().any(|ring| ring.users > 0);
        let receives: Vec<_> = port.nic_rings(Dir::Rx).iter().map(|ring| ring.users > 0).collect();
        let Some(nic) = port.get_mut::<Nic>() else { return };
        let Some(shared) = registry.shared.get_mut(&nic.key) else { return };
        if let (Some(sockets), Some(attachment)) = (&mut nic.sockets, shared.attachment_mut()) {
            sockets.redirect(attachment, &receives);
        }
        shared.set_sends(id, sends);
        let key = nic.key;
        Nic::connect_stack(registry, key);
    }

    /// The queues are the stack's again.
    fn unbind(registry: &mut Registry, id: PortId) {
        let port = registry.port(id);
        let is_closed = |nic: &Nic| nic.sockets.is_none() && nic.stack.is_none();
        match port.gone && port.get().is_none_or(is_closed) {
            // They were closed when it went.
            true => registry.regions.free_rings_of(registry.ports.port_mut(id)),
            false => Nic::close_sockets(registry, id),
        }
        // S-LIFE-7.
        registry.port_mut(id).host.counts = [1, 1];
    }

    fn connect_host(registry: &mut Registry, id: PortId) -> Result<()> {
        ConnectStack::carry_out(registry, id)
    }

    fn disconnect_host(registry: &mut Registry, id: PortId) -> bool {
        let Some(port) = registry.ports.get_mut(id) else { return true };
        let Some(nic) = port.get_mut::<Nic>() else { return true };
        let (key, stack) = (nic.key, nic.stack.take());
        if let Some(shared) = registry.shared.get_mut(&key) {
            shared.leave_stack(id);
        }
        // Nothing is redirected to what has gone.
        Nic::connect_stack(registry, key);
        let rings = registry.ports.get_mut(id).map(|port| (port.region, port.take_host_rings()));
        registry.deferred.close_with_rings(key, stack, rings, &mut registry.regions);
        true
    }

    fn link_changed(registry: &mut Registry, id: PortId, link: Link) {
        if link.state == LinkState::Gone {
            registry.stop(id);
            Nic::interface_gone(registry, id);
        } else if let Some(nic) = registry.port_mut(id).get_mut::<Nic>() {
            // S-REG-10: it may change at any time; `info` tells what that costs.
            nic.interface.mtu = link.mtu;
            nic.has_link = link.state == LinkState::Up;
            let port = registry.port(id);
            if let Some(nic) = port.get::<Nic>() {
                let rings = [Dir::Tx, Dir::Rx].into_iter().flat_map(|dir| port.nic_rings(dir));
                rings.for_each(|ring| nic.tell_longest(ring));
            }
        }
    }
}

impl Nic {
    /// The port of a network interface, not in netmap mode yet if it is new.
    pub(crate) fn find_or_make(
        registry: &mut Registry,
        caller: &Caller,
        name: &str,
        mem_id: u16,
    ) -> Result<PortId> {
        let interface = look_up(name, caller)?;
        allowed(caller, name)?;
        if !interface.has_headers {
            // Filters would look in the wrong place, captures be read wrongly, and the host rings get nothing of the
            // stack's: the kernel redirects no frame without a header to an Ethernet interface.
            return Err(Error::invalid(
                "no Ethernet interface, and its packets have no Ethernet headers",
            )
            .at(name)
            .remedy(format!(
                "open one that `ip link` shows as link/ether, as of gretap, VXLAN or a tap; \
                     `tcpdump -i {name}` captures from this one"
            )));
        }
        not_private(&interface)?;
        let shared = nic_key(caller, &interface);
        let key = plain_key(&interface.name, caller);
        let known = registry.named(&key)?;
        // It may have been renamed since it was looked up.
        if let Some(id) = known.or_else(|| Nic::of_user(&registry.ports, shared, caller.uid)) {
            return registry.ports.owned(id, caller);
        }
        // The interface that was looked up for this request may have gone with the port that was made of it.
        let kept = registry.deferred.kept_for_request().and_then(|id| registry.ports.get(id));
        if let Some(port) = kept.filter(|port| Nic::is_of(port, shared, caller.uid)) {
            port.check_there()?;
        }
        let netns = OpenNetns::of(&caller.netns)?;
        let (within, watched) = (netns.clone(), interface.clone());
        let look =
            move || within.inside(|| Ok((watch(&watched)?, losses(&watched).ok()))).flatten();
        let account = registry.settings.accounts.of(caller.uid);
        let (watch, losses) = registry.deferred.off_loop(Subject::Names(account), look)??;
        let region = match mem_id {
            0 => {
                let [tx, rx] = ring_counts(&interface);
                let slots = registry.settings.nic_slots;
                registry.regions.of_nic(&interface, tx + rx, slots, caller.uid)?
            }
            id => registry.regions.by_id(id, caller.uid)?,
        };
        // The kernel leaves room in front of data: other regions have none (S-MEM-3 allows us
        // to take the global one then; the output tells).
        let region = match registry.regions.get(region).region.layout().headroom {
            0 => registry.regions.global(caller.uid)?,
            _ => region,
        };
        // Whatever other name it was asked for by.
        let name = interface.name.clone();
        let others = registry.shared.get(&shared).map_or(0, SharedNic::stack_dropped);
        let losses = DeviceLosses::new(netns.clone(), interface.clone(), losses, others);
        let queue_count = QueueCount::of(&interface);
        // Until the first news.
        let has_link = true;
        let nic = Nic {
            interface,
            netns,
            key: shared,
            losses,
            queue_count,
            has_link,
            sockets: None,
            stack: None,
        };
        let id = registry.add_port(&name, Some(key), caller.uid, region, nic);
        registry.watches.add(id, &name, watch).inspect_err(|_| registry.reap(id))?;
        // S-HOST-1.
        registry.port_mut(id).host.counts = [1, 1];
        Ok(id)
    }

    /// Tells what drives a ring how long frames may be by now. Without a link none are sent, however long.
    /// Those for the stack have no such limit, as what an interface receives.
    fn tell_longest(&self, ring: &Ring) {
        let longest = if self.has_link { self.interface.longest_frame() } else { 0 };
        ring.kring.owner().longest.store(longest, Relaxed);
    }

    /// The port that the caller's programs have of the network interface `name`, which may be one of
    /// its alternative names.
    pub(crate) fn named(ports: &Ports, caller: &Caller, name: &str) -> Result<Option<PortId>> {
        let named = |name: &str| ports.named(&plain_key(name, caller));
        if let Some(id) = named(name) {
            return Ok(Some(id));
        }
        match look_up(name, caller) {
            Err(_) if !caller.lookups.is_any_wanted() => Ok(None),
            found => Ok(named(&found?.name)),
        }
    }

    /// The port that a user has of an interface, if any, whatever it is called.
    fn of_user(ports: &Ports, key: NicKey, uid: u32) -> Option<PortId> {
        let is_it = |port: &Port| !port.gone && Nic::is_of(port, key, uid);
        ports.iter().find_map(|(&id, port)| is_it(port).then_some(id))
    }

    /// Whether it is a user's port of that interface.
    fn is_of(port: &Port, key: NicKey, uid: u32) -> bool {
        port.uid == uid && port.get::<Nic>().is_some_and(|nic| nic.key == key)
    }

    fn make_rings(registry: &mut Registry, id: PortId) -> Result<()> {
        let (shape, port) = (registry.port(id).shape(&registry.settings), registry.port(id));
        if port.tx.is_empty() && port.rx.is_empty() {
            let region = port.region;
            // Those of queues that programs have get their buffers.
            let rings = make_all_rings(&mut registry.regions, region, shape, make_empty_ring)?;
            registry.port_mut(id).set_rings(rings);
        }
        Ok(())
    }
}
