//! The registry itself: handles, and the one call through which everything goes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use ringway_abi::nmreq_register;
use ringway_proto::{Error, Options, Reply, Request, Result};
use ringway_region::{Layout, LayoutError, NetifView, Sizes};
use ringway_vale::PortConfig;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::{
    bridges::Bridges,
    host::HostRings,
    link_events::Watches,
    name::check_name,
    port::{Kind, Port, PortId},
    regions::{RegionKey, Regions},
    shared_nic::{NicKey, SharedNic},
    steering::Steerings,
};

/// What an operator may choose.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bridges at most; each is a thread.
    pub max_bridges: usize,
    /// Whether receive rings are stamped with the time at every sync (S-SYNC-10).
    pub timestamps: bool,
    /// Slots of the rings of NICs.
    pub nic_slots: u32,
    /// The global region of each user (S-MEM-7).
    pub global_region: Sizes,
    /// Bytes that the regions of one user have at most, together.
    pub memory_per_user: u64,
    /// Descriptors of this process that one user takes up at most.
    pub descriptors_per_user: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            max_bridges: 64,
            timestamps: true,
            nic_slots: 1024,
            global_region: Sizes::GLOBAL,
            memory_per_user: 4 << 30,
            descriptors_per_user: usize::MAX,
        }
    }
}

impl Settings {
    /// Whether there can be such a global region.
    pub fn check(&self) -> Result<(), LayoutError> {
        Layout::new(&self.global_region, ringway_xdp::RX_HEADROOM).map(drop)
    }
}

/// Who asks: as told by the socket, never by the request.
#[derive(Debug)]
pub struct Caller {
    pub uid: u32,
    /// The network namespace in which interface names are meant; `None`: this process's.
    pub netns: Option<OwnedFd>,
    /// Whether policy grants the caller network interfaces.
    pub may_use_nics: bool,
    /// Interfaces of this process's network namespace that policy grants the caller by name,
    /// wherever the caller is.
    pub granted: Vec<String>,
    /// Memory that the caller brings along for a region of its own: a memfd.
    pub memory: Option<OwnedFd>,
}

impl Caller {
    /// The registry's own process.
    pub fn myself() -> Caller {
        Caller {
            uid: rustix::process::getuid().as_raw(),
            netns: None,
            may_use_nics: true,
            granted: Vec::new(),
            memory: None,
        }
    }

    pub(crate) fn netns(&self) -> Option<BorrowedFd<'_>> {
        self.netns.as_ref().map(|fd| fd.as_fd())
    }

    /// What tells the namespace from others; `None`: it is this process's.
    pub(crate) fn netns_id(&self) -> Option<u64> {
        // It fails for a descriptor that is none: no namespace has this number.
        self.netns().map(|ns| rustix::fs::fstat(ns).map_or(u64::MAX, |stat| stat.st_ino))
    }
}

/// What an open `/dev/netmap` stands for: it can be bound to one port, once (S-LIFE-1, 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(u64);

/// A handle's registration.
pub(crate) struct Binding {
    pub port: PortId,
    pub region: RegionKey,
    pub netif: NetifView,
    /// Indices of the rings it has, tx before rx.
    pub rings: [Vec<u16>; 2],
    pub exclusive: bool,
    /// Whether it was given a way to the stack.
    pub forwards: bool,
    /// The request and its options, with their outputs.
    pub reg: nmreq_register,
    pub options: Options,
}

/// An open handle.
#[derive(Default)]
struct Opened {
    /// Whose connection it stands for, if it stands for one.
    connection: Option<u32>,
    binding: Option<Binding>,
}

/// See the crate's description.
pub struct Registry {
    pub(crate) settings: Settings,
    pub(crate) regions: Regions,
    pub(crate) ports: BTreeMap<PortId, Port>,
    /// Ports that can be found by name.
    pub(crate) names: HashMap<String, PortId>,
    pub(crate) bridges: Bridges,
    /// Interfaces in netmap mode.
    pub(crate) shared: HashMap<NicKey, SharedNic>,
    pub(crate) watches: Watches,
    handles: BTreeMap<Handle, Opened>,
    /// How many of them are connections of which user.
    connections: HashMap<u32, usize>,
    last_handle: u64,
    last_port: PortId,
    /// Generation of monitors that was announced last.
    pub(crate) last_monitors: u32,
    pub(crate) steerings: Steerings,
}

impl Registry {
    pub fn new(settings: Settings) -> Registry {
        Registry {
            bridges: Bridges::new(settings.max_bridges),
            regions: Regions::new(settings.global_region, settings.memory_per_user),
            settings,
            shared: HashMap::new(),
            watches: Watches::default(),
            ports: BTreeMap::new(),
            names: HashMap::new(),
            handles: BTreeMap::new(),
            connections: HashMap::new(),
            last_handle: 0,
            last_port: 0,
            last_monitors: 0,
            steerings: Steerings::default(),
        }
    }

