//! Questions that change nothing.

use ringway_proto::{
    BridgeInfo, Cause, Error, Parameters, Pools, PortGeometry, PortInfo, Registration, Result,
    SwitchPosition,
};

use ringway_region::Region;

use crate::{
    kinds::{KindInfo, OpenRequest, attached::Attached},
    page::{page, port_bytes, shorten_filters},
    port::{Port, PortId, Shape},
    registry::{Caller, Registry, Settings},
};

fn pools_of(memory: &Region) -> Pools {
    let layout = memory.layout();
    Pools {
        memsize: layout.memsize(),
        mem_id: memory.mem_id(),
        ifs: layout.ifs,
        rings: layout.rings,
        bufs: layout.bufs,
    }
}

impl Registry {
    /// What the configuration sets for all ports.
    pub(crate) fn parameters(&self) -> Parameters {
        let Settings { max_bridges, nic_slots, timestamps, .. } = self.settings;
        let max_bridges = u32::try_from(max_bridges).unwrap_or(u32::MAX);
        Parameters { max_bridges, nic_slots, timestamps }
    }

    /// Looks at a port as a registration would; virtual ports come into being for it, and
    /// vanish again.
    fn inspect<T>(
        &mut self,
        caller: &Caller,
        name: &str,
        mem_id: u16,
        look: impl FnOnce(&mut Registry, PortId) -> T,
    ) -> Result<T> {
        let region = match mem_id {
            0 => None,
            id => Some(self.regions.by_id(id, caller.uid)?),
        };
        let reg = Registration { mem_id, ..Registration::default() };
        let found = self.look_up(&OpenRequest { caller, name, reg: &reg });
        let result = found.map(|id| {
            let seen = look(self, id);
            self.reap(id);
            seen
        });
        if let Some(region) = region {
            self.regions.drop_unused(region);
        }
        result
    }

    /// Rings, slots and memory of a port (S-MEM-11).
    pub(crate) fn port_geometry(
        &mut self,
        caller: &Caller,
        name: &str,
        mem_id: u16,
    ) -> Result<PortGeometry> {
        if name.is_empty() {
            let region = self.regions.by_id(mem_id.max(1), caller.uid)?;
            let memory = self.regions.get(region).region.clone();
            self.regions.drop_unused(region);
            return Ok(PortGeometry {
                memsize: memory.layout().memsize(),
                mem_id: memory.mem_id(),
                ..Default::default()
            });
        }
        self.inspect(caller, name, mem_id, |registry, id| {
            let Shape { rings, slots } = registry.shape_of(id);
            let (region, host) = (registry.port(id).region, registry.port(id).host.counts);
            let memory = &registry.regions.get(region).region;
            PortGeometry {
                memsize: memory.layout().memsize(),
                tx_slots: slots[0],
                rx_slots: slots[1],
                tx_rings: rings[0] as u16,
                rx_rings: rings[1] as u16,
                host_tx_rings: host[0],
                host_rx_rings: host[1],
                mem_id: memory.mem_id(),
            }
        })
    }

    /// The pools of a port's region (S-MEM-12); without a name, those of region `mem_id`.
    pub(crate) fn pools(&mut self, caller: &Caller, name: &str, mem_id: u16) -> Result<Pools> {
        if !name.is_empty() {
            return self.inspect(caller, name, mem_id, |registry, id| {
                pools_of(&registry.regions.get(registry.port(id).region).region)
            });
        }
        if mem_id == 0 {
            return Err(Error::absent("name a port to learn about its region"));
        }
        let region = self.regions.by_id(mem_id, caller.uid)?;
        let pools = pools_of(&self.regions.get(region).region);
        self.regions.drop_unused(region);
        Ok(pools)
    }

    /// Where a port is among the switches (S-VALE-18).
    pub(crate) fn switch_find(
        &self,
        name: &str,
        from: SwitchPosition,
    ) -> Result<(String, SwitchPosition)> {
        let at = |switch: usize, port: u32| SwitchPosition { switch: switch as u16, port };
        if name.is_empty() {
            let first = self.bridges.first_from(from.switch.into(), from.port);
            let (bridge, port, name) = first.ok_or_else(|| {
                Error::new(Cause::NotFound, "there are no more ports on any switch")
            })?;
            return Ok((name, at(bridge, port.into())));
        }
        if !name.starts_with("vale") {
            return Err(Error::invalid("a switch is named vale<id>").at(name));
        }
        let bridge = name.split_once(':').map(|(bridge, _)| bridge);
        let found = bridge.and_then(|bridge| self.bridges.locate(bridge, name));
        let (bridge, port) =
            found.ok_or_else(|| Error::new(Cause::NotFound, "there is no such switch").at(name))?;
        Ok((name.into(), at(bridge, port.map_or(255, u32::from))))
    }

    /// A page of the bridges with their ports.
    pub(crate) fn switches_info(
        &self,
        from: SwitchPosition,
    ) -> (Vec<BridgeInfo>, Option<SwitchPosition>) {
        let mode = |name: &str| {
            let port = self.port(self.find::<Attached>(name)?);
            Some(port.get::<Attached>()?.mode().into())
        };
        self.bridges.info(from, |name| mode(name).or_else(|| self.not_back(name)))
    }

    /// A page of the ports that a program has, or could have, open, and of the queues that programs keep
    /// from ports that have gone.
    pub(crate) fn ports_info(&mut self, from: PortId) -> (Vec<PortInfo>, Option<PortId>) {
        self.kept_sockets.refresh();
        let info = |(&id, port)| Some((id, self.one_port_info(id, port)?));
        let all = self.ports.iter().filter_map(info).chain(self.kept_sockets.info());
        page(all.skip_while(|(id, _)| *id < from), port_bytes)
    }

    fn one_port_info(&self, id: PortId, port: &Port) -> Option<PortInfo> {
        if port.is_being_opened() {
            return None;
        }
        let Shape { rings, slots } = self.shape_of(id);
        let memory = self.regions.region(port.region);
        let KindInfo { mode, mtu, queues, filters } = port.backend.info(self, port);
        let mode = if port.gone { Some("its interface has gone".into()) } else { mode };
        let mut info = PortInfo {
            queues,
            filters,
            id,
            name: port.name.clone(),
            kind: port.backend.display_kind()?,
            mem_id: memory.mem_id(),
            buf_size: memory.layout().bufs.size,
            uid: port.uid,
            rings,
            slots,
            users: port.bindings,
            mtu,
            mode,
        };
        shorten_filters(&mut info);
        Some(info)
    }

    /// Rings and slots of a port, those of the host apart, in netmap mode or not.
    pub(crate) fn shape_of(&self, id: PortId) -> Shape {
        let port = self.port(id);
        port.backend.shape(self, port)
    }
}
