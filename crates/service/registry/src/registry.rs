//! The registry itself: handles, and the one call through which everything goes.

use std::{collections::HashMap, sync::Arc, time::Duration};

use ringway_proto::{Error, Reply, Request, Result};
use rustix::fd::OwnedFd;

use crate::{
    bridges::Bridges,
    caller::Caller,
    conflicts::NameConflicts,
    deferred::{Deferred, Progress, Step},
    draining::Leftovers,
    expected::Expected,
    handles::{Binding, Handle, Handles},
    kept_sockets::KeptSockets,
    kinds::PortBackend,
    link_events::Watches,
    notices::{Notice, Notices},
    port::{Port, PortId},
    ports::Ports,
    regions::{RegionKey, Regions},
    settings::Settings,
    shared_nic::SharedNic,
    steering::{Janitor, Steerings},
    subject::{NicKey, Subject},
};

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
    /// What a registry before this one had.
    pub(crate) expected: Expected,
    pub(crate) notices: Notices,
    pub(crate) conflicts: NameConflicts,
    /// Generation of monitors that was announced last.
    pub(crate) last_monitors: u32,
    pub(crate) steerings: Steerings,
    /// The handle whose registration is under way.
    pub(crate) registering: Option<Handle>,
    /// A registration that is being undone.
    pub(crate) unbinding: Option<Binding>,
    pub(crate) kept_sockets: KeptSockets,
    pub(crate) deferred: Deferred,
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
            expected: Expected::default(),
            notices: Notices::default(),
            conflicts: NameConflicts::default(),
            last_monitors: 0,
            steerings: Steerings::default(),
            registering: None,
            unbinding: None,
            kept_sockets: KeptSockets::default(),
            deferred: Deferred::default(),
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
            self.deferred.close_off_loop(steering.subject(), steering);
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
        if self.regions.walk_lists() {
            return Some(Duration::ZERO);
        }
        self.regions.look_from_time_to_time()
    }

    /// From now on `janitor` undoes what is left when this process ends.
    pub fn set_janitor(&mut self, janitor: Arc<dyn Janitor>) {
        self.steerings.janitor = Some(janitor);
    }

    /// What the operator should know of, if there is anything: call it now and then, for a log. It says
    /// nothing within some seconds of what it has said.
    pub fn notices(&mut self) -> Vec<Notice> {
        self.notices.of(&mut self.bridges, &mut self.conflicts)
    }

    /// Open handles.
    pub fn handles(&self) -> usize {
        self.handles.len()
    }

    /// Whether anything was set up that is to outlive the handle that asked for it.
    pub fn keeps_something(&self) -> bool {
        self.expected.is_needed()
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
                Step::Wait(Subject::Memory(account)) => {
                    let drained = self.leftovers.free_all(account, &mut self.regions);
                    self.drained(drained);
                }
                Step::Wait(_) => {
                    self.end(progress);
                    return Err(Error::busy("being set up for another program")
                        .at(request.name())
                        .remedy("try again"));
                }
            }
        }
    }

    /// For a port of a switch: the user whose the switch is.
    pub(crate) fn switch_owner(&self, port: &Port) -> Option<u32> {
        self.bridges.owner(&port.backend.bridge_ports().first()?.bridge)
    }

    /// A port in the book.
    pub(crate) fn port(&self, id: PortId) -> &Port {
        self.ports.port(id)
    }

    pub(crate) fn port_mut(&mut self, id: PortId) -> &mut Port {
        self.ports.port_mut(id)
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
        let removed = self.ports.remove(id);
        // A port without a watch has lost its interface: so that comes second.
        self.watches.remove(id);
        if let Some(port) = removed {
            self.expected.changed |= port.backend.is_set_up();
            let (region, subject) = (port.region, port.backend.closes_slowly(&port));
            let Port { backend, .. } = port;
            if let Some(subject) = subject {
                self.deferred.close_off_loop(subject, backend);
            }
            // Its rings, which held the region, have gone.
            self.regions.release(region);
        }
    }
}
