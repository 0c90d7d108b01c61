//! Host rings (S-HOST): the stack behind an interface, as rings of its port.
//!
//! They are the last of a port's rings in each direction. They come into being with the first
//! binding that has one of them, and go with the last.

use std::sync::{Arc, atomic::AtomicBool};

use ringway_abi::{Dir, nmreq_register};
use ringway_bridge_port::{PortIndex, PortMirrors};
use ringway_kring::Doorbell;
use ringway_packet::TxSocket;
use ringway_proto::{Error, FilterInfo, Result, RingBackend};
use ringway_vale::{Bridge, Forwarding, PortConfig};
use ringway_xdp::{EgressRedirect, Filter, HostEnd, Interface};
use rustix::fd::OwnedFd;

use crate::{
    bind_reply::Fds,
    nic::{Sockets, nic_error, open_all, packet_error},
    persistent::Stack,
    port::{Kind, Port, PortId, Shape, make_ring},
    queues::{LinkPlace, RxAttachment, Socket, check_buffers},
    registry::{Handle, Registry},
    rx_redirect::Installed,
    virtual_ports::bridge_side,
};

/// Host rings in each direction at most.
const MAX_RINGS: u16 = 16;

/// The host rings of a port.
#[derive(Clone, Copy, Default)]
pub(crate) struct HostRings {
    /// How many the port has, tx before rx; 0 for one without a stack behind it.
    pub counts: [u16; 2],
    /// Whether they have been made.
    pub open: bool,
    /// Bindings that forward to the stack without them (S-FWD-2).
    pub forwarders: u32,
}

impl HostRings {
    /// How many the port has in one direction, made or not.
    pub fn count(&self, dir: Dir) -> usize {
        match dir {
            Dir::Tx => self.counts[0].into(),
            Dir::Rx => self.counts[1].into(),
        }
    }

    /// How many of the port's rings of one direction are host rings, at the end.
    pub fn made(&self, dir: Dir) -> usize {
        if self.open { self.count(dir) } else { 0 }
    }
}

/// The host rings of a persistent port at work: a bridge of two ports, the rings and the stack.
pub(crate) struct Wire {
    /// What the worker sleeps on.
    pub worker: Arc<Doorbell>,
    bridge: Bridge,
    /// BridgePortRef of the rings on it.
    rings: PortIndex,
}

impl Wire {
    /// Has what the rings carry shown to these monitors, and to no others.
    pub fn set_mirrors(&self, mirrors: PortMirrors) {
        self.bridge.set_mirrors(self.rings, mirrors);
    }
}

/// The host rings of a NIC at work: the program's end of its stack, and the sockets there.
pub(crate) struct NicStack {
    // First the interface goes, and with it the kernel's hold on the buffers.
    pub end: HostEnd,
    way: RxAttachment,
    sockets: Sockets,
    /// What of the stack's traffic comes up; the rest goes its way.
    filter: Option<Arc<Installed>>,
}

impl NicStack {
    pub fn filter(&self) -> Option<&Arc<Filter>> {
        self.filter.as_ref().map(|filter| &filter.kernel)
    }

    /// The filter, with what it has counted.
    pub fn filter_info(&self) -> Option<FilterInfo> {
        let info = |filter: &Arc<Installed>| FilterInfo { host: true, ..filter.info(Vec::new()) };
        self.filter.as_ref().map(info)
    }

    /// The socket of a pair of host rings.
    pub fn socket(&self, ring: u32) -> Option<&Socket> {
        self.sockets.get(ring)
    }
}

impl Registry {
    /// The host rings that a port has for a binding: those that the request asks for, where nobody
    /// uses the interface yet (S-REG-8).
    pub(crate) fn asked_host(&self, id: PortId, reg: &nmreq_register) -> [u16; 2] {
        let port = self.port(id);
        let [tx, rx] = port.host.counts;
        let or = |asked: u16, now| if asked == 0 { now } else { asked.min(MAX_RINGS) };
        match &port.kind {
            Kind::Nic(_) if port.bindings == 0 => {
                [or(reg.nr_host_tx_rings, tx), or(reg.nr_host_rx_rings, rx)]
            }
            _ => port.host.counts,
        }
    }

