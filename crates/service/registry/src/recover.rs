//! After a panic: the books are made to agree again.
//!
//! What was being changed may be half done. What each connection has registered is the one thing that is
//! believed: all else that is counted is counted anew, and what nothing refers to goes, by the same ways
//! as ever. So the request that has panicked has changed nothing, or all, or has cost its own client the
//! port; and all others go on.

use std::collections::BTreeMap;

use ringway_abi::Dir;
use ringway_nic_setup::{Link, LinkState};
use ringway_proto::Cause;

use crate::{
    handles::Handles,
    kinds::{monitor::Monitor, nic::Nic, nic_sockets::Sockets, persistent::Persistent},
    link_events::Watches,
    lost_ports,
    name::PortName,
    port::{Port, PortId},
    ports::Ports,
    regions::Regions,
    registry::Registry,
    subject::NicKey,
};

/// What the bindings of a port come to.
#[derive(Default)]
pub(crate) struct Uses {
    pub bindings: u32,
    pub children: u32,
    pub forwarders: u32,
    /// Users of its rings, and whether one has a ring for itself.
    pub rings: BTreeMap<(bool, u16), (u32, bool)>,
}

impl Registry {
    /// Call it when [`call`](Registry::call), or another function, has panicked. What a registration has
    /// got so far goes. A handle that was being closed is to be closed again.
    pub fn recover(&mut self) {
        let progress = std::mem::take(&mut self.deferred.progress);
        if let Some(handle) = self.registering.take() {
            self.handles.unbind(handle);
        }
        if let Some(binding) = &mut self.unbinding {
            binding.return_objects(&mut self.regions);
        }
        self.unbinding = None;
        self.handles.recount();
        let Registry { handles, ports, regions, watches, .. } = self;
        strike_half_pipes(handles, ports, regions, watches);
        recount_uses(handles, ports);
        self.deferred.free_returned_uncounted(&mut self.regions);
        agree_about_switches(self);
        finish_gone(self);
        let_go_of_unused(self);
        agree_about_interfaces(self);
        self.end(progress);
        recount_regions(self);
        self.regions.keys().into_iter().for_each(|region| self.reclaim_region(region));
    }
}

fn ids(ports: &Ports) -> Vec<PortId> {
    ports.iter().map(|(&id, _)| id).collect()
}

/// Ends of pipes that have lost the other one, or their parent.
fn strike_half_pipes(
    handles: &mut Handles,
    ports: &mut Ports,
    regions: &mut Regions,
    watches: &mut Watches,
) {
    let is_half = |id: PortId, port: &Port| {
        let parent = port.backend.parent();
        let peer = port.backend.peer();
        parent.is_some_and(|parent| ports.get(parent).is_none())
            || peer.is_some_and(|peer| {
                ports.get(peer).and_then(|peer| peer.backend.peer()) != Some(id)
            })
    };
    let half: Vec<_> =
        ports.iter().filter(|(id, port)| is_half(**id, port)).map(|(&id, _)| id).collect();
    for id in half {
        handles.unbind_all(|port| port == id);
        if let Some(port) = ports.get_mut(id) {
            regions.free_rings_of(port);
        }
        // It goes while its region's count is not to be believed.
        watches.remove(id);
        ports.remove(id);
    }
    handles.unbind_all(|port| ports.get(port).is_none());
}

/// Those of all ports that have any.
pub(crate) fn uses(handles: &Handles, ports: &Ports) -> BTreeMap<PortId, Uses> {
    let mut all: BTreeMap<PortId, Uses> = BTreeMap::new();
    for (_, binding) in handles.bindings() {
        let uses = all.entry(binding.port).or_default();
        uses.bindings += 1;
        uses.forwarders += u32::from(binding.forwards);
        for (is_rx, rings) in [false, true].into_iter().zip(&binding.rings) {
            for &ring in rings {
                let (users, exclusive) = uses.rings.entry((is_rx, ring)).or_default();
                *users += 1;
                *exclusive |= binding.exclusive;
            }
        }
    }
    for (&id, port) in ports.iter() {
        // Of a pipe one end.
        if let (Some(parent), Some(peer)) = (port.backend.parent(), port.backend.peer())
            && id < peer
        {
            all.entry(parent).or_default().children += 1;
        }
    }
    all
}

fn recount_uses(handles: &Handles, ports: &mut Ports) {
    let mut all = uses(handles, ports);
    for (id, port) in ports.iter_mut() {
        let uses = all.remove(id).unwrap_or_default();
        (port.bindings, port.children) = (uses.bindings, uses.children);
        port.host.forwarders = uses.forwarders;
        for (is_rx, dir) in [(false, Dir::Tx), (true, Dir::Rx)] {
            for (index, ring) in (0..).zip(port.rings_mut(dir)) {
                let now = uses.rings.get(&(is_rx, index)).copied().unwrap_or_default();
                if ring.exclusive && !now.1 {
                    ring.kring.leave_csb();
                }
                (ring.users, ring.exclusive) = now;
            }
        }
        port.update_receives();
    }
}

