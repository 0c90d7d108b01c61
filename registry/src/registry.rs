//! The registry itself: handles, and the one call through which everything goes.

use std::{collections::HashMap, sync::Arc, time::Duration};

use ringway_proto::{Cause, Error, Reply, Request, Result};
use ringway_region::{Layout, LayoutError, Sizes};
use rustix::fd::OwnedFd;

use crate::{
    accounts::Accounts,
    bridges::Bridges,
    deferred::{Busy, Closings, Progress, Step, Subject},
    draining::Leftovers,
    expected::Expected,
    handles::{Binding, Handle, Handles},
    interfaces,
    kept_sockets::KeptSockets,
    kinds::{PortBackend, monitor::Monitor, persistent::Persistent},
    link_events::Watches,
    name::check_name,
    netns::Netns,
    notices::Notices,
    port::{Port, PortId},
    ports::Ports,
    regions::{RegionKey, Regions},
    shared_nic::{NicKey, SharedNic},
    steering::Steerings,
    switch_ports::Attach,
};

/// What an operator may choose.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bridges at most; each is a thread.
    pub max_bridges: usize,
    /// Bridges that each user may have; root has no such limit.
    pub switches_per_user: usize,
    /// Ports that each user may have on a bridge, but for the user who made it to stay, and for root.
    pub switch_ports_per_user: usize,
    /// Who shares what each user may have.
    pub accounts: Arc<Accounts>,
    /// Whether receive rings are stamped with the time at every sync (S-SYNC-10).
    pub timestamps: bool,
    /// Slots of the rings of NICs.
    pub nic_slots: u32,
    /// The global region of each user (S-MEM-7).
    pub global_region: Sizes,
    /// Bytes of rings and buffers that one user may ask for, in all of his regions together. The regions
    /// may have four times as many.
    pub memory_per_user: u64,
    /// Descriptors of this process that one user takes up at most.
    pub descriptors_per_user: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            max_bridges: 64,
            switches_per_user: usize::MAX,
            switch_ports_per_user: usize::MAX,
            accounts: Arc::default(),
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
    /// The network namespace in which interface names are meant.
    pub netns: Netns,
    /// Whether policy grants the caller network interfaces.
    pub may_use_nics: bool,
    /// Interfaces of this process's network namespace that policy grants the caller by name,
    /// wherever the caller is.
    pub granted: Vec<String>,
}

impl Caller {
    /// The registry's own process.
    pub fn myself() -> Caller {
        Caller {
            uid: rustix::process::getuid().as_raw(),
            netns: Netns::Own,
            may_use_nics: true,
            granted: Vec::new(),
        }
    }

    /// What tells the namespace from others; `None`: it is this process's.
    pub(crate) fn netns_id(&self) -> Option<u64> {
        self.netns.id()
    }
}

/// See the crate's description.
pub struct Registry {
    pub(crate) settings: Settings,
    pub(crate) handles: Handles,
    pub(crate) ports: Ports,
    pub(crate) regions: Regions,
    pub(crate) bridges: Bridges,
    /// Interfaces in netmap mode.
    pub(crate) shared: HashMap<NicKey, SharedNic>,
    pub(crate) watches: Watches,
    pub(crate) leftovers: Leftovers,
    /// Some memory has been freed since somebody who waits for it was told.
    pub(crate) freed: bool,
    /// What a registry before this one had.
    pub(crate) expected: Expected,
    pub(crate) notices: Notices,
    /// Generation of monitors that was announced last.
    pub(crate) last_monitors: u32,
    pub(crate) steerings: Steerings,
    /// The handle whose registration is under way.
    pub(crate) registering: Option<Handle>,
    /// A registration that is being undone.
    pub(crate) unbinding: Option<Binding>,
    pub(crate) kept_sockets: KeptSockets,
    /// Of the request that is being answered.
    pub(crate) progress: Progress,
    pub(crate) busy: Busy,
    pub(crate) closings: Closings,
}

