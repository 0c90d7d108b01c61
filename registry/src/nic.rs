//! NIC ports: the privileged half. The registry makes the rings, the AF_XDP sockets and the
//! XDP program; the client runs them.

use std::collections::BTreeSet;

use ringway_abi::Dir;
use ringway_xdp::{
    AttachMode, Diversion, Interface, MAX_FRAGS, Mode, RingSizes, XdpProgram, XdpRx, Xsk,
    XskConfig, in_netns,
};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::{
    error::{Error, Result},
    grant::Link,
    host::NicStack,
    leading::Choice,
    name::plain_key,
    port::{Kind, PortId, Ring, Shape, make_rings},
    register::Fds,
    registry::{Caller, Registry},
    shared_nic::{NicKey, SharedNic},
    vanish::watch,
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

/// The AF_XDP sockets of a port, by queue: of those queues that its programs have had since it went
/// into netmap mode.
pub(crate) struct Sockets {
    by_queue: Vec<Option<Xsk>>,
    /// Which frames are led to them.
    pub choices: Vec<Choice>,
}

impl Sockets {
    fn none(queues: u32) -> Sockets {
        let by_queue = (0..queues).map(|_| None).collect();
        Sockets { by_queue, choices: vec![Choice::default(); queues as usize] }
    }

    /// The socket of a queue, if the port has it.
    pub fn get(&self, queue: u32) -> Option<&Xsk> {
        self.by_queue.get(queue as usize)?.as_ref()
    }

    /// How a client reaches queue `queue`, of the NIC or of its stack; `program` is what it is to
    /// hold.
    pub fn link(
        &self,
        queue: u32,
        host: bool,
        program: BorrowedFd<'_>,
        fds: &mut Fds,
    ) -> Result<Link> {
        let socket = self.by_queue[queue as usize].as_ref().expect("a ring in use has its socket");
        let s = &socket.sizes;
        Ok(Link::Xdp {
            queue,
            socket: fds.add(&socket.fd)?,
            program: fds.add(program)?,
            sizes: [s.fill, s.completion, s.rx, s.tx],
            host,
            frags: socket.frags,
        })
    }

    /// How many there are.
    pub fn open(&self) -> usize {
        self.by_queue.iter().flatten().count()
    }

    /// Whether frames that are longer than a buffer are received, on all queues.
    fn frags(&self) -> bool {
        self.by_queue.iter().flatten().all(|socket| socket.frags)
    }

    /// The mode, and why it is no better one.
    pub fn describe(&self) -> String {
        let Some(socket) = self.by_queue.iter().flatten().next() else { return "no queues".into() };
        let mut text = socket.mode.to_string();
        for (mode, why) in &socket.refused {
            text.push_str(&format!("; not {mode}: {why}"));
        }
        text
    }
}

impl Nic {
    /// Runs `f` in the network namespace of the interface, wherever its program is by now.
    pub fn inside<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T> {
        enter(self.netns.as_ref().map(|ns| ns.as_fd()), f)
    }

    /// Rings and slots that the port has, in netmap mode or not.
    pub fn shape(&self, slots: u32) -> Shape {
        let queues = self.interface.queues();
        Shape { rings: [queues; 2], slots: [slots; 2] }
    }
}

/// Whether the caller's network namespace has an interface of that name.
pub(crate) fn exists(name: &str, caller: &Caller) -> Result<bool> {
    match look_up(name, caller) {
        Ok(_) => Ok(true),
        Err(error) if error.errno == libc::ENXIO => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn look_up(name: &str, caller: &Caller) -> Result<Interface> {
    if name.is_empty() || name.len() >= crate::name::IFNAMSIZ || name.contains('/') {
        return Err(Error::absent(format!("{name}: no network interface can have this name")));
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
            Error::new(
                libc::EPERM,
                format!(
                    "cannot enter the caller's network namespace: {e}; run ringwayd there, or \
                     with CAP_SYS_ADMIN"
                ),
            )
        }),
    }
}

pub(crate) fn nic_error(error: ringway_xdp::Error) -> Error {
    use ringway_xdp::Error as Xdp;
    let errno = match &error {
        Xdp::NoInterface { .. } => libc::ENXIO,
        Xdp::NoQueue { .. } => libc::EINVAL,
        Xdp::QueueBusy { .. } | Xdp::Occupied { .. } => libc::EBUSY,
        Xdp::Privileges { .. } => libc::EPERM,
        Xdp::Attach { .. } => libc::EOPNOTSUPP,
        Xdp::Refused { cause, .. } => cause.raw_os_error().unwrap_or(libc::EIO),
    };
    Error::new(errno, error.to_string())
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
    let granted = Vec::new();
    Ok(Some(Caller { uid: caller.uid, netns: None, may_use_nics: true, granted, memory }))
}

pub(crate) fn allowed(caller: &Caller, name: &str) -> Result<()> {
    if caller.may_use_nics {
        return Ok(());
    }
    Err(Error::new(
        libc::EPERM,
        format!(
            "{name}: this daemon does not grant you network interfaces; ask its operator to add \
             you to nic_users in its configuration, or to a [[grant]] of {name}"
        ),
    ))
}

impl Registry {
    /// The port of a network interface, not in netmap mode yet if it is new.
    pub(crate) fn nic_port(&mut self, caller: &Caller, name: &str, mem_id: u16) -> Result<PortId> {
        let interface = look_up(name, caller)?;
        allowed(caller, name)?;
        let key = plain_key(&interface.name, caller);
        if let Some(&id) = self.names.get(&key) {
            let id = self.owned(id, caller)?;
            if let Kind::Nic(nic) = &mut self.port_mut(id).kind {
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
        let kind = Kind::Nic(Box::new(nic));
        let id = self.add_port(name, Some(key), caller.uid, region, kind);
        self.tie(id, watch).inspect_err(|_| self.reap(id))?;
        self.port_mut(id).host.counts = [1, 1];
        Ok(id)
    }

    /// Readies a port for a binding of the rings `wanted`: a NIC goes into netmap mode.
    pub(crate) fn activate(&mut self, id: PortId, wanted: &[Vec<u16>; 2]) -> Result<()> {
        let shape = self.shape_of(id);
        if matches!(self.port(id).kind, Kind::Nic(_)) {
            self.make_nic_rings(id)?;
            let of_nic = |side: usize| {
                wanted[side].iter().copied().filter(move |&i| u32::from(i) < shape.rings[side])
            };
            let (sends, receives) = (of_nic(0).next().is_some(), of_nic(1).next().is_some());
            let queues: BTreeSet<_> = of_nic(0).chain(of_nic(1)).map(u32::from).collect();
            self.open_queues(id, &queues)?;
            if receives {
                self.check_mtu(id)?;
            }
            if sends {
                self.divert(id)?;
            }
        }
        if shape.has_host(wanted) { self.open_host(id) } else { Ok(()) }
    }

    fn make_nic_rings(&mut self, id: PortId) -> Result<()> {
        let (shape, port) = (self.shape_of(id), self.port(id));
        if port.tx.is_empty() && port.rx.is_empty() {
            let region = port.region;
            let [tx, rx] = make_rings(&mut self.regions, region, shape)?;
            let port = self.port_mut(id);
            (port.tx, port.rx) = (tx, rx);
        }
        Ok(())
    }

    /// S-REG-9: a frame has a buffer, or several where the kernel can do that, but no more than it
    /// sends in one.
    fn check_mtu(&mut self, id: PortId) -> Result<()> {
        let port = self.ports.get(&id).expect("looked up just before");
        let Kind::Nic(nic) = &port.kind else { return Ok(()) };
        let (interface, Some(sockets)) = (&nic.interface, &nic.sockets) else { return Ok(()) };
        let size = self.regions.get(port.region).region.layout().data_size();
        let frags = self.shared[&nic.key].takes_frags() && sockets.frags();
        let buffers = match frags {
            true => MAX_FRAGS.min(self.settings.nic_slots.saturating_sub(1)).max(1),
            false => 1,
        };
        let (needed, room) = (interface.longest_frame(), buffers * size);
        if needed <= room {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{0}: frames of {needed} bytes do not fit {buffers} {1} of {size}; \
             `ip link set {0} mtu {2}` or less, or open it for sending alone",
            interface.name,
            if buffers == 1 { "buffer" } else { "buffers" },
            room - 14
        )))
    }

    /// Opens the queues that the port has not got yet: all of them, or none.
    fn open_queues(&mut self, id: PortId, queues: &BTreeSet<u32>) -> Result<()> {
        let slots = self.settings.nic_slots;
        let port = self.ports.get_mut(&id).expect("looked up just before");
        let rx = port.rx.len() - port.host.made(Dir::Rx);
        let Kind::Nic(nic) = &mut port.kind else { return Ok(()) };
        let has =
            |queue: &u32| nic.sockets.as_ref().is_some_and(|sockets| sockets.get(*queue).is_some());
        let missing: Vec<u32> = queues.iter().copied().filter(|queue| !has(queue)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let shared = self.shared.entry(nic.key).or_default();
        if let Some(queue) = missing.iter().find(|&&queue| shared.is_anothers(queue, id)) {
            return Err(Error::busy(format!(
                "{}: queue {queue} is another user's; end their program, or open other queues, \
                 such as netmap:{0}-{}",
                nic.interface.name,
                missing.iter().find(|&&queue| !shared.is_anothers(queue, id)).unwrap_or(queue),
            )));
        }
        let memory = &self.regions.get(port.region).region;
        let open = || {
            let program = shared.attach(&nic.interface)?;
            program.check_queues(missing.last().map_or(0, |last| last + 1))?;
            let rings = &port.rx[..rx];
            let open = |&queue: &u32| {
                open_queue(&nic.interface, queue, memory, rings, slots, true, program.mode())
            };
            missing.iter().map(open).collect::<Result<Vec<_>, _>>()
        };
        let opened = nic.inside(open)?.map_err(nic_error)?;
        let (_, holders) = shared.parts();
        let queues = nic.interface.queues();
        let sockets = nic.sockets.get_or_insert_with(|| Sockets::none(queues));
        for (queue, socket) in missing.into_iter().zip(opened) {
            sockets.by_queue[queue as usize] = Some(socket);
            holders.insert(queue, id);
        }
        Ok(())
    }

    /// The stack's packets are not to go out through a NIC whose tx rings programs have.
    fn divert(&mut self, id: PortId) -> Result<()> {
        let Kind::Nic(nic) = &self.port(id).kind else { return Ok(()) };
        let (key, begun) = (nic.key, self.shared[&nic.key].diversion.is_some());
        if !begun {
            let begin = nic.inside(|| Diversion::begin(&nic.interface))?;
            let diversion = begin.map_err(nic_error)?;
            self.shared_mut(key).diversion = Some(diversion);
        }
        Ok(())
    }

    /// Directs traffic by the users that the rings of a port have now.
    pub(crate) fn settle(&mut self, id: PortId) {
        self.close_host(id);
        let port = self.ports.get_mut(&id).expect("looked up just before");
        let sends = port.nic_rings(Dir::Tx).iter().any(|ring| ring.users > 0);
        let receives: Vec<_> = port.nic_rings(Dir::Rx).iter().map(|ring| ring.users > 0).collect();
        let Kind::Nic(nic) = &mut port.kind else { return };
        let Some(shared) = self.shared.get_mut(&nic.key) else { return };
        if let Some(sockets) = &mut nic.sockets {
            sockets.lead_to(shared.parts().0, &receives);
        }
        shared.set_sends(id, sends);
        // The stack may be in the hands of another port.
        let holder = shared.stack.and_then(|id| self.ports.get_mut(&id));
        let stack = holder.and_then(|port| match &mut port.kind {
            Kind::Nic(nic) => nic.stack.as_mut(),
            _ => None,
        });
        shared.connect(stack.map(|stack| &mut stack.end));
    }

    /// Gives the port's queues back to the stack: its last binding has gone.
    pub(crate) fn deactivate(&mut self, id: PortId) {
        let port = self.port_mut(id);
        if let Kind::Nic(nic) = &mut port.kind {
            // First the kernel lets go of the buffers, then they are free.
            nic.sockets = None;
            // S-LIFE-7.
            port.host.counts = [1, 1];
            let key = nic.key;
            self.free_rings(id);
            if let Some(shared) = self.shared.get_mut(&key)
                && shared.leave(id)
            {
                self.shared.remove(&key);
            }
        }
    }

    /// What the ports of an interface share, while one of them is in netmap mode.
    pub(crate) fn shared_mut(&mut self, key: NicKey) -> &mut SharedNic {
        self.shared.entry(key).or_default()
    }
}

/// The socket of a queue, with the buffers of its ring of `rings` to receive into: what is led to it
/// is not lost, although no program has synced yet (S-POLL-4). `frags`: packets may have
/// several buffers, where the kernel can do that.
fn open_queue(
    interface: &Interface,
    queue: u32,
    region: &ringway_region::Region,
    rings: &[Ring],
    slots: u32,
    frags: bool,
    attached: AttachMode,
) -> Result<Xsk, ringway_xdp::Error> {
    let (base, len) = region.buffer_area();
    // One more place than slots: a ring of n slots has at most n - 1 on loan.
    let entries = slots.next_power_of_two();
    let config = XskConfig {
        interface,
        queue,
        umem: std::ptr::NonNull::slice_from_raw_parts(base, len),
        chunk_size: region.layout().bufs.size,
        sizes: RingSizes { fill: entries, completion: entries, rx: entries, tx: entries },
        frags,
        modes: Mode::preference(attached),
    };
    // SAFETY: the buffer area is a shared mapping that the region keeps for as long as the port,
    // and thus the socket, exists; it is reached by raw pointers only.
    let xsk = unsafe { Xsk::open(&config) }?;
    if let Some(ring) = rings.get(queue as usize) {
        lend_buffers(interface, region, &xsk, ring)?;
    }
    Ok(xsk)
}

/// The program and the sockets of all queues of an interface that nobody else has.
pub(crate) fn open_all(
    interface: &Interface,
    region: &ringway_region::Region,
    rings: &[Ring],
    slots: u32,
) -> Result<(XdpProgram, Sockets)> {
    let program = XdpProgram::attach(interface).map_err(nic_error)?;
    let mut sockets = Sockets::none(interface.queues());
    for (queue, socket) in (0..).zip(&mut sockets.by_queue) {
        let opened = open_queue(interface, queue, region, rings, slots, false, program.mode());
        *socket = Some(opened.map_err(nic_error)?);
    }
    Ok((program, sockets))
}

/// The first sync of a new rx ring, which nobody has yet: it gives the kernel its buffers.
fn lend_buffers(
    interface: &Interface,
    region: &ringway_region::Region,
    xsk: &Xsk,
    ring: &Ring,
) -> Result<(), ringway_xdp::Error> {
    let refused = |cause| ringway_xdp::Error::Refused {
        interface: interface.name.clone(),
        what: "its receive rings cannot be filled",
        cause,
        remedy: "free memory, or raise the limit of open files",
    };
    let socket = xsk.fd.try_clone().map_err(refused)?;
    // Mapped no longer than this: a mapping keeps the socket bound.
    let driver = XdpRx::new(socket.into(), xsk.sizes, region.layout())
        .map_err(|errno| refused(errno.into()))?;
    ring.kring.sync(&driver);
    Ok(())
}
