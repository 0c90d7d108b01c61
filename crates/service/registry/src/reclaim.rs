//! A region that outlives its users: what its programs have lost comes back with the last of them
//! (S-MEM-10).
//!
//! A region goes with its last port. But a persistent port stays without programs, and a NIC on a
//! bridge keeps the global region of its user.

use ringway_proto::Result;
use ringway_vale::Draining;

use crate::{
    draining::Drained,
    kinds::{
        RingUse,
        monitor::Monitor,
        vale::{served_side, vacant_side},
    },
    port::PortId,
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

impl Registry {
    /// Has ports that have stayed served again, with rings made anew if no program uses their region.
    pub(crate) fn drained(&mut self, drained: Drained) {
        drained.iter().for_each(|(_, region)| self.reclaim_region(*region));
        for (id, _) in drained {
            if !self.leftovers.any_of(id) {
                self.serve_again(id);
            }
        }
    }

    fn serve_again(&mut self, id: PortId) {
        let Some(port) = self.ports.get(id).filter(|port| port.all_rings().next().is_some()) else {
            return;
        };
        let Some(side) = port.backend.switch_side() else { return };
        if let (Some(bridge_port), Some(served)) = (side.bridge_port.clone(), served_side(port)) {
            self.bridges.replace(&bridge_port, Box::new(served));
            Monitor::update_mirrors_if_any(self, id);
        }
    }

    /// Fails as long as what the last program of a port has sent is being forwarded.
    pub(crate) fn await_drained(&mut self, id: PortId) -> Result<()> {
        if !self.leftovers.any_of(id) {
            return Ok(());
        }
        let account = self.regions.account_of(self.port(id).region);
        self.deferred.await_memory(account)
    }

    /// Requests that [wait](crate::Step::Wait) for memory and may be begun again: some has been freed, or
    /// nothing is left to wait for.
    pub fn has_freed(&mut self, accounts: &[u32]) -> Vec<u32> {
        let any = self.regions.take_freed();
        let is_ready = |&account: &u32| any || !self.leftovers.is_freeing(account, &self.regions);
        accounts.iter().copied().filter(is_ready).collect()
    }
}
