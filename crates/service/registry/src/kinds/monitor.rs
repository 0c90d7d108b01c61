//! Monitors: ports that are fed what another port, the target, sends and receives (S-MON).
//!
//! A copy monitor has a region of its own; a zero-copy monitor lives in the target's. The
//! driver that moves the target's packets feeds them. The worker of a bridge is told its [mirrors](PortMirrors). The
//! clients of pipes and interfaces are told by a number in the target's rings that there are
//! others than before, and ask for them.
//!
//! Zero-copy monitors form a chain, per ring: the target's slots go to the first, and what each
//! releases goes to the next (S-MON-7).
//!
//! ```text
//!   target's rings --copy--> any number of copy monitors
//!         \--------swap----> zero-copy monitor --swap--> zero-copy monitor ...
//! ```

use ringway_abi::Dir;
use ringway_kring::Offsets;
use ringway_mirror::{Mirror, MirrorMode, Mirrors};
use ringway_proto::{
    Cause, Error, MirrorGrant, MirrorMemory, Monitor as Wants, Offsets as AskedOffsets, PortKind,
    Registration, Reply, Result, RingBackend,
};
use ringway_region::Sizes;
use ringway_switch_port::PortMirrors;
use rustix::fd::OwnedFd;

use crate::{
    bind_reply::Fds,
    handles::Handle,
    host_rings::HostRings,
    kinds::{
        OpenRequest, PortBackend, RingAt,
        vale::{MAX_EXTRA, MAX_SLOTS},
    },
    port::{Port, PortId, Ring, Shape, free_ring, make_rings},
    registry::Registry,
};

/// Monitors of a port at most: a pipe's sender feeds those of two ports, and has to have two
/// descriptors of each in one message.
const MAX_MONITORS: usize = 60;

/// A port that is fed by what moves another port's packets.
pub(crate) struct Monitor {
    /// `None` when that port has left netmap mode.
    source: Option<MonitorSource>,
}

/// What a monitor is fed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MonitorSource {
    pub target: PortId,
    wants: Wants,
}

impl MonitorSource {
    fn swaps(&self) -> bool {
        self.wants.zero_copy
    }

    /// How it is fed by a ring of the target, if at all.
    fn mode(&self, dir: Dir) -> Option<MirrorMode> {
        match (self.swaps(), dir) {
            (true, Dir::Tx) => Some(MirrorMode::SwapSent),
            (true, Dir::Rx) => Some(MirrorMode::SwapReceived),
            (false, Dir::Tx) => self.wants.tx.then_some(MirrorMode::CopySent),
            (false, Dir::Rx) => self.wants.rx.then_some(MirrorMode::CopyReceived),
        }
    }

    /// As in the name of a port, behind a `/`.
    fn letters(&self) -> String {
        let Wants { tx, rx, zero_copy } = self.wants;
        let letters = [(zero_copy, 'z'), (rx, 'r'), (tx, 't')];
        letters.iter().filter(|(wanted, _)| *wanted).map(|(_, letter)| letter).collect()
    }
}

/// Whether a request is for a monitor.
pub(crate) fn is_asked(reg: &Registration) -> bool {
    reg.monitor.is_asked()
}

/// What a monitor's registration reports (S-REG-7).
fn granted(wants: Wants) -> Wants {
    let Wants { tx, rx, zero_copy } = wants;
    Wants { tx: tx || zero_copy, rx: rx || zero_copy, zero_copy }
}

/// A ring of a monitor with how it is fed.
struct FedRing<'r> {
    ring: &'r Ring,
    mode: MirrorMode,
}

impl FedRing<'_> {
    /// Of the ring that feeds it, which are `by`, and its own.
    fn offsets(&self, by: Offsets) -> [Offsets; 2] {
        [by, self.ring.offsets.unwrap_or_default()]
    }
}

impl Monitor {
    pub fn open(registry: &mut Registry, request: &OpenRequest<'_>) -> Result<Option<PortId>> {
        if is_asked(request.reg) { Monitor::create(registry, request).map(Some) } else { Ok(None) }
    }
}

impl PortBackend for Monitor {
    fn display_kind(&self) -> Option<PortKind> {
        Some(PortKind::Monitor)
    }

    fn link(&self, at: &RingAt<'_>, _fds: &mut Fds) -> Result<RingBackend> {
        let target = self.source.and_then(|source| at.registry.ports.get(source.target));
        let served = target.is_some_and(|port| {
            port.backend.switch_side().is_some() || port.backend.is_switchs_own()
        });
        Ok(RingBackend::Monitor { served })
    }

    /// Of the port that it is fed by.
    fn netns(&self, registry: &Registry) -> Option<u64> {
        registry.ports.get(self.source?.target)?.backend.netns(registry)
    }

