//! After a panic: the books are made to agree again.
//!
//! What was being changed may be half done. What each connection has registered is the one thing that is
//! believed: all else that is counted is counted anew, and what nothing refers to goes, by the same ways
//! as ever. So the request that has panicked has changed nothing, or all, or has cost its own client the
//! port; and all others go on.

use std::collections::{BTreeMap, BTreeSet};

use ringway_abi::Dir;

use crate::{
    kinds::{monitor::Monitor, persistent::Persistent},
    name::PortName,
    port::{Port, PortId},
    registry::Registry,
};

/// What the bindings of a port come to.
#[derive(Default)]
struct Uses {
    bindings: u32,
    children: u32,
    forwarders: u32,
    /// Users of its rings, and whether one has a ring for itself.
    rings: BTreeMap<(bool, u16), (u32, bool)>,
}

impl Registry {
    /// Call it when [`call`](Registry::call), or another function, has panicked. What a registration has
    /// got so far goes. A handle that was being closed is to be closed again.
    pub fn recover(&mut self) {
        let progress = std::mem::take(&mut self.progress);
        if let Some(handle) = self.registering.take() {
            self.handles.unbind(handle);
        }
        self.return_objects();
        self.unbinding = None;
        self.handles.recount();
        self.strike_half_pipes();
        self.recount_uses();
        self.agree_about_switches();
        self.let_go_of_unused();
        self.agree_about_interfaces();
        self.end(progress);
        self.recount_regions();
        self.regions.keys().into_iter().for_each(|region| self.reclaim_region(region));
    }

    fn ids(&self) -> Vec<PortId> {
        self.ports.iter().map(|(&id, _)| id).collect()
    }

    /// Ends of pipes that have lost the other one, or their parent.
    fn strike_half_pipes(&mut self) {
        let there = |id: PortId| self.ports.get(id);
        let is_half = |id: PortId, port: &Port| {
            let parent = port.backend.parent();
            let peer = port.backend.peer();
            parent.is_some_and(|parent| there(parent).is_none())
                || peer.is_some_and(|peer| {
                    there(peer).and_then(|peer| peer.backend.peer()) != Some(id)
                })
        };
        let half: Vec<_> =
            self.ports.iter().filter(|(id, port)| is_half(**id, port)).map(|(&id, _)| id).collect();
        for id in half {
            let theirs = self.handles.bindings().filter(|(_, binding)| binding.port == id);
            let handles: Vec<_> = theirs.map(|(handle, _)| handle).collect();
            handles.iter().for_each(|handle| drop(self.handles.unbind(*handle)));
            self.free_rings(id);
            self.remove_uncounted(id);
        }
        let of_no_port = |port| self.ports.get(port).is_none();
        let astray = self.handles.bindings().filter(|(_, binding)| of_no_port(binding.port));
        let handles: Vec<_> = astray.map(|(handle, _)| handle).collect();
        handles.iter().for_each(|handle| drop(self.handles.unbind(*handle)));
    }

    /// The port goes, while its region's count is not to be believed.
    fn remove_uncounted(&mut self, id: PortId) {
        self.watches.remove(id);
        self.ports.remove(id);
    }

    fn recount_uses(&mut self) {
        let mut all: BTreeMap<PortId, Uses> = BTreeMap::new();
        for (_, binding) in self.handles.bindings() {
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
        for (&id, port) in self.ports.iter() {
            // Of a pipe one end.
            if let (Some(parent), Some(peer)) = (port.backend.parent(), port.backend.peer())
                && id < peer
            {
                all.entry(parent).or_default().children += 1;
            }
        }
        for (id, port) in self.ports.iter_mut() {
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
    fn agree_about_switches(&mut self) {
        let there: Vec<_> = self.bridges.places().collect();
        let claimed: Vec<_> =
            self.ports.iter().flat_map(|(_, port)| port.backend.bridge_ports()).collect();
        for place in there.iter().filter(|place| !claimed.contains(place)) {
            self.bridges.detach(place);
        }
        self.bridges.reap();
        for id in self.ids() {
            let Some(port) = self.ports.get(id).filter(|port| !port.gone) else { continue };
            let places = port.backend.bridge_ports();
            let has_none =
                port.backend.switch_side().is_some_and(|side| side.bridge_port.is_none());
            if has_none || places.iter().any(|place| !there.contains(place)) {
                self.lose_port(id);
            }
        }
        let is_false =
            |key: &str, id: PortId| match PortName::parse(key, ringway_proto::Cause::Invalid) {
                Ok(PortName::Vale { bridge, .. }) => {
                    let is_persistent =
                        self.ports.get(id).is_some_and(|port| port.is::<Persistent>());
                    is_persistent && !self.bridges.has(bridge, key)
                }
                _ => false,
            };
        let names = self.ports.names().filter(|(key, id)| is_false(key, *id));
        let names: Vec<_> = names.map(|(key, _)| key.to_owned()).collect();
        names.iter().for_each(|name| self.ports.forget(name));
    }

    /// As when a registration fails.
    fn let_go_of_unused(&mut self) {
        for id in self.ids() {
            let Some(port) = self.ports.get(id) else { continue };
            let is_needed = !port.is_unused() || port.backend.is_set_up();
            self.users_changed(id);
            if !is_needed {
                Monitor::end_all(self, id);
                (self.actions(id).unbind)(self, id);
            }
            self.reap(id);
        }
        self.bridges.reap();
    }

    /// What the ports of an interface share is theirs alone.
    fn agree_about_interfaces(&mut self) {
        let there: BTreeSet<_> = self.ids().into_iter().collect();
        self.shared.retain(|_, shared| {
            let gone: Vec<_> =
                shared.ports().into_iter().filter(|id| !there.contains(id)).collect();
            gone.iter().for_each(|&id| drop(shared.leave(id)));
            !shared.ports().is_empty()
        });
        self.watches.retain(|id| there.contains(&id));
    }

    fn recount_regions(&mut self) {
        for key in self.regions.keys() {
            let ports = self.ports.iter().filter(|(_, port)| port.region == key);
            let mut rings: Vec<_> =
                ports.clone().flat_map(|(_, port)| port.tx.iter().chain(&port.rx)).collect();
            let mut count = ports.count() as u32;
            let left = self.leftovers.rings().chain(self.closings.rings());
            for (_, left) in left.filter(|(region, _)| *region == key) {
                rings.extend(left);
                count += 1;
            }
            let bindings = self.handles.bindings().filter(|(_, binding)| binding.region == key);
            let ifs: Vec<_> = bindings.map(|(_, binding)| binding.netif.object()).collect();
            self.regions.recount(key, &rings, &ifs, count);
        }
    }
}