    /// Makes the host rings of a port, and connects them with the stack, for a binding that has some
    /// of them.
    pub(crate) fn open_host(&mut self, id: PortId) -> Result<()> {
        if self.port(id).host.open {
            return Ok(());
        }
        self.make_host_rings(id)?;
        let connected = match &self.port(id).kind {
            Kind::Vale { .. } => self.connect_device(id),
            _ => self.connect_nic(id),
        };
        connected.inspect_err(|_| self.free_host_rings(id))
    }

    /// Lets go of the host rings when nobody has any.
    pub(crate) fn close_host(&mut self, id: PortId) {
        let port = self.port_mut(id);
        let used = |dir| port.host_rings(dir).iter().any(|ring| ring.users > 0);
        // A monitor's are there as long as it is.
        let stay = matches!(port.kind, Kind::Monitor { .. });
        if stay || !port.host.open || used(Dir::Tx) || used(Dir::Rx) {
            return;
        }
        match &mut port.kind {
            Kind::Vale { device: Some(device), .. } => device.stack = Stack::Nobody,
            Kind::Nic(nic) => {
                nic.stack = None;
                let key = nic.key;
                if let Some(shared) = self.shared.get_mut(&key) {
                    shared.stack = None;
                }
            }
            _ => {}
        }
        self.free_host_rings(id);
    }

    /// The way to the stack for a binding that forwards received packets (S-FWD-2): a socket that
    /// takes frames.
    pub(crate) fn stack_socket(&mut self, handle: Handle) -> Result<OwnedFd> {
        let id = self.binding(handle)?.port;
        self.check_there(id)?;
        if matches!(self.port(id).kind, Kind::Nic(_)) {
            self.open_host(id)?;
        }
        let open = |inner: &Interface| Ok(TxSocket::open(&inner.name, inner.index));
        let opened = match &self.port(id).kind {
            Kind::Nic(nic) => nic.stack.as_ref().expect("just opened").end.inside(open),
            Kind::Vale { device: Some(device), .. } => device.pair.inside(open),
            _ => {
                let name = &self.port(id).name;
                return Err(Error::invalid(format!("{name}: there is no host stack behind it")));
            }
        };
        let first = !std::mem::replace(&mut self.binding_mut(handle)?.forwards, true);
        self.port_mut(id).host.forwarders += u32::from(first);
        self.settle(id);
        Ok(opened.map_err(nic_error)?.map_err(packet_error)?.fd)
    }

    /// Installs a filter for the host rings of a NIC, which has some; `None`: all that the stack sends
    /// comes up, while programs have tx rings.
    pub(crate) fn filter_host(
        &mut self,
        id: PortId,
        installed: Option<Arc<Installed>>,
    ) -> Result<()> {
        let port = self.ports.get_mut(&id).expect("looked up just before");
        let Kind::Nic(nic) = &mut port.kind else { return Ok(()) };
        let Some(mut stack) = nic.stack.take() else { return Ok(()) };
        let shared = self.shared.entry(nic.key).or_default();
        let before = std::mem::replace(&mut stack.filter, installed);
        let done = match stack.filter() {
            Some(filter) if shared.diversion.is_none() => nic
                .inside(|| EgressRedirect::begin_filtered(&nic.interface, &stack.end, filter))
                .and_then(|begun| begun.map_err(nic_error))
                .map(|diversion| shared.diversion = Some(diversion)),
            _ => shared.connect(Some(&mut stack)),
        };
        if done.is_err() {
            stack.filter = before;
        }
        nic.stack = Some(stack);
        done
    }

