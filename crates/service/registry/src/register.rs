//! Registration: a handle takes rings of a port (S-REG), and lets them go.

use ringway_abi::Dir;
use ringway_proto::{Cause, Error, OptionStatus, Options, Registration, Result, Statuses};
use ringway_region::{Region, Span};

use crate::{
    actions::WantedAction,
    caller::Caller,
    handles::{Binding, Handle},
    host,
    interfaces::{self, mode_request},
    keys::key_of,
    kinds::{
        OpenRequest,
        monitor::{self, Monitor},
        nic::Nic,
        nic_filters::{Asked, RuleChange, check_joined},
        pipe::Pipe,
    },
    name::PortName,
    netif::make_netif,
    nic_mode::ModeRequest,
    port::{Port, PortId},
    registry::Registry,
    selection::{Selection, select},
};

/// Rings of one binding at most: a pipe's. Each costs the client three descriptors.
const MAX_RINGS: usize = 512;

impl Registry {
    /// A program has the port that it asked for.
    pub(crate) fn note_opened(&mut self, handle: Handle) {
        let Some(port) = self.handles.binding(handle).ok().and_then(|it| self.ports.get(it.port))
        else {
            return;
        };
        let side = port.backend.switch_side();
        if let Some(bridge_port) = side.and_then(|side| side.bridge_port.as_ref()) {
            self.bridges.note_opened(&bridge_port.bridge, port.uid);
        }
    }

    /// Binds a handle to rings of a port (S-REG).
    pub(crate) fn register(
        &mut self,
        handle: Handle,
        caller: &Caller,
        name: &str,
        mut reg: Registration,
        mut options: Options,
        action: Option<WantedAction>,
    ) -> Result<()> {
        if self.handles.is_bound(handle) {
            return Err(Error::busy("this descriptor is bound to a port already")
                .at(name)
                .remedy("open another one"));
        }
        let (mut extmem, mut granted) = (OptionStatus::Unseen, None);
        let region = match &mut options.extmem {
            Some(asked) => {
                let at = |e: Error| {
                    let options =
                        Statuses { extmem: OptionStatus::Refused(e.cause), ..Statuses::default() };
                    Error { options, ..e }
                };
                let before = self.deferred.progress.region.clone();
                let region = match before.filter(|(region, _)| self.regions.has(*region)) {
                    // Its rings are there already.
                    Some((region, granted)) => {
                        *asked = granted;
                        region
                    }
                    None => {
                        let headroom = headroom_for(caller, name)?;
                        self.regions.external(caller, asked, headroom).map_err(at)?
                    }
                };
                asked.mem_id = self.regions.get(region).region.mem_id();
                reg.mem_id = self.regions.get(region).region.mem_id();
                extmem = OptionStatus::Accepted;
                granted = Some(asked.clone());
                Some(region)
            }
            None if reg.mem_id != 0 => Some(self.regions.by_id(reg.mem_id, caller.uid)?),
            None => match options.buf_size {
                Some(size) if !monitor::is_asked(&reg) && headroom_for(caller, name)? > 0 => {
                    let region = self.regions.with_buffers(size, caller.uid)?;
                    reg.mem_id = self.regions.get(region).region.mem_id();
                    Some(region)
                }
                _ => None,
            },
        };
        let result = self.register_on(handle, caller, name, reg, options, action);
        let goes_on = self.deferred.progress.is_waiting() || caller.lookups.is_any_wanted();
        match (region, granted) {
            (Some(region), Some(granted)) if goes_on => {
                self.deferred.progress.region = Some((region, granted));
            }
            (Some(region), _) => self.regions.drop_unused(region),
            (None, _) => {}
        }
        result.map_err(|e| Error { options: Statuses { extmem, ..e.options }, ..e })
    }

    fn register_on(
        &mut self,
        handle: Handle,
        caller: &Caller,
        name: &str,
        reg: Registration,
        options: Options,
        action: Option<WantedAction>,
    ) -> Result<()> {
        let request = OpenRequest { caller, name, reg: &reg, is_question: false };
        let id = match options.user.filter(|user| *user != caller.uid) {
            Some(other) if caller.uid == 0 && !name.contains(['{', '}']) => {
                others_port(self, &request, other)?
            }
            Some(other) => Pipe::find_or_make_shared(self, caller, name, &reg, other)?,
            None => self.look_up(&request)?,
        };
        let request = mode_request(caller, &options);
        let port = self.port(id);
        let result = check_buffers(port, self.regions.region(port.region), &options)
            .and_then(|()| self.bind(id, reg, options, request, action));
        match result {
            Ok(binding) => {
                self.handles.bind(handle, binding);
                Ok(())
            }
            Err(error) => {
                if !self.keep_if_begun_again(id) {
                    self.leave_unused(id);
                }
                Err(error)
            }
        }
    }

