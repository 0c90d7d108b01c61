//! Which request is answered by what.

use ringway_proto::{Cause, Error, Reply, Request, Result};
use rustix::fd::OwnedFd;

use crate::{
    actions::WantedAction,
    bind_reply::describe,
    bridges::Flush,
    caller::Caller,
    descriptors::takes_some,
    handles::Handle,
    header, host, info, interfaces,
    kinds::{
        attached::Attach, make_persistent::MakePersistent, monitor::Monitor, nic::Nic,
        nic_filters::Asked, nic_receiving::Receiving, persistent::Persistent,
    },
    lasting::LastingAddress,
    name::check_name,
    polling,
    registry::Registry,
    steer::Steer,
    switch_ports, switches, taken_names,
};

impl Registry {
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
        taken_names::check(&self.bridges, caller, &request)?;
        let granted = interfaces::granted(caller, request.name())?;
        // What else a request names is not granted with it.
        let asker = caller;
        let caller = granted.as_ref().unwrap_or(caller);
        if takes_some(&request) {
            // So no user is above the limit by more than a single port. A port that stays for the request
            // counts already.
            let more = usize::from(self.deferred.kept_for_request().is_none());
            self.check_descriptors(caller.uid, more)?;
        }
        match request {
            Request::Register { name, registration, mut options } => {
                if !self.handles.is_open(handle) {
                    return Err(Error::new(Cause::Closed, "the handle is closed").at(name));
                }
                let is_bound = self.handles.is_bound(handle);
                self.registering = (!is_bound).then_some(handle);
                let action = options.action.take();
                let action = action.map(|action| WantedAction::new(asker, &name, action));
                let registered = action.transpose().and_then(|action| {
                    self.register(handle, caller, &name, registration, *options, action)
                });
                registered.inspect_err(|_| self.registering = None)?;
                let fits = self.check_descriptors(caller.uid, 0);
                let fits = fits.and_then(|()| self.regions.check_asked(caller.uid, 0));
                // The client never learns of it, so it must not be.
                let answer = fits.and_then(|()| describe(self, handle, caller, true));
                let answer = answer.inspect_err(|_| self.unregister(handle));
                if answer.is_ok() {
                    self.note_opened(handle);
                }
                self.registering = None;
                answer
            }
            Request::Unregister => {
                self.handles.binding(handle)?;
                self.unregister(handle);
                plain(Reply::Done)
            }
            Request::Describe => describe(self, handle, caller, false),
            Request::Barrier => {
                Err(Error::new(Cause::Unsupported, "a registry has no connections")
                    .remedy("ask its daemon for another one"))
            }
            Request::Daemon => Err(Error::new(Cause::Unsupported, "a registry is not the daemon")
                .remedy("ask its daemon")),
            Request::Events { .. } | Request::LogLevel(_) => {
                Err(Error::new(Cause::Unsupported, "a registry has no log").remedy("ask a daemon"))
            }
            #[cfg(feature = "next")]
            Request::Next(number) => plain(Reply::Index(number)),
            Request::Mirrors { dir, index } => Monitor::grant(self, handle, dir, index),
            Request::Stack => host::open_way(self, handle),
            Request::PortGeometry { name, mem_id } => {
                plain(Reply::PortGeometry(info::port_geometry(self, caller, &name, mem_id)?))
            }
            Request::Pools { name, mem_id } => {
                plain(Reply::Pools(info::pools(self, caller, &name, mem_id)?))
            }
            Request::NewInterface { name, shape } => {
                let plan = MakePersistent::plan(self, caller, &name, shape)?;
                Err(plan.carry_out(self))
            }
            Request::DeleteInterface { name } => {
                Persistent::delete(self, caller, &name)?;
                plain(Reply::Done)
            }
            Request::SetHeaderLen { name, len } => {
                let Registry { ports, bridges, regions, .. } = self;
                header::set(ports, bridges, regions, caller, &name, len)?;
                plain(Reply::Done)
            }
            Request::HeaderLen { name } => {
                plain(Reply::HeaderLen(header::get(&self.ports, caller, &name)?))
            }
            Request::SwitchAttach { name, stack, all_rings, mem_id, mode } => {
                let how = Attach { stack, all_rings, mem_id, mode };
                plain(switch_ports::attach(self, caller, &name, &how)?)
            }
            Request::SwitchDetach { name } => {
                plain(Reply::Index(switch_ports::detach(self, caller, &name)?))
            }
            Request::SwitchDetachAll { bridge, ports } => {
                switch_ports::detach_all(self, caller, &bridge, &ports)?;
                plain(Reply::Done)
            }
            Request::SwitchFind { name, from } => {
                let (name, at) = self.bridges.position(&name, from)?;
                plain(Reply::SwitchFound { name, at })
            }
            Request::SwitchPoll { name, enable, polling } => {
                let Registry { ports, bridges, .. } = self;
                polling::choose(ports, bridges, caller, &name, enable, polling)?;
                plain(Reply::Done)
            }
            Request::SetFilter { name, rings, filter } => {
                let receiving = Receiving { handle, name, which: rings };
                Asked::Filter(filter).answer(self, caller, receiving)
            }
            Request::SetAction { name, rings, action } => {
                let action = action.map(|action| WantedAction::new(asker, &name, action));
                let receiving = Receiving { handle, name, which: rings };
                Asked::Action(action.transpose()?).answer(self, caller, receiving)
            }
            Request::RedirectQueues { name, queues, to_program } => {
                Nic::redirect_queues(self, caller, &name, &queues, to_program)?;
                plain(Reply::Done)
            }
            Request::Steer { interface, queue, flows } => {
                let wanted = (queue, flows);
                let steer = Steer::plan(&self.steerings, handle, caller, &interface, wanted)?;
                Err(steer.carry_out(self))
            }
            Request::NameConflicts => {
                let info = self.conflicts.info(caller.uid, &caller.reservations);
                plain(Reply::NameConflicts(info))
            }
            Request::Parameters => plain(Reply::Parameters(self.settings.parameters())),
            Request::SwitchNew { bridge, one_address } => {
                self.bridges.keep(caller, &bridge, one_address)?;
                plain(Reply::Done)
            }
            Request::SwitchDelete { bridge } => {
                switches::delete(self, caller, &bridge)?;
                plain(Reply::Done)
            }
            Request::SwitchForward { bridge, forwarding } => {
                self.bridges.choose_forwarding(caller, &bridge, forwarding)?;
                plain(Reply::Done)
            }
            Request::SwitchMulticast { bridge, multicast } => {
                self.bridges.choose_multicast(caller, &bridge, multicast)?;
                plain(Reply::Done)
            }
            Request::SwitchGroups { bridge, from } => {
                let Registry { bridges, deferred, .. } = self;
                let (groups, next) = bridges.groups(caller, &bridge, from, deferred)?;
                plain(Reply::SwitchGroups { groups, next })
            }
            Request::SwitchMirrorAdd { bridge, mirror } => {
                self.bridges.add_mirror(caller, &bridge, *mirror)?;
                plain(Reply::Done)
            }
            Request::SwitchMirrorDelete { bridge, mirror } => {
                self.bridges.delete_mirror(caller, &bridge, &mirror)?;
                plain(Reply::Done)
            }
            Request::SwitchPort { name, settings } => {
                self.bridges.configure_port(caller, &name, settings)?;
                plain(Reply::Done)
            }
            Request::Switches { from } => {
                let (switches, next) = info::switches(self, from);
                plain(Reply::Switches { switches, next })
            }
            Request::SwitchAddresses { bridge, from } => {
                let Registry { bridges, deferred, .. } = self;
                let (addresses, next) = bridges.addresses(caller, &bridge, from, deferred)?;
                plain(Reply::SwitchAddresses { addresses, next })
            }
            Request::SwitchAddressAdd { bridge, mac, vlan, port } => {
                let address = LastingAddress { mac, vlan, port };
                self.bridges.add_address(caller, &bridge, address)?;
                plain(Reply::Done)
            }
            Request::SwitchAddressDelete { bridge, mac, vlan } => {
                self.bridges.delete_address(caller, &bridge, mac, vlan)?;
                plain(Reply::Done)
            }
            Request::SwitchAddressesFlush { bridge, port, vlan, added } => {
                let flush = Flush { port, vlan, added };
                self.bridges.flush_addresses(caller, &bridge, flush)?;
                plain(Reply::Done)
            }
            Request::Ports { from } => {
                let (ports, next) = info::ports(self, from);
                plain(Reply::Ports { ports, next })
            }
            Request::Rings { port, from } => {
                let port = self.ports.get(port);
                let port = port.ok_or_else(|| Error::absent("the port has gone"))?;
                let (rings, next) = port.rings_info(from);
                plain(Reply::Rings { rings, next })
            }
            Request::DeviceCounters { port, from } => {
                let (counters, next) = self.device_counters(caller, port, from)?;
                plain(Reply::DeviceCounters { counters, next })
            }
            Request::Regions { from } => {
                let (regions, next) = self.regions.info(from);
                plain(Reply::Regions { regions, next })
            }
        }
    }
}
