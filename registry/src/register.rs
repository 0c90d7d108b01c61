//! Registration: a handle takes rings of a port (S-REG), and lets them go.

use ringway_abi::{Dir, NI_PRIV_MEM};
use ringway_proto::{Cause, Error, Offsets, OptionStatus, Options, Registration, Result, Statuses};
use ringway_region::{NetifView, RingOffsets};

use crate::{
    handles::{Binding, Handle},
    interfaces::{self, mode_request},
    kinds::{
        OpenRequest,
        monitor::{self, Monitor, no_offsets},
        nic::Nic,
        pipe::Pipe,
    },
    name::{PortName, key_of},
    nic_mode::ModeRequest,
    options::{join, mask},
    port::PortId,
    regions::RegionKey,
    registry::{Caller, Registry},
    selection::{Selection, select},
};

/// Rings of one binding at most: a pipe's. Each costs the client three descriptors.
const MAX_RINGS: usize = 512;

impl Registry {
    /// Binds a handle to rings of a port (S-REG).
    pub(crate) fn register(
        &mut self,
        handle: Handle,
        caller: &Caller,
        name: &str,
        mut reg: Registration,
        mut options: Options,
    ) -> Result<()> {
        if self.handles.is_bound(handle) {
            return Err(Error::busy("this descriptor is bound to a port already")
                .at(name)
                .remedy("open another one"));
        }
        let mut extmem = OptionStatus::Unseen;
        let region = match &mut options.extmem {
            Some(asked) => {
                let at = |e: Error| {
                    let options =
                        Statuses { extmem: OptionStatus::Refused(e.cause), ..Statuses::default() };
                    Error { options, ..e }
                };
                let before = self.progress.region.filter(|&region| self.regions.has(region));
                let region = match before {
                    // Its rings are there already.
                    Some(region) => region,
                    None => {
                        let headroom = self.headroom_for(caller, name);
                        self.regions.external(caller, asked, headroom).map_err(at)?
                    }
                };
                asked.mem_id = self.regions.get(region).region.mem_id();
                reg.mem_id = self.regions.get(region).region.mem_id();
                extmem = OptionStatus::Accepted;
                Some(region)
            }
            None if reg.mem_id != 0 => Some(self.regions.by_id(reg.mem_id, caller.uid)?),
            None => match options.buf_size {
                Some(size) if self.headroom_for(caller, name) > 0 && !monitor::is_asked(&reg) => {
                    let region = self.regions.with_buffers(size, caller.uid)?;
                    reg.mem_id = self.regions.get(region).region.mem_id();
                    Some(region)
                }
                _ => None,
            },
        };
        let result = self.register_on(handle, caller, name, reg, options);
        match region {
            Some(region) if extmem != OptionStatus::Unseen && self.progress.is_waiting() => {
                self.progress.region = Some(region);
            }
            Some(region) => self.regions.drop_unused(region),
            None => {}
        }
        result.map_err(|e| Error { options: Statuses { extmem, ..e.options }, ..e })
    }

    /// Bytes that the rings of a new region are to leave free in front of data, by what is to
    /// live in it.
    fn headroom_for(&mut self, caller: &Caller, name: &str) -> u32 {
        let is_nic = matches!(PortName::parse(name, Cause::Invalid), Ok(PortName::Plain(_)))
            && interfaces::exists(name, caller).unwrap_or(false);
        if is_nic { ringway_xdp::RX_HEADROOM } else { 0 }
    }

    fn register_on(
        &mut self,
        handle: Handle,
        caller: &Caller,
        name: &str,
        reg: Registration,
        options: Options,
    ) -> Result<()> {
        let request = OpenRequest { caller, name, reg: &reg };
        let id = match options.user.filter(|user| *user != caller.uid) {
            Some(other) if caller.uid == 0 && !name.contains(['{', '}']) => {
                self.others_port(&request, other)?
            }
            Some(other) => Pipe::find_or_make_shared(self, caller, name, &reg, other)?,
            None => self.look_up(&request)?,
        };
        let request = mode_request(caller, name, &options);
        let result =
            self.check_buffers(id, &options).and_then(|()| self.bind(id, reg, options, request));
        match result {
            Ok(binding) => {
                self.handles.bind(handle, binding);
                Ok(())
            }
            Err(error) => {
                if self.progress.is_waiting() {
                    self.keep_for_request(id);
                } else {
                    self.leave_unused(id);
                }
                Err(error)
            }
        }
    }