    fn bind(
        &mut self,
        id: PortId,
        mut reg: Registration,
        mut options: Options,
        request: ModeRequest,
        action: Option<WantedAction>,
    ) -> Result<Binding> {
        let port = self.port(id);
        let name = port.name.clone();
        port.backend.check_bind(port)?;
        if port.config.header_len != 0 && !reg.accept_header {
            return Err(Error::new(
                Cause::HeadersNotAccepted,
                format!(
                    "{name}: its packets have virtio-net headers of {} bytes; accept them \
                     (NR_ACCEPT_VNET_HDR), or set their length to 0",
                    port.config.header_len
                ),
            ));
        }
        let (shape, host) =
            (self.port(id).shape(&self.settings), port.backend.asked_host(port, &reg));
        let rings = select(&name, &reg, shape.rings, host)?;
        if rings[0].len() + rings[1].len() > MAX_RINGS {
            return Err(Error::no_memory(format!("more than {MAX_RINGS} rings at once"))
                .at(name)
                .remedy("open them one by one"));
        }
        let exclusive = reg.exclusive;
        port.check_free(&rings, exclusive)?;
        check_joined(port, &rings[1], options.filter.as_ref(), action.as_ref())?;
        self.port_mut(id).host.counts = host;
        let port = self.port(id);
        let (region, extra) = (port.region, reg.extra_bufs.min(port.backend.max_extra_bufs(port)));
        self.regions.get(region).ask(extra);
        let [queues, filter] = [leaves_queues(&rings, shape.rings), options.filter.is_some()];
        // Beside the traffic control not all frames of a veth pair tell their queue. Action programs are XDP's.
        let stack_first = filter && !queues && action.is_none();
        let request = ModeRequest {
            leaves_some: filter || queues,
            stack_first,
            shares_queue: filter,
            ..request
        };
        let actions = self.actions(id);
        (actions.bind)(self, id, &rings, request)?;
        if shape.has_host(&rings) {
            host::open(self, id)?;
        }
        let port = self.ports.port(id);
        let netif = make_netif(port, &port.shape(&self.settings), &rings, &mut self.regions)?;
        let extra_bufs =
            self.provide(id, &rings, reg.extra_bufs, &mut options, action).inspect_err(|_| {
                let region = self.port(id).region;
                self.regions.get(region).give_if(netif.object());
            })?;
        reg.extra_bufs = extra_bufs.iter().map(|span| span.count).sum();
        netif.grant_extra_bufs(reg.extra_bufs);
        let region = self.port(id).region;
        let book = self.regions.get(region);
        reg.mem_id = book.region.mem_id();
        reg.tx_rings = shape.rings[0] as u16;
        reg.rx_rings = shape.rings[1] as u16;
        [reg.tx_slots, reg.rx_slots] = shape.slots;
        [reg.host_tx_rings, reg.host_rx_rings] = host;

        self.port_mut(id).add_binding(&rings, exclusive);
        (actions.bound)(self, id, &mut reg);
        if options.offsets.is_some() || shape.has_host(&rings) {
            Monitor::update_mirrors_if_any(self, id);
        }
        self.users_changed(id);
        Ok(Binding {
            port: id,
            region,
            netif,
            rings,
            exclusive,
            forwards: false,
            registration: reg,
            options,
            extra_bufs,
        })
    }