    /// Buffers that are swapped with those of the target's rings begin where these do (S-OFF-1).
    fn check_offsets(&self, port: &Port, _asked: &AskedOffsets, _receives: bool) -> Result<()> {
        match self.source.is_some_and(|source| source.swaps()) {
            true => Err(no_offsets(&port.name)),
            false => Ok(()),
        }
    }

    /// From now on its rings are fed.
    fn bound(registry: &mut Registry, id: PortId, reg: &mut Registration) {
        reg.monitor = granted(reg.monitor);
        if let Some(source) = Monitor::source_of(registry, id) {
            Monitor::update_mirrors(registry, source.target);
        }
    }

    /// A monitor whose rings no program has is fed no more.
    fn unbind(registry: &mut Registry, id: PortId) {
        if let Some(source) = Monitor::source_of(registry, id) {
            Monitor::update_mirrors(registry, source.target);
        }
    }

    /// A client may be about to fill one of its rings.
    fn reclaim(registry: &mut Registry, id: PortId) {
        let region = registry.port(id).region;
        let book = registry.regions.get(region);
        let Some(port) = registry.ports.get_mut(id) else { return };
        port.host.open = false;
        let (tx, rx) = (std::mem::take(&mut port.tx), std::mem::take(&mut port.rx));
        tx.iter().for_each(|ring| free_ring(book, ring));
        book.leave(rx);
        registry.remove(id);
    }

    /// A monitor's host rings are there as long as it is.
    fn disconnect_host(_registry: &mut Registry, _id: PortId) -> bool {
        false
    }
}

/// Refuses offsets where the packets of a ring begin where their buffers do.
pub(crate) fn no_offsets(name: &str) -> Error {
    Error::new(Cause::Unsupported, "packets begin where their buffers do here")
        .at(name)
        .remedy("ask for no offsets")
}

impl Monitor {
    /// A new monitor of the port of that name (S-MON-1, S-MON-2).
    fn create(registry: &mut Registry, request: &OpenRequest<'_>) -> Result<PortId> {
        let plain = Registration { monitor: Wants::default(), ..*request.reg };
        let target = registry.look_up(&OpenRequest { reg: &plain, ..*request })?;
        Monitor::create_for(registry, request, target)
    }

    /// The same for a port that was found.
    pub(crate) fn create_for(
        registry: &mut Registry,
        request: &OpenRequest<'_>,
        target: PortId,
    ) -> Result<PortId> {
        let &OpenRequest { caller, name, reg, .. } = request;
        let is_switchs_own = registry.port(target).backend.is_switchs_own();
        if registry.port(target).bindings == 0 && !is_switchs_own {
            let is_interface = registry.port(target).backend.display_kind() == Some(PortKind::Nic);
            registry.reap(target);
            let remedy = match is_interface {
                true => format!(
                    "open the port first, or run `ringway capture netmap:{name}/rt`, which needs no other program"
                ),
                false => "open the port first".into(),
            };
            return Err(Error::invalid("no program has it open, so it cannot be monitored")
                .at(name)
                .remedy(remedy));
        }
        if reg.monitor.zero_copy && is_switchs_own {
            return Err(Error::new(Cause::Unsupported, "its buffers are the kernel's")
                .at(name)
                .remedy("ask for a monitor that copies: leave out the `z`"));
        }
        if Monitor::of(registry, target).count() >= MAX_MONITORS {
            return Err(Error::no_memory(format!(
                "it has {MAX_MONITORS} monitors already, the most there can be"
            ))
            .at(name));
        }
        let source = MonitorSource { target, wants: granted(reg.monitor) };
        let of = registry.port(target).shape(&registry.settings);
        let slots =
            |asked, default| if asked == 0 { default } else { std::cmp::min(asked, MAX_SLOTS) };
        let host = registry.port(target).host.counts;
        let most = host.into_iter().max().unwrap_or(0);
        let host = HostRings { counts: [most.min(1), most], open: true, forwarders: 0 };
        let nic = [1, of.rings[0].max(of.rings[1])];
        let shape = Shape {
            rings: [nic[0] + u32::from(host.counts[0]), nic[1] + u32::from(host.counts[1])],
            slots: [slots(reg.tx_slots, of.slots[0]), slots(reg.rx_slots, of.slots[1])],
        };
        let region = match reg.mem_id {
            _ if source.swaps() => registry.port(target).region,
            // Whoever drives the target's rings maps the monitor's region.
            1.. if registry.port(target).uid != caller.uid => {
                let uid = registry.port(target).uid;
                return Err(Error::invalid(format!(
                    "the programs of user {uid} would see what else is in the monitor's region"
                ))
                .at(name)
                .remedy("name none, and it gets one of its own"));
            }
            0 => {
                let extra = reg.extra_bufs.min(MAX_EXTRA);
                let host_or_fake = nic.map(|rings| rings + u32::from(most.max(1)));
                let sizes = Sizes::private(host_or_fake, shape.slots, 0, extra);
                registry.regions.private(caller.uid, &sizes)?
            }
            mem_id => registry.regions.by_id(mem_id, caller.uid)?,
        };
        let rings = make_rings(&mut registry.regions, region, shape);
        let rings = rings.inspect_err(|_| registry.regions.drop_unused(region))?;
        let name = format!("{}/{}", registry.port(target).name, source.letters());
        let backend = Monitor { source: Some(source) };
        let id = registry.add_port(&name, None, caller.uid, region, backend);
        rings[1].iter().for_each(|ring| ring.kring.set_feed_id(Monitor::next_generation(registry)));
        let port = registry.port_mut(id);
        port.set_rings(rings);
        port.host = host;
        Ok(id)
    }