    /// A port that another user's programs have, or a monitor of it, for a program of root's that asks
    /// for that user's.
    fn others_port(&mut self, request: &OpenRequest<'_>, other: u32) -> Result<PortId> {
        let key = match request.port_name()? {
            PortName::Plain(name) => key_of(name, other, request.caller),
            _ => request.name.into(),
        };
        let found = self.ports.named(&key).filter(|&id| self.port(id).uid == other);
        let id = found.ok_or_else(|| {
            Error::absent(format!("user {other} has no such port open"))
                .at(request.name)
                .remedy("`ringway ports` lists them")
        })?;
        match monitor::is_asked(request.reg) {
            true => Monitor::create_for(self, request, id),
            false => Ok(id),
        }
    }

    /// EBUSY if an interface is in a region with buffers of another size than the one asked for.
    fn check_buffers(&mut self, id: PortId, options: &Options) -> Result<()> {
        let port = self.port(id);
        if !port.is::<Nic>() {
            return Ok(());
        }
        let (name, region) = (port.name.clone(), port.region);
        let memory = &self.regions.get(region).region;
        let size = memory.layout().bufs.size;
        match options.buf_size {
            Some(asked) if asked != size => Err(Error::busy(format!(
                "{name}: it is in region {}, whose buffers have {size} bytes, not {asked}; close \
                 what has it open, or open it with @buffers={size}",
                memory.mem_id()
            ))),
            _ => Ok(()),
        }
    }