    /// Gives a new binding what it asks for besides its rings: offsets, an action program, a filter, and as
    /// many of `extra_bufs` as there are.
    fn provide(
        &mut self,
        id: PortId,
        rings: &Selection,
        extra_bufs: u32,
        options: &mut Options,
        action: Option<WantedAction>,
    ) -> Result<Vec<Span>> {
        if let Some(asked) = &mut options.offsets {
            let port = self.ports.port_mut(id);
            let room = self.regions.region(port.region).layout().data_size();
            port.set_offsets(rings, asked, room).map_err(|e| {
                let options =
                    Statuses { offsets: OptionStatus::Refused(e.cause), ..Statuses::default() };
                Error { options, ..e }
            })?;
            let changed = self.actions(id).offsets_changed;
            for (dir, rings) in [Dir::Tx, Dir::Rx].into_iter().zip(rings) {
                rings.iter().for_each(|&ring| changed(self, id, dir, ring.into()));
            }
        }
        if let Some(action) = action {
            RuleChange::of_registration(self, id, &rings[1], Asked::Action(Some(action)))?;
        }
        match options.filter.take() {
            Some(filter) => {
                RuleChange::of_registration(self, id, &rings[1], Asked::Filter(Some(filter)))?;
            }
            None => RuleChange::drop_old(self, id, &rings[1])?,
        }
        let port = self.port(id);
        let region = port.region;
        let wanted = extra_bufs.min(port.backend.max_extra_bufs(port));
        let free = self.regions.get(region).free_bufs_for(wanted);
        let is_freeing = self.regions.get(region).is_freeing() || self.leftovers.any_in(region);
        if free < wanted && is_freeing {
            self.deferred.await_memory(self.regions.account_of(region))?;
        }
        let granted = wanted.min(free);
        let size = self.regions.region(region).layout().bufs.size;
        // The client's list takes up their memory.
        self.regions.check_asked_of(region, u64::from(granted) * u64::from(size))?;
        let book = self.regions.get(region);
        if let Some(extmem) = &mut options.extmem
            && extmem.copy_from.is_some()
        {
            extmem.copy_from = Some(book.fresh_bufs());
        }
        Ok(book.take_extra_bufs(granted))
    }

    /// Lets go of what a binding had (S-LIFE-7).
    pub(crate) fn unbind(&mut self, binding: Binding) {
        self.unbinding.insert(binding).return_objects(&mut self.regions);
        let Some(binding) = self.unbinding.take() else { return };
        let Binding { port: id, region, netif, rings, exclusive, forwards, .. } = binding;
        // It holds the region, which others may be about to free.
        drop(netif);
        self.ports.notify_waiters(id);
        // The client that kept rings from going may have gone now.
        self.regions.get(region).leave([]);
        let port = self.port_mut(id);
        port.remove_binding(&rings, exclusive);
        port.host.forwarders -= u32::from(forwards);
        self.users_changed(id);
        if self.port(id).bindings == 0 {
            Monitor::end_all(self, id);
        }
        if self.port(id).is_unused() {
            (self.actions(id).unbind)(self, id);
        }
        self.reap(id);
        self.reclaim_region(region);
    }

    /// The users of a port's rings are others than before.
    pub(crate) fn users_changed(&mut self, id: PortId) {
        if !self.port(id).gone {
            host::close(self, id);
            (self.actions(id).users_changed)(self, id);
        }
    }
}

/// Whether a binding does not receive on all of a port's queues.
fn leaves_queues([_, rx]: &Selection, [_, queues]: [u32; 2]) -> bool {
    let received = rx.iter().filter(|&&ring| u32::from(ring) < queues).count();
    received < queues as usize
}

/// Bytes that the rings of a new region are to leave free in front of data, by what is to
/// live in it.
fn headroom_for(caller: &Caller, name: &str) -> Result<u32> {
    let is_nic = matches!(PortName::parse(name, Cause::Invalid), Ok(PortName::Plain(_)))
        && interfaces::exists_if_known(name, caller)?;
    Ok(if is_nic { ringway_xdp::RX_HEADROOM } else { 0 })
}

/// A port that another user's programs have, or a monitor of it, for a program of root's that asks
/// for that user's.
fn others_port(registry: &mut Registry, request: &OpenRequest<'_>, other: u32) -> Result<PortId> {
    let key = match request.port_name()? {
        PortName::Plain(name) => key_of(name, other, request.caller),
        _ => request.name.into(),
    };
    let found = registry.ports.named(&key).filter(|&id| registry.port(id).uid == other);
    let id = found.ok_or_else(|| {
        Error::absent(format!("user {other} has no such port open"))
            .at(request.name)
            .remedy("`ringway ports` lists them")
    })?;
    match monitor::is_asked(request.reg) {
        true => Monitor::create_for(registry, request, id),
        false => Ok(id),
    }
}

/// EBUSY if an interface is in a region with buffers of another size than the one asked for.
fn check_buffers(port: &Port, memory: &Region, options: &Options) -> Result<()> {
    let (name, size) = (&port.name, memory.layout().bufs.size);
    match options.buf_size {
        Some(asked) if asked != size && port.is::<Nic>() => Err(Error::busy(format!(
            "{name}: it is in region {}, whose buffers have {size} bytes, not {asked}; close \
             what has it open, or open it with @buffers={size}",
            memory.mem_id()
        ))),
        _ => Ok(()),
    }
}
