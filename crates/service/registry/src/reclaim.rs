//! A region that outlives its users: what its programs have lost comes back with the last of them
//! (S-MEM-10).
//!
//! A region goes with its last port. But a persistent port stays without programs, and a NIC on a
//! bridge keeps the global region of its user.

use ringway_vale::Draining;

use crate::{
    kinds::{
        RingUse,
        vale::{served_side, vacant_side},
    },
    regions::RegionKey,
    registry::Registry,
};

impl Registry {
    /// Hands all objects of a region out anew, if no program uses any.
    pub(crate) fn reclaim_region(&mut self, region: RegionKey) {
        let mut served = Vec::new();
        let mut is_held = false;
        for (&id, port) in self.ports.iter().filter(|(_, port)| port.region == region) {
            is_held = true;
            match port.backend.ring_use(port) {
                RingUse::NoRings => {}
                RingUse::Served(bridge_port) => served.push((id, bridge_port)),
                RingUse::InUse => return,
            }
        }
        // What the kernel or a worker has yet is not to be another's; and it is freed, object by object, later.
        if !is_held || self.leftovers.any_in(region) || self.deferred.has_rings_in(region) {
            return;
        }
        // From here on no worker touches the region, or soon. On their bridges the ports keep their places.
        for (id, bridge_port) in &served {
            let Some(side) = vacant_side(self.port(*id)) else { continue };
            let doorbell = self.leftovers.doorbell();
            let draining = self.bridges.begin_replace(bridge_port, Box::new(side), doorbell);
            if let Some(draining) = draining.filter(Draining::is_going_on) {
                self.leftovers.reclaim_after(*id, region, draining, &mut self.regions);
            }
        }
        if self.leftovers.any_in(region) {
            return;
        }
        let book = self.regions.get(region);
        book.clear();
        for (id, _) in &served {
            if let Some(port) = self.ports.get_mut(*id) {
                port.renew_rings(book);
            }
        }
        for (id, bridge_port) in &served {
            if let Some(side) = served_side(self.port(*id)) {
                self.bridges.replace(bridge_port, Box::new(side));
            }
        }
    }
}