    fn bind(
        &mut self,
        id: PortId,
        mut reg: Registration,
        mut options: Options,
        request: ModeRequest,
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
        let (shape, host) = (self.shape_of(id), port.backend.asked_host(port, &reg));
        let rings = select(&name, &reg, shape.rings, host)?;
        if rings[0].len() + rings[1].len() > MAX_RINGS {
            return Err(Error::no_memory(format!("more than {MAX_RINGS} rings at once"))
                .at(name)
                .remedy("open them one by one"));
        }
        let exclusive = reg.exclusive;
        for (dir, wanted) in [Dir::Tx, Dir::Rx].into_iter().zip(&rings) {
            for ring in wanted.iter().filter_map(|&i| port.rings(dir).get(usize::from(i))) {
                // S-REG-5, S-REG-6.
                if ring.exclusive || (exclusive && ring.users > 0) {
                    return Err(Error::busy("in use by another program")
                        .at(name)
                        .remedy("close it, or do not ask for exclusive use"));
                }
            }
        }
        self.port_mut(id).host.counts = host;
        let actions = self.actions(id);
        (actions.bind)(self, id, &rings, request)?;
        if shape.has_host(&rings) {
            self.open_host(id)?;
        }
        let netif = self.make_netif(id, &rings)?;
        if let Some(asked) = &mut options.offsets {
            self.set_offsets(id, &rings, asked).map_err(|e| {
                let region = self.port(id).region;
                self.regions.get(region).give_if(netif.object());
                let options =
                    Statuses { offsets: OptionStatus::Refused(e.cause), ..Statuses::default() };
                Error { options, ..e }
            })?;
        }

        if let Some(filter) = options.filter.take() {
            self.install_filter(id, &rings[1], Some(filter)).inspect_err(|_| {
                let region = self.port(id).region;
                self.regions.get(region).give_if(netif.object());
            })?;
        } else {
            self.drop_old_filters(id, &rings[1]).inspect_err(|_| {
                let region = self.port(id).region;
                self.regions.get(region).give_if(netif.object());
            })?;
        }

        let port = self.port(id);
        let most = port.backend.max_extra_bufs(port);
        let region = port.region;
        let wanted = reg.extra_bufs.min(most);
        let free = self.regions.get(region).free_bufs_for(wanted);
        if free < wanted {
            self.await_freed(region).inspect_err(|_| {
                self.regions.get(region).give_if(netif.object());
            })?;
        }
        let extra_bufs = wanted.min(free);
        let size = self.regions.region(region).layout().bufs.size;
        // The client's list takes up their memory.
        let more = u64::from(extra_bufs) * u64::from(size);
        self.regions.check_asked_of(region, more).inspect_err(|_| {
            self.regions.get(region).give_if(netif.object());
        })?;
        let book = self.regions.get(region);
        if let Some(extmem) = &mut options.extmem
            && extmem.copy_from.is_some()
        {
            extmem.copy_from = Some(book.fresh_bufs());
        }
        let extra_bufs = book.take_extra_bufs(extra_bufs);
        reg.extra_bufs = extra_bufs.iter().map(|span| span.count).sum();
        netif.grant_extra_bufs(reg.extra_bufs);
        reg.mem_id = book.region.mem_id();
        reg.tx_rings = shape.rings[0] as u16;
        reg.rx_rings = shape.rings[1] as u16;
        [reg.tx_slots, reg.rx_slots] = shape.slots;
        [reg.host_tx_rings, reg.host_rx_rings] = host;

        let port = self.port_mut(id);
        for (dir, taken) in [Dir::Tx, Dir::Rx].into_iter().zip(&rings) {
            for &i in taken {
                let Some(ring) = port.rings_mut(dir).get_mut(usize::from(i)) else { continue };
                ring.users += 1;
                ring.exclusive = exclusive;
            }
        }
        port.bindings += 1;
        port.update_receives();
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

    /// Installs offsets in the rings of a new binding (S-OFF-1..4).
    fn set_offsets(&mut self, id: PortId, rings: &Selection, asked: &mut Offsets) -> Result<()> {
        let port = self.port(id);
        let name = port.name.clone();
        let [tx, rx] = rings;
        let nic = |dir, taken: &[u16]| {
            let count = port.nic_rings(dir).len();
            taken.iter().all(|&i| usize::from(i) < count)
        };
        let host = !nic(Dir::Tx, tx) || !nic(Dir::Rx, rx);
        if host {
            return Err(no_offsets(&name));
        }
        port.backend.check_offsets(port, asked, !rx.is_empty())?;
        let region = port.region;
        let mask = mask(asked, &name, self.regions.get(region).region.layout().data_size())?;
        let chosen =
            |dir: Dir| if dir == Dir::Tx { tx } else { rx }.iter().map(|&i| usize::from(i));
        let mut joined = [Vec::new(), Vec::new()];
        for (dir, joined) in [Dir::Tx, Dir::Rx].into_iter().zip(&mut joined) {
            let before = |i: usize| self.port(id).rings(dir).get(i).and_then(|ring| ring.offsets);
            *joined = chosen(dir)
                .map(|i| join(asked, &name, mask, before(i)))
                .collect::<Result<Vec<_>>>()?;
        }
        for (dir, joined) in [Dir::Tx, Dir::Rx].into_iter().zip(joined) {
            for (i, offsets) in chosen(dir).zip(joined) {
                let Some(ring) = self.port_mut(id).rings_mut(dir).get_mut(i) else { continue };
                let view = ring.kring.ring();
                offsets.note(&ring.kring);
                view.set_offset_mask(offsets.mask);
                if asked.initial != 0 && ring.users == 0 {
                    for slot in 0..view.num_slots() {
                        let [word, ptr] = view.slot_words(slot);
                        let ptr = ptr & !offsets.mask | asked.initial;
                        view.set_slot_words(slot, [word, ptr]);
                    }
                }
                ring.offsets = Some(offsets);
                asked.max = offsets.max.into();
                (self.actions(id).offsets_changed)(self, id, dir, i);
            }
        }
        Ok(())
    }

    fn make_netif(&mut self, id: PortId, rings: &Selection) -> Result<NetifView> {
        let (port, shape) = (self.port(id), self.shape_of(id));
        let visible = |dir, count: u32, chosen: &[u16]| {
            let object = |(i, ring): (usize, &crate::port::Ring)| {
                // S-NIFP-2.
                chosen.contains(&(i as u16)).then(|| ring.kring.object())
            };
            let mut nic: Vec<_> = port.rings(dir).iter().enumerate().map(object).collect();
            let mut host = nic.split_off(port.nic_rings(dir).len());
            // Those that have not been made, or will never be: of the host at least one (S-NIFP-1).
            nic.resize(count as usize, None);
            host.resize(port.host.count(dir).max(1), None);
            (nic, host)
        };
        let [tx_rings, rx_rings] = rings;
        let (tx, host_tx) = visible(Dir::Tx, shape.rings[0], tx_rings);
        let (rx, host_rx) = visible(Dir::Rx, shape.rings[1], rx_rings);
        let offsets = RingOffsets { tx, rx, host_tx, host_rx };
        let (name, key) = (port.name.clone(), port.region);
        let book = self.regions.get(key);
        let RingOffsets { tx, rx, host_tx, host_rx } = &offsets;
        let count = tx.len() + rx.len() + host_tx.len() + host_rx.len();
        if !NetifView::fits(&book.region, count) {
            return Err(Error::no_memory("too many rings for an interface object").at(name));
        }
        let object = book.take_if()?;
        #[expect(clippy::expect_used, reason = "the object is one of the pool's")]
        let netif = NetifView::new(&book.region, object).expect("the pool has this object");
        let private = matches!(key, RegionKey::Private { .. });
        netif.init(&name, if private { NI_PRIV_MEM } else { 0 }, &offsets);
        Ok(netif)
    }

    /// Lets go of what a binding had (S-LIFE-7).
    pub(crate) fn unbind(&mut self, binding: Binding) {
        self.unbinding = Some(binding);
        self.return_objects();
        let Some(binding) = self.unbinding.take() else { return };
        let Binding { port: id, region, netif, rings, exclusive, forwards, .. } = binding;
        // It holds the region, which others may be about to free.
        drop(netif);
        self.notify_waiters(id);
        // The client that kept rings from going may have gone now.
        self.regions.get(region).leave([]);
        let port = self.port_mut(id);
        for (dir, taken) in [Dir::Tx, Dir::Rx].into_iter().zip(&rings) {
            for &i in taken {
                let Some(ring) = port.rings_mut(dir).get_mut(usize::from(i)) else { continue };
                ring.users -= 1;
                if exclusive {
                    ring.exclusive = false;
                    ring.kring.leave_csb();
                }
            }
        }
        port.bindings -= 1;
        port.host.forwarders -= u32::from(forwards);
        port.update_receives();
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

    /// Takes back what the binding that goes has of its region.
    pub(crate) fn return_objects(&mut self) {
        let Some(binding) = &mut self.unbinding else { return };
        let book = self.regions.get(binding.region);
        book.return_extra_bufs(&binding.netif, &std::mem::take(&mut binding.extra_bufs));
        book.give_if(binding.netif.object());
    }

    /// Notifies the doorbells of a port, and of its peer: a program may have died between its update
    /// and its kick. To be woken for nothing does no harm.
    fn notify_waiters(&self, id: PortId) {
        let port = self.port(id);
        if let Some(side) = port.backend.switch_side() {
            side.worker.notify();
        }
        let peer = port.backend.peer().map(|peer| self.port(peer));
        for port in peer.into_iter().chain([port]) {
            port.all_rings().for_each(|ring| ring.doorbell.notify());
        }
    }

    /// The users of a port's rings are others than before.
    pub(crate) fn users_changed(&mut self, id: PortId) {
        if !self.port(id).gone {
            self.close_host(id);
            (self.actions(id).users_changed)(self, id);
        }
    }
}
