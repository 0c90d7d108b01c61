//! Registration: a handle takes rings of a port (S-REG), and lets them go.

use ringway_abi::*;
use ringway_proto::{Error, Offsets, Options, Result, Statuses};
use ringway_region::{NetifView, RingOffsets};

use crate::{
    extra_bufs::{chain, unchain},
    monitors,
    name::{PortName, plain_key},
    nic::wish,
    nic_mode::ModeRequest,
    options::{join, mask},
    port::{Kind, PortId, Shape, make_rings},
    regions::{GLOBAL_ID, RegionKey},
    registry::{Binding, Caller, Handle, Registry},
    selection::select,
    virtual_ports::MAX_EXTRA,
};

/// Rings of one binding at most: a pipe's. Each costs the client three descriptors.
const MAX_RINGS: usize = 512;

impl Registry {
    /// NETMAP_REQ_REGISTER.
    pub(crate) fn register(
        &mut self,
        handle: Handle,
        caller: &Caller,
        name: &str,
        mut reg: nmreq_register,
        mut options: Options,
    ) -> Result<()> {
        if self.is_bound(handle) {
            return Err(Error::busy(format!(
                "{name}: this descriptor is bound to a port already; open another one"
            )));
        }
        let mut extmem = None;
        let region = match &mut options.extmem {
            Some(asked) => {
                let at = |e: Error| {
                    let options = Statuses { extmem: Some(e.errno), offsets: None };
                    Error { options, ..e }
                };
                let headroom = self.headroom_for(caller, name);
                let region = self.regions.external(caller, asked, headroom).map_err(at)?;
                reg.nr_mem_id = self.regions.get(region).region.mem_id();
                extmem = Some(0);
                Some(region)
            }
            None if reg.nr_mem_id != 0 => Some(self.regions.by_id(reg.nr_mem_id, caller.uid)?),
            None => match options.buf_size {
                Some(size) if self.headroom_for(caller, name) > 0 && !monitors::is_asked(&reg) => {
                    let region = self.regions.with_buffers(size, caller.uid)?;
                    reg.nr_mem_id = self.regions.get(region).region.mem_id();
                    Some(region)
                }
                _ => None,
            },
        };
        let result = self.register_on(handle, caller, name, reg, options);
        if let Some(region) = region {
            self.regions.drop_unused(region);
        }
        result.map_err(|e| Error { options: Statuses { extmem, ..e.options }, ..e })
    }

    /// Bytes that the rings of a new region are to leave free in front of data, by what is to
    /// live in it.
    fn headroom_for(&mut self, caller: &Caller, name: &str) -> u32 {
        let is_nic = matches!(PortName::parse(name, 0), Ok(PortName::Plain(_)))
            && crate::nic::exists(name, caller).unwrap_or(false);
        if is_nic { ringway_xdp::RX_HEADROOM } else { 0 }
    }

    fn register_on(
        &mut self,
        handle: Handle,
        caller: &Caller,
        name: &str,
        reg: nmreq_register,
        options: Options,
    ) -> Result<()> {
        let id = match options.user.filter(|user| *user != caller.uid) {
            Some(other) => self.shared_pipe_end(caller, name, &reg, other)?,
            None => self.look_up(caller, name, &reg)?,
        };
        let wish = wish(caller, name, &options);
        let result =
            self.check_buffers(id, &options).and_then(|()| self.bind(id, reg, options, wish));
        match result {
            Ok(binding) => {
                self.set_binding(handle, binding);
                Ok(())
            }
            Err(error) => {
                self.settle(id);
                if self.port(id).bindings == 0 {
                    self.deactivate(id);
                }
                self.reap(id);
                Err(error)
            }
        }
    }