    fn make_host_rings(&mut self, id: PortId) -> Result<()> {
        let slots = self.shape_of(id).slots;
        let port = self.ports.get_mut(&id).expect("looked up just before");
        let book = self.regions.get(port.region);
        let nic = [port.tx.len(), port.rx.len()];
        port.host.open = true;
        for (side, dir) in [Dir::Tx, Dir::Rx].into_iter().enumerate() {
            for i in 0..usize::from(port.host.counts[side]) {
                match make_ring(book, dir, (nic[side] + i) as u32, slots[side], None) {
                    Ok((ring, _)) => port.rings_mut(dir).push(ring),
                    Err(error) => {
                        self.truncate_rings(id, nic);
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    fn free_host_rings(&mut self, id: PortId) {
        let Shape { rings, .. } = self.port(id).shape();
        self.truncate_rings(id, rings.map(|n| n as usize));
    }

    /// Frees the rings of a port beyond the first `nic`.
    fn truncate_rings(&mut self, id: PortId, nic: [usize; 2]) {
        let port = self.ports.get_mut(&id).expect("looked up just before");
        port.host.open = false;
        let book = self.regions.get(port.region);
        for (dir, first) in [Dir::Tx, Dir::Rx].into_iter().zip(nic) {
            for ring in port.rings_mut(dir).drain(first..) {
                crate::port::free_ring(book, &ring);
            }
        }
    }

    /// How the program of a host ring reaches who serves it.
    pub(crate) fn host_link(
        &self,
        port: &Port,
        dir: Dir,
        i: usize,
        fds: &mut Fds,
    ) -> Result<RingBackend> {
        Ok(match &port.kind {
            Kind::Vale { device: Some(device), .. } => match &device.stack {
                Stack::Rings(wire) => {
                    RingBackend::Served { worker: fds.add(wire.worker.as_ref())? }
                }
                _ => unreachable!("host rings are there while they are connected"),
            },
            Kind::Nic(nic) => {
                let stack = nic.stack.as_ref().expect("host rings are there while it is");
                let program = match dir {
                    Dir::Tx => stack.end.inject_fd(),
                    Dir::Rx => stack.way.link_fd(),
                };
                let queue = (i - port.nic_rings(dir).len()) as u32;
                let program = port.may_keep_traffic().then_some(program);
                let place = LinkPlace { dir, queue, host: true, timestamps: None };
                stack.sockets.of_ring(queue).link(place, program, fds)?
            }
            _ => unreachable!("ports without a stack have no host rings"),
        })
    }

    /// Connects the host rings of a NIC with the stack behind it.
    fn connect_nic(&mut self, id: PortId) -> Result<()> {
        let slots = self.settings.nic_slots;
        let port = self.ports.get_mut(&id).expect("looked up just before");
        let rx = port.rx.len() - port.host.made(Dir::Rx);
        let Kind::Nic(nic) = &mut port.kind else { return Ok(()) };
        let shared = self.shared.entry(nic.key).or_default();
        if shared.stack.is_some() {
            return Err(Error::busy(format!(
                "{}: another user's programs have its host stack; end them, or do without host rings",
                nic.interface.name
            )));
        }
        let memory = &self.regions.get(port.region).region;
        // Host rings have no other road.
        check_buffers(&nic.interface, memory)?;
        let queues = port.host.counts.into_iter().max().unwrap_or(0).into();
        // The caller may have moved to another namespace, where the number is another interface's.
        let end = nic.inside(|| HostEnd::new(&nic.interface, queues))?.map_err(nic_error)?;
        // A slot is a packet there (S-HOST-3, 4).
        let open = |inner: &_| Ok(open_all(inner, memory, &port.rx[rx..], slots));
        let (mut way, mut sockets) = end.inside(open).map_err(nic_error)??;
        sockets.redirect(&mut way, &vec![true; queues as usize]);
        nic.stack = Some(NicStack { end, way, sockets, filter: None });
        shared.stack = Some(id);
        Ok(())
    }

    /// Connects the host rings of a persistent port with the stack behind its device.
    fn connect_device(&mut self, id: PortId) -> Result<()> {
        let port = self.port(id);
        let Kind::Vale { device: Some(device), .. } = &port.kind else { return Ok(()) };
        if let Stack::Bridge(place) = &device.stack {
            return Err(Error::busy(format!(
                "{}: its host stack is attached to {}; detach it first",
                port.name, place.bridge
            )));
        }
        let failed = |e| Error::io(&format!("{}: its host rings cannot be served", port.name), e);
        let worker = Arc::new(Doorbell::new().map_err(failed)?);
        let (tx, rx) = (port.host_rings(Dir::Tx), port.host_rings(Dir::Rx));
        // There is no point in host rings that nobody has: they are freed.
        let receives = Arc::new(AtomicBool::new(true));
        let rings = bridge_side(tx, rx, worker.clone(), receives);
        let stack = device.stack_port()?;
        let bridge = Bridge::start("host rings").map_err(failed)?;
        // A wire learns nothing: what goes in at the one end comes out at the other.
        bridge.set_forwarding(&Forwarding::Flood);
        let attach = |end| {
            bridge.attach(end, PortConfig::default(), Arc::default()).ok_or_else(|| {
                Error::no_memory(format!("{}: too many open descriptors", port.name))
            })
        };
        let rings = attach(Box::new(rings))?;
        attach(Box::new(stack))?;
        self.device(id).stack = Stack::Rings(Wire { worker, bridge, rings });
        Ok(())
    }
}