impl Registry {
    pub fn new(settings: Settings) -> Registry {
        Registry {
            handles: Handles::default(),
            ports: Ports::default(),
            regions: Regions::new(settings.global_region, settings.memory_per_user)
                .with_accounts(settings.accounts.clone()),
            bridges: Bridges::new(&settings),
            settings,
            shared: HashMap::new(),
            watches: Watches::default(),
            leftovers: Leftovers::default(),
            freed: false,
            expected: Expected::default(),
            notices: Notices::default(),
            last_monitors: 0,
            steerings: Steerings::default(),
            registering: None,
            unbinding: None,
            kept_sockets: KeptSockets::default(),
            progress: Progress::default(),
            busy: Busy::default(),
            closings: Closings::default(),
        }
    }

    /// A new, unbound handle.
    pub fn open(&mut self) -> Handle {
        self.handles.open(None)
    }

    /// The last reference to a handle has gone: its port, if it was bound, is let go, and what it
    /// steered is undone.
    pub fn close(&mut self, handle: Handle) {
        self.regions.begin_request();
        for steering in self.steerings.take(handle) {
            self.close_off_loop(steering.subject(), steering, None);
        }
        self.unregister(handle);
        self.handles.close(handle);
        self.kept_sockets.refresh();
    }

    /// The handle stays open, and is bound to nothing.
    pub(crate) fn unregister(&mut self, handle: Handle) {
        if let Some(binding) = self.handles.unbind(handle) {
            self.unbind(binding);
        }
    }

    /// Does what is left to do for clients that have gone, for a moment. `Some`: call again by then.
    pub fn housekeeping(&mut self) -> Option<Duration> {
        let (walked, more) = self.regions.walk_lists();
        self.freed |= walked;
        if more {
            return Some(Duration::ZERO);
        }
        self.regions.look_from_time_to_time()
    }

    /// What the operator should know of, if there is anything: call it now and then, for a log. It says
    /// nothing within some seconds of what it has said.
    pub fn notices(&mut self) -> Vec<String> {
        self.notices.of(&mut self.bridges)
    }

    /// Open handles.
    pub fn handles(&self) -> usize {
        self.handles.len()
    }

    /// Whether anything was set up that is to outlive the handle that asked for it.
    pub fn keeps_something(&self) -> bool {
        !self.expected.is_empty()
            || self.bridges.any_kept()
            || self.ports.iter().any(|(_, port)| port.backend.is_set_up())
    }

    /// Answers one request, however long that takes. The descriptors belong to the reply; a
    /// [`Reply::Granted`] counts on their order.
    ///
    /// A refused request changes nothing. EBUSY if another request that was [begun](Self::begin) is
    /// working on the same.
    pub fn call(
        &mut self,
        handle: Handle,
        caller: &Caller,
        request: Request,
    ) -> Result<(Reply, Vec<OwnedFd>)> {
        let mut progress = Progress::default();
        loop {
            match self.begin(handle, caller, &request, &mut progress) {
                Step::Answered(result) => return result,
                Step::Do(work) => progress.put(work.run()),
                Step::Wait(Subject::Memory(account)) => self.free_all(account),
                Step::Wait(_) => {
                    self.end(progress);
                    return Err(Error::busy("being set up for another program")
                        .at(request.name())
                        .remedy("try again"));
                }
            }
        }
    }