    /// The monitors of a port, in the order in which they came.
    fn of(
        registry: &Registry,
        target: PortId,
    ) -> impl Iterator<Item = (PortId, &Port, MonitorSource)> {
        registry.ports.iter().filter_map(move |(&id, port)| {
            let source = port.get::<Monitor>()?.source.filter(|source| source.target == target)?;
            Some((id, port, source))
        })
    }

    /// What a monitor is fed, if it is one and there is something.
    fn source_of(registry: &Registry, id: PortId) -> Option<MonitorSource> {
        registry.ports.get(id)?.get::<Monitor>()?.source
    }

    /// The rx ring of its monitors that belongs to a ring of a port: host rings come last.
    fn ring_for(registry: &Registry, target: PortId, dir: Dir, index: usize) -> usize {
        let port = registry.port(target);
        let rings = [Dir::Tx, Dir::Rx].map(|dir| port.nic_rings(dir).len());
        match index.checked_sub(port.nic_rings(dir).len()) {
            Some(host) => rings[0].max(rings[1]) + host,
            None => index,
        }
    }

    /// The monitors of a port that have their rx ring `index` bound.
    fn of_ring(
        registry: &Registry,
        target: PortId,
        index: usize,
    ) -> impl Iterator<Item = (PortId, &Ring, MonitorSource)> {
        Monitor::of(registry, target).filter_map(move |(id, port, source)| {
            let ring = port.rx.get(index).filter(|ring| ring.users > 0)?;
            Some((id, ring, source))
        })
    }