    /// A new, unbound handle.
    pub fn open(&mut self) -> Handle {
        self.last_handle += 1;
        let handle = Handle(self.last_handle);
        self.handles.insert(handle, Opened::default());
        handle
    }

    /// The same, for a connection of user `uid`.
    pub(crate) fn open_for(&mut self, uid: u32) -> Handle {
        let handle = self.open();
        self.handles.entry(handle).or_default().connection = Some(uid);
        *self.connections.entry(uid).or_default() += 1;
        handle
    }

    /// Open connections of a user.
    pub(crate) fn connections(&self, uid: u32) -> usize {
        self.connections.get(&uid).copied().unwrap_or(0)
    }

    /// The last reference to a handle has gone: its port, if it was bound, is let go, and what it
    /// steered is undone.
    pub fn close(&mut self, handle: Handle) {
        self.steerings.end(handle);
        self.unregister(handle);
        let closed = self.handles.remove(&handle);
        if let Some(uid) = closed.and_then(|opened| opened.connection)
            && let Some(count) = self.connections.get_mut(&uid)
        {
            *count -= 1;
            if *count == 0 {
                self.connections.remove(&uid);
            }
        }
    }

    /// The handle stays open, and is bound to nothing.
    fn unregister(&mut self, handle: Handle) {
        let opened = self.handles.get_mut(&handle);
        if let Some(binding) = opened.and_then(|opened| opened.binding.take()) {
            self.unbind(binding);
        }
    }

    /// Open handles.
    pub fn handles(&self) -> usize {
        self.handles.len()
    }

    /// Whether anything was set up that is to outlive the handle that asked for it.
    pub fn keeps_something(&self) -> bool {
        let keeps = |port: &Port| {
            matches!(port.kind, Kind::Attached { .. } | Kind::Vale { device: Some(_), .. })
        };
        self.bridges.any_kept() || self.ports.values().any(keeps)
    }

    /// Answers one request. The descriptors belong to the reply; a [`Reply::Granted`] counts
    /// on their order.
    ///
    /// A refused request changes nothing.
    pub fn call(
        &mut self,
        handle: Handle,
        caller: &Caller,
        request: Request,
    ) -> Result<(Reply, Vec<OwnedFd>)> {
        let plain = |reply| Ok((reply, Vec::new()));
        self.handle_events();
        check_name(request.name())?;
        let granted = crate::nic::granted(caller, request.name())?;
        let caller = granted.as_ref().unwrap_or(caller);
        self.may_make(caller.uid, &request)?;
        match request {
            Request::Register { name, reg, options } => {
                if !self.handles.contains_key(&handle) {
                    return Err(Error::new(libc::EBADF, format!("{name}: the handle is closed")));
                }
                self.register(handle, caller, &name, reg, *options)?;
                let fits = self.check_descriptors(caller.uid, 0);
                // The client never learns of it, so it must not be.
                fits.and_then(|()| self.describe(handle)).inspect_err(|_| self.unregister(handle))
            }
            Request::Unregister => {
                self.binding(handle)?;
                self.unregister(handle);
                plain(Reply::Done)
            }
            Request::Describe => self.describe(handle),
            Request::Barrier => Err(Error::new(
                libc::EOPNOTSUPP,
                "a registry has no connections; ask its daemon for another one",
            )),
            Request::Mirrors { dir, index } => self.mirrors(handle, dir, index),
            Request::Stack => Ok((Reply::Done, vec![self.stack_socket(handle)?])),
            Request::PortInfo { name, mem_id } => {
                plain(Reply::PortInfo(self.port_info(caller, &name, mem_id)?))
            }
            Request::PoolsInfo { name, mem_id } => {
                plain(Reply::PoolsInfo(self.pools_info(caller, &name, mem_id)?))
            }
            Request::ValeAttach { name, reg, mode } => {
                plain(Reply::Index(self.vale_attach(caller, &name, &reg, mode)?))
            }
            Request::ValeDetach { name } => plain(Reply::Index(self.vale_detach(caller, &name)?)),
            Request::ValeList { name, from } => {
                let (name, at) = self.vale_list(&name, from)?;
                plain(Reply::ValeList { name, at })
            }
            Request::ValeNewif { name, conf } => {
                plain(Reply::Newif(self.vale_newif(caller, &name, conf)?))
            }
            Request::ValeDelif { name } => {
                self.vale_delif(caller, &name)?;
                plain(Reply::Done)
            }
            Request::PortHdrSet { name, len } => {
                self.set_header(caller, &name, len)?;
                plain(Reply::Done)
            }
            Request::PortHdrGet { name } => plain(Reply::PortHdr(self.header(caller, &name)?)),
            Request::ValePolling { name, enable, conf } => {
                self.vale_polling(caller, &name, enable, &conf)?;
                plain(Reply::Done)
            }
            Request::SetFilter { name, rings, filter } => {
                self.set_filter(handle, caller, &name, rings, filter)?;
                plain(Reply::Done)
            }
            Request::RedirectQueue { name, ring, lead } => {
                self.redirect_queue(caller, &name, ring, lead)?;
                plain(Reply::Done)
            }
            Request::Steer { interface, queue, flows } => {
                let steered = self.steer(handle, caller, &interface, queue, &flows)?;
                plain(Reply::Steered(steered))
            }
            Request::SwitchNew { bridge } => {
                self.switch_new(caller, &bridge)?;
                plain(Reply::Done)
            }
            Request::SwitchDelete { bridge } => {
                self.switch_delete(caller, &bridge)?;
                plain(Reply::Done)
            }
            Request::SwitchForward { bridge, forwarding } => {
                self.switch_forward(caller, &bridge, forwarding)?;
                plain(Reply::Done)
            }
            Request::SwitchPort { name, settings } => {
                self.switch_port(caller, &name, settings)?;
                plain(Reply::Done)
            }
            Request::Switches => plain(Reply::Switches(self.switches_info())),
            Request::Ports => plain(Reply::Ports(self.ports_info())),
            Request::Rings { port } => plain(Reply::Rings(self.rings_info(port)?)),
            Request::Regions => plain(Reply::Regions(self.regions.info())),
        }
    }