    /// As far as it goes without waiting for anything.
    pub(crate) fn answer(
        &mut self,
        handle: Handle,
        caller: &Caller,
        request: Request,
    ) -> Result<(Reply, Vec<OwnedFd>)> {
        let plain = |reply| Ok((reply, Vec::new()));
        self.regions.begin_request();
        self.handle_events();
        self.regions.look_at_retired(caller.uid);
        if matches!(request, Request::Register { .. }) {
            self.kept_sockets.refresh();
        }
        check_name(request.name())?;
        let granted = interfaces::granted(caller, request.name())?;
        let caller = granted.as_ref().unwrap_or(caller);
        self.check_may_make(caller.uid, &request)?;
        match request {
            Request::Register { name, registration, options } => {
                if !self.handles.is_open(handle) {
                    return Err(Error::new(Cause::Closed, "the handle is closed").at(name));
                }
                let is_bound = self.handles.is_bound(handle);
                self.registering = (!is_bound).then_some(handle);
                let registered = self.register(handle, caller, &name, registration, *options);
                registered.inspect_err(|_| self.registering = None)?;
                let fits = self.check_descriptors(caller.uid, 0);
                let fits = fits.and_then(|()| self.regions.check_asked(caller.uid, 0));
                // The client never learns of it, so it must not be.
                let answer = fits.and_then(|()| self.describe(handle, true));
                let answer = answer.inspect_err(|_| self.unregister(handle));
                self.registering = None;
                answer
            }
            Request::Unregister => {
                self.handles.binding(handle)?;
                self.unregister(handle);
                plain(Reply::Done)
            }
            Request::Describe => self.describe(handle, false),
            Request::Barrier => {
                Err(Error::new(Cause::Unsupported, "a registry has no connections")
                    .remedy("ask its daemon for another one"))
            }
            Request::Mirrors { dir, index } => Monitor::grant(self, handle, dir, index),
            Request::Stack => Ok((Reply::Done, vec![self.stack_socket(handle)?])),
            Request::PortGeometry { name, mem_id } => {
                plain(Reply::PortGeometry(self.port_geometry(caller, &name, mem_id)?))
            }
            Request::Pools { name, mem_id } => {
                plain(Reply::Pools(self.pools(caller, &name, mem_id)?))
            }
            Request::NewInterface { name, shape } => {
                plain(Reply::NewInterface(Persistent::create(self, caller, &name, shape)?))
            }
            Request::DeleteInterface { name } => {
                Persistent::delete(self, caller, &name)?;
                plain(Reply::Done)
            }
            Request::SetHeaderLen { name, len } => {
                self.set_header(caller, &name, len)?;
                plain(Reply::Done)
            }
            Request::HeaderLen { name } => plain(Reply::HeaderLen(self.header(caller, &name)?)),
            Request::SwitchAttach { name, stack, all_rings, mem_id, mode } => {
                let how = Attach { stack, all_rings, mem_id, mode };
                plain(Reply::Index(self.switch_attach(caller, &name, &how)?))
            }
            Request::SwitchDetach { name } => {
                plain(Reply::Index(self.switch_detach(caller, &name)?))
            }
            Request::SwitchDetachAll { bridge, ports } => {
                self.switch_detach_all(caller, &bridge, &ports)?;
                plain(Reply::Done)
            }
            Request::SwitchFind { name, from } => {
                let (name, at) = self.switch_find(&name, from)?;
                plain(Reply::SwitchFound { name, at })
            }
            Request::SwitchPoll { name, enable, polling } => {
                self.switch_poll(caller, &name, enable, polling)?;
                plain(Reply::Done)
            }
            Request::SetFilter { name, rings, filter } => {
                self.set_filter(handle, caller, &name, rings, filter)?;
                plain(Reply::Done)
            }
            Request::RedirectQueues { name, queues, to_program } => {
                self.redirect_queues(caller, &name, &queues, to_program)?;
                plain(Reply::Done)
            }
            Request::Steer { interface, queue, flows } => {
                let steered = self.steer(handle, caller, &interface, queue, &flows)?;
                plain(Reply::Steered(steered))
            }
            Request::Parameters => plain(Reply::Parameters(self.parameters())),
            Request::SwitchNew { bridge, one_address } => {
                self.switch_new(caller, &bridge, one_address)?;
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
            Request::Switches { from } => {
                let (switches, next) = self.switches_info(from);
                plain(Reply::Switches { switches, next })
            }
            Request::Ports { from } => {
                let (ports, next) = self.ports_info(from);
                plain(Reply::Ports { ports, next })
            }
            Request::Rings { port, from } => {
                let (rings, next) = self.rings_info(port, from)?;
                plain(Reply::Rings { rings, next })
            }
            Request::Regions { from } => {
                let (regions, next) = self.regions.info(from);
                plain(Reply::Regions { regions, next })
            }
        }
    }

    #[expect(
        clippy::expect_used,
        reason = "a port refers to others only while these are in the book"
    )]
    pub(crate) fn port(&self, id: PortId) -> &Port {
        self.ports.get(id).expect("ids are handed out for ports in the book only")
    }

    #[expect(
        clippy::expect_used,
        reason = "a port refers to others only while these are in the book"
    )]
    pub(crate) fn port_mut(&mut self, id: PortId) -> &mut Port {
        crate::fault::step();
        self.ports.get_mut(id).expect("ids are handed out for ports in the book only")
    }

    /// The port, if the caller may decide what becomes of it: its user, and root.
    pub(crate) fn managed(&self, id: PortId, caller: &Caller) -> Result<PortId> {
        if caller.uid == 0 { Ok(id) } else { self.owned(id, caller) }
    }

    /// The port, if it is the caller's: ports of other users are not shared (the region would
    /// be). Not even root's programs get what another user can write to, unless
    /// [they ask for it](Registry::others_port).
    pub(crate) fn owned(&self, id: PortId, caller: &Caller) -> Result<PortId> {
        let port = self.port(id);
        if port.uid == caller.uid || port.shared_with == Some(caller.uid) {
            return Ok(id);
        }
        let or_ask = match caller.uid {
            0 => format!(", or share that user's memory: {}@user={}", port.name, port.uid),
            _ => String::new(),
        };
        Err(Error::busy(format!("in use by user {}", port.uid))
            .at(&port.name)
            .remedy(format!("choose another port name{or_ask}")))
    }

    /// The port that is found by `key`, if it is of kind `K`.
    pub(crate) fn find<K: PortBackend>(&self, key: &str) -> Option<PortId> {
        self.ports.named(key).filter(|&id| self.port(id).is::<K>())
    }

    /// Enters a port that nothing refers to yet; see [`Registry::reap`].
    pub(crate) fn add_port(
        &mut self,
        name: &str,
        key: Option<String>,
        uid: u32,
        region: RegionKey,
        backend: impl PortBackend,
    ) -> PortId {
        self.regions.hold(region);
        self.ports.add(name, key, uid, region, backend)
    }

    /// Removes the port if nothing refers to it any more, and then what only it held.
    pub(crate) fn reap(&mut self, id: PortId) {
        let Some(port) = self.ports.get(id) else { return };
        let used = port.bindings + port.children + port.awaited > 0;
        if !used && !port.backend.stays(self) {
            (port.backend.actions().reclaim)(self, id);
        }
    }

    /// Strikes a port, whose rings are freed, from the book.
    pub(crate) fn remove(&mut self, id: PortId) {
        self.watches.remove(id);
        if let Some(port) = self.ports.remove(id) {
            self.expected.changed |= port.backend.is_set_up();
            let (region, subject) = (port.region, port.backend.closes_slowly(&port));
            let Port { backend, .. } = port;
            if let Some(subject) = subject {
                self.close_off_loop(subject, backend, None);
            }
            // Its rings, which held the region, have gone.
            self.regions.release(region);
        }
    }

    /// Frees the rings of a port and their buffers.
    pub(crate) fn free_rings(&mut self, id: PortId) {
        let Some(port) = self.ports.get_mut(id) else { return };
        let book = self.regions.get(port.region);
        port.host.open = false;
        for ring in port.tx.drain(..).chain(port.rx.drain(..)) {
            crate::port::free_ring(book, &ring);
        }
    }
}
