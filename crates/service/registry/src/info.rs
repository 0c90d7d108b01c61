//! Questions that change nothing.

use std::sync::Arc;

use ringway_proto::{
    AttachmentInfo, BridgeInfo, Error, Parameters, Pools, PortGeometry, PortInfo, Registration,
    Result, SwitchPosition,
};

use ringway_region::Region;

use crate::{
    added_queues::describe,
    bridges::AboutPort,
    caller::Caller,
    handles::Handle,
    kinds::{KindInfo, OpenRequest, attached::Attached, nic::Nic},
    lasting::{LastingAttachment, LastingNetns},
    lasting_state::lasting_attachment,
    netns::Netns,
    page::{page, port_bytes, shorten_texts},
    port::{Port, PortId, Shape},
    regions::Regions,
    registry::Registry,
    settings::Settings,
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

impl Settings {
    /// What the configuration sets for all ports.
    pub(crate) fn parameters(&self) -> Parameters {
        let &Settings { max_bridges, nic_slots, timestamps, .. } = self;
        let max_bridges = u32::try_from(max_bridges).unwrap_or(u32::MAX);
        Parameters { max_bridges, nic_slots, timestamps }
    }
}

/// Looks at a port as a registration would; virtual ports come into being for it, and
/// vanish again.
fn inspect<T>(
    registry: &mut Registry,
    caller: &Caller,
    name: &str,
    mem_id: u16,
    look: impl FnOnce(&Port, &Region, &Settings) -> T,
) -> Result<T> {
    let region = match mem_id {
        0 => None,
        id => Some(registry.regions.by_id(id, caller.uid)?),
    };
    let reg = Registration { mem_id, ..Registration::default() };
    let found = registry.look_up(&OpenRequest { caller, name, reg: &reg, is_question: true });
    let result = found.map(|id| {
        let port = registry.port(id);
        let seen = look(port, registry.regions.region(port.region), &registry.settings);
        registry.reap(id);
        seen
    });
    if let Some(region) = region {
        registry.regions.drop_unused(region);
    }
    result
}

/// The memory of the region that `mem_id` names for the caller.
fn memory(regions: &mut Regions, caller: &Caller, mem_id: u16) -> Result<Arc<Region>> {
    let key = regions.by_id(mem_id, caller.uid)?;
    let memory = regions.region(key).clone();
    regions.drop_unused(key);
    Ok(memory)
}

/// Rings, slots and memory of a port (S-MEM-11).
pub(crate) fn port_geometry(
    registry: &mut Registry,
    caller: &Caller,
    name: &str,
    mem_id: u16,
) -> Result<PortGeometry> {
    if name.is_empty() {
        let memory = memory(&mut registry.regions, caller, mem_id.max(1))?;
        return Ok(PortGeometry {
            memsize: memory.layout().memsize(),
            mem_id: memory.mem_id(),
            ..Default::default()
        });
    }
    inspect(registry, caller, name, mem_id, |port, memory, settings| {
        let Shape { rings, slots } = port.shape(settings);
        PortGeometry {
            memsize: memory.layout().memsize(),
            tx_slots: slots[0],
            rx_slots: slots[1],
            tx_rings: rings[0] as u16,
            rx_rings: rings[1] as u16,
            host_tx_rings: port.host.counts[0],
            host_rx_rings: port.host.counts[1],
            mem_id: memory.mem_id(),
        }
    })
}

/// The pools of a port's region (S-MEM-12); without a name, those of region `mem_id`.
pub(crate) fn pools(
    registry: &mut Registry,
    caller: &Caller,
    name: &str,
    mem_id: u16,
) -> Result<Pools> {
    if !name.is_empty() {
        return inspect(registry, caller, name, mem_id, |_, memory, _| pools_of(memory));
    }
    if mem_id == 0 {
        return Err(Error::absent("name a port to learn about its region"));
    }
    Ok(pools_of(&*memory(&mut registry.regions, caller, mem_id)?))
}

/// A page of the bridges with their ports.
pub(crate) fn switches(
    registry: &Registry,
    from: SwitchPosition,
) -> (Vec<BridgeInfo>, Option<SwitchPosition>) {
    let Registry { ports, bridges, expected, .. } = registry;
    let mode = |name: &str| {
        let port = ports.port(ports.find::<Attached>(name)?);
        Some(port.get::<Attached>()?.mode().into())
    };
    let own = LastingNetns::of(&Netns::Own);
    let attachment = |name: &str| {
        let there = name.split_once(':').and_then(|(bridge, _)| {
            lasting_attachment(ports, bridge, name).map(|(attachment, _)| attachment)
        });
        there.or_else(|| expected.attachment(name).cloned())
    };
    // A host's stack is behind its interface.
    let interface = |name: &str| {
        let port = ports.port(ports.find::<Attached>(name.trim_end_matches('^'))?);
        Some(port.get::<Attached>()?.losses.interface_name().to_owned())
    };
    bridges.info(from, |name| {
        let attachment = attachment(name);
        AboutPort {
            mode: mode(name).or_else(|| expected.absence(name)),
            netns: attachment.as_ref().and_then(|it| it.netns.other_than(own)),
            attachment: attachment
                .map(|LastingAttachment { stack, mode, .. }| AttachmentInfo { stack, mode }),
            interface: interface(name),
        }
    })
}

/// A page of the ports that a program has, or could have, open, and of the queues that programs keep
/// from ports that have gone.
pub(crate) fn ports(registry: &mut Registry, from: PortId) -> (Vec<PortInfo>, Option<PortId>) {
    registry.kept_sockets.refresh();
    // What a port tells takes the kernel's time: only those of the page are asked.
    let there = registry.ports.iter().skip_while(|(id, _)| **id < from);
    let there = there.filter_map(|(&id, port)| Some((id, one_port(registry, id, port)?)));
    let kept = registry.kept_sockets.info().skip_while(|(id, _)| *id < from);
    page(there.chain(kept), port_bytes)
}

impl Registry {
    /// The port that a handle is bound to.
    pub fn bound_port(&self, handle: Handle) -> Option<PortInfo> {
        let id = self.handles.binding(handle).ok()?.port;
        one_port(self, id, self.ports.get(id)?)
    }

    /// The mode of an attached interface, by its full name, and why it is no better one.
    pub fn attached_mode(&self, full: &str) -> Option<String> {
        let port = self.ports.port(self.ports.find::<Attached>(full)?);
        Some(port.get::<Attached>()?.mode().into())
    }
}

fn one_port(registry: &Registry, id: PortId, port: &Port) -> Option<PortInfo> {
    if port.is_being_opened() {
        return None;
    }
    let Shape { rings, slots } = port.shape(&registry.settings);
    let memory = registry.regions.region(port.region);
    let KindInfo { mode, mtu, queues, filters, actions } = port.backend.info(registry, port);
    let added = port.backend.added_queues(port);
    let told = mode.into_iter().chain(describe(&added, port.backend.how_to_reopen()));
    let mode = told.reduce(|mode, text| format!("{mode}; {text}"));
    let mode = if port.gone { Some("its interface has gone".into()) } else { mode };
    let mut info = PortInfo {
        queues,
        filters,
        actions,
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
        switch_owner: registry.switch_owner(port),
        added_queues: added.collect(),
        gets_nothing: port.get::<Nic>().is_some_and(Nic::gets_nothing),
        netns: port.backend.netns(registry),
    };
    shorten_texts(&mut info);
    Some(info)
}