    /// What a ring of a port feeds, whichever driver moves its packets.
    fn fed_by(registry: &Registry, id: PortId, dir: Dir, index: usize) -> Vec<FedRing<'_>> {
        if let Some(Monitor { source }) = registry.port(id).get() {
            let Some(source) = source.filter(|source| source.swaps() && dir == Dir::Rx) else {
                return Vec::new();
            };
            let chain =
                Monitor::of_ring(registry, source.target, index).filter(|(.., w)| w.swaps());
            let next = chain.skip_while(|(other, ..)| *other != id).nth(1);
            let fed = |(_, ring, _)| FedRing { ring, mode: MirrorMode::SwapReleased };
            return next.map(fed).into_iter().collect();
        }
        let index = Monitor::ring_for(registry, id, dir, index);
        let mut has_swap = false;
        let fed = |(_, ring, source): (_, _, MonitorSource)| {
            let mode = source.mode(dir)?;
            let behind = source.swaps() && std::mem::replace(&mut has_swap, true);
            (!behind).then_some(FedRing { ring, mode })
        };
        Monitor::of_ring(registry, id, index).filter_map(fed).collect()
    }

    /// What the driver of a ring feeds. What a pipe's sender has sent has reached the receiver.
    fn fed_by_driver(registry: &Registry, id: PortId, dir: Dir, index: usize) -> Vec<FedRing<'_>> {
        let mut fed = Monitor::fed_by(registry, id, dir, index);
        if let Some(peer) = registry.port(id).backend.peer() {
            match dir {
                Dir::Tx => {
                    let reached = Monitor::fed_by(registry, peer, Dir::Rx, index).into_iter();
                    fed.extend(reached.filter(|fed| fed.mode == MirrorMode::CopyReceived));
                }
                Dir::Rx => fed.retain(|fed| fed.mode != MirrorMode::CopyReceived),
            }
        }
        fed
    }

    /// The monitors of a port have changed: tells the driver that feeds them. A worker feeds no others
    /// when this returns; clients may not have looked yet.
    pub(crate) fn update_mirrors(registry: &mut Registry, target: PortId) {
        let generation = Monitor::next_generation(registry);
        for (_, monitor, _) in Monitor::of(registry, target) {
            monitor.rx.iter().for_each(|ring| ring.kring.set_monitors(generation));
        }
        (registry.actions(target).mirrors_changed)(registry, target, generation);
    }

    /// The rings of a port are not those that they were: tells the driver that feeds its monitors, if it
    /// has any.
    pub(crate) fn update_mirrors_if_any(registry: &mut Registry, target: PortId) {
        let is_monitored = Monitor::of(registry, target).next().is_some();
        if is_monitored {
            Monitor::update_mirrors(registry, target);
        }
    }

    fn next_generation(registry: &mut Registry) -> u32 {
        registry.last_monitors = registry.last_monitors.checked_add(1).unwrap_or(1);
        registry.last_monitors
    }

    /// Of the rings of a port, or of its host rings.
    pub(crate) fn port_mirrors(registry: &Registry, id: PortId, host: bool) -> PortMirrors {
        let port = registry.port(id);
        let mirrors = |dir: Dir| {
            let nic = port.nic_rings(dir).len();
            let (rings, first) =
                if host { (port.host_rings(dir), nic) } else { (port.nic_rings(dir), 0) };
            let mirrors = |(i, ring): (usize, &Ring)| {
                let offsets = ring.offsets.unwrap_or_default();
                Monitor::mirrors_of(registry, id, dir, first + i, offsets)
            };
            rings.iter().enumerate().map(mirrors).collect()
        };
        PortMirrors { tx: mirrors(Dir::Tx), rx: mirrors(Dir::Rx) }
    }

    /// Of the queues of an interface that a switch has.
    pub(crate) fn queue_mirrors(registry: &Registry, id: PortId, queues: u32) -> PortMirrors {
        let mirrors = |dir: Dir| {
            let queues = 0..queues as usize;
            queues.map(|i| Monitor::mirrors_of(registry, id, dir, i, Offsets::default())).collect()
        };
        PortMirrors { tx: mirrors(Dir::Tx), rx: mirrors(Dir::Rx) }
    }

    /// Of a ring whose data begins at `offsets`.
    fn mirrors_of(
        registry: &Registry,
        id: PortId,
        dir: Dir,
        index: usize,
        offsets: Offsets,
    ) -> Mirrors {
        let mirror = |fed: FedRing| {
            let (kring, doorbell) = (fed.ring.kring.clone(), fed.ring.doorbell.clone());
            Mirror::new(kring, doorbell, fed.mode).with_offsets(fed.offsets(offsets))
        };
        Monitor::fed_by(registry, id, dir, index).into_iter().map(mirror).collect()
    }

    /// The answer to a client that has seen that its ring has other monitors than before.
    pub(crate) fn grant(
        registry: &mut Registry,
        handle: Handle,
        dir: Dir,
        index: u16,
    ) -> Result<(Reply, Vec<OwnedFd>)> {
        let id = registry.handles.binding(handle)?.port;
        let no_ring = || Error::invalid("there is no such ring");
        let by = registry.port(id).rings(dir).get(usize::from(index)).ok_or_else(no_ring)?;
        let mut fds = Fds::default();
        let mut mirrors = Vec::new();
        for fed in Monitor::fed_by_driver(registry, id, dir, index.into()) {
            // Descriptors are counted from 0 here: no memfd goes before them.
            let doorbell = fds.add(fed.ring.doorbell.as_ref())? - 1;
            let kring = &fed.ring.kring;
            let (object, num_slots) = (kring.object(), kring.ring().num_slots());
            let id = kring.feed_id();
            let mut memory = None;
            if fed.mode.copies() {
                let region = kring.ring().region();
                let memfd = fds.add(region.memfd())? - 1;
                memory =
                    Some(MirrorMemory { memfd, mem_id: region.mem_id(), layout: *region.layout() });
            }
            let offsets = fed.offsets(by.offsets.unwrap_or_default());
            mirrors.push(MirrorGrant {
                mode: fed.mode,
                offsets,
                memory,
                object,
                id,
                num_slots,
                doorbell,
            });
        }
        Ok((Reply::Mirrors(mirrors), fds.0))
    }

    /// A port leaves netmap mode: its monitors stay open, and get nothing more (S-MON-8).
    pub(crate) fn end_all(registry: &mut Registry, target: PortId) {
        let ids: Vec<PortId> = Monitor::of(registry, target).map(|(id, ..)| id).collect();
        if ids.is_empty() {
            return;
        }
        let generation = Monitor::next_generation(registry);
        for id in ids {
            let port = registry.port_mut(id);
            if let Some(monitor) = port.get_mut::<Monitor>() {
                monitor.source = None;
            }
            for ring in &port.rx {
                ring.kring.end();
                // What it fed in its turn is fed no more.
                ring.kring.set_monitors(generation);
                ring.doorbell.notify();
            }
        }
        Monitor::update_mirrors(registry, target);
    }
}
