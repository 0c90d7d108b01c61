//! NIC ports: the privileged half. The registry makes the rings, the sockets and what redirects
//! frames to them; the client runs them.

use std::collections::BTreeSet;

use ringway_abi::Dir;
use ringway_nic_setup::{EgressRedirect, Interface, Link, LinkState, in_netns};
use ringway_proto::{
    Cause, Error, NicMode, Offsets, Options, PortKind, Registration, Result, RingBackend,
};
use ringway_xdp::MAX_FRAGS;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::{
    bind_reply::Fds,
    descriptors::{BOUND, EGRESS_REDIRECT, HOST_END, PROGRAM, WATCH},
    host::MAX_HOST_RINGS,
    kinds::{KindInfo, OpenRequest, PortBackend, RingAt, nic_stack::NicStack},
    link_events::watch,
    name::{PortName, plain_key},
    nic_mode::ModeRequest,
    nic_mode::{Refusals, describe},
    port::{Port, PortId, Ring, Shape, free_ring, make_ring, make_rings, split_host, state_mut},
    queues::{LinkedRing, Opening, RxAttachment, Socket},
    registry::{Caller, Registry},
    rx_redirect::RxRule,
    selection::Selection,
    shared_nic::{NicKey, SharedNic},
};

/// A NIC that ports are made of.
pub(crate) struct Nic {
    pub interface: Interface,
    /// Held so that the namespace, and the number that it is known by, stay.
    netns: Option<OwnedFd>,
    /// What it shares with the ports that other users have of the same interface.
    pub key: NicKey,
    /// Present while in netmap mode: from the first binding of a ring of the NIC to the last
    /// binding.
    pub sockets: Option<Sockets>,
    /// Present while a host ring has users.
    pub stack: Option<NicStack>,
}

/// The sockets of a port, by queue: of those queues that its programs have had since it went into
/// netmap mode.
pub(crate) struct Sockets {
    by_queue: Vec<Option<Socket>>,
    /// Which frames are redirected to them.
    pub rx_rules: Vec<RxRule>,
}

impl Sockets {
    fn none(queues: u32) -> Sockets {
        let by_queue = (0..queues).map(|_| None).collect();
        Sockets { by_queue, rx_rules: vec![RxRule::default(); queues as usize] }
    }

    /// The socket of a queue, if the port has it.
    pub fn get(&self, queue: u32) -> Option<&Socket> {
        self.by_queue.get(queue as usize)?.as_ref()
    }

    fn set(&mut self, queue: u32, socket: Option<Socket>) {
        if let Some(entry) = self.by_queue.get_mut(queue as usize) {
            *entry = socket;
        }
    }

    /// Descriptors that they hold.
    pub fn descriptors(&self) -> usize {
        self.by_queue.iter().flatten().map(Socket::descriptors).sum()
    }

    /// Slots of a packet at most, by what the sockets of all queues take.
    fn max_frags(&self) -> u32 {
        let of = |socket: &Socket| match socket.mode() {
            NicMode::Packet => ringway_packet::MAX_FRAGS,
            _ if socket.frags() => MAX_FRAGS,
            _ => 1,
        };
        self.by_queue.iter().flatten().map(of).min().unwrap_or(1)
    }

    /// The mode, and why it is no better one: what was `refused` to the program that opened the
    /// interface first.
    pub fn describe(&self, refused: &Refusals) -> String {
        let socket = self.by_queue.iter().flatten().next();
        socket.map_or("no queues".into(), |socket| describe(socket.mode().name(), refused))
    }
}

impl Nic {
    /// Runs `f` in the network namespace of the interface, wherever its program is by now.
    pub fn inside<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T> {
        enter(self.netns.as_ref().map(|ns| ns.as_fd()), f)
    }

    /// An interface that programs have, or could have.
    pub fn open(registry: &mut Registry, request: &OpenRequest<'_>) -> Result<Option<PortId>> {
        match request.port_name()? {
            PortName::Plain(name) => {
                registry.nic_port(request.caller, name, request.reg.mem_id).map(Some)
            }
            _ => Ok(None),
        }
    }
}

