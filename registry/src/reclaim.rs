//! A region that outlives its users: what its programs have lost comes back with the last of them
//! (S-MEM-10).
//!
//! A region goes with its last port. But a persistent port stays without programs, and a NIC on a
//! bridge keeps the global region of its user.

use crate::{
    port::Kind,
    regions::RegionKey,
    registry::Registry,
    virtual_ports::{served_side, vacant_side},
};

impl Registry {
    /// Hands all objects of a region out anew, if no program uses any.
    pub(crate) fn reclaim(&mut self, region: RegionKey) {
        let mut served = Vec::new();
        let mut is_held = false;
        for (&id, port) in self.ports.iter().filter(|(_, port)| port.region == region) {
            is_held = true;
            match &port.kind {
                // Its rings are elsewhere.
                Kind::Attached { .. } => {}
                Kind::Vale { place: Some(place), device: Some(device), .. }
                    if port.bindings == 0 && !device.is_joined() =>
                {
                    served.push((id, place.clone()));
                }
                _ => return,
            }
        }
        if !is_held {
            return;
        }
        // From here on no worker touches the region. On their bridges the ports keep their places.
        for (id, place) in &served {
            self.bridges.replace(place, Box::new(vacant_side(self.port(*id))));
        }
        let book = self.regions.get(region);
        book.clear();
        for (id, _) in &served {
            let port = self.ports.get_mut(id).expect("found above");
            port.renew_rings(book);
        }
        for (id, place) in &served {
            self.bridges.replace(place, Box::new(served_side(self.port(*id))));
        }
    }
}