/// Each place on a switch is a port's, and each port that has one is there.
fn agree_about_switches(registry: &mut Registry) {
    let there: Vec<_> = registry.bridges.places().collect();
    let claimed: Vec<_> =
        registry.ports.iter().flat_map(|(_, port)| port.backend.bridge_ports()).collect();
    for place in there.iter().filter(|place| !claimed.contains(place)) {
        registry.close_place(place);
    }
    registry.bridges.reap();
    for id in ids(&registry.ports) {
        let Some(port) = registry.ports.get(id).filter(|port| !port.gone) else { continue };
        let places = port.backend.bridge_ports();
        let has_none = port.backend.switch_side().is_some_and(|side| side.bridge_port.is_none());
        if has_none || places.iter().any(|place| !there.contains(place)) {
            lost_ports::lose(registry, id);
        }
    }
    let Registry { ports, bridges, .. } = registry;
    let is_false = |key: &str, id: PortId| match PortName::parse(key, Cause::Invalid) {
        Ok(PortName::Vale { bridge, .. }) => {
            let is_persistent = ports.get(id).is_some_and(|port| port.is::<Persistent>());
            is_persistent && !bridges.has(bridge, key)
        }
        _ => false,
    };
    let names = ports.names().filter(|(key, id)| is_false(key, *id));
    let names: Vec<_> = names.map(|(key, _)| key.to_owned()).collect();
    names.iter().for_each(|name| ports.forget(name));
}

/// An interface may just have gone: its watch has said so, and says it no more.
fn finish_gone(registry: &mut Registry) {
    let gone = Link { state: LinkState::Gone, mtu: 0 };
    for id in ids(&registry.ports) {
        let has_gone = |port: &Port| port.backend.is_watched() && !registry.watches.has(id);
        if registry.ports.get(id).is_some_and(has_gone) {
            (registry.actions(id).link_changed)(registry, id, gone);
        }
    }
}

/// As when a registration fails.
fn let_go_of_unused(registry: &mut Registry) {
    for id in ids(&registry.ports) {
        let Some(port) = registry.ports.get(id) else { continue };
        let is_needed = !port.is_unused() || port.backend.is_set_up();
        registry.users_changed(id);
        if !is_needed {
            Monitor::end_all(registry, id);
            (registry.actions(id).unbind)(registry, id);
        }
        registry.reap(id);
    }
    registry.bridges.reap();
}

/// What the ports of an interface share is theirs alone, and its queues are those of their sockets.
fn agree_about_interfaces(registry: &mut Registry) {
    let Registry { ports, shared: all_shared, watches, deferred, .. } = registry;
    let is_there = |id: PortId| ports.get(id).is_some();
    let queues_of = |key: NicKey| {
        let nics = ports.iter().filter_map(|(&id, port)| Some((id, port.get::<Nic>()?)));
        let theirs = nics.filter(move |(_, nic)| nic.key == key);
        theirs.flat_map(|(id, nic)| {
            nic.sockets.iter().flat_map(Sockets::all).map(move |(queue, _)| (queue, id))
        })
    };
    all_shared.retain(|&key, shared| {
        let gone: Vec<_> = shared.ports().into_iter().filter(|&id| !is_there(id)).collect();
        gone.iter().for_each(|&id| deferred.close_off_loop(key, shared.leave(id)));
        if let Some(ending) = shared.recount(queues_of(key).collect()) {
            deferred.end_off_loop(key, ending);
        }
        let is_left = shared.ports().is_empty();
        if is_left {
            deferred.end_off_loop(key, shared.detach_programs());
        }
        !is_left
    });
    watches.retain(is_there);
}

fn recount_regions(registry: &mut Registry) {
    let Registry { handles, ports, regions, leftovers, deferred, .. } = registry;
    for key in regions.keys() {
        let ports = ports.iter().filter(|(_, port)| port.region == key);
        let mut rings: Vec<_> =
            ports.clone().flat_map(|(_, port)| port.tx.iter().chain(&port.rx)).collect();
        let mut count = ports.count() as u32;
        let left = leftovers.rings().chain(deferred.rings());
        for (_, left) in left.filter(|(region, _)| *region == key) {
            rings.extend(left);
            count += 1;
        }
        let bindings = handles.bindings().filter(|(_, binding)| binding.region == key);
        let ifs: Vec<_> = bindings.map(|(_, binding)| binding.netif.object()).collect();
        regions.recount(key, &rings, &ifs, count);
    }
}