    /// EBUSY if an interface is in a region with buffers of another size than the one asked for.
    fn check_buffers(&mut self, id: PortId, options: &Options) -> Result<()> {
        let port = self.port(id);
        if !matches!(port.kind, Kind::Nic(_)) {
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

    /// The port of that name, made if it is of a kind that can be (S-REG-2).
    pub(crate) fn look_up(
        &mut self,
        caller: &Caller,
        name: &str,
        reg: &nmreq_register,
    ) -> Result<PortId> {
        if reg.nr_mode == NR_REG_NULL {
            return self.null_port(caller, name, reg);
        }
        if monitors::is_asked(reg) {
            return self.monitor_port(caller, name, reg);
        }
        if [NR_REG_PIPE_MASTER, NR_REG_PIPE_SLAVE].contains(&reg.nr_mode) {
            return Err(Error::invalid(format!("{name}: name a pipe by PARENT{{ID or PARENT}}ID")));
        }
        match PortName::parse(name, libc::ENOMEM)? {
            PortName::Pipe { .. } => self.pipe_end(caller, name, reg),
            PortName::Vale { .. } => self.vale_port(caller, name, reg),
            PortName::Plain(_) => match self.names.get(&plain_key(name, caller)).copied() {
                Some(id) if matches!(self.port(id).kind, Kind::Vale { .. }) => {
                    self.owned(id, caller)
                }
                Some(id) if matches!(self.port(id).kind, Kind::Parent) => {
                    Err(Error::absent(format!("{name}: only the parent of pipes")))
                }
                _ => self.nic_port(caller, name, reg.nr_mem_id),
            },
        }
    }

    fn null_port(&mut self, caller: &Caller, name: &str, reg: &nmreq_register) -> Result<PortId> {
        if reg.nr_mem_id == 0 {
            return Err(Error::invalid(format!(
                "{name}: a null port needs the id of a region; {GLOBAL_ID} is the global one"
            )));
        }
        let region = self.regions.by_id(reg.nr_mem_id, caller.uid)?;
        let shape = Shape {
            rings: [reg.nr_tx_rings.into(), reg.nr_rx_rings.into()],
            slots: [reg.nr_tx_slots, reg.nr_rx_slots],
        };
        let [tx, rx] = make_rings(&mut self.regions, region, shape)?;
        let kind = Kind::Null { sink: reg.nr_flags & NR_SINK != 0 };
        let id = self.add_port(name, None, caller.uid, region, kind);
        let port = self.port_mut(id);
        (port.tx, port.rx) = (tx, rx);
        Ok(id)
    }

    fn bind(
        &mut self,
        id: PortId,
        mut reg: nmreq_register,
        mut options: Options,
        wish: ModeRequest,
    ) -> Result<Binding> {
        let port = self.port(id);
        let name = port.name.clone();
        if matches!(port.kind, Kind::Attached { .. }) {
            return Err(Error::busy(format!("{name}: attached to a bridge; detach it first")));
        }
        if matches!(&port.kind, Kind::Vale { device: Some(device), .. } if device.is_joined()) {
            return Err(Error::busy(format!(
                "{name}: a bridge uses it; detach it from that bridge first"
            )));
        }
        if port.config.header_len != 0 && reg.nr_flags & NR_ACCEPT_VNET_HDR == 0 {
            return Err(Error::new(
                libc::EIO,
                format!(
                    "{name}: its packets have virtio-net headers of {} bytes; accept them \
                     (NR_ACCEPT_VNET_HDR), or set their length to 0",
                    port.config.header_len
                ),
            ));
        }
        let (shape, host) = (self.shape_of(id), self.asked_host(id, &reg));
        let port = self.port(id);
        let rings = select(&name, &reg, shape.rings, host)?;
        if rings[0].len() + rings[1].len() > MAX_RINGS {
            return Err(Error::no_memory(format!(
                "{name}: more than {MAX_RINGS} rings at once; open them one by one"
            )));
        }
        let exclusive = reg.nr_flags & NR_EXCLUSIVE != 0;
        for (dir, wanted) in [Dir::Tx, Dir::Rx].into_iter().zip(&rings) {
            for ring in wanted.iter().filter_map(|&i| port.rings(dir).get(usize::from(i))) {
                if ring.exclusive || (exclusive && ring.users > 0) {
                    return Err(Error::busy(format!(
                        "{name}: in use by another program; close it, or do not ask for \
                         exclusive use"
                    )));
                }
            }
        }
        self.port_mut(id).host.counts = host;
        self.activate(id, &rings, wish)?;
        let netif = self.make_netif(id, &rings)?;
        if let Some(asked) = &mut options.offsets {
            self.set_offsets(id, &rings, asked).map_err(|e| {
                let region = self.port(id).region;
                self.regions.get(region).give_if(netif.object());
                let options = Statuses { extmem: None, offsets: Some(e.errno) };
                Error { options, ..e }
            })?;
        }

        if let Some(filter) = options.filter.take() {
            self.install_filter(id, &rings[1], Some(filter)).inspect_err(|_| {
                let region = self.port(id).region;
                self.regions.get(region).give_if(netif.object());
            })?;
        }

        let port = self.port(id);
        let is_new = matches!(port.kind, Kind::Vale { device: None, .. }) && port.bindings == 0;
        let most = if is_new { MAX_EXTRA } else { u32::MAX };
        let region = port.region;
        let book = self.regions.get(region);
        let extra = book.take_some_bufs(reg.nr_extra_bufs.min(most));
        chain(&netif, book.region.as_ref(), &extra);
        let layout = *book.region.layout();
        reg.nr_extra_bufs = extra.len() as u32;
        reg.nr_offset = netif.offset();
        reg.nr_memsize = layout.memsize();
        reg.nr_mem_id = book.region.mem_id();
        reg.nr_tx_rings = shape.rings[0] as u16;
        reg.nr_rx_rings = shape.rings[1] as u16;
        [reg.nr_tx_slots, reg.nr_rx_slots] = shape.slots;
        [reg.nr_host_tx_rings, reg.nr_host_rx_rings] = host;

        let port = self.port_mut(id);
        for (dir, taken) in [Dir::Tx, Dir::Rx].into_iter().zip(&rings) {
            for &i in taken {
                let ring = &mut port.rings_mut(dir)[usize::from(i)];
                ring.users += 1;
                ring.exclusive = exclusive;
            }
        }
        port.bindings += 1;
        port.update_receives();
        if let Kind::Monitor { watch } = &port.kind {
            reg.nr_flags = monitors::granted(reg.nr_flags);
            let target = watch.as_ref().map(|watch| watch.target);
            target.into_iter().for_each(|target| self.retap(target));
        } else if options.offsets.is_some() || shape.has_host(&rings) {
            self.retap_monitored(id);
        }
        self.settle(id);
        Ok(Binding { port: id, region, netif, rings, exclusive, forwards: false, reg, options })
    }

    /// Installs offsets in the rings of a new binding (S-OFF-1..4).
    fn set_offsets(
        &mut self,
        id: PortId,
        rings: &[Vec<u16>; 2],
        asked: &mut Offsets,
    ) -> Result<()> {
        let port = self.port(id);
        let name = port.name.clone();
        let [tx, rx] = rings;
        let nic = |dir, taken: &[u16]| {
            let count = port.nic_rings(dir).len();
            taken.iter().all(|&i| usize::from(i) < count)
        };
        let host = !nic(Dir::Tx, tx) || !nic(Dir::Rx, rx);
        if host || Registry::swaps(&port.kind) {
            return Err(Error::new(
                libc::EOPNOTSUPP,
                format!("{name}: packets begin where their buffers do here; ask for no offsets"),
            ));
        }
        if matches!(port.kind, Kind::Nic(_)) && asked.min_gap != 0 && !rx.is_empty() {
            return Err(Error::new(
                libc::EOPNOTSUPP,
                format!(
                    "{name}: the kernel may fill the whole of a buffer, so slots cannot share one; \
                     ask for no gap between offsets, or for sending alone"
                ),
            ));
        }
        let region = port.region;
        let mask = mask(asked, &name, self.regions.get(region).region.layout().data_size())?;
        let chosen = |dir: Dir| rings[usize::from(dir == Dir::Rx)].iter().map(|&i| usize::from(i));
        let mut joined = [Vec::new(), Vec::new()];
        for (dir, joined) in [Dir::Tx, Dir::Rx].into_iter().zip(&mut joined) {
            let ring = |i: usize| &self.port(id).rings(dir)[i];
            *joined = chosen(dir)
                .map(|i| join(asked, &name, mask, ring(i).offsets))
                .collect::<Result<Vec<_>>>()?;
        }
        for (dir, joined) in [Dir::Tx, Dir::Rx].into_iter().zip(joined) {
            for (i, offsets) in chosen(dir).zip(joined) {
                let ring = &mut self.port_mut(id).rings_mut(dir)[i];
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
                self.tell_offsets(id, dir, i, offsets);
            }
        }
        Ok(())
    }

    /// Tells the bridge that serves a port's ring of its offsets.
    fn tell_offsets(&mut self, id: PortId, dir: Dir, ring: usize, offsets: ringway_kring::Offsets) {
        if let Kind::Vale { place: Some(place), .. } = &self.port(id).kind {
            let place = place.clone();
            self.bridges.set_offsets(&place, dir, ring, offsets);
        }
    }

    fn make_netif(&mut self, id: PortId, rings: &[Vec<u16>; 2]) -> Result<NetifView> {
        let port = self.port(id);
        let visible = |dir, chosen: &[u16]| {
            let object = |(i, ring): (usize, &crate::port::Ring)| {
                chosen.contains(&(i as u16)).then(|| ring.kring.object())
            };
            let mut nic: Vec<_> = port.rings(dir).iter().enumerate().map(object).collect();
            let mut host = nic.split_off(port.nic_rings(dir).len());
            // Those that have not been made, or will never be: at least one (S-NIFP-1).
            host.resize(port.host.count(dir).max(1), None);
            (nic, host)
        };
        let ((tx, host_tx), (rx, host_rx)) =
            (visible(Dir::Tx, &rings[0]), visible(Dir::Rx, &rings[1]));
        let offsets = RingOffsets { tx, rx, host_tx, host_rx };
        let (name, key) = (port.name.clone(), port.region);
        let book = self.regions.get(key);
        let RingOffsets { tx, rx, host_tx, host_rx } = &offsets;
        let count = tx.len() + rx.len() + host_tx.len() + host_rx.len();
        if !NetifView::fits(&book.region, count) {
            return Err(Error::no_memory(format!(
                "{name}: too many rings for an interface object"
            )));
        }
        let object = book.take_if()?;
        let netif = NetifView::new(&book.region, object).expect("the pool has this object");
        let private = matches!(key, RegionKey::Private { .. });
        netif.init(&name, if private { NI_PRIV_MEM } else { 0 }, &offsets);
        Ok(netif)
    }

    /// Lets go of what a binding had (S-LIFE-7).
    pub(crate) fn unbind(&mut self, binding: Binding) {
        let Binding { port: id, region, netif, rings, exclusive, forwards, .. } = binding;
        self.wake_around(id);
        let book = self.regions.get(region);
        unchain(&netif, book);
        book.give_if(netif.object());
        // It holds the region, which others may be about to free.
        drop(netif);
        // Whoever kept rings from going may have gone now.
        book.leave([]);
        let port = self.port_mut(id);
        for (dir, taken) in [Dir::Tx, Dir::Rx].into_iter().zip(&rings) {
            for &i in taken {
                let ring = &mut port.rings_mut(dir)[usize::from(i)];
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
        self.settle(id);
        if self.port(id).bindings == 0 {
            self.unwatch(id);
            self.end_monitors(id);
            self.deactivate(id);
        }
        self.reap(id);
        self.reclaim(region);
    }

    /// Rings for whoever waits on the rings of a port, or on its peer's: a program may have
    /// died between its news and its kick. To be woken for nothing does no harm.
    fn wake_around(&self, id: PortId) {
        let port = self.port(id);
        let peer = match &port.kind {
            Kind::Pipe { peer, .. } => Some(self.port(*peer)),
            Kind::Vale { worker, .. } => {
                worker.notify();
                None
            }
            _ => None,
        };
        for port in peer.into_iter().chain([port]) {
            port.tx.iter().chain(&port.rx).for_each(|ring| ring.doorbell.notify());
        }
    }
}