impl PortBackend for Nic {
    fn display_kind(&self) -> Option<PortKind> {
        Some(PortKind::Nic)
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

    fn shape(&self, registry: &Registry, _port: &Port) -> Shape {
        let queues = self.interface.queues();
        Shape { rings: [queues; 2], slots: [registry.settings.nic_slots; 2] }
    }

    fn info(&self, registry: &Registry, port: &Port) -> KindInfo {
        let sockets = self.sockets.as_ref();
        let shared = registry.shared.get(&self.key);
        let mode = sockets.zip(shared).map(|(sockets, shared)| sockets.describe(&shared.refused));
        let parts: Vec<_> = mode.into_iter().chain(registry.lost_by_mtu(port)).collect();
        let mut filters = sockets.map(Sockets::filters).unwrap_or_default();
        filters.extend(self.stack.as_ref().and_then(NicStack::filter_info));
        KindInfo {
            mode: (!parts.is_empty()).then(|| parts.join("; ")),
            mtu: (!port.gone).then_some(self.interface.mtu),
            queues: sockets.map(Sockets::redirected_queues).unwrap_or_default(),
            filters,
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
        // The program, and what each filter counts in.
        let of_queues =
            |sockets: &Sockets| PROGRAM + sockets.descriptors() + sockets.filters().len();
        let of_stack =
            |stack: &NicStack| HOST_END + PROGRAM + host + usize::from(stack.filter().is_some());
        // An XDP program may be for this interface alone.
        let is_bound = registry.shared.get(&self.key).is_some_and(SharedNic::is_bound);
        // The namespace, too; and what it shares with others counts as the user's own.
        1 + WATCH
            + EGRESS_REDIRECT
            + self.sockets.as_ref().map_or(0, of_queues)
            + self.stack.as_ref().map_or(0, of_stack)
            + if is_bound { BOUND } else { 0 }
    }

    /// Host rings are as many as the first binding asks for (S-REG-8).
    fn asked_host(&self, port: &Port, reg: &Registration) -> [u16; 2] {
        let or = |asked: u16, now| if asked == 0 { now } else { asked.min(MAX_HOST_RINGS) };
        let [tx, rx] = port.host.counts;
        match port.bindings {
            0 => [or(reg.host_tx_rings, tx), or(reg.host_rx_rings, rx)],
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
        let shape = registry.shape_of(id);
        registry.make_nic_rings(id)?;
        let of_nic = |wanted: &[u16], rings: u32| -> BTreeSet<u32> {
            wanted.iter().map(|&i| u32::from(i)).filter(|&i| i < rings).collect()
        };
        let ([tx, rx], [tx_rings, rx_rings]) = (wanted, shape.rings);
        let (tx, rx) = (of_nic(tx, tx_rings), of_nic(rx, rx_rings));
        let (sends, receives) = (!tx.is_empty(), !rx.is_empty());
        let queues = &tx | &rx;
        registry.open_queues(id, &queues, request)?;
        if receives {
            registry.check_mtu(id)?;
        }
        if sends {
            registry.redirect_egress(id)?;
        }
        Ok(())
    }

    /// Directs traffic by the users that the rings have now.
    fn users_changed(registry: &mut Registry, id: PortId) {
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
        registry.connect_stack(key);
    }

    /// The queues are the stack's again.
    fn unbind(registry: &mut Registry, id: PortId) {
        // First the kernel lets go of the buffers, then they are free.
        if !registry.port(id).gone {
            registry.close_sockets(id);
        }
        // S-LIFE-7.
        registry.port_mut(id).host.counts = [1, 1];
        registry.free_rings(id);
    }

    fn connect_host(registry: &mut Registry, id: PortId) -> Result<()> {
        registry.connect_nic(id)
    }

    fn disconnect_host(registry: &mut Registry, id: PortId) -> bool {
        if let Some(nic) = registry.port_mut(id).get_mut::<Nic>() {
            nic.stack = None;
            let key = nic.key;
            if let Some(shared) = registry.shared.get_mut(&key) {
                shared.stack = None;
            }
        }
        true
    }

    fn link_changed(registry: &mut Registry, id: PortId, link: Link) {
        if link.state == LinkState::Gone {
            registry.stop(id);
            registry.interface_gone(id);
        } else if let Some(nic) = registry.port_mut(id).get_mut::<Nic>() {
            nic.interface.mtu = link.mtu;
        }
    }
}

/// Whether the caller's network namespace has an interface of that name.
pub(crate) fn exists(name: &str, caller: &Caller) -> Result<bool> {
    match look_up(name, caller) {
        Ok(_) => Ok(true),
        Err(error) if error.cause == Cause::NoPort => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn look_up(name: &str, caller: &Caller) -> Result<Interface> {
    if name.is_empty() || name.len() >= crate::name::IFNAMSIZ || name.contains(['/', ':']) {
        return Err(Error::absent("no network interface can have this name").at(name));
    }
    inside(caller, || Interface::by_name(name))?.map_err(nic_error)
}

/// Runs `f` in the caller's network namespace.
pub(crate) fn inside<T: Send>(caller: &Caller, f: impl FnOnce() -> T + Send) -> Result<T> {
    enter(caller.netns(), f)
}

/// Runs `f` in that network namespace; `None`: this process's.
pub(crate) fn enter<T: Send>(
    netns: Option<BorrowedFd<'_>>,
    f: impl FnOnce() -> T + Send,
) -> Result<T> {
    match netns {
        None => Ok(f()),
        Some(ns) => in_netns(ns, f).map_err(|e| {
            Error::new(Cause::Denied, format!("cannot enter the caller's network namespace: {e}"))
                .remedy("run ringwayd there, or with CAP_SYS_ADMIN")
        }),
    }
}

pub(crate) fn nic_error(error: ringway_nic_setup::Error) -> Error {
    use ringway_nic_setup::Error as Setup;
    let cause = match &error {
        Setup::NoInterface { .. } => Cause::NoPort,
        Setup::NoQueue { .. } => Cause::Invalid,
        Setup::QueueBusy { .. } | Setup::Occupied { .. } => Cause::Busy,
        Setup::Privileges { .. } => Cause::Denied,
        Setup::Attach { .. } => Cause::Unsupported,
        Setup::Refused { cause, .. } => Cause::of(cause),
    };
    let (interface, sentence) = (error.interface(), error.to_string());
    let problem = sentence.strip_prefix(interface).and_then(|rest| rest.strip_prefix(": "));
    Error::new(cause, problem.unwrap_or(&sentence)).at(interface)
}

/// What a caller wants of the interface `name`, by the options of a registration.
pub(crate) fn mode_request(caller: &Caller, name: &str, options: &Options) -> ModeRequest {
    let &Options { mode, timestamps, .. } = options;
    // A grant by name is for interfaces of this process's namespace.
    ModeRequest { mode, timestamps, may_have_packet: may_use_all(caller, name) }
}

/// The caller as it is to be seen where it names an interface that policy grants it by name, and has
/// none of that name where it is: in this process's network namespace.
pub(crate) fn granted(caller: &Caller, name: &str) -> Result<Option<Caller>> {
    let base = name.split(['{', '}']).next().unwrap_or_default();
    if !caller.granted.iter().any(|granted| granted == base)
        // Whoever is elsewhere has interfaces of its own.
        || caller.netns().is_some() && exists(base, caller).unwrap_or(false)
    {
        return Ok(None);
    }
    let memory = caller.memory.as_ref().map(OwnedFd::try_clone).transpose();
    let memory = memory.map_err(|e| Error::io("cannot keep the memory that came along", e))?;
    // A caller that may use all of them does not depend on the grant of this one.
    let granted = if caller.may_use_nics { Vec::new() } else { vec![base.into()] };
    Ok(Some(Caller { uid: caller.uid, netns: None, may_use_nics: true, granted, memory }))
}

pub(crate) fn allowed(caller: &Caller, name: &str) -> Result<()> {
    if caller.may_use_nics {
        return Ok(());
    }
    let remedy = format!(
        "ask its operator to add you to nic_users in its configuration, or to a [[grant]] of {name}"
    );
    let problem = "this daemon does not grant you network interfaces";
    Err(Error::new(Cause::Denied, problem).at(name).remedy(remedy))
}

/// Whether policy grants the caller interfaces, and not just this one by its name.
fn may_use_all(caller: &Caller, name: &str) -> bool {
    let by_name = caller.netns().is_none() && caller.granted.iter().any(|granted| granted == name);
    caller.may_use_nics && !by_name
}

/// For what concerns others who use the interface, too, or makes a new one.
pub(crate) fn allowed_all(caller: &Caller, name: &str) -> Result<()> {
    allowed(caller, name)?;
    if may_use_all(caller, name) {
        return Ok(());
    }
    Err(Error::new(Cause::Denied, "you are granted its queues alone")
        .at(name)
        .remedy("ask the daemon's operator to add you to nic_users in its configuration"))
}

impl Registry {
    /// The port of a network interface, not in netmap mode yet if it is new.
    pub(crate) fn nic_port(&mut self, caller: &Caller, name: &str, mem_id: u16) -> Result<PortId> {
        let interface = look_up(name, caller)?;
        allowed(caller, name)?;
        let key = plain_key(&interface.name, caller);
        if let Some(id) = self.ports.named(&key) {
            let id = self.owned(id, caller)?;
            if let Some(nic) = self.port_mut(id).get_mut::<Nic>() {
                nic.interface.mtu = interface.mtu;
            }
            return Ok(id);
        }
        let netns = caller.netns().map(|ns| ns.try_clone_to_owned()).transpose();
        let netns = netns.map_err(|e| Error::io("cannot keep the network namespace", e))?;
        let region = match mem_id {
            0 => self.regions.global(caller.uid)?,
            id => self.regions.by_id(id, caller.uid)?,
        };
        // The kernel leaves room in front of data: other regions have none (S-MEM-3 allows us
        // to take the global one then; the output tells).
        let region = match self.regions.get(region).region.layout().headroom {
            0 => self.regions.global(caller.uid)?,
            _ => region,
        };
        let watch = inside(caller, || watch(&interface)).flatten();
        let watch = watch.inspect_err(|_| self.regions.drop_unused(region))?;
        let nic_key = (caller.netns_id().unwrap_or(0), interface.index);
        let nic = Nic { interface, netns, key: nic_key, sockets: None, stack: None };
        let id = self.add_port(name, Some(key), caller.uid, region, nic);
        self.watch_interface(id, watch).inspect_err(|_| self.reap(id))?;
        self.port_mut(id).host.counts = [1, 1];
        Ok(id)
    }

    fn make_nic_rings(&mut self, id: PortId) -> Result<()> {
        let (shape, port) = (self.shape_of(id), self.port(id));
        if port.tx.is_empty() && port.rx.is_empty() {
            let region = port.region;
            let rings = make_rings(&mut self.regions, region, shape)?;
            self.port_mut(id).set_rings(rings);
        }
        Ok(())
    }

    /// Buffers that a frame on its way to a port's programs may have, at most, and the bytes of one.
    /// `None`: the port has no queues.
    fn room(&self, port: &Port) -> Option<[u32; 2]> {
        let nic = port.get::<Nic>()?;
        let sockets = nic.sockets.as_ref()?;
        let size = self.regions.region(port.region).layout().data_size();
        let buffers = match self.shared.get(&nic.key)?.takes_frags() {
            true => sockets.max_frags().min(self.settings.nic_slots.saturating_sub(1)).max(1),
            false => 1,
        };
        Some([buffers, size])
    }

    /// What the interface's MTU, which may have changed since the port was opened, costs its
    /// programs.
    fn lost_by_mtu(&self, port: &Port) -> Option<String> {
        let room = self.room(port);
        let receives = port.nic_rings(Dir::Rx).iter().any(|ring| ring.users > 0);
        let longest = port.get::<Nic>()?.interface.longest_frame();
        let size = self.regions.region(port.region).layout().data_size();
        let lost = |what, room| {
            (longest > room).then(|| format!("frames of more than {room} bytes are lost{what}"))
        };
        let of_nic = room.filter(|_| receives).and_then(|[buffers, size]| lost("", buffers * size));
        let of_host =
            port.host.open.then_some(size).and_then(|size| lost(" on its host rings", size));
        let all: Vec<_> = of_nic.into_iter().chain(of_host).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// S-REG-9: a frame has a buffer, or several where the kernel can do that, but no more than it
    /// sends in one.
    fn check_mtu(&self, id: PortId) -> Result<()> {
        let port = self.port(id);
        let Some([buffers, size]) = self.room(port) else { return Ok(()) };
        let Some(nic) = port.get::<Nic>() else { return Ok(()) };
        let (interface, room) = (&nic.interface, buffers * size);
        let needed = interface.longest_frame();
        if needed <= room {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{0}: frames of {needed} bytes do not fit {buffers} {1} of {size}; \
             `ip link set {0} mtu {2}` or less, or open it for sending alone, or in packet mode: \
             netmap:{0}@mode=packet",
            interface.name,
            if buffers == 1 { "buffer" } else { "buffers" },
            room - 14
        )))
    }

    /// Takes queues away from other ports whose programs have let them go. A port keeps those for its
    /// user's next program, as long as no other user wants them.
    fn free_queues(&mut self, id: PortId, queues: &BTreeSet<u32>) -> Result<()> {
        let Some(nic) = self.port(id).get::<Nic>() else { return Ok(()) };
        let key = nic.key;
        for &queue in queues {
            let holder = self.shared.get(&key).and_then(|shared| shared.holder(queue));
            let Some(holder) = holder.filter(|&holder| holder != id) else { continue };
            let slots = self.settings.nic_slots;
            let Some(port) = self.ports.get_mut(holder) else { continue };
            let at = queue as usize;
            let used = |dir| port.nic_rings(dir).get(at).is_some_and(|ring| ring.users > 0);
            if used(Dir::Tx) || used(Dir::Rx) {
                continue;
            }
            let dirs = [Dir::Tx, Dir::Rx].into_iter();
            let has = dirs.filter(|&dir| at < port.nic_rings(dir).len()).collect::<Vec<_>>();
            let book = self.regions.get(port.region);
            let mut fresh = Vec::new();
            for dir in has {
                match make_ring(book, dir, queue, slots, None) {
                    Ok((ring, _)) => fresh.push((dir, ring)),
                    Err(error) => {
                        fresh.iter().for_each(|(_, ring)| free_ring(book, ring));
                        return Err(error);
                    }
                }
            }
            // First the kernel lets go of the buffers, then they are free.
            if let Some(Nic { sockets: Some(sockets), .. }) = state_mut(&mut port.backend) {
                sockets.set(queue, None);
            }
            for (dir, ring) in fresh {
                if let Some(entry) = port.rings_mut(dir).get_mut(at) {
                    free_ring(book, &std::mem::replace(entry, ring));
                }
            }
            self.shared_mut(key).forget_holder(queue);
            self.update_mirrors_if_any(holder);
        }
        Ok(())
    }

    /// Opens the queues that the port has not got yet: all of them, or none.
    fn open_queues(
        &mut self,
        id: PortId,
        queues: &BTreeSet<u32>,
        request: ModeRequest,
    ) -> Result<()> {
        self.free_queues(id, queues)?;
        let slots = self.settings.nic_slots;
        let Some(port) = self.ports.get_mut(id) else { return Ok(()) };
        let (rx, region) = (split_host(&port.rx, port.host.made(Dir::Rx)).0, port.region);
        let Some(nic) = state_mut::<Nic>(&mut port.backend) else { return Ok(()) };
        let has =
            |queue: &u32| nic.sockets.as_ref().is_some_and(|sockets| sockets.get(*queue).is_some());
        let missing: Vec<u32> = queues.iter().copied().filter(|queue| !has(queue)).collect();
        let shared = self.shared.entry(nic.key).or_default();
        shared.check(&nic.interface.name, request)?;
        if missing.is_empty() {
            return Ok(());
        }
        if let Some(queue) = missing.iter().find(|&&queue| shared.is_anothers(queue, id)) {
            let name = &nic.interface.name;
            let free = (0..nic.interface.queues()).find(|&queue| !shared.is_anothers(queue, id));
            let or_other =
                free.map(|free| format!(", or open others, such as netmap:{name}-{free}"));
            return Err(Error::busy(format!(
                "{name}: queue {queue} is another user's; end their program{}",
                or_other.unwrap_or_default()
            )));
        }
        let memory = &self.regions.get(region).region;
        let opening = Opening {
            interface: &nic.interface,
            queues: &missing,
            region: memory,
            rings: rx,
            slots,
            frags: true,
        };
        let opened = nic.inside(|| shared.open(&opening, request))??;
        let queues = nic.interface.queues();
        let sockets = nic.sockets.get_or_insert_with(|| Sockets::none(queues));
        for (queue, socket) in missing.into_iter().zip(opened) {
            sockets.set(queue, Some(socket));
            shared.set_holder(queue, id);
        }
        Ok(())
    }

    /// The stack's packets are not to go out through a NIC whose tx rings programs have.
    fn redirect_egress(&mut self, id: PortId) -> Result<()> {
        let Some(nic) = self.port(id).get::<Nic>() else { return Ok(()) };
        let key = nic.key;
        let begun = self.shared.get(&key).is_some_and(|shared| shared.egress_redirect.is_some());
        if !begun {
            let begin = nic.inside(|| EgressRedirect::begin(&nic.interface))?;
            let egress_redirect = begin.map_err(nic_error)?;
            self.shared_mut(key).egress_redirect = Some(egress_redirect);
        }
        Ok(())
    }

    /// Connects an interface with the stack behind it, which any of its ports may have.
    fn connect_stack(&mut self, key: NicKey) {
        let Some(shared) = self.shared.get_mut(&key) else { return };
        let holder = shared.stack.and_then(|id| self.ports.get_mut(id));
        let stack = holder.and_then(|port| port.get_mut::<Nic>()?.stack.as_mut());
        // Refused filters were when they were installed.
        let _ = shared.connect(stack);
    }

    /// A port of an interface that has gone: all that was made of the interface goes, although
    /// programs still have the port.
    fn interface_gone(&mut self, id: PortId) {
        let Some(nic) = self.port(id).get::<Nic>() else { return };
        let key = nic.key;
        if let Some(shared) = self.shared.get_mut(&key) {
            shared.detach_programs();
        }
        self.close_sockets(id);
    }

    /// The port has no queues any more, and no stack. From here on the interface's number may be
    /// another one's.
    fn close_sockets(&mut self, id: PortId) {
        let Some(nic) = self.port_mut(id).get_mut::<Nic>() else { return };
        (nic.sockets, nic.stack) = (None, None);
        let key = nic.key;
        let Some(shared) = self.shared.get_mut(&key) else { return };
        let leaving = shared.leave(id);
        self.connect_stack(key);
        if leaving.last {
            self.shared.remove(&key);
        }
    }

    /// What the ports of an interface share, while one of them is in netmap mode.
    pub(crate) fn shared_mut(&mut self, key: NicKey) -> &mut SharedNic {
        self.shared.entry(key).or_default()
    }
}

/// The sockets of all queues of an interface that no other port has, and what redirects frames to them. A
/// slot is a packet there.
pub(crate) fn open_all(
    interface: &Interface,
    region: &ringway_region::Region,
    rings: &[Ring],
    slots: u32,
) -> Result<(RxAttachment, Sockets)> {
    let queues: Vec<_> = (0..interface.queues()).collect();
    let opening = Opening { interface, queues: &queues, region, rings, slots, frags: false };
    let request = ModeRequest { mode: None, timestamps: None, may_have_packet: false };
    let (attachment, opened, _) = opening.open_best(request)?;
    let mut sockets = Sockets::none(interface.queues());
    for (entry, socket) in sockets.by_queue.iter_mut().zip(opened) {
        *entry = Some(socket);
    }
    Ok((attachment, sockets))
}
