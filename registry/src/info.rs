//! Questions that change nothing.

use ringway_abi::{
    NR_REG_ALL_NIC, nmreq_pools_info, nmreq_port_info_get, nmreq_register, nmreq_vale_list,
};
use ringway_proto::{BridgeInfo, Error, PortInfo, Result};

use crate::{
    kinds::{Ask, KindInfo, attached::Attached},
    port::{Port, PortId, Shape},
    registry::{Caller, Registry},
};

impl Registry {
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
        let reg =
            nmreq_register { nr_mode: NR_REG_ALL_NIC, nr_mem_id: mem_id, ..Default::default() };
        let found = self.look_up(&Ask { caller, name, reg: &reg });
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

    /// NETMAP_REQ_PORT_INFO_GET (S-MEM-11).
    pub(crate) fn port_info(
        &mut self,
        caller: &Caller,
        name: &str,
        mem_id: u16,
    ) -> Result<nmreq_port_info_get> {
        if name.is_empty() {
            let region = self.regions.by_id(mem_id.max(1), caller.uid)?;
            let memory = self.regions.get(region).region.clone();
            self.regions.drop_unused(region);
            return Ok(nmreq_port_info_get {
                nr_memsize: memory.layout().memsize(),
                nr_mem_id: memory.mem_id(),
                ..Default::default()
            });
        }
        self.inspect(caller, name, mem_id, |registry, id| {
            let Shape { rings, slots } = registry.shape_of(id);
            let (region, host) = (registry.port(id).region, registry.port(id).host.counts);
            let memory = &registry.regions.get(region).region;
            nmreq_port_info_get {
                nr_memsize: memory.layout().memsize(),
                nr_tx_slots: slots[0],
                nr_rx_slots: slots[1],
                nr_tx_rings: rings[0] as u16,
                nr_rx_rings: rings[1] as u16,
                nr_host_tx_rings: host[0],
                nr_host_rx_rings: host[1],
                nr_mem_id: memory.mem_id(),
                pad: [0; 3],
            }
        })
    }

    /// NETMAP_REQ_POOLS_INFO_GET (S-MEM-12).
    pub(crate) fn pools_info(
        &mut self,
        caller: &Caller,
        name: &str,
        mem_id: u16,
    ) -> Result<nmreq_pools_info> {
        if name.is_empty() {
            return Err(Error::absent("name a port to learn about its region"));
        }
        self.inspect(caller, name, mem_id, |registry, id| {
            let region = registry.port(id).region;
            let memory = &registry.regions.get(region).region;
            let layout = memory.layout();
            nmreq_pools_info {
                nr_memsize: layout.memsize(),
                nr_mem_id: memory.mem_id(),
                pad1: [0; 3],
                nr_if_pool_offset: layout.ifs.offset,
                nr_if_pool_objtotal: layout.ifs.total,
                nr_if_pool_objsize: layout.ifs.size,
                nr_ring_pool_offset: layout.rings.offset,
                nr_ring_pool_objtotal: layout.rings.total,
                nr_ring_pool_objsize: layout.rings.size,
                nr_buf_pool_offset: layout.bufs.offset,
                nr_buf_pool_objtotal: layout.bufs.total,
                nr_buf_pool_objsize: layout.bufs.size,
            }
        })
    }

    /// NETMAP_REQ_VALE_LIST (S-VALE-18).
    pub(crate) fn vale_list(
        &self,
        name: &str,
        from: nmreq_vale_list,
    ) -> Result<(String, nmreq_vale_list)> {
        let at = |bridge: usize, port: u32| nmreq_vale_list {
            nr_bridge_idx: bridge as u16,
            nr_port_idx: port,
            ..from
        };
        if name.is_empty() {
            let first = self.bridges.first_from(from.nr_bridge_idx.into(), from.nr_port_idx);
            let (bridge, port, name) = first
                .ok_or_else(|| Error::new(libc::ENOENT, "there are no more ports on any bridge"))?;
            return Ok((name, at(bridge, port.into())));
        }
        if !name.starts_with("vale") {
            return Err(Error::invalid(format!("{name}: a bridge is named vale<id>")));
        }
        let bridge = name.split_once(':').map(|(bridge, _)| bridge);
        let found = bridge.and_then(|bridge| self.bridges.locate(bridge, name));
        let (bridge, port) = found
            .ok_or_else(|| Error::new(libc::ENOENT, format!("{name}: there is no such bridge")))?;
        Ok((name.into(), at(bridge, port.map_or(255, u32::from))))
    }

    /// All bridges with their ports.
    pub(crate) fn switches_info(&self) -> Vec<BridgeInfo> {
        let mut bridges = self.bridges.info();
        for port in bridges.iter_mut().flat_map(|bridge| &mut bridge.ports) {
            let named = self.find::<Attached>(&port.name).map(|id| self.port(id));
            port.mode = named.and_then(|port| Some(port.get::<Attached>()?.mode().into()));
        }
        bridges
    }

    /// All ports that a program has, or could have, open.
    pub(crate) fn ports_info(&self) -> Vec<PortInfo> {
        self.ports.iter().filter_map(|(&id, port)| self.one_port_info(id, port)).collect()
    }

    fn one_port_info(&self, id: PortId, port: &Port) -> Option<PortInfo> {
        let Shape { rings, slots } = self.shape_of(id);
        let memory = self.regions.region(port.region);
        let KindInfo { mode, mtu, queues, filters } = port.backend.info(self, port);
        let mode = if port.gone { Some("its interface has gone".into()) } else { mode };
        Some(PortInfo {
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
        })
    }

    /// Rings and slots of a port, those of the host apart, in netmap mode or not.
    pub(crate) fn shape_of(&self, id: PortId) -> Shape {
        let port = self.port(id);
        port.backend.shape(self, port)
    }
}