    pub(crate) fn binding(&self, handle: Handle) -> Result<&Binding> {
        self.handles.get(&handle).and_then(|opened| opened.binding.as_ref()).ok_or_else(unbound)
    }

    pub(crate) fn binding_mut(&mut self, handle: Handle) -> Result<&mut Binding> {
        let opened = self.handles.get_mut(&handle);
        opened.and_then(|opened| opened.binding.as_mut()).ok_or_else(unbound)
    }

    pub(crate) fn is_bound(&self, handle: Handle) -> bool {
        self.binding(handle).is_ok()
    }

    /// The handle is open.
    pub(crate) fn set_binding(&mut self, handle: Handle, binding: Binding) {
        self.handles.entry(handle).or_default().binding = Some(binding);
    }

    pub(crate) fn port(&self, id: PortId) -> &Port {
        self.ports.get(&id).expect("ids are handed out for ports in the book only")
    }

    pub(crate) fn port_mut(&mut self, id: PortId) -> &mut Port {
        self.ports.get_mut(&id).expect("ids are handed out for ports in the book only")
    }

    /// Enters a port that nothing refers to yet; see [`Registry::reap`].
    pub(crate) fn add_port(
        &mut self,
        name: &str,
        key: Option<String>,
        uid: u32,
        region: RegionKey,
        kind: Kind,
    ) -> PortId {
        self.last_port += 1;
        let id = self.last_port;
        self.regions.hold(region);
        if let Some(key) = key {
            self.names.insert(key, id);
        }
        let port = Port {
            name: name.into(),
            uid,
            shared_with: None,
            kind,
            region,
            tx: Vec::new(),
            rx: Vec::new(),
            host: HostRings::default(),
            gone: false,
            bindings: 0,
            children: 0,
            config: PortConfig::default(),
            receives: Arc::default(),
        };
        self.ports.insert(id, port);
        id
    }

    /// Removes the port if nothing refers to it any more, and then what only it held.
    pub(crate) fn reap(&mut self, id: PortId) {
        let Some(port) = self.ports.get(&id) else { return };
        let stays = match &port.kind {
            Kind::Vale { device, .. } => device.is_some(),
            Kind::Attached { .. } => true,
            Kind::Pipe { peer, .. } => self.ports.get(peer).is_some_and(|p| p.bindings > 0),
            Kind::Parent | Kind::Null { .. } | Kind::Nic(_) | Kind::Monitor { .. } => false,
        };
        if stays || port.bindings > 0 || port.children > 0 {
            return;
        }
        match &port.kind {
            Kind::Pipe { parent, peer } => {
                let (parent, peer) = (*parent, *peer);
                self.free_pipe_rings(id, peer);
                self.remove(id);
                self.remove(peer);
                self.port_mut(parent).children -= 1;
                self.reap(parent);
            }
            Kind::Vale { place, .. } => {
                if let Some(place) = place.clone() {
                    self.bridges.detach(&place);
                }
                self.free_rings(id);
                self.remove(id);
            }
            Kind::Monitor { .. } => {
                self.leave_rings(id);
                self.remove(id);
            }
            _ => {
                self.free_rings(id);
                self.remove(id);
            }
        }
    }

    /// Strikes a port, whose rings are freed, from the book.
    pub(crate) fn remove(&mut self, id: PortId) {
        self.names.retain(|_, named| *named != id);
        self.watches.remove(id);
        if let Some(region) = self.ports.remove(&id).map(|port| port.region) {
            self.regions.release(region);
        }
    }

    /// Frees the rings of a port and their buffers.
    pub(crate) fn free_rings(&mut self, id: PortId) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        port.host.open = false;
        let book = self.regions.get(port.region);
        for ring in port.tx.drain(..).chain(port.rx.drain(..)) {
            crate::port::free_ring(book, &ring);
        }
    }
}

fn unbound() -> Error {
    Error::absent("this descriptor is not bound to a port; register it first")
}
